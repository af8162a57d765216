//! Measures of a placement, and bounds for the best one.
//!
//! All figures follow from the snapshot and a placement under one [`Background`] model; for the placement
//! that was measured pass [`Assignment::current`]. They are predictions: what really happened is in the next
//! snapshot.

use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::Background;
use crate::rank::Rank;

/// Completion time of each rank: (ticks of its chunks + ticks of its background) / capacity.
pub fn completion_ns(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> Vec<u64> {
    let loads = Loads::placed(snapshot, assignment, model);
    (0..snapshot.ranks.len()).map(|rank| loads.completion_ns(Rank(rank as u32))).collect()
}

/// Completion time of the last rank: the length of the phase for a program that waits for everybody.
pub fn max_ns(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> u64 {
    Loads::placed(snapshot, assignment, model).max_ns()
}

/// The best phase possible if work could be cut at will: sum of ticks / sum of capacities of the available
/// ranks.
///
/// Under [`Background::Additive`] the neighbours' ticks count as work. Every assignment has its maximum at or
/// above this.
pub fn bound_ns(snapshot: &Snapshot, model: Background) -> u64 {
    Loads::placed(snapshot, &Assignment::current(snapshot), model).bound_ns(snapshot) as u64
}

/// Maximum over average completion time; 1 is perfect.
///
/// The average is weighted by capacity, which makes it the bound: on unequal ranks a plain mean could be
/// beaten.
pub fn max_over_avg(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> f64 {
    let loads = Loads::placed(snapshot, assignment, model);
    let average = loads.bound_ns(snapshot);
    if average > 0.0 { loads.max_ns() as f64 / average } else { 1.0 }
}

/// Time lost to unequal completion, relative to the average: [`max_over_avg`] - 1.
pub fn imbalance(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> f64 {
    max_over_avg(snapshot, assignment, model) - 1.0
}

/// The largest part of the current phase that any placement could save, in [0, 1).
///
/// One neighbour that always runs on one of P equal vCPUs allows 1 - P / (2 (P - 0.5)): a third on 2, a half
/// on many.
pub fn gain_bound(snapshot: &Snapshot, model: Background) -> f64 {
    let max = max_ns(snapshot, &Assignment::current(snapshot), model);
    if max == 0 { 0.0 } else { (1.0 - bound_ns(snapshot, model) as f64 / max as f64).max(0.0) }
}

/// The amount that an assignment moves.
///
/// ```
/// use lb_strategies::{metrics::Moved, ARRAYS, synthetic::Workload};
/// let snapshot = Workload::Equal.snapshot(10, 2, 1);
/// let moved = Moved::of(&snapshot, &ARRAYS.parse("rotate")?.assign(&snapshot));
/// assert_eq!(moved.chunks, 10);
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Chunks whose rank changes.
    pub chunks: usize,
    /// State that travels with them.
    pub bytes: u64,
}

impl Moved {
    /// Counts the chunks whose rank differs from the snapshot's, and their bytes.
    pub fn of(snapshot: &Snapshot, assignment: &Assignment) -> Self {
        let moving =
            snapshot.chunks.iter().zip(&assignment.ranks).filter(|(chunk, rank)| chunk.rank != **rank);
        moving.fold(Self::default(), |moved, (chunk, _)| Self {
            chunks: moved.chunks + 1,
            bytes: moved.bytes.saturating_add(chunk.bytes),
        })
    }
}

impl Loads {
    /// All ticks over the available capacity; all capacity where no rank is available.
    pub(crate) fn bound_ns(&self, snapshot: &Snapshot) -> f64 {
        let ticks: u64 = self.ticks.iter().sum();
        let available = |rank: &usize| self.available.is_empty() || snapshot.ranks[*rank].available;
        let capacity: f64 = (0..self.capacity.len()).filter(available).map(|rank| self.capacity[rank]).sum();
        if capacity > 0.0 { ticks as f64 / capacity } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::synthetic::Workload;

    #[test]
    fn one_busy_neighbour_bounds_the_gain_as_the_formula_says() {
        for ranks in [2, 4, 8, 32] {
            let snapshot = Workload::NoisyRank.snapshot(ranks * 1000, ranks, 1);
            let expected = 1.0 - ranks as f64 / (2.0 * (ranks as f64 - 0.5));
            // The workload's loads vary by 2 %, so the ranks' sums are not quite equal.
            assert!((gain_bound(&snapshot, Background::Share) - expected).abs() < 2e-3);
        }
    }

    #[test]
    fn equal_ranks_of_equal_loads_are_perfect() {
        let snapshot = Workload::Equal.snapshot(100, 10, 1);
        let now = Assignment::current(&snapshot);
        assert!(imbalance(&snapshot, &now, Background::Share).abs() < 1e-9);
        assert_eq!(Moved::of(&snapshot, &now), Moved::default());
    }

    #[test]
    fn work_on_an_unavailable_rank_is_shared_by_the_others() {
        let mut snapshot = Workload::Equal.snapshot(100, 2, 1);
        let before = bound_ns(&snapshot, Background::Share);
        snapshot.ranks[1].available = false;
        assert_eq!(bound_ns(&snapshot, Background::Share), 2 * before);
    }
}
