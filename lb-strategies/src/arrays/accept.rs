//! Compares the predicted gain of a plan with the cost of its moves ([`accept()`]). Before there is a plan, compares
//! the best achievable gain with the time to make a plan ([`worth_asking`]).
//!
//! The caller measures the cost of moving and of deciding, and passes it in.

use crate::arrays::memory::{fullest, relieves};
use crate::arrays::metrics::{Moved, bound_ns, max_ns};
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::Background;
use crate::rank::Rank;

/// The cost of moving chunks on this machine.
///
/// ```
/// use lb_strategies::MoveCost;
/// let over_mpi = MoveCost { per_chunk_ns: 5_000, bytes_per_second: 6e9 };
/// assert_eq!(over_mpi.cost_ns(10, 60_000_000), 50_000 + 10_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveCost {
    /// Fixed time for each chunk moved.
    pub per_chunk_ns: u64,
    /// Rate at which chunk state is transferred. With zero or NaN, bytes are free, as between threads of one process.
    pub bytes_per_second: f64,
}

impl MoveCost {
    /// Time to move `chunks` chunks of `bytes` bytes together.
    pub fn cost_ns(&self, chunks: usize, bytes: u64) -> u64 {
        let fixed = self.per_chunk_ns.saturating_mul(chunks as u64);
        let travel =
            if self.bytes_per_second > 0.0 { bytes as f64 * 1e9 / self.bytes_per_second } else { 0.0 };
        fixed.saturating_add(travel as u64)
    }
}

/// The outcome of [`accept()`] or [`worth_asking`], with the two figures it was decided on.
///
/// ```
/// use lb_strategies::Verdict;
/// let verdict = Verdict { accepted: false, gain_ns: 1_000, cost_ns: 2_000 };
/// assert!(verdict.gain_ns < verdict.cost_ns);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// True if the assignment should be carried out, or the strategy asked.
    pub accepted: bool,
    /// Time that the assignment should save, ns. For [`worth_asking`], the most that any assignment could save.
    pub gain_ns: u64,
    /// Time that the moves take, ns. For [`worth_asking`], the least time that deciding and moving take.
    pub cost_ns: u64,
}

/// Accepts an assignment if it saves more over the next `phases` phases than its moves cost.
///
/// An assignment that moves a chunk off an unavailable rank is always accepted, because the chunk cannot stay, and so is
/// one by which ranks exceed their limits of memory by less.
///
/// ```
/// use lb_strategies::{Background, MoveCost, accept, ARRAYS, synthetic::Workload};
/// let snapshot = Workload::NoisyRank.snapshot(200, 2, 1);
/// let assignment = ARRAYS.parse("refine")?.assign(&snapshot);
/// let cheap = MoveCost { per_chunk_ns: 3_000, bytes_per_second: 4e9 };
/// assert!(accept(&snapshot, &assignment, Background::Share, 1, &cheap).accepted);
/// let dear = MoveCost { per_chunk_ns: 10_000_000, ..cheap };
/// assert!(!accept(&snapshot, &assignment, Background::Share, 1, &dear).accepted);
/// assert!(accept(&snapshot, &assignment, Background::Share, 100, &dear).accepted);
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub fn accept(
    snapshot: &Snapshot,
    assignment: &Assignment,
    model: Background,
    phases: u64,
    cost: &MoveCost,
) -> Verdict {
    let moved = Moved::of(snapshot, assignment);
    let before_ns = max_ns(snapshot, &Assignment::current(snapshot), model);
    let after_ns = max_ns(snapshot, assignment, model);
    let gain_ns = before_ns.saturating_sub(after_ns).saturating_mul(phases);
    let cost_ns = cost.cost_ns(moved.chunks, moved.bytes);
    Verdict { accepted: gain_ns > cost_ns || is_forced(snapshot, assignment), gain_ns, cost_ns }
}

/// True if an assignment is carried out whatever it costs: it empties an unavailable rank, or relieves a rank above its
/// limit of memory.
pub(super) fn is_forced(snapshot: &Snapshot, assignment: &Assignment) -> bool {
    let leaves = assignment.moves(snapshot).any(|(chunk, _)| !is_available(snapshot, chunk.rank));
    leaves || relieves(snapshot, assignment)
}

pub(super) fn is_available(snapshot: &Snapshot, rank: Rank) -> bool {
    snapshot.ranks.get(rank.index()).is_some_and(|rank| rank.available)
}

/// Judges whether to ask a strategy that takes `decide_ns`. The best achievable gain over the next `phases` phases must
/// exceed this time plus the cost of the cheapest move. The best achievable gain is the distance to [`bound_ns`], to
/// which the time of messages between ranks counts.
///
/// [`accept()`] does not count `decide_ns`: once there is a plan, this time is spent in any case. If a migratable chunk
/// is on an unavailable rank, or a rank exceeds its limit of memory, asking is always worth it.
///
/// ```
/// use lb_strategies::{Background, MoveCost, Verdict, synthetic::Workload, worth_asking};
/// let cost = MoveCost { per_chunk_ns: 5_000, bytes_per_second: 4e9 };
/// let asks = |workload: Workload, decide_ns| {
///     worth_asking(&workload.snapshot(200, 2, 1), Background::Share, 1, &cost, decide_ns)
/// };
/// // A neighbour on one of two vCPUs: a third of the phase could be saved.
/// let Verdict { gain_ns, cost_ns, .. } = asks(Workload::NoisyRank, 20_000);
/// assert!(gain_ns > cost_ns && cost_ns > 20_000);
/// assert!(!asks(Workload::NoisyRank, gain_ns).accepted);
/// // Nothing is to be gained where all are through at the same time.
/// assert!(!asks(Workload::Equal, 0).accepted);
/// ```
pub fn worth_asking(
    snapshot: &Snapshot,
    model: Background,
    phases: u64,
    cost: &MoveCost,
    decide_ns: u64,
) -> Verdict {
    worth_asking_above(snapshot, model, phases, cost, decide_ns, bound_ns(snapshot, model))
}

/// The same, if no placement that the strategy finds is expected to finish before `least_ns`.
pub(super) fn worth_asking_above(
    snapshot: &Snapshot,
    model: Background,
    phases: u64,
    cost: &MoveCost,
    decide_ns: u64,
    least_ns: u64,
) -> Verdict {
    let movable = || snapshot.chunks.iter().filter(|chunk| chunk.migratable);
    let now_ns = max_ns(snapshot, &Assignment::current(snapshot), model);
    let gain_ns = now_ns.saturating_sub(least_ns).saturating_mul(phases);
    let lightest = movable().map(|chunk| chunk.bytes).min().unwrap_or(0);
    let cost_ns = decide_ns.saturating_add(cost.cost_ns(1, lightest));
    let must_leave = movable().any(|chunk| !is_available(snapshot, chunk.rank))
        || fullest(snapshot, &Assignment::current(snapshot)).is_some();
    Verdict { accepted: gain_ns > cost_ns || must_leave, gain_ns, cost_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ARRAYS;
    use crate::arrays::synthetic::Workload;

    #[test]
    fn leaving_an_unavailable_rank_is_worth_any_cost() {
        let mut snapshot = Workload::Equal.snapshot(20, 2, 1);
        snapshot.ranks[1].available = false;
        let assignment = ARRAYS.parse("greedy").expect("known").assign(&snapshot);
        assert!(assignment.ranks.iter().all(|rank| *rank == Rank(0)));
        let dear = MoveCost { per_chunk_ns: u64::MAX, bytes_per_second: 1.0 };
        let verdict = accept(&snapshot, &assignment, Background::Share, 1, &dear);
        assert!(verdict.accepted && verdict.gain_ns < verdict.cost_ns);
        let asks = worth_asking(&snapshot, Background::Share, 1, &dear, u64::MAX);
        assert!(asks.accepted && asks.gain_ns < asks.cost_ns);
        snapshot.chunks.iter_mut().for_each(|chunk| chunk.migratable = false);
        assert!(!worth_asking(&snapshot, Background::Share, 1, &dear, 0).accepted, "all are pinned");
    }

    #[test]
    fn what_is_not_worth_asking_about_no_strategy_has_an_acceptable_plan_for() {
        let cost = MoveCost { per_chunk_ns: 5_000, bytes_per_second: 4e9 };
        for (workload, seed) in Workload::ALL.into_iter().flat_map(|workload| [(workload, 1), (workload, 2)])
        {
            for model in [Background::Share, Background::Additive] {
                let snapshot = workload.snapshot(60, 4, seed);
                let asks = worth_asking(&snapshot, model, 1, &cost, 0);
                let strategies = ARRAYS.iter().map(|entry| ARRAYS.parse(entry.name).expect("listed"));
                for strategy in strategies {
                    let verdict = accept(&snapshot, &strategy.assign(&snapshot), model, 1, &cost);
                    let name = strategy.name();
                    assert!(verdict.gain_ns <= asks.gain_ns, "{name}, {workload:?}: {verdict:?} {asks:?}");
                    assert!(asks.accepted || !verdict.accepted, "{name}, {workload:?}: {verdict:?} {asks:?}");
                }
            }
        }
    }

    #[test]
    fn staying_is_not_a_move_to_accept() {
        let snapshot = Workload::Equal.snapshot(20, 2, 1);
        let free = MoveCost { per_chunk_ns: 0, bytes_per_second: 0.0 };
        let verdict = accept(&snapshot, &Assignment::current(&snapshot), Background::Share, 1, &free);
        assert_eq!(verdict, Verdict { accepted: false, gain_ns: 0, cost_ns: 0 });
    }
}
