//! Generates the advice in the summary and the report by fixed numeric rules, so that all readers get the same advice.

use std::collections::BTreeMap;

use caribou::trace::{Activity, Part, Shape};
use trace_reader::Trace;

use super::analysis::event_counts::EventCounts;
use super::analysis::facts::Facts;
use super::analysis::resizes::inactive_share;
use super::analysis::sync_effect::{
    Cost, EVEN_MAX, LateCause, Slowest, SyncEffect, causes_text, finite, max_over_average, occasion,
};
use super::analysis::time_breakdown::{Ending, Line, Parts, TimeBreakdown};
use super::page::duration;
use super::supersteps::imbalance_of_all;

/// Imbalance above which a phase is uneven.
const UNEVEN: f64 = 1.2;
/// Smallest fraction of the run that deserves a sentence.
const NOTABLE: f64 = 0.05;
/// Largest fraction of idle time that needs no explanation.
const IDLE_MAX: f64 = 0.2;
/// Moves that saved less than this fraction of their predicted saving were ineffective.
const SAVED_MIN: f64 = 0.25;
/// Moves that saved this fraction of their predicted saving were successful.
const AS_PREDICTED_MIN: f64 = 0.8;
/// Fraction of runtime above which chunks should be larger.
const RUNTIME_MAX: f64 = 0.1;
/// Smallest difference of two fractions of runtime that the text mentions.
const RUNTIME_APART: f64 = 0.001;
/// Average time of handlers in ns below which they are too short, because recording each takes a visible part of it.
const SHORT_NS: f64 = 20_000.0;

/// The figures that the rules use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symptoms {
    pub(crate) parts: Parts,
    pub(crate) shape: Shape,
    /// The strategy, as specified.
    pub(crate) strategy: String,
    pub(crate) syncs: usize,
    /// Whether all syncs were windows.
    pub(crate) windows: bool,
    /// Ranks without an end record.
    pub(crate) cut_off: Vec<u32>,
    /// Whether sync records may be missing: events were dropped, rank 0 is missing, or chunks migrated.
    pub(crate) cut: bool,
    /// Number of syncs that moved chunks.
    pub(crate) moving: usize,
    /// Time of phases with an imbalance above [`UNEVEN`] over the time until the last sync.
    pub(crate) uneven: f64,
    /// The rank that caused most of the uneven time, and whether this was in another phase than the worst.
    pub(crate) slowest: Option<Slowest>,
    pub(crate) slowest_elsewhere: bool,
    /// The sync that made all later phases even, if these are more than the phases before.
    pub(crate) balanced_since: Option<u64>,
    /// The largest imbalance of all phases, and the sync that measured it.
    pub(crate) worst: f64,
    pub(crate) worst_sync: Option<u64>,
    /// Savings of all moves over their predicted savings; none if no later sync measured them.
    pub(crate) saved: Option<f64>,
    /// Set if moves achieved nearly none of their predicted savings.
    pub(crate) ineffective: Option<IneffectiveMoves>,
    /// Imbalance over all phases. Without syncs, largest over average time of the ranks in chunks, including lost time.
    pub(crate) imbalance: Option<f64>,
    /// The rank with most time in chunks, including lost time, and its lost time in ns.
    pub(crate) busiest: Option<(u32, f64)>,
    /// Heaviest chunk over average load of a worker: the median over phases, and the chunk in the worst phase.
    pub(crate) heaviest: Option<(f64, String)>,
    /// Fraction of the run that syncs took.
    pub(crate) syncs_share: f64,
    /// The rank that lost most, and the lost fraction of its time.
    pub(crate) most_lost: Option<(u32, f64)>,
    /// Time lost outside of handlers, ns. Much of it is in the runtime's time.
    pub(crate) beside_ns: f64,
    /// Idle time of workers of a pool after their last iteration.
    pub(crate) ending: Ending,
    /// Time that workers spent on writing the trace, ns.
    pub(crate) tracing_ns: f64,
    /// Time that workers spent on receiving messages of other ranks, ns; 0 on one rank.
    pub(crate) defer_ns: f64,
    /// Fraction of the time of all ranks in which they were inactive. It counts as idle.
    pub(crate) inactive: f64,
    /// Average CPU time of a handler, ns.
    pub(crate) handler_ns: Option<f64>,
}

/// Moves that achieved little of their predicted saving, and `saved`, the achieved fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IneffectiveMoves {
    saved: f64,
    /// Whether the work changed more than the capacities of vCPUs.
    work_moved: bool,
}

/// The resulting sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// Sentences, the most important first; at least one.
    pub(crate) says: Vec<String>,
    /// Whether the user can improve the run.
    pub(crate) is_warning: bool,
}

impl Symptoms {
    pub(crate) fn advice(&self) -> Advice {
        let rules = [
            missing,
            uneven,
            ineffective_moves,
            heaviest,
            syncs,
            tail,
            collecting,
            idle,
            lost,
            tracing,
            runtime,
        ];
        let said: Vec<String> = rules.iter().filter_map(|rule| rule(self)).collect();
        if !said.is_empty() {
            return Advice { says: said, is_warning: true };
        }
        let parts = &self.parts;
        let quiet = if parts.chunks_ns + parts.runtime_ns + parts.lost_ns + parts.idle_ns > 0.0 {
            let busy = 100.0 * parts.share(parts.chunks_ns);
            let work = match self.shape {
                Shape::Arrays | Shape::Supersteps => "chunks",
                Shape::Pools => "iterations",
            };
            format!("nothing stands out: workers were busy with {work} for {busy:.1} % of the time")
        } else {
            "nothing was recorded that takes time".into()
        };
        Advice { says: vec![quiet], is_warning: false }
    }
}

fn missing(symptoms: &Symptoms) -> Option<String> {
    let whose = match &symptoms.cut_off[..] {
        [] => return None,
        [rank] => format!("rank {rank}"),
        [first, _] => format!("rank {first} and one other rank"),
        [first, others @ ..] => format!("rank {first} and {} other ranks", others.len()),
    };
    Some(format!("data is missing: the trace of {whose} was cut off, and what is missing counts as no work"))
}

fn uneven(symptoms: &Symptoms) -> Option<String> {
    if symptoms.uneven <= NOTABLE {
        return uneven_without_syncs(symptoms);
    }
    let occasion = occasion([symptoms.windows]);
    let mended = symptoms
        .balanced_since
        .map_or(String::new(), |sync| format!(", until {occasion} {sync} corrected it"));
    let at = symptoms.worst_sync.map_or(String::new(), |sync| format!(" before {occasion} {sync}"));
    let when = format!(
        "imbalance was above {UNEVEN} for {:.1} % of the time, at worst {:.3}{at}{mended}",
        100.0 * symptoms.uneven,
        symptoms.worst
    );
    let cure = if symptoms.moving == 0 {
        format!("; nothing was moved under `{}`", symptoms.strategy)
    } else {
        String::new()
    };
    let Some(Slowest { rank, causes }) =
        symptoms.slowest.as_ref().filter(|slowest| !slowest.causes.is_empty())
    else {
        return Some(format!("{when}{cure}"));
    };
    let phase = match symptoms.slowest_elsewhere {
        true => "in another phase, where most time was lost",
        false => "in that phase",
    };
    let had = format!("rank {rank} had {} {phase}", causes_text(causes));
    let too_much = causes.iter().any(|cause| matches!(cause, LateCause::Work(_)));
    Some(match causes[0] {
        LateCause::Work(_) if symptoms.balanced_since.is_some() => {
            format!("{when}: {had}: place chunks by their loads from the start, or balance sooner")
        }
        // Another strategy or period would hardly save more.
        LateCause::Work(_) if symptoms.saved.is_some_and(|saved| saved >= AS_PREDICTED_MIN) => {
            let saved = 100.0 * symptoms.saved.unwrap_or_default();
            format!("{when}: {had}; moves saved {saved:.0} % of what was predicted")
        }
        LateCause::Work(_) => {
            // If syncs take too long, advice on more of them would contradict the rule `syncs`.
            let often = !symptoms.windows && symptoms.strategy != "none" && symptoms.syncs_share <= NOTABLE;
            let more = if often { "more often, or " } else { "" };
            format!("{when}: {had}: balance {more}with another strategy{cure}")
        }
        _ if too_much => format!("{when}: {had}{cure}"),
        _ => format!("{when}: the work was even, but {had}{cure}"),
    })
}

fn uneven_without_syncs(symptoms: &Symptoms) -> Option<String> {
    let imbalance =
        symptoms.imbalance.filter(|&imbalance| imbalance > UNEVEN && symptoms.syncs == 0 && !symptoms.cut)?;
    let (what, cure) = match symptoms.shape {
        Shape::Arrays => (
            "handlers",
            ", and nothing was balanced: a longer run has windows, unless CARIBOU_LB or CARIBOU_LB_PERIOD say otherwise",
        ),
        // The rule `tail` gives the advice.
        Shape::Pools if symptoms.parts.share(symptoms.ending.tail_ns) > NOTABLE => ("iterations", ""),
        Shape::Pools => ("iterations", ": hand out smaller ranges, or by another policy"),
        Shape::Supersteps => {
            let cure = match &*symptoms.strategy {
                "equal" => "choose a policy that divides anew, such as des",
                copies if copies.starts_with("replicate") => {
                    "choose a policy that divides anew as well, such as adaptive"
                }
                _ => "shares do not match the speeds of workers, see lb",
            };
            return Some(format!(
                "the slowest worker of a step computed {imbalance:.3} times as long as the average: {cure}"
            ));
        }
    };
    let (busiest, lost) =
        symptoms.busiest.map_or(("the busiest rank".into(), String::new()), |(rank, lost_ns)| {
            let lost =
                if lost_ns > 0.0 { format!(", {} of it lost", duration(lost_ns)) } else { String::new() };
            (format!("rank {rank}"), lost)
        });
    Some(format!("{busiest} was in {what} {imbalance:.3} times as long as the average rank{lost}{cure}"))
}

fn ineffective_moves(symptoms: &Symptoms) -> Option<String> {
    let IneffectiveMoves { saved, work_moved } = symptoms.ineffective?;
    let others = symptoms.parts.share(symptoms.parts.lost_ns) > NOTABLE;
    let (what, cure) = if work_moved && others {
        // Loads measured while other processes run differ from phase to phase, although the work stays where it is.
        ("work or vCPUs change faster than moves follow", "a quiet machine first")
    } else if work_moved {
        (
            "loads were outdated: the work changes faster than moves follow",
            match symptoms.syncs_share > NOTABLE {
                _ if symptoms.windows => {
                    "windows of a fixed length (CARIBOU_LB_PERIOD=20ms), or another strategy"
                }
                true => "syncs that stop no chunk (`at_sync_nowait`), and then a shorter period",
                false => "a shorter period, if syncs stop no chunk",
            },
        )
    } else {
        ("the speed of vCPUs changes faster than moves follow", "a longer period, or no balancing")
    };
    let saved = 100.0 * saved;
    Some(format!("moves saved {saved:.0} % of what was predicted: {what}: try {cure}"))
}

/// Time in which workers of a pool wait for the last worker.
fn tail(symptoms: &Symptoms) -> Option<String> {
    let share = symptoms.parts.share(symptoms.ending.tail_ns);
    (share > NOTABLE).then(|| {
        format!(
            "workers waited for the last one for {:.1} % of the time: hand out smaller ranges, or by another policy",
            100.0 * share
        )
    })
}

/// Time in which workers of a pool wait for the result, when nothing is left to execute.
fn collecting(symptoms: &Symptoms) -> Option<String> {
    let share = symptoms.parts.share(symptoms.ending.collecting_ns);
    // Without the parameters of the policy.
    let policy = symptoms.strategy.split(',').next().unwrap_or_default();
    (share > NOTABLE).then(|| {
        format!(
            "for {:.1} % of the time nothing was left to execute, and `{policy}` collected the result: a larger pool, or another policy",
            100.0 * share
        )
    })
}

fn heaviest(symptoms: &Symptoms) -> Option<String> {
    let (times, chunk) = symptoms.heaviest.as_ref().filter(|(times, _)| *times > 1.0 + NOTABLE)?;
    Some(format!(
        "{chunk} is too heavy, {times:.3} times the average load of a worker: nothing can balance it, split it"
    ))
}

fn syncs(symptoms: &Symptoms) -> Option<String> {
    let (share, beside) = (symptoms.syncs_share, symptoms.parts.share(symptoms.beside_ns));
    let others = if 2.0 * beside > share {
        format!(
            ", much of it perhaps while other processes had the vCPU, which took {:.1} % outside of handlers",
            100.0 * beside
        )
    } else {
        String::new()
    };
    let cure = match symptoms.ineffective {
        Some(IneffectiveMoves { work_moved: true, .. }) if !symptoms.windows => {
            "let chunks go on meanwhile (`at_sync_nowait`)"
        }
        _ => "balance less often",
    };
    let what = if symptoms.windows { "windows" } else { "syncs" };
    (share > NOTABLE).then(|| format!("{what} took {:.1} % of the run{others}: {cure}", 100.0 * share))
}

fn idle(symptoms: &Symptoms) -> Option<String> {
    let share = symptoms.parts.share(symptoms.parts.idle_ns) - symptoms.inactive;
    let imbalance = symptoms.imbalance.filter(|&imbalance| imbalance <= EVEN_MAX && share > IDLE_MAX)?;
    Some(format!(
        "workers were idle for {:.1} % of the time while imbalance was {imbalance:.3}: latency or dependences, not balance; \
         see critical-path",
        100.0 * share
    ))
}

fn lost(symptoms: &Symptoms) -> Option<String> {
    let share = symptoms.parts.share(symptoms.parts.lost_ns);
    let (rank, worst) = symptoms.most_lost.filter(|_| share > NOTABLE)?;
    let what = if symptoms.shape == Shape::Pools { "iterations" } else { "handlers" };
    Some(format!(
        "{what} lost {:.1} % of all workers' time, most on rank {rank} with {:.1} % of its time: other processes had the vCPU, a quota \
         stopped them, or they slept or did I/O",
        100.0 * share,
        100.0 * worst
    ))
}

/// Cost of tracing, which other figures include. It is more than was measured, because the time of a handler includes
/// the recording of its sends.
fn tracing(symptoms: &Symptoms) -> Option<String> {
    let share = symptoms.parts.share(symptoms.tracing_ns);
    (share > NOTABLE).then(|| {
        format!(
            "writing the trace took at least {:.1} % of the time: record less with CARIBOU_TRACE_FILTER, or make chunks larger{}",
            100.0 * share,
            symptoms.short()
        )
    })
}

fn runtime(symptoms: &Symptoms) -> Option<String> {
    let all_ns = symptoms.parts.runtime_ns;
    let own_ns = all_ns - symptoms.beside_ns - symptoms.tracing_ns;
    let [own, all] = [own_ns.max(0.0), all_ns].map(|ns| symptoms.parts.share(ns));
    // Tables count all of it as runtime.
    let with = if all - own > RUNTIME_APART {
        format!(" ({:.1} % with writing the trace and time lost outside of handlers)", 100.0 * all)
    } else {
        String::new()
    };
    let cure = if 2.0 * symptoms.defer_ns > own_ns {
        ", most of it (`keep`) to receive messages from other ranks: send fewer or shorter ones, numbers with \
         `caribou::bulk`"
            .into()
    } else {
        format!(": make chunks larger{}", symptoms.short())
    };
    (own > RUNTIME_MAX).then(|| format!("the runtime itself took {:.1} %{with}{cure}", 100.0 * own))
}

impl Symptoms {
    /// Text about short handlers, as a sign that chunks are too small; empty if handlers are longer than [`SHORT_NS`].
    fn short(&self) -> String {
        let short = self.handler_ns.filter(|&ns| ns < SHORT_NS);
        short.map_or(String::new(), |ns| format!(", a handler takes {} on average", duration(ns)))
    }

    pub(crate) fn of(facts: &Facts<'_>) -> Symptoms {
        let Facts { trace, spent, outcomes, .. } = facts;
        let by_rank = spent.by_rank();
        let lost = by_rank.iter().map(|(&rank, parts)| (rank, parts.share(parts.lost_ns)));
        let occupied_ns = |parts: &Parts| parts.chunks_ns + parts.lost_ns;
        let busiest = by_rank.iter().max_by(|(_, one), (_, other)| {
            one.share(occupied_ns(one)).total_cmp(&other.share(occupied_ns(other)))
        });
        let busy: Vec<f64> = by_rank.values().map(|parts| parts.share(occupied_ns(parts))).collect();
        let (phases, total) = (phases(outcomes), spent.total());
        let part_ns = |part| total.get(&Activity::Runtime(part)).map_or(0.0, |line| line.total_ns);
        Symptoms {
            parts: spent.parts(),
            shape: trace.run.shape,
            strategy: trace.run.lb.clone(),
            syncs: outcomes.len(),
            windows: !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.report.window),
            cut_off: trace.ranks.iter().filter(|rank| rank.end.is_none()).map(|rank| rank.rank).collect(),
            cut: trace.dropped() > 0
                || trace.ranks.iter().all(|rank| rank.rank != 0)
                || total.contains_key(&Activity::Runtime(Part::Migrate)),
            moving: outcomes.iter().filter(|outcome| outcome.report.moved > 0).count(),
            saved: savings(outcomes).map(|savings| savings.saved),
            ineffective: find_ineffective_moves(outcomes),
            imbalance: if !trace.steps.is_empty() {
                imbalance_of_all(&trace.steps)
            } else if outcomes.is_empty() {
                max_over_average(&busy)
            } else {
                phases.imbalance
            },
            busiest: busiest.map(|(&rank, parts)| (rank, parts.lost_ns)),
            heaviest: facts.census.as_ref().and_then(|census| heaviest_chunk(trace, spent, census)),
            syncs_share: syncs_share(spent, outcomes),
            most_lost: lost.max_by(|one, other| one.1.total_cmp(&other.1)),
            beside_ns: facts.lost_time.outside_handlers_ns,
            ending: Ending::of(trace),
            tracing_ns: part_ns(Part::Flush),
            // On one rank, deferred messages are only messages for which chunks were not ready.
            defer_ns: if trace.run.ranks > 1 { part_ns(Part::Keep) } else { 0.0 },
            inactive: inactive_share(trace.run.ranks, trace.elapsed_ns(), outcomes),
            handler_ns: handler_ns(&total),
            ..phases
        }
    }
}

/// Average CPU time of a handler in ns; none for a pool or without handlers.
fn handler_ns(total: &BTreeMap<Activity, Line>) -> Option<f64> {
    let handlers = total.iter().filter(|(activity, _)| matches!(activity, Activity::Kind(_)));
    let (ns, calls) = handlers.fold((0.0, 0.0), |sum, (_, line)| (sum.0 + line.total_ns, sum.1 + line.calls));
    finite(ns / calls)
}

/// The symptoms that phases have: how uneven they were, and why. The others are left empty.
fn phases(outcomes: &[SyncEffect<'_>]) -> Symptoms {
    let (mut all_ns, mut average_ns, mut worst, mut worst_sync) = (0.0, 0.0, 0.0_f64, None);
    let (mut until_ns, mut uneven_ns) = (0, 0);
    // By rank and first cause: excess time, and imbalance and causes of the worst phase.
    let mut reasons = BTreeMap::<(usize, Option<u8>), (f64, f64, Slowest)>::new();
    for outcome in outcomes {
        let begin_ns = until_ns;
        until_ns = outcome.report.at_ns.max(begin_ns);
        let completion_ns = outcome.report.makespan_before_ns as f64;
        all_ns += completion_ns;
        average_ns += completion_ns - outcome.excess_ns();
        let Some(imbalance) = finite(outcome.report.imbalance_before).filter(|&it| it > UNEVEN) else {
            continue;
        };
        // Such a phase counts ranks that were about to leave or join.
        if outcome.resize().is_some() {
            continue;
        }
        uneven_ns += until_ns - begin_ns;
        if imbalance > worst {
            (worst, worst_sync) = (imbalance, Some(outcome.report.sync));
        }
        let Some(slowest) = outcome.slowest() else { continue };
        let reason = slowest.causes.first().map(|cause| match cause {
            LateCause::Work(_) => 0,
            LateCause::Share(_) => 1,
            LateCause::Speed(_) => 2,
        });
        let (excess_ns, most, of_it) =
            reasons.entry((slowest.rank, reason)).or_insert_with(|| (0.0, 0.0, slowest.clone()));
        *excess_ns += outcome.excess_ns();
        if imbalance > *most {
            (*most, *of_it) = (imbalance, slowest);
        }
    }
    let first = reasons.into_values().max_by(|one, other| one.0.total_cmp(&other.0));
    Symptoms {
        uneven: if until_ns > 0 { uneven_ns as f64 / until_ns as f64 } else { 0.0 },
        slowest_elsewhere: first.as_ref().is_some_and(|&(_, most, _)| most < worst),
        slowest: first.map(|(_, _, slowest)| slowest),
        balanced_since: balanced_since(outcomes),
        worst,
        worst_sync,
        imbalance: finite(all_ns / average_ns),
        ..Symptoms::default()
    }
}

/// The last of the uneven phases at the begin, if moves made all later phases even and these are more.
fn balanced_since(outcomes: &[SyncEffect<'_>]) -> Option<u64> {
    let even = |outcome: &SyncEffect<'_>| outcome.report.imbalance_before <= UNEVEN;
    let (before, after) = outcomes.split_at(outcomes.iter().position(even)?);
    let moved = before.iter().any(|outcome| outcome.report.moved > 0);
    let last = before.last().filter(|_| moved && after.len() > before.len() && after.iter().all(even))?;
    Some(last.report.sync)
}

/// Weight of the heaviest chunk in the median phase, and its name in the worst phase.
fn heaviest_chunk(trace: &Trace, spent: &TimeBreakdown, census: &EventCounts) -> Option<(f64, String)> {
    let workers = spent.workers.len() as f64;
    let times = census.loads.values().filter_map(|loads| {
        let (heaviest_ns, chunk) = loads.heaviest?;
        Some((finite(heaviest_ns as f64 * workers / loads.sum_ns as f64)?, chunk))
    });
    let mut times: Vec<_> = times.collect();
    times.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (_, chunk) = times.last()?;
    Some((times[times.len() / 2].0, trace.chunk_name(*chunk)))
}

/// Savings of all moves that a later sync measured.
struct Savings {
    /// Saved time over predicted savings.
    saved: f64,
    /// Predicted savings over the time of all phases.
    predicted: f64,
    /// Whether the work changed more than the capacities of vCPUs.
    work_moved: bool,
}

/// Returns moves that achieved little of their predicted savings, if these were notable.
fn find_ineffective_moves(outcomes: &[SyncEffect<'_>]) -> Option<IneffectiveMoves> {
    let Savings { saved, work_moved, .. } =
        savings(outcomes).filter(|savings| savings.predicted > NOTABLE)?;
    (saved < SAVED_MIN).then_some(IneffectiveMoves { saved, work_moved })
}

fn savings(outcomes: &[SyncEffect<'_>]) -> Option<Savings> {
    let (mut gain_ns, mut saved_ns, mut phases_ns) = (0.0, 0.0, 0.0);
    let (mut work, mut capacity) = (0.0, 0.0);
    for outcome in outcomes {
        phases_ns += outcome.report.makespan_before_ns as f64;
        let Some(saved) = outcome.saved_ns() else { continue };
        (gain_ns, saved_ns) = (gain_ns + outcome.gain_ns(), saved_ns + saved);
        let (work_off, capacity_off) = outcome.drift().unwrap_or_default();
        (work, capacity) = (work + work_off, capacity + capacity_off);
    }
    let (saved, predicted) = (finite(saved_ns / gain_ns)?, finite(gain_ns / phases_ns)?);
    Some(Savings { saved, predicted, work_moved: work > capacity })
}

/// Fraction of the run that syncs took. Chunks that wait delay all others, and measuring delays its worker. If no chunk
/// waits, packing and unpacking delay their worker too.
fn syncs_share(spent: &TimeBreakdown, outcomes: &[SyncEffect<'_>]) -> f64 {
    let elapsed_ns = spent.bins.window.length_ns() as f64;
    let total = spent.total();
    let own_ns = |part| total.get(&Activity::Runtime(part)).map_or(0.0, |line| line.total_ns);
    let migrate_ns = if outcomes.iter().any(SyncEffect::is_blocking) { 0.0 } else { own_ns(Part::Migrate) };
    let own_ns = (own_ns(Part::Measure) + migrate_ns) / spent.workers.len().max(1) as f64;
    let cost_ns = outcomes.iter().map(SyncEffect::cost).sum::<Cost>().all_ns();
    finite((cost_ns + own_ns) / elapsed_ns).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use caribou::report::SyncReport;

    use super::super::analysis::sync_effect::sync_effects;
    use super::*;

    /// Workers busy for 95 % of the time, without any symptom.
    fn quiet() -> Symptoms {
        let parts = Parts { chunks_ns: 95.0, idle_ns: 5.0, wall_ns: 100.0, ..Parts::default() };
        Symptoms {
            parts,
            strategy: "refine".into(),
            syncs: 3,
            windows: false,
            moving: 1,
            imbalance: Some(1.02),
            ..Symptoms::default()
        }
    }

    fn only(symptoms: &Symptoms) -> String {
        let mut said = symptoms.advice().says;
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }

    #[test]
    fn where_nothing_is_wrong_nothing_stands_out() {
        let says = |text: &str| Advice { says: vec![text.into()], is_warning: false };
        let stands_out = "nothing stands out: workers were busy with chunks for 95.0 % of the time";
        assert_eq!(quiet().advice(), says(stands_out));
        let pool = Symptoms { shape: Shape::Pools, ..quiet() };
        assert_eq!(pool.advice(), says(&stands_out.replace("chunks", "iterations")));
        let cut = |cut_off: &[u32]| only(&Symptoms { cut_off: cut_off.to_vec(), ..quiet() });
        assert!(cut(&[1]).starts_with("data is missing: the trace of rank 1 was cut off"), "{}", cut(&[1]));
        assert!(
            cut(&[0, 1]).contains("the trace of rank 0 and one other rank was cut off"),
            "{}",
            cut(&[0, 1])
        );
        assert!(
            cut(&[1, 2, 3]).contains("the trace of rank 1 and 2 other ranks was cut off"),
            "{}",
            cut(&[1, 2, 3])
        );
        let nothing = Symptoms { parts: Parts { rest_ns: 1.0, wall_ns: 1.0, ..Parts::default() }, ..quiet() };
        assert_eq!(nothing.advice(), says("nothing was recorded that takes time"));
        assert!(Symptoms { syncs_share: 0.1, ..quiet() }.advice().is_warning);
    }

    fn late(rank: usize, causes: &[LateCause]) -> Option<Slowest> {
        Some(Slowest { rank, causes: causes.to_vec() })
    }

    #[test]
    fn uneven_phases_have_a_cause_and_a_cure() {
        let with = |slowest| Symptoms { uneven: 0.3, slowest, worst: 1.6, ..quiet() };
        let said = only(&with(late(2, &[LateCause::Share(0.55)])));
        assert!(
            said.starts_with(
                "imbalance was above 1.2 for 30.0 % of the time, at worst 1.600: the work was even"
            ) && said.ends_with("rank 2 had only 55.0 % of its vCPU in that phase"),
            "{said}"
        );
        assert!(
            only(&with(late(1, &[LateCause::Speed(0.7)])))
                .contains("rank 1 had only 70.0 % of the best speed in that phase")
        );
        assert!(
            only(&with(late(3, &[LateCause::Work(1.5)])))
                .contains("rank 3 had 1.500 times the average work in that phase: balance more often")
        );
        let elsewhere = Symptoms { slowest_elsewhere: true, ..with(late(3, &[LateCause::Work(1.5)])) };
        assert!(
            only(&elsewhere)
                .contains("1.500 times the average work in another phase, where most time was lost: balance")
        );
        let nothing_moved = Symptoms { moving: 0, ..with(late(2, &[LateCause::Share(0.55)])) };
        assert!(only(&nothing_moved).ends_with("; nothing was moved under `refine`"));
        assert!(
            only(&Symptoms { uneven: 0.05, ..with(None) }).starts_with("nothing"),
            "too little of the run"
        );
        assert!(only(&with(None)).ends_with("at worst 1.600"));
        let at = Symptoms { worst_sync: Some(7), ..with(None) };
        assert!(only(&at).ends_with("at worst 1.600 before sync 7"));
        let windows = Symptoms { windows: true, ..at };
        assert!(only(&windows).ends_with("at worst 1.600 before window 7"));
    }

    #[test]
    fn moves_that_saved_what_was_predicted_ask_for_no_other_strategy() {
        let slowest = late(3, &[LateCause::Work(1.5)]);
        let with =
            |saved| only(&Symptoms { uneven: 0.3, worst: 1.6, slowest: slowest.clone(), saved, ..quiet() });
        let said = with(Some(0.97));
        assert!(
            said.ends_with("times the average work in that phase; moves saved 97 % of what was predicted"),
            "{said}"
        );
        assert!(with(Some(0.5)).ends_with("balance more often, or with another strategy"));
        let syncs = moved_work(200, [1.0, 1.0]);
        let saved = savings(&sync_effects(&syncs)).unwrap().saved;
        assert!((saved - 2.0 / 3.0).abs() < 1e-9, "{saved}");
    }

    #[test]
    fn what_made_a_rank_later_is_named_first_and_nothing_is_left_out() {
        let slowest = late(1, &[LateCause::Share(0.099), LateCause::Speed(0.52), LateCause::Work(1.192)]);
        let said = only(&Symptoms { uneven: 0.3, slowest, worst: 1.6, ..quiet() });
        assert!(
            said.ends_with(
                ": rank 1 had only 9.9 % of its vCPU, only 52.0 % of the best speed and 1.192 times the average work \
                 in that phase"
            ),
            "{said}"
        );
    }

    #[test]
    fn phases_count_as_long_as_they_were_from_sync_to_sync() {
        let sync = |sync: u64, at_ns, imbalance_before| {
            let mut report = SyncReport::default();
            (report.sync, report.at_ns) = (sync, at_ns);
            (report.imbalance_before, report.makespan_before_ns) = (imbalance_before, 100);
            report
        };
        // The uneven phase takes a tenth of the time. Its slowest rank was busy for most of it.
        let syncs = [sync(0, 900, 1.0), sync(1, 1000, 2.0)];
        let phases = phases(&sync_effects(&syncs));
        assert!((phases.uneven - 0.1).abs() < 1e-9, "{}", phases.uneven);
        assert_eq!(phases.worst_sync, Some(1));
    }

    #[test]
    fn what_balancing_has_mended_asks_for_no_other_strategy() {
        let syncs = |imbalances: &[f64]| -> Vec<SyncReport> {
            let sync = |(sync, &imbalance_before): (u64, &f64)| {
                let mut report = SyncReport::default();
                (report.sync, report.moved, report.imbalance_before) = (sync, 3, imbalance_before);
                report
            };
            (0..).zip(imbalances).map(sync).collect()
        };
        let mended = |imbalances: &[f64]| balanced_since(&sync_effects(&syncs(imbalances)));
        assert_eq!(mended(&[2.5, 1.28, 1.02, 1.01, 1.0]), Some(1));
        assert_eq!(mended(&[2.5, 1.28, 1.02, 1.3, 1.0, 1.0]), None, "it came back");
        assert_eq!(mended(&[1.0, 1.0]), None);
        assert_eq!(mended(&[2.5, 1.0]), None, "nobody knows yet");
        let symptoms = Symptoms { uneven: 0.134, balanced_since: Some(1), worst: 2.497, ..quiet() };
        let said = only(&Symptoms { slowest: late(0, &[LateCause::Work(1.9)]), ..symptoms });
        assert_eq!(
            said,
            "imbalance was above 1.2 for 13.4 % of the time, at worst 2.497, until sync 1 corrected it: rank 0 had \
             1.900 times the average work in that phase: place chunks by their loads from the start, or balance sooner"
        );
    }

    #[test]
    fn syncs_that_others_held_up_are_told_with_what_others_took() {
        let parts = Parts { wall_ns: 100.0, chunks_ns: 95.0, ..Parts::default() };
        let with = |beside_ns| only(&Symptoms { parts, beside_ns, syncs_share: 0.055, ..quiet() });
        assert_eq!(
            with(4.0),
            "syncs took 5.5 % of the run, much of it perhaps while other processes had the vCPU, which took 4.0 % \
             outside of handlers: balance less often"
        );
        assert_eq!(with(2.0), "syncs took 5.5 % of the run: balance less often");
    }

    #[test]
    fn nobody_is_told_to_balance_more_and_less_often_at_once() {
        let slowest = late(0, &[LateCause::Work(1.5)]);
        let both = Symptoms { uneven: 0.3, worst: 1.6, syncs_share: 0.156, slowest, ..quiet() };
        let said = both.advice().says;
        assert!(said[0].contains("balance with another strategy"), "{said:?}");
        assert_eq!(said[1], "syncs took 15.6 % of the run: balance less often");
    }

    /// Syncs that move work to the second rank, where the next phase has it already.
    fn moved_work(saved_ns: u64, capacity: [f64; 2]) -> Vec<SyncReport> {
        let sync = |sync: u64| {
            let mut report = SyncReport::default();
            (report.sync, report.moved, report.gain_ns) = (sync, 3, 300);
            (report.deliveries, report.deliveries_predicted) = (10, 10);
            (report.makespan_before_ns, report.makespan_unmoved_ns) = (1000, 1000 + saved_ns);
            (report.before_ns, report.predicted_ns) = (vec![1000, 200], vec![600, 600]);
            report.capacity = if sync == 0 { vec![1.0, 1.0] } else { capacity.to_vec() };
            report
        };
        (0..2).map(sync).collect()
    }

    #[test]
    fn moves_that_saved_nothing_came_too_late() {
        let of = |syncs: &[SyncReport]| find_ineffective_moves(&sync_effects(syncs));
        assert_eq!(of(&moved_work(200, [1.0, 1.0])), None, "two thirds came true");
        let stale = of(&moved_work(30, [1.0, 1.0])).unwrap();
        assert!(stale.work_moved && (stale.saved - 0.1).abs() < 1e-9, "{stale:?}");
        let said = only(&Symptoms { ineffective: Some(stale), ..quiet() });
        assert!(said.starts_with("moves saved 10 % of what was predicted: loads were outdated"), "{said}");
        // Completion times differ because the first rank has a fifth of its vCPU. The work is where it was expected.
        assert!(!of(&moved_work(0, [0.2, 1.0])).unwrap().work_moved);
    }

    #[test]
    fn a_pool_whose_workers_wait_for_the_last_has_a_tail() {
        let with = |tail_ns, collecting_ns| Symptoms {
            shape: Shape::Pools,
            ending: Ending { tail_ns, collecting_ns },
            strategy: "leases,chunk=0.01".into(),
            ..quiet()
        };
        let said = only(&with(12.0, 0.0));
        assert!(said.starts_with("workers waited for the last one for 12.0 % of the time"), "{said}");
        let said = only(&with(0.0, 57.0));
        assert!(
            said.starts_with("for 57.0 % of the time nothing was left to execute, and `leases` collected"),
            "{said}"
        );
    }

    #[test]
    fn a_rank_that_lost_time_did_not_have_too_much_work() {
        let slow = Symptoms {
            shape: Shape::Pools,
            syncs: 0,
            imbalance: Some(1.292),
            busiest: Some((1, 17_600_000.0)),
            ..quiet()
        };
        let said = "rank 1 was in iterations 1.292 times as long as the average rank, 17.60 ms of it lost";
        assert_eq!(only(&slow), format!("{said}: hand out smaller ranges, or by another policy"));
        let waits = Symptoms { ending: Ending { tail_ns: 12.0, collecting_ns: 0.0 }, ..slow };
        assert_eq!(waits.advice().says[0], said, "the next sentence has the advice");
        let arrays =
            Symptoms { shape: Shape::Arrays, busiest: Some((1, 0.0)), ending: Ending::default(), ..waits };
        let said = "rank 1 was in handlers 1.292 times as long as the average rank, and nothing was balanced: a longer";
        assert!(only(&arrays).starts_with(said), "{}", only(&arrays));
    }

    #[test]
    fn a_trace_that_took_much_time_says_so() {
        let parts = Parts { runtime_ns: 20.0, chunks_ns: 80.0, wall_ns: 100.0, ..Parts::default() };
        let said = only(&Symptoms { parts, tracing_ns: 12.0, ..quiet() });
        assert!(
            said.starts_with("writing the trace took at least 12.0 % of the time: record less"),
            "{said}"
        );
        let said = only(&Symptoms { parts, handler_ns: Some(4_200.0), ..quiet() });
        assert_eq!(
            said,
            "the runtime itself took 20.0 %: make chunks larger, a handler takes 4.20 us on average"
        );
    }

    #[test]
    fn a_rank_with_much_remote_input_gets_no_advice_on_chunk_size() {
        let parts = Parts { runtime_ns: 20.0, chunks_ns: 80.0, wall_ns: 100.0, ..Parts::default() };
        let with = |keep_ns| only(&Symptoms { parts, defer_ns: keep_ns, ..quiet() });
        assert_eq!(
            with(15.0),
            "the runtime itself took 20.0 %, most of it (`keep`) to receive messages from other ranks: send fewer or \
             shorter ones, numbers with `caribou::bulk`"
        );
        assert_eq!(with(5.0), "the runtime itself took 20.0 %: make chunks larger");
    }

    #[test]
    fn a_chunk_heavier_than_a_worker_can_bear_is_to_be_split() {
        let with = |times| Symptoms { heaviest: Some((times, "Rod[17]".into())), ..quiet() };
        let said = only(&with(1.3));
        assert_eq!(
            said,
            "Rod[17] is too heavy, 1.300 times the average load of a worker: nothing can balance it, split it"
        );
        assert!(only(&with(1.04)).starts_with("nothing"));
    }

    #[test]
    fn syncs_that_take_more_than_a_twentieth_are_too_many() {
        let said = only(&Symptoms { syncs_share: 0.071, ..quiet() });
        assert_eq!(said, "syncs took 7.1 % of the run: balance less often");
        assert!(only(&Symptoms { syncs_share: 0.05, ..quiet() }).starts_with("nothing"));
    }

    #[test]
    fn idle_workers_of_a_balanced_run_wait_for_messages() {
        let parts = Parts { chunks_ns: 70.0, idle_ns: 30.0, wall_ns: 100.0, ..Parts::default() };
        let said = only(&Symptoms { parts, ..quiet() });
        assert!(
            said.starts_with("workers were idle for 30.0 %") && said.contains("latency or dependences"),
            "{said}"
        );
        let unbalanced = Symptoms { parts, imbalance: Some(1.15), ..quiet() };
        assert!(only(&unbalanced).starts_with("nothing"));
    }

    #[test]
    fn lost_and_runtime_shares_have_limits() {
        let parts =
            Parts { chunks_ns: 80.0, lost_ns: 6.0, runtime_ns: 14.0, wall_ns: 100.0, ..Parts::default() };
        let said = Symptoms { parts, most_lost: Some((2, 0.4)), ..quiet() }.advice().says;
        assert!(
            said[0]
                .starts_with("handlers lost 6.0 % of all workers' time, most on rank 2 with 40.0 % of its time: other processes"),
            "{said:?}"
        );
        assert_eq!(said[1..], ["the runtime itself took 14.0 %: make chunks larger"]);
        let waited = Symptoms { parts, beside_ns: 5.0, most_lost: Some((2, 0.4)), ..quiet() };
        assert_eq!(waited.advice().says.len(), 1, "9 % are its own");
        let both = Symptoms { beside_ns: 1.0, tracing_ns: 1.5, ..waited };
        assert_eq!(
            both.advice().says[1],
            "the runtime itself took 11.5 % (14.0 % with writing the trace and time lost outside of handlers): make \
             chunks larger"
        );
        let parts = Parts { lost_ns: 5.0, runtime_ns: 10.0, ..parts };
        assert!(only(&Symptoms { parts, most_lost: Some((2, 0.4)), ..quiet() }).starts_with("nothing"));
    }
}
