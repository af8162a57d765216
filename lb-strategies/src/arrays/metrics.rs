//! Measures how good a placement is, and how good any placement could be.
//!
//! All figures are computed from a snapshot and a placement under one [`Background`] model. For the measured placement,
//! pass [`Assignment::current`]. The figures are predictions: only the next snapshot has the real times.

use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::Background;
use crate::arrays::traffic::Traffic;
use crate::rank::Rank;

pub use crate::arrays::memory::memory_bytes;
pub use crate::arrays::traffic::Crossing;

/// Completion time of each rank: (ticks of its chunks + ticks of its background) / capacity, and the time of its
/// messages to or from other ranks where these cost something ([`Snapshot::links`]).
pub fn completion_ns(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> Vec<u64> {
    let loads = Loads::placed(snapshot, assignment, model);
    let mut times: Vec<u64> =
        (0..snapshot.ranks.len()).map(|rank| loads.completion_ns(Rank(rank as u32))).collect();
    if let Some(traffic) = Traffic::of(snapshot, assignment) {
        times.iter_mut().enumerate().for_each(|(rank, time)| *time = time.saturating_add(traffic.ns(rank)));
    }
    times
}

/// Completion time of the last rank: the length of the phase for a program that waits for all ranks.
pub fn max_ns(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> u64 {
    completion_ns(snapshot, assignment, model).into_iter().max().unwrap_or(0)
}

/// A lower bound for the length of the phase, ns. No assignment has a maximum completion time below it. It is the
/// largest of
///
/// 1. all ticks over the capacity of all available ranks, as if work could be cut at will (except chunks pinned to
///    unavailable ranks),
/// 2. the heaviest chunk that may move, on the rank where it finishes first, with the pinned chunks there,
/// 3. the pinned chunks of any rank.
///
/// Under [`Background::Additive`] the neighbours' ticks count as pinned work. O(chunks + ranks).
pub fn bound_ns(snapshot: &Snapshot, model: Background) -> u64 {
    let placed = Loads::placed(snapshot, &Assignment::current(snapshot), model);
    let pinned = Loads::pinned(snapshot, model);
    let is_lost = |rank: &usize| !placed.available.is_empty() && !snapshot.ranks[*rank].available;
    let lost: u64 = (0..pinned.ticks.len()).filter(is_lost).map(|rank| pinned.ticks[rank]).sum();
    let mean_ns = placed.mean_ns(snapshot, lost) as u64;
    mean_ns.max(pinned.heaviest_ns(snapshot)).max(pinned.max_ns())
}

/// Maximum over average completion time; 1 is perfect.
///
/// The average is weighted by capacity: all ticks over the capacity of all ranks that are available or have ticks. It
/// does not depend on how chunks are distributed among these ranks, as a plain mean would on unequal ranks.
pub fn max_over_avg(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> f64 {
    let loads = Loads::placed(snapshot, assignment, model);
    let works = |rank: &usize| snapshot.ranks[*rank].available || loads.ticks[*rank] > 0;
    let capacity: f64 = (0..loads.capacity.len()).filter(works).map(|rank| loads.capacity[rank]).sum();
    let average = if capacity > 0.0 { loads.ticks.iter().sum::<u64>() as f64 / capacity } else { 0.0 };
    let last_ns = max_ns(snapshot, assignment, model);
    if average > 0.0 { last_ns as f64 / average } else { 1.0 }
}

/// Part of the average completion time that unequal completion costs: [`max_over_avg`] - 1.
pub fn imbalance(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> f64 {
    max_over_avg(snapshot, assignment, model) - 1.0
}

/// The largest part of the current phase that any placement could save, in [0, 1). It is the distance to [`bound_ns`].
///
/// One neighbour that always runs on one of P equal vCPUs allows 1 - P / (2 (P - 0.5)): 1/3 on 2 vCPUs, 1/2 on many.
pub fn gain_bound(snapshot: &Snapshot, model: Background) -> f64 {
    let max = max_ns(snapshot, &Assignment::current(snapshot), model);
    if max == 0 { 0.0 } else { (1.0 - bound_ns(snapshot, model) as f64 / max as f64).max(0.0) }
}

/// The number of chunks and bytes that an assignment moves.
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
        assignment.moves(snapshot).fold(Self::default(), |moved, (chunk, _)| Self {
            chunks: moved.chunks + 1,
            bytes: moved.bytes.saturating_add(chunk.bytes),
        })
    }
}

impl Loads {
    /// All ticks except `without` over the available capacity, or over all capacity if no rank is available.
    fn mean_ns(&self, snapshot: &Snapshot, without: u64) -> f64 {
        let ticks = self.ticks.iter().sum::<u64>() - without;
        let available = |rank: &usize| self.available.is_empty() || snapshot.ranks[*rank].available;
        let capacity: f64 = (0..self.capacity.len()).filter(available).map(|rank| self.capacity[rank]).sum();
        if capacity > 0.0 { ticks as f64 / capacity } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arrays::snapshot::ChunkLoad;
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
    fn one_heavy_chunk_bounds_the_gain() {
        let snapshot = Workload::Giant.snapshot(1000, 10, 1);
        // 999 ms in one chunk, beside 99 others of 1 ms on its rank.
        assert_eq!(bound_ns(&snapshot, Background::Share), 999_000_000);
        let gain = gain_bound(&snapshot, Background::Share);
        assert!((gain - (1.0 - 999.0 / 1098.0)).abs() < 1e-9, "{gain}");
        let plan = crate::ARRAYS.parse("greedy").expect("listed").assign(&snapshot);
        assert_eq!(max_ns(&snapshot, &plan, Background::Share), 999_000_000, "the bound is reached");
    }

    /// Few chunks on three unequal ranks, some pinned, one rank perhaps not available.
    fn snapshots() -> impl Strategy<Value = Snapshot> {
        let chunk = (1..40_u64, 0..3_u32, 0..4_u32);
        let rank = (0.2..2.0_f64, 0..50_u64, 0..5_u32);
        (prop::collection::vec(chunk, 1..6), prop::collection::vec(rank, 3)).prop_map(|(chunks, ranks)| {
            let mut snapshot = Workload::Equal.snapshot(chunks.len().max(3), 3, 1);
            snapshot.chunks.truncate(chunks.len());
            for (chunk, (ticks, rank, pinned)) in snapshot.chunks.iter_mut().zip(chunks) {
                (chunk.ticks, chunk.rank, chunk.migratable) = (ticks * 1000, Rank(rank), pinned > 0);
            }
            for (rank, (speed, background_ns, down)) in snapshot.ranks.iter_mut().zip(ranks) {
                (rank.speed, rank.background_ns, rank.available) = (speed, background_ns * 1000, down > 0);
            }
            snapshot
        })
    }

    proptest! {
        #[test]
        fn no_placement_ends_before_the_bound(snapshot in snapshots(), additive: bool) {
            let model = if additive { Background::Additive } else { Background::Share };
            let bound = bound_ns(&snapshot, model);
            let usable = |rank: Rank| snapshot.ranks[rank.index()].available;
            let any_usable = snapshot.ranks.iter().any(|rank| rank.available);
            for code in 0..3_usize.pow(snapshot.chunks.len() as u32) {
                let place = |(position, chunk): (usize, &ChunkLoad)| {
                    let rank = Rank((code / 3_usize.pow(position as u32) % 3) as u32);
                    if chunk.migratable && (usable(rank) || !any_usable) { rank } else { chunk.rank }
                };
                let ranks: Vec<Rank> = snapshot.chunks.iter().enumerate().map(place).collect();
                // A strategy moves migratable chunks off an unavailable rank.
                let stays = |(chunk, rank): (&ChunkLoad, &Rank)| chunk.migratable && any_usable && !usable(*rank);
                if snapshot.chunks.iter().zip(&ranks).any(stays) {
                    continue;
                }
                let max = max_ns(&snapshot, &Assignment { ranks }, model);
                prop_assert!(bound <= max + 1, "{bound} {max}");
            }
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

    #[test]
    fn a_rank_that_is_to_be_left_counts_as_long_as_it_has_work() {
        let mut snapshot = Workload::Equal.snapshot(100, 2, 1);
        let balanced = max_over_avg(&snapshot, &Assignment::current(&snapshot), Background::Share);
        snapshot.ranks[1].available = false;
        let of = |assignment: &Assignment| max_over_avg(&snapshot, assignment, Background::Share);
        assert_eq!(of(&Assignment::current(&snapshot)).to_bits(), balanced.to_bits());
        let emptied = Assignment { ranks: vec![Rank(0); snapshot.chunks.len()] };
        assert_eq!(of(&emptied).to_bits(), 1.0_f64.to_bits());
    }
}
