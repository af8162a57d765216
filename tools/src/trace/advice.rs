//! What to look at first: fixed rules, each with its number, so that two people reading one trace are told the same.

use std::collections::BTreeMap;

use caribou::trace::{Activity, Part, Trace};

use super::census::Census;
use super::lb::outcome::{Cause, Cost, EVEN_MAX, Outcome, finite, max_over_average};
use super::spent::{Parts, Spent, tail_ns};
use super::taken::Taken;

/// A phase is uneven if its slowest rank takes more than this times the average.
const UNEVEN: f64 = 1.2;
/// A part of the run that is worth a sentence.
const NOTABLE: f64 = 0.05;
/// More idle time than this asks for a reason.
const IDLE_MAX: f64 = 0.2;
/// Moves that saved less than this part of what they should have were in vain.
const SAVED_MIN: f64 = 0.25;
/// More of the runtime than this asks for larger chunks.
const RUNTIME_MAX: f64 = 0.1;

/// All that the rules look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) parts: Parts,
    /// Whether the run was a pool, which has no syncs.
    pub(crate) pool: bool,
    /// The strategy, as given.
    pub(crate) strategy: String,
    pub(crate) syncs: usize,
    /// Whether there may have been others.
    pub(crate) cut: bool,
    /// Syncs that moved something.
    pub(crate) moving: usize,
    /// Time of phases in which the slowest rank took more than [`UNEVEN`] times the average, over that of all phases.
    pub(crate) uneven: f64,
    /// What made most of that.
    pub(crate) cause: Option<Cause>,
    /// The worst max/avg of all phases.
    pub(crate) worst: f64,
    /// What moves saved of what they should have, where that was next to nothing; and what changed meanwhile.
    pub(crate) in_vain: Option<InVain>,
    /// Max/avg over all phases; without syncs, of the ranks' busy times.
    pub(crate) imbalance: Option<f64>,
    /// The heaviest chunk over the average load of a worker, in the phase in the middle; and the heaviest of all.
    pub(crate) heaviest: Option<(f64, String)>,
    /// What syncs took, of the run.
    pub(crate) syncs_share: f64,
    /// The rank that lost most, and how much of its time.
    pub(crate) loser: Option<(u32, f64)>,
    /// What was lost beside handlers, ns; much of it in the time of the runtime.
    pub(crate) beside_ns: f64,
    /// Idle time of workers of a pool after their last iteration, ns.
    pub(crate) tail_ns: f64,
}

/// Moves that did not save what they should have, as a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InVain {
    saved: f64,
    /// Where work is changed, rather than what vCPUs can do.
    work_moved: bool,
}

/// What the rules say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// The most important first; at least one.
    pub(crate) says: Vec<String>,
    /// Whether there is something to do about the run.
    pub(crate) worry: bool,
}

impl Facts {
    pub(crate) fn advice(&self) -> Advice {
        let rules = [uneven, in_vain, heaviest, syncs, tail, idle, lost, runtime];
        let said: Vec<String> = rules.iter().filter_map(|rule| rule(self)).collect();
        if !said.is_empty() {
            return Advice { says: said, worry: true };
        }
        let parts = &self.parts;
        let quiet = if parts.chunks_ns + parts.runtime_ns + parts.lost_ns + parts.idle_ns > 0.0 {
            let (busy, work) =
                (100.0 * parts.share(parts.chunks_ns), if self.pool { "iterations" } else { "chunks" });
            format!("nothing stands out: workers were busy with {work} for {busy:.1} % of the time")
        } else {
            "nothing was recorded that takes time".into()
        };
        Advice { says: vec![quiet], worry: false }
    }
}

fn uneven(facts: &Facts) -> Option<String> {
    if facts.uneven <= NOTABLE {
        return uneven_without_syncs(facts);
    }
    let cause = facts.cause?;
    let when = format!(
        "max/avg was above {UNEVEN} for {:.1} % of the time, at worst {:.3}",
        100.0 * facts.uneven,
        facts.worst
    );
    let cure = if facts.moving == 0 {
        format!("; nothing was moved under `{}`", facts.strategy)
    } else {
        String::new()
    };
    Some(match cause {
        Cause::Share(rank, share) => {
            format!(
                "{when}: the work was even, but rank {rank} had only {:.1} % of its vCPU{cure}",
                100.0 * share
            )
        }
        Cause::Speed(rank, speed) => {
            format!(
                "{when}: the work was even, but rank {rank} has only {:.1} % of the best speed{cure}",
                100.0 * speed
            )
        }
        Cause::Work(rank, work) => {
            // Who is told below that syncs take too long is not told here to have more of them.
            let more = if facts.syncs_share > NOTABLE { "" } else { "more often, or " };
            format!(
                "{when}: rank {rank} had {work:.3} times the average work: balance {more}with another strategy{cure}"
            )
        }
        Cause::Unknown => format!("{when}{cure}"),
    })
}

fn uneven_without_syncs(facts: &Facts) -> Option<String> {
    let imbalance =
        facts.imbalance.filter(|&imbalance| imbalance > UNEVEN && facts.syncs == 0 && !facts.cut)?;
    let cure =
        if facts.pool { "hand out smaller ranges, or by another policy" } else { "add syncs to balance at" };
    Some(format!(
        "the busiest rank had {imbalance:.3} times the average to do, and there was no sync: {cure}"
    ))
}

fn in_vain(facts: &Facts) -> Option<String> {
    let InVain { saved, work_moved } = facts.in_vain?;
    let (what, cure) = if work_moved {
        (
            "loads were stale: the work moves on faster than syncs follow",
            "a shorter period, if syncs stop nobody",
        )
    } else {
        ("what vCPUs can do changes faster than syncs follow", "a longer period, or no balancing")
    };
    let saved = 100.0 * saved;
    Some(format!("moves saved {saved:.0} % of what was predicted: {what}: try {cure}"))
}

/// Workers of a pool that wait for the last one.
fn tail(facts: &Facts) -> Option<String> {
    let share = facts.parts.share(facts.tail_ns);
    (share > NOTABLE).then(|| {
        format!(
            "workers waited for the last one for {:.1} % of the time: hand out smaller ranges, or by another policy",
            100.0 * share
        )
    })
}

fn heaviest(facts: &Facts) -> Option<String> {
    let (times, chunk) = facts.heaviest.as_ref().filter(|(times, _)| *times > 1.0)?;
    Some(format!(
        "{chunk} is too heavy, {times:.3} times the average load of a worker: nothing can balance it, split it"
    ))
}

fn syncs(facts: &Facts) -> Option<String> {
    let share = 100.0 * facts.syncs_share;
    (facts.syncs_share > NOTABLE).then(|| format!("syncs took {share:.1} % of the run: balance less often"))
}

fn idle(facts: &Facts) -> Option<String> {
    let share = facts.parts.share(facts.parts.idle_ns);
    let imbalance = facts.imbalance.filter(|&imbalance| imbalance <= EVEN_MAX && share > IDLE_MAX)?;
    Some(format!(
        "workers were idle for {:.1} % of the time while max/avg was {imbalance:.3}: latency or dependences, not balance; \
         see critical-path",
        100.0 * share
    ))
}

fn lost(facts: &Facts) -> Option<String> {
    let share = facts.parts.share(facts.parts.lost_ns);
    let (rank, worst) = facts.loser.filter(|_| share > NOTABLE)?;
    Some(format!(
        "{:.1} % of the time was lost, most on rank {rank} with {:.1} %: the vCPU was somebody else's, or handlers slept or \
         did I/O",
        100.0 * share,
        100.0 * worst
    ))
}

fn runtime(facts: &Facts) -> Option<String> {
    let share = facts.parts.share((facts.parts.runtime_ns - facts.beside_ns).max(0.0));
    (share > RUNTIME_MAX)
        .then(|| format!("the runtime itself took {:.1} %: make chunks larger", 100.0 * share))
}

impl Facts {
    pub(crate) fn new(
        trace: &Trace,
        spent: &Spent,
        taken: &Taken,
        outcomes: &[Outcome<'_>],
        census: Option<&Census>,
    ) -> Facts {
        let by_rank = spent.by_rank();
        let lost = by_rank.iter().map(|(&rank, parts)| (rank, parts.share(parts.lost_ns)));
        let busy: Vec<f64> =
            by_rank.values().map(|parts| parts.share(parts.chunks_ns + parts.lost_ns)).collect();
        let phases = phases(outcomes);
        Facts {
            parts: spent.parts(),
            pool: trace.run.shape == "pool",
            strategy: trace.run.lb.clone(),
            syncs: outcomes.len(),
            cut: trace.dropped() > 0 || trace.ranks.iter().all(|rank| rank.rank != 0),
            moving: outcomes.iter().filter(|outcome| outcome.report.moved > 0).count(),
            uneven: phases.uneven,
            cause: phases.cause,
            worst: phases.worst,
            in_vain: moved_in_vain(outcomes),
            imbalance: if outcomes.is_empty() { max_over_average(&busy) } else { phases.imbalance },
            heaviest: census.and_then(|census| heaviest_chunk(trace, spent, census)),
            syncs_share: syncs_share(spent, outcomes),
            loser: lost.max_by(|one, other| one.1.total_cmp(&other.1)),
            beside_ns: taken.beside_ns,
            tail_ns: if trace.run.shape == "pool" { tail_ns(trace) } else { 0.0 },
        }
    }
}

/// What phases have in common.
struct Phases {
    uneven: f64,
    cause: Option<Cause>,
    worst: f64,
    imbalance: Option<f64>,
}

fn phases(outcomes: &[Outcome<'_>]) -> Phases {
    let (mut all_ns, mut uneven_ns, mut average_ns, mut worst) = (0.0, 0.0, 0.0, 0.0_f64);
    // By the rank and the reason: time that others waited, and the cause in the worst of the phases.
    let mut causes = BTreeMap::<(u8, usize), (f64, f64, Cause)>::new();
    for outcome in outcomes {
        let phase_ns = outcome.report.makespan_before_ns as f64;
        all_ns += phase_ns;
        average_ns += phase_ns - outcome.excess_ns();
        let Some(imbalance) = finite(outcome.report.imbalance_before).filter(|&it| it > UNEVEN) else {
            continue;
        };
        uneven_ns += phase_ns;
        worst = worst.max(imbalance);
        let cause = outcome.cause();
        let key = match cause {
            Cause::Work(rank, _) => (0, rank),
            Cause::Share(rank, _) => (1, rank),
            Cause::Speed(rank, _) => (2, rank),
            Cause::Unknown => (3, 0),
        };
        let (excess_ns, most, of_it) = causes.entry(key).or_insert((0.0, 0.0, cause));
        *excess_ns += outcome.excess_ns();
        if imbalance > *most {
            (*most, *of_it) = (imbalance, cause);
        }
    }
    let first = causes.into_values().max_by(|one, other| one.0.total_cmp(&other.0));
    Phases {
        uneven: if all_ns > 0.0 { uneven_ns / all_ns } else { 0.0 },
        cause: first.map(|(_, _, cause)| cause),
        worst,
        imbalance: finite(all_ns / average_ns),
    }
}

/// How heavy the heaviest chunk is in the middle one of the phases, and which it is in the worst.
fn heaviest_chunk(trace: &Trace, spent: &Spent, census: &Census) -> Option<(f64, String)> {
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

/// Whether what was predicted of moves did not come true, and what changed meanwhile.
fn moved_in_vain(outcomes: &[Outcome<'_>]) -> Option<InVain> {
    let (mut gain_ns, mut saved_ns, mut phases_ns) = (0.0, 0.0, 0.0);
    let (mut work, mut capacity) = (0.0, 0.0);
    for outcome in outcomes {
        phases_ns += outcome.report.makespan_before_ns as f64;
        let Some(saved) = outcome.saved_ns() else { continue };
        (gain_ns, saved_ns) = (gain_ns + outcome.gain_ns(), saved_ns + saved);
        let (work_off, capacity_off) = outcome.drift().unwrap_or_default();
        (work, capacity) = (work + work_off, capacity + capacity_off);
    }
    let saved = finite(saved_ns / gain_ns).filter(|_| gain_ns > NOTABLE * phases_ns)?;
    (saved < SAVED_MIN).then_some(InVain { saved, work_moved: work > capacity })
}

/// Where chunks stand still for a sync it holds everybody up; measuring holds up each worker that does it.
fn syncs_share(spent: &Spent, outcomes: &[Outcome<'_>]) -> f64 {
    let elapsed_ns = spent.bins.window.length_ns() as f64;
    let total = spent.total();
    let measure_ns = total.get(&Activity::Runtime(Part::Measure)).map_or(0.0, |line| line.total_ns);
    let measure_ns = measure_ns / spent.workers.len().max(1) as f64;
    let cost_ns = outcomes.iter().map(Outcome::cost).sum::<Cost>().all_ns();
    finite((cost_ns + measure_ns) / elapsed_ns).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use caribou::SyncReport;

    use super::super::lb::outcome::outcomes;
    use super::*;

    /// Workers busy for 95 % of the time, nothing else to say.
    fn quiet() -> Facts {
        let parts = Parts { chunks_ns: 95.0, idle_ns: 5.0, wall_ns: 100.0, ..Parts::default() };
        Facts {
            parts,
            strategy: "refine".into(),
            syncs: 3,
            moving: 1,
            imbalance: Some(1.02),
            ..Facts::default()
        }
    }

    fn only(facts: &Facts) -> String {
        let mut said = facts.advice().says;
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }

    #[test]
    fn where_nothing_is_wrong_nothing_stands_out() {
        let says = |text: &str| Advice { says: vec![text.into()], worry: false };
        let stands_out = "nothing stands out: workers were busy with chunks for 95.0 % of the time";
        assert_eq!(quiet().advice(), says(stands_out));
        let pool = Facts { pool: true, ..quiet() };
        assert_eq!(pool.advice(), says(&stands_out.replace("chunks", "iterations")));
        let nothing = Facts { parts: Parts { rest_ns: 1.0, wall_ns: 1.0, ..Parts::default() }, ..quiet() };
        assert_eq!(nothing.advice(), says("nothing was recorded that takes time"));
        assert!(Facts { syncs_share: 0.1, ..quiet() }.advice().worry);
    }

    #[test]
    fn uneven_phases_have_a_cause_and_a_cure() {
        let with = |cause| Facts { uneven: 0.3, cause: Some(cause), worst: 1.6, ..quiet() };
        let said = only(&with(Cause::Share(2, 0.55)));
        assert!(
            said.contains("30.0 % of the time, at worst 1.600")
                && said.ends_with("rank 2 had only 55.0 % of its vCPU")
        );
        assert!(only(&with(Cause::Speed(1, 0.7))).contains("rank 1 has only 70.0 % of the best speed"));
        assert!(
            only(&with(Cause::Work(3, 1.5)))
                .contains("rank 3 had 1.500 times the average work: balance more often")
        );
        let nothing_moved = Facts { moving: 0, ..with(Cause::Share(2, 0.55)) };
        assert!(only(&nothing_moved).ends_with("; nothing was moved under `refine`"));
        assert!(
            only(&Facts { uneven: 0.05, ..with(Cause::Unknown) }).starts_with("nothing"),
            "too little of the run"
        );
    }

    #[test]
    fn nobody_is_told_to_balance_more_and_less_often_at_once() {
        let cause = Some(Cause::Work(0, 1.5));
        let both = Facts { uneven: 0.3, worst: 1.6, syncs_share: 0.156, cause, ..quiet() };
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
        let of = |syncs: &[SyncReport]| moved_in_vain(&outcomes(syncs));
        assert_eq!(of(&moved_work(200, [1.0, 1.0])), None, "two thirds came true");
        let stale = of(&moved_work(30, [1.0, 1.0])).unwrap();
        assert!(stale.work_moved && (stale.saved - 0.1).abs() < 1e-9, "{stale:?}");
        let said = only(&Facts { in_vain: Some(stale), ..quiet() });
        assert!(said.starts_with("moves saved 10 % of what was predicted: loads were stale"), "{said}");
        // Completion times differ since the first rank has a fifth of its vCPU; the work is where it was expected.
        assert!(!of(&moved_work(0, [0.2, 1.0])).unwrap().work_moved);
    }

    #[test]
    fn a_pool_whose_workers_wait_for_the_last_has_a_tail() {
        let said = only(&Facts { pool: true, tail_ns: 12.0, ..quiet() });
        assert!(said.starts_with("workers waited for the last one for 12.0 % of the time"), "{said}");
    }

    #[test]
    fn a_chunk_heavier_than_a_worker_can_bear_is_to_be_split() {
        let with = |times| Facts { heaviest: Some((times, "Rod[17]".into())), ..quiet() };
        let said = only(&with(1.3));
        assert_eq!(
            said,
            "Rod[17] is too heavy, 1.300 times the average load of a worker: nothing can balance it, split it"
        );
        assert!(only(&with(1.0)).starts_with("nothing"));
    }

    #[test]
    fn syncs_that_take_more_than_a_twentieth_are_too_many() {
        let said = only(&Facts { syncs_share: 0.071, ..quiet() });
        assert_eq!(said, "syncs took 7.1 % of the run: balance less often");
        assert!(only(&Facts { syncs_share: 0.05, ..quiet() }).starts_with("nothing"));
    }

    #[test]
    fn idle_workers_of_a_balanced_run_wait_for_messages() {
        let parts = Parts { chunks_ns: 70.0, idle_ns: 30.0, wall_ns: 100.0, ..Parts::default() };
        let said = only(&Facts { parts, ..quiet() });
        assert!(
            said.starts_with("workers were idle for 30.0 %") && said.contains("latency or dependences"),
            "{said}"
        );
        let unbalanced = Facts { parts, imbalance: Some(1.15), ..quiet() };
        assert!(only(&unbalanced).starts_with("nothing"));
    }

    #[test]
    fn lost_and_runtime_shares_have_limits() {
        let parts =
            Parts { chunks_ns: 80.0, lost_ns: 6.0, runtime_ns: 14.0, wall_ns: 100.0, ..Parts::default() };
        let said = Facts { parts, loser: Some((2, 0.4)), ..quiet() }.advice().says;
        assert!(
            said[0].starts_with("6.0 % of the time was lost, most on rank 2 with 40.0 %: the vCPU"),
            "{said:?}"
        );
        assert_eq!(said[1..], ["the runtime itself took 14.0 %: make chunks larger"]);
        let waited = Facts { parts, beside_ns: 5.0, loser: Some((2, 0.4)), ..quiet() };
        assert_eq!(waited.advice().says.len(), 1, "9 % are its own");
        let parts = Parts { lost_ns: 5.0, runtime_ns: 10.0, ..parts };
        assert!(only(&Facts { parts, loser: Some((2, 0.4)), ..quiet() }).starts_with("nothing"));
    }
}
