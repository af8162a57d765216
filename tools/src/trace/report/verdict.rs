//! The first sentences of a report: what happened, whether balancing helped, what to look at. Fixed rules, so that they
//! can be tested, each with its number.

use super::Report;
use super::account::state_ns;
use super::activities::State;
use super::balance::{EVEN, before};
use super::tables::percent;
use crate::trace::page::{bytes, duration};

/// Handlers shorter than this on average are too short to be worth a message.
const SHORT_NS: f64 = 20_000.0;

/// A sentence, and whether it is a reason to worry.
pub(super) struct Sentence {
    pub(super) text: String,
    pub(super) worry: bool,
}

pub(super) fn sentences(report: &Report<'_>) -> Vec<Sentence> {
    let say = |text: String| Sentence { text, worry: false };
    let worry = |text: String| Sentence { text, worry: true };
    let mut sentences: Vec<Sentence> = failures(report).into_iter().map(worry).collect();
    sentences.push(say(time(report)));
    sentences.push(say(balancing(report)));
    let (text, is_worry) = advice(report);
    sentences.push(Sentence { text, worry: is_worry });
    sentences
}

fn failures(report: &Report<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let failed = |rank: &caribou::trace::RankTrace| {
        rank.end.as_ref().and_then(|end| end.failed.clone()).map(|why| (rank.rank, why))
    };
    let failed: Vec<_> = report.trace.ranks.iter().filter_map(failed).collect();
    if let Some((rank, why)) = failed.first() {
        let more = if failed.len() > 1 { format!(" ({} ranks failed)", failed.len()) } else { String::new() };
        said.push(format!("The run failed: rank {rank}: {why}{more}."));
    }
    let cut: Vec<u32> =
        report.trace.ranks.iter().filter(|rank| rank.end.is_none()).map(|rank| rank.rank).collect();
    if let Some(first) = cut.first() {
        let whose = if cut.len() == 1 { format!("rank {first}") } else { format!("{} ranks", cut.len()) };
        said.push(format!("The trace of {whose} was cut off: the figures end where it does."));
    }
    let there = report.trace.ranks.len();
    if report.trace.run.ranks as usize > there {
        said.push(format!("Of {} ranks only {there} left a trace.", report.trace.run.ranks));
    }
    if report.trace.dropped() > 0 {
        said.push(format!(
            "{} events were not kept: what needs all events is too low.",
            report.trace.dropped()
        ));
    }
    said
}

fn time(report: &Report<'_>) -> String {
    let (trace, figures) = (report.trace, &report.figures);
    let (totals, all_ns) = (figures.totals(), figures.worker_time_ns());
    let program = trace.run.arguments.first().map_or("The program", String::as_str);
    let shares = State::ALL.map(|state| {
        let share = if all_ns > 0.0 { state_ns(&totals, state) as f64 / all_ns } else { 0.0 };
        format!("{} {}", percent(share), state.name())
    });
    let (elapsed, ranks) = (duration(figures.elapsed_ns as f64), trace.ranks.len());
    let workers = figures.workers.len();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "{program} ran {elapsed} on {ranks} rank{} with {workers} worker{}; of the workers' time {}.",
        plural(ranks),
        plural(workers),
        shares.join(", "),
    )
}

fn balancing(report: &Report<'_>) -> String {
    let (balance, figures) = (&report.balance, &report.figures);
    let Some(worst) = balance.worst else {
        return match &report.trace.run.shape[..] {
            "pool" => "A pool: its policy balances all the time, so there are no syncs.".into(),
            _ => "No sync was recorded: nothing was balanced.".into(),
        };
    };
    let spent = balance.spent_ns();
    let mut text = format!(
        "{} syncs, {} with moves: {} chunks of {} moved in {} ({} of the run); imbalance {:.3} at worst (sync {}), {:.3} in \
         the median",
        balance.syncs.len(),
        balance.with_moves(),
        balance.moved(),
        bytes(balance.moved_bytes()),
        duration(spent),
        percent(spent / (figures.elapsed_ns as f64).max(1.0)),
        before(&balance.syncs[worst]),
        balance.syncs[worst].sync,
        balance.median_imbalance().unwrap_or(0.0),
    );
    if let Some(error) = balance.median_error() {
        text += &format!("; predictions were off by {} in the median", percent(error));
    }
    text + "."
}

/// What to look at first, and whether it is a reason to worry.
fn advice(report: &Report<'_>) -> (String, bool) {
    let (figures, balance) = (&report.figures, &report.balance);
    let (totals, all_ns) = (figures.totals(), figures.worker_time_ns());
    let state = |state: State| state_ns(&totals, state) as f64;
    let share = |of: State| if all_ns > 0.0 { state(of) / all_ns } else { 0.0 };
    if figures.workers.iter().all(|worker| worker.totals.is_empty()) {
        return ("Nothing was recorded that takes time: there is nothing to advise.".into(), false);
    }
    let ranks = report.trace.ranks.len().max(1) as f64;
    let heaviest = figures.chunks.sorted().into_iter().next();
    let imbalance = balance.median_imbalance().unwrap_or(0.0);
    if let Some((chunk, heaviest)) = heaviest.filter(|_| ranks > 1.0)
        && heaviest.cpu_ns as f64 > state(State::Chunks) / ranks
    {
        let name = report.trace.chunk_name(chunk);
        let cpu = duration(heaviest.cpu_ns as f64);
        return (
            format!(
                "Split {name}: it took {cpu}, more than an average rank has to do; no strategy can balance that."
            ),
            true,
        );
    }
    if share(State::Lost) > 0.1 {
        let lost_ns = |rank: u32| {
            let workers = figures.workers.iter().filter(|worker| worker.rank == rank);
            workers.map(|worker| worker.state_ns(State::Lost)).fold(0, u64::saturating_add)
        };
        let worst =
            report.trace.ranks.iter().map(|rank| (lost_ns(rank.rank), rank.rank)).max().unwrap_or((0, 0));
        let (part, most) = (percent(share(State::Lost)), duration(worst.0 as f64));
        let text = format!(
            "Look at the machine: {part} of the workers' time was lost, most of it by rank {} ({most}): \
             its vCPUs were somebody else's, or handlers slept or did I/O.",
            worst.1
        );
        return (text, true);
    }
    let spent = balance.spent_ns() / (figures.elapsed_ns as f64).max(1.0);
    if spent > 0.05 {
        return (format!("Balance less often: syncs took {} of the run.", percent(spent)), true);
    }
    let idle = percent(share(State::Idle));
    if share(State::Idle) > 0.2 && imbalance > 1.2 {
        return (
            format!(
                "Balance more or otherwise: workers were idle {idle} of the time, and the median imbalance is {imbalance:.3}."
            ),
            true,
        );
    }
    if share(State::Idle) > 0.2 {
        let why = if imbalance <= EVEN {
            "latency or dependences, not balance"
        } else {
            "latency, dependences or balance"
        };
        return (
            format!("Workers were idle {idle} of the time: {why}; `caribou trace critical-path` tells more."),
            true,
        );
    }
    let handlers =
        totals.iter().enumerate().filter(|(activity, _)| State::of(*activity as u8) == State::Chunks);
    let calls: f64 = handlers.map(|(_, total)| total.calls as f64).sum();
    if calls > 0.0 && state(State::Chunks) / calls < SHORT_NS {
        let mean = duration(state(State::Chunks) / calls);
        return (format!("Make chunks larger: a handler takes {mean} on average."), true);
    }
    ("Nothing stands out.".into(), false)
}
