//! What the paper states without a figure (its overhead, waiting at the end), and what goes beyond it: other intervals,
//! all named scenarios, and sweeps.

use lb_strategies::median;
use presentation::format::decimal;
use virtual_cluster::{Network, SCENARIOS, SWEEPS, Scenario, scenario};

use super::runs::{LEASES, POLICIES, RUPER, STATIC, Trial, range, trials, trials_of};
use crate::paper::page::{Claim, Grid, Section};
use crate::paper::{Context, text};

/// The scenarios of the paper's figures.
const FIGURES: [&str; 7] = ["F6-1", "F6-2", "F6-3", "F6-4", "F7", "F8a", "F8b"];

/// Times of a round trip between ranks, ms.
const ROUND_TRIPS_MS: [u64; 3] = [0, 10, 200];

/// Whether a report takes computing time from its thread in virtual time. It does not, so no run measures that overhead.
const REPORTS_TAKE_TIME: bool = false;

/// The cost of reports: time of messages, and their number.
pub(super) fn overhead(context: &Context) -> Section {
    let names: &[&str] = if context.quick { &FIGURES[..2] } else { &FIGURES };
    let at = |&ms: &u64| {
        names.iter().map(move |name| {
            let scenario = scenario(name).expect("it is listed");
            Scenario { network: Network { rtt: ms * 1_000_000, ..scenario.network }, ..scenario }
        })
    };
    let scenarios: Vec<Scenario> = ROUND_TRIPS_MS.iter().flat_map(at).collect();
    let trials = trials_of(context, "ruper-lb, round trips", &scenarios, &POLICIES[RUPER..]);
    let heads =
        "scenario | `ruper`, 0 ms | 10 ms | 200 ms | messages | `leases`, 0 ms | 10 ms | 200 ms | messages";
    let mut table = Grid::new(
        "Seconds by the time of a round trip between ranks, and messages between ranks at 10 ms.",
        heads,
    );
    let (mut slower, mut messages_most) = ([0.0_f64; 2], [0; 2]);
    for (place, name) in names.iter().enumerate() {
        let mut cells = vec![(*name).to_owned()];
        for policy in [0, 1] {
            let run = |trip: usize| &trials[trip * names.len() + place].runs[policy];
            cells.extend((0..ROUND_TRIPS_MS.len()).map(|trip| decimal(run(trip).makespan_s, 1)));
            cells.push(run(1).messages.to_string());
            slower[policy] = slower[policy].max(100.0 * (run(1).makespan_s / run(0).makespan_s - 1.0));
            messages_most[policy] = messages_most[policy].max(run(1).messages);
        }
        table.row(cells);
    }
    Section::new(
        "Statements on overhead",
        "The paper states that its asynchronous reports have a negligible overhead, without a measurement. Here a thread stops for no \
         report: reports cost nothing in virtual time. So the statement itself is not tested, only the number of messages and the \
         time that answers take.",
    )
    .table(table)
    .claim(
        Claim::new("The overhead on the processing time is negligible.", "stated in the conclusions")
            .here(format!("not tested: reports cost nothing in virtual time; at most {} messages in a run; round trips of 10 ms cost at most {} %", messages_most[0], decimal(slower[0], 2)))
            .holds("at most 200 messages between ranks", messages_most[0] <= 200)
            .holds("round trips of 10 ms cost less than 0.5 %", slower[0] < 0.5)
            .holds("reports take computing time from the threads of this run, so that it is measured", REPORTS_TAKE_TIME)
            .because("Not tested: reports cost nothing in virtual time."),
    )
    .best(format!("`leases` sends at most {} messages and loses at most {} % by round trips of 10 ms.", messages_most[1], decimal(slower[1], 2)))
}

/// The waiting that the paper wants to reduce.
pub(super) fn waiting(trials: &[Trial]) -> Section {
    let mut table = Grid::new(
        "Idle: thread seconds without work before the end. Above: time above the ideal. Too many: iterations beyond the pool.",
        "scenario | `static` idle | `ruper` idle | above % | too many % | `leases` idle | above % | too many %",
    );
    for trial in trials {
        let of = |policy: usize| {
            let run = &trial.runs[policy];
            [
                format!("{:.0}", run.idle_s),
                decimal(trial.excess(policy), 2),
                decimal(run.overshoot_percent, 2),
            ]
        };
        let begin = [trial.scenario.clone(), format!("{:.0}", trial.runs[STATIC].idle_s)];
        table.row(begin.into_iter().chain(of(RUPER)).chain(of(LEASES)));
    }
    let waits = trials.iter().filter(|trial| trial.runs[RUPER].idle_s > trial.runs[LEASES].idle_s).count();
    let share = trials.iter().map(|trial| trial.runs[RUPER].idle_s / trial.runs[STATIC].idle_s);
    let share = share.sum::<f64>() / trials.len() as f64;
    Section::new(
        "Future work of the paper: threads that wait at the end",
        "The paper wants to improve the last step, in which threads wait for permission to finish. `leases` has no quotas: no thread \
         waits while any rank holds work.",
    )
    .table(table)
    .claim(
        Claim::new("Threads wait at the end, which can be improved.", "named as future work")
            .here(format!("`ruper` leaves {:.0} % of the idle time of `static`; more than `leases` in {waits} of {} scenarios", 100.0 * share, trials.len()))
            .holds("`ruper` has more idle time than `leases` in all scenarios", waits == trials.len()),
    )
}

/// Other times between checkpoints.
pub(super) fn intervals(context: &Context) -> Section {
    let names: &[&str] = if context.quick { &FIGURES[..2] } else { &FIGURES[..6] };
    let scenarios: Vec<Scenario> = names.iter().map(|name| scenario(name).expect("it is listed")).collect();
    let policies = [60, 300, 600].map(|s| format!("{},interval={s}", POLICIES[RUPER]));
    let mut policies: Vec<&str> = policies.iter().map(String::as_str).collect();
    policies.push(POLICIES[LEASES]);
    let trials = trials_of(context, "ruper-lb, intervals", &scenarios, &policies);
    let mut table =
        Grid::new("Time above the ideal in percent.", "scenario | `ruper`, 60 s | 300 s | 600 s | `leases`");
    for trial in &trials {
        let cells = (0..policies.len()).map(|policy| decimal(trial.excess(policy), 2));
        table.row([trial.scenario.clone()].into_iter().chain(cells));
    }
    let mean =
        |policy: usize| trials.iter().map(|trial| trial.excess(policy)).sum::<f64>() / trials.len() as f64;
    Section::new(
        "Beyond the paper: other times between checkpoints",
        format!(
            "The paper chose 300 s by the order of its run times. The mean excess of the {} scenarios of this table is {} % with 60 s, {} % with \
             300 s and {} % with 600 s; `leases` has no such setting and {} %.",
            trials.len(),
            decimal(mean(0), 1),
            decimal(mean(1), 1),
            decimal(mean(2), 1),
            decimal(mean(3), 2)
        ),
    )
    .table(table)
}

/// All named scenarios, in which the published algorithm has its weaknesses.
pub(super) fn scenarios(context: &Context) -> Section {
    let small = |name: &str| ["L1", "L2", "L4", "M4"].contains(&name);
    let wanted =
        |name: &str| !name.starts_with("L7") && !name.starts_with("M1") && !name.starts_with("L8-1ms");
    let names: Vec<&str> = SCENARIOS
        .iter()
        .map(|entry| entry.name)
        .filter(|name| if context.quick { small(name) } else { wanted(name) })
        .collect();
    let trials = trials(context, "ruper-lb, all scenarios", &names);
    let mut table = Grid::new(
        "Time above the ideal in percent.",
        "scenario | what happens | ideal s | `static` | `ruper` | `leases`",
    )
    .words(2);
    for trial in &trials {
        let entry = SCENARIOS.iter().find(|entry| entry.name == trial.scenario);
        let about = entry.map_or("", |entry| entry.about).trim_start_matches("RUPER-LB paper, ");
        let cells = [STATIC, RUPER, LEASES].map(|policy| decimal(trial.excess(policy), 2));
        table.row(
            [trial.scenario.clone(), about.to_owned(), decimal(trial.ideal_s, 1)].into_iter().chain(cells),
        );
    }
    let ahead = trials
        .iter()
        .filter(|trial| trial.runs[LEASES].makespan_s <= 1.0001 * trial.runs[RUPER].makespan_s)
        .count();
    let blind = trials.iter().find(|trial| trial.scenario == "L4");
    let blind = blind.map_or_else(String::new, |trial| decimal(trial.excess(RUPER), 0));
    Section::new(
        "Beyond the paper: where the algorithm is weak",
        format!(
            "Named scenarios of `caribou simulate pool`. In `L4` a thread collapses when less than t_min is left: no quota changes any more, \
             and `ruper` takes {blind} % longer than the ideal. Where speeds change by turns (`M4`, `M5`), one measured interval \
             predicts the next one badly. In `L8` the iterations are long, and the ideal divides them."
        ),
    )
    .table(table)
    .best(format!("`leases` is as fast as `ruper` or faster in {ahead} of {} scenarios.", trials.len()))
}

/// Many scenarios of one kind, because a single one may be luck.
pub(super) fn sweeps(context: &Context) -> Section {
    let count = if context.quick { 1 } else { 4 };
    let mut table = Grid::new(
        "Time above the ideal in percent: mean, median and largest of 40 runs.",
        "sweep | `static` mean | median | largest | `ruper` mean | median | largest | `leases` mean | median | largest",
    );
    let mut means = Vec::new();
    for sweep in &SWEEPS[..count] {
        let mut scenarios = sweep.scenarios();
        if context.quick {
            scenarios.truncate(4);
        }
        let trials = trials_of(context, &format!("ruper-lb, sweep {}", sweep.name), &scenarios, &POLICIES);
        let mut cells = vec![format!("{}: {}", sweep.name, sweep.about)];
        for policy in 0..POLICIES.len() {
            let excesses: Vec<f64> = trials.iter().map(|trial| trial.excess(policy)).collect();
            let mean = excesses.iter().sum::<f64>() / excesses.len() as f64;
            means.push(mean);
            let most = range(&excesses)[1];
            cells.extend([mean, median(excesses).unwrap_or(0.0), most].map(|it| decimal(it, 2)));
        }
        table.row(cells);
    }
    let of = |policy: usize| text(means.iter().skip(policy).step_by(POLICIES.len()).copied(), 1);
    Section::new(
        "Beyond the paper: sweeps",
        "One collapse near the end may meet a checkpoint or miss it by seconds. These sweeps move the collapse, or the phase of the \
         disturbance, in 40 steps.",
    )
    .table(table)
    .best(format!("the mean excess of `ruper` is {} %, of `leases` {} %.", of(RUPER), of(LEASES)))
}
