//! Sums the load of each rank under one [`Background`] model: other processes lower its capacity or add to its load.
//! Strategies and metrics compute completion times from the sums.
//!
//! Senseless numbers are corrected here and nowhere else. Capacities are held between [`CAPACITY_MIN`] and
//! [`CAPACITY_MAX`]. A load is cut so that the sum of all loads fits into a `u64`. Strategies can therefore add and
//! subtract without checks.

use crate::arrays::snapshot::{Assignment, RankLoad, Snapshot};
use crate::arrays::strategy::Background;
use crate::rank::Rank;

/// Replaces a capacity that is zero, negative or NaN. Such a rank is avoided, and no division by zero occurs.
pub(crate) const CAPACITY_MIN: f64 = 1e-6;
/// Keeps an infinite capacity finite.
pub(crate) const CAPACITY_MAX: f64 = 1e6;

/// Ticks and capacity of every rank.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    /// Ticks per nanosecond.
    pub(crate) capacity: Vec<f64>,
    /// Ticks placed on the rank, including its background.
    pub(crate) ticks: Vec<u64>,
    /// The ranks that may receive chunks, in rising order.
    pub(crate) available: Vec<Rank>,
    /// The largest load that counts for one chunk or background.
    limit: u64,
}

impl Loads {
    /// Ranks that hold nothing but their background.
    pub(crate) fn background(snapshot: &Snapshot, model: Background) -> Self {
        let limit = u64::MAX / (snapshot.chunks.len() + snapshot.ranks.len() + 1) as u64;
        let background = |rank: &RankLoad| match model {
            Background::Share => 0,
            Background::Additive => ((rank.background_ns as f64 * tamed(rank.speed)) as u64).min(limit),
        };
        let numbered = (0..).map(Rank).zip(&snapshot.ranks);
        Self {
            capacity: snapshot.ranks.iter().map(|rank| capacity(rank, model)).collect(),
            ticks: snapshot.ranks.iter().map(background).collect(),
            available: numbered.filter(|(_, load)| load.available).map(|(rank, _)| rank).collect(),
            limit,
        }
    }

    /// Available ranks of these capacities that finish at these times, ns.
    pub(crate) fn of_ranks(ranks: impl Iterator<Item = (f64, u64)>) -> Self {
        let (capacity, times): (Vec<f64>, Vec<u64>) =
            ranks.map(|(capacity, ns)| (tamed(capacity), ns)).unzip();
        let limit = u64::MAX / (capacity.len() + 1) as u64 / 2;
        let ticks = |(capacity, &ns): (&f64, &u64)| ((capacity * ns as f64) as u64).min(limit);
        Self {
            ticks: capacity.iter().zip(&times).map(ticks).collect(),
            available: (0..capacity.len() as u32).map(Rank).collect(),
            capacity,
            limit,
        }
    }

    /// Ranks that hold the chunks that `assignment` gives them. A chunk on a rank that does not exist is not counted.
    pub(crate) fn placed(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> Self {
        let mut loads = Self::background(snapshot, model);
        for (chunk, rank) in snapshot.chunks.iter().zip(&assignment.ranks) {
            if let Some(ticks) = loads.ticks.get_mut(rank.index()) {
                *ticks += chunk.ticks.min(loads.limit);
            }
        }
        loads
    }

    /// Ranks with only the loads that no strategy may move: background and pinned chunks.
    pub(crate) fn pinned(snapshot: &Snapshot, model: Background) -> Self {
        let mut loads = Self::background(snapshot, model);
        for chunk in snapshot.chunks.iter().filter(|chunk| !chunk.migratable) {
            if let Some(ticks) = loads.ticks.get_mut(chunk.rank.index()) {
                *ticks += chunk.ticks.min(loads.limit);
            }
        }
        loads
    }

    /// The load of a chunk of `ticks`, at most `limit`.
    pub(crate) fn clamp_load(&self, ticks: u64) -> u64 {
        ticks.min(self.limit)
    }

    /// Completion time of a rank with its present load.
    pub(crate) fn completion_ns(&self, rank: Rank) -> u64 {
        self.completion_with(rank, 0)
    }

    /// Completion time of a rank with `extra` ticks more.
    pub(crate) fn completion_with(&self, rank: Rank, extra: u64) -> u64 {
        ((self.ticks[rank.index()] + extra) as f64 / self.capacity[rank.index()]) as u64
    }

    /// The most ticks a rank may hold and still finish by `limit_ns`.
    pub(crate) fn ticks_by(&self, rank: Rank, limit_ns: u64) -> u64 {
        let capacity = self.capacity[rank.index()];
        let ticks = (limit_ns as f64 * capacity) as u64;
        // Both the product above and the quotient of `completion_with` are rounded. If they overshoot, step back by
        // more than both roundings.
        let overshoots = (ticks as f64 / capacity) as u64 > limit_ns;
        if overshoots { ticks.saturating_sub((ticks >> 50) + 1) } else { ticks }
    }

    /// Completion time of the last rank.
    pub(crate) fn max_ns(&self) -> u64 {
        (0..self.ticks.len()).map(|rank| self.completion_ns(Rank(rank as u32))).max().unwrap_or(0)
    }

    /// A lower bound for every placement, ns, if these loads are the pinned ones. The heaviest movable chunk is added
    /// where it finishes first, and other movable chunks are left out.
    pub(crate) fn heaviest_ns(&self, snapshot: &Snapshot) -> u64 {
        let movable = snapshot.chunks.iter().filter(|chunk| chunk.migratable);
        let heaviest = self.clamp_load(movable.map(|chunk| chunk.ticks).max().unwrap_or(0));
        let ranks = || self.available.iter().copied();
        let with_it = ranks().map(|rank| self.completion_with(rank, heaviest)).min();
        with_it.max(ranks().map(|rank| self.completion_ns(rank)).max()).unwrap_or(0)
    }

    /// The time at which all available ranks would finish together if work could be cut at will, ns.
    ///
    /// A rank's fair part is total x capacity / sum of capacities. Equation 3 of the refinement paper, taken literally,
    /// equalises ticks instead, and would give a slow vCPU as much work as a fast one.
    pub(crate) fn fair_ns(&self) -> f64 {
        let ticks: u64 = self.available.iter().map(|rank| self.ticks[rank.index()]).sum();
        let capacity: f64 = self.available.iter().map(|rank| self.capacity[rank.index()]).sum();
        if capacity > 0.0 { ticks as f64 / capacity } else { 0.0 }
    }
}

impl Assignment {
    /// This assignment, whose loads are `after`, or the current placement if that finishes no later.
    ///
    /// If a chunk must leave an unavailable rank, the assignment is kept at any cost.
    pub(crate) fn unless_worse(self, snapshot: &Snapshot, after: &Loads, model: Background) -> Self {
        let current = Self::current(snapshot);
        let usable = |rank: Rank| snapshot.ranks.get(rank.index()).is_some_and(|rank| rank.available);
        let must_move = snapshot.chunks.iter().any(|chunk| chunk.migratable && !usable(chunk.rank));
        if !must_move && Loads::placed(snapshot, &current, model).max_ns() <= after.max_ns() {
            current
        } else {
            self
        }
    }
}

fn capacity(rank: &RankLoad, model: Background) -> f64 {
    match model {
        Background::Share => tamed(rank.speed * rank.share),
        Background::Additive => tamed(rank.speed),
    }
}

fn tamed(capacity: f64) -> f64 {
    // Comparisons with NaN are false, so NaN becomes the least capacity.
    if capacity > CAPACITY_MIN { capacity.min(CAPACITY_MAX) } else { CAPACITY_MIN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::synthetic::Workload;

    #[test]
    fn a_rank_filled_up_to_a_limit_finishes_by_it() {
        let mut loads = Loads::background(&Workload::Equal.snapshot(0, 1, 1), Background::Share);
        for capacity in (1..200).map(|step| f64::from(step) * 0.0137) {
            loads.capacity[0] = capacity;
            // The last ones are beyond 2^53 and have no `f64` of their own: theirs lies above the limit.
            for limit_ns in [0, 1, 999, 20_000_000, u64::MAX >> 11, (1 << 54) - 3, (1 << 58) - 1] {
                loads.ticks[0] = loads.ticks_by(Rank(0), limit_ns);
                assert!(loads.completion_ns(Rank(0)) <= limit_ns, "capacity {capacity}, limit {limit_ns}");
                loads.ticks[0] += 2 + (loads.ticks[0] >> 49) + capacity as u64;
                assert!(loads.completion_ns(Rank(0)) >= limit_ns, "capacity {capacity}, limit {limit_ns}");
            }
        }
    }

    #[test]
    fn senseless_capacities_become_tiny_and_finite() {
        for senseless in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(tamed(senseless).to_bits(), CAPACITY_MIN.to_bits());
        }
        assert_eq!(tamed(f64::INFINITY).to_bits(), CAPACITY_MAX.to_bits());
        assert_eq!(tamed(0.5).to_bits(), 0.5_f64.to_bits());
    }

    #[test]
    fn the_heaviest_chunk_and_pinned_work_bound_every_placement() {
        let mut snapshot = Workload::Giant.snapshot(11, 2, 1);
        let heaviest_ns =
            |snapshot: &Snapshot| Loads::pinned(snapshot, Background::Share).heaviest_ns(snapshot);
        assert_eq!(heaviest_ns(&snapshot), 10_000_000);
        snapshot.ranks[0].speed = 2.0;
        assert_eq!(heaviest_ns(&snapshot), 5_000_000, "where it finishes first");
        snapshot.chunks[1..4].iter_mut().for_each(|chunk| chunk.migratable = false);
        assert_eq!(heaviest_ns(&snapshot), 6_500_000, "with what is pinned there");
        snapshot.chunks[0].migratable = false;
        snapshot.ranks[0].speed = 0.5;
        assert_eq!(heaviest_ns(&snapshot), 26_000_000, "pinned itself, it takes what it takes");
    }
}
