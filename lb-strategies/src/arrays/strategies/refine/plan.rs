//! A placement under construction: the rank of each chunk, and the load of every rank.

use crate::arrays::finish_first::{FinishFirst, by_falling_load};
use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::Background;
use crate::rank::Rank;

/// An assignment and the loads that follow from it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) assignment: Assignment,
    pub(crate) loads: Loads,
    /// The time that levels are relative to. No placement finishes earlier.
    pub(crate) least_ns: f64,
}

impl Plan {
    /// The current placement with unavailable ranks emptied. Their chunks, heaviest first, go where they finish first.
    pub(crate) fn evacuated(snapshot: &Snapshot, model: Background) -> Self {
        let mut assignment = Assignment::current(snapshot);
        let mut loads = Loads::placed(snapshot, &assignment, model);
        let usable = |rank: Rank| snapshot.ranks.get(rank.index()).is_some_and(|rank| rank.available);
        let all_usable = loads.available.len() == snapshot.ranks.len();
        if !all_usable || !assignment.ranks.iter().all(|&rank| usable(rank)) {
            let mut finish_first = FinishFirst::new(&loads);
            for (position, ticks) in by_falling_load(snapshot) {
                let chunk = &snapshot.chunks[position];
                if usable(chunk.rank) {
                    continue;
                }
                let ticks = loads.clamp_load(ticks);
                if let Some(rank) = finish_first.place(&mut loads, ticks) {
                    assignment.ranks[position] = rank;
                    if let Some(left) = loads.ticks.get_mut(chunk.rank.index()) {
                        *left -= ticks;
                    }
                }
            }
        }
        let least_ns = loads.fair_ns();
        Self { assignment, loads, least_ns }
    }

    /// The same plan with ranks that take 1 ns per tick, so that ticks are equalised instead of times.
    pub(crate) fn in_ticks(mut self) -> Self {
        self.loads.capacity.fill(1.0);
        self.least_ns = self.loads.fair_ns();
        self
    }

    /// The same plan with levels relative to at least the time of the heaviest chunk on its best rank.
    pub(crate) fn above_heaviest(mut self, snapshot: &Snapshot, model: Background) -> Self {
        let heaviest_ns = self.pinned(snapshot, model).heaviest_ns(snapshot);
        self.least_ns = self.least_ns.max(heaviest_ns as f64);
        self
    }

    /// The loads that no plan can move, on ranks with the capacities of this plan.
    pub(crate) fn pinned(&self, snapshot: &Snapshot, model: Background) -> Loads {
        let mut loads = Loads::pinned(snapshot, model);
        loads.capacity.clone_from(&self.loads.capacity);
        loads
    }

    /// The completion time that lies `level` above the least one.
    pub(crate) fn limit_ns(&self, level: f64) -> u64 {
        (self.least_ns * (1.0 + level)) as u64
    }

    /// The part by which this plan exceeds the least completion time.
    pub(crate) fn level(&self) -> f64 {
        self.max_ns() as f64 / self.least_ns - 1.0
    }

    /// Completion time of the last available rank. The load pinned to an unavailable rank is left out, because no
    /// strategy can change it.
    pub(crate) fn max_ns(&self) -> u64 {
        self.loads.available.iter().map(|&rank| self.loads.completion_ns(rank)).max().unwrap_or(0)
    }

    /// The ticks that a rank can take and still finish by the limit; `None` if it finishes later already.
    pub(crate) fn headroom(&self, rank: Rank, limit_ns: u64) -> Option<u64> {
        self.loads.ticks_by(rank, limit_ns).checked_sub(self.loads.ticks[rank.index()])
    }

    /// Moves the chunk at `position`, of `ticks` ticks.
    pub(crate) fn transfer(&mut self, position: usize, ticks: u64, receiver: Rank) {
        let donor = std::mem::replace(&mut self.assignment.ranks[position], receiver);
        self.loads.ticks[donor.index()] -= ticks;
        self.loads.ticks[receiver.index()] += ticks;
    }
}
