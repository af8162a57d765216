//! `greedy` places chunks by falling load, each on the rank that would finish first with it.
//!
//! This is the longest-processing-time rule (Graham, "Bounds on multiprocessing timing anomalies", 1969), extended by
//! capacities. On equal ranks its result is at most 4/3 of the best. It ignores the current placement, so it moves
//! nearly all chunks. It shows which balance is possible, and is seldom the strategy to run with.

use crate::arrays::finish_first::{FinishFirst, by_falling_load};
use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Background, Strategy, Terms};
use crate::entry::Entry;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "greedy",
    summary: "heaviest chunk first, each to the rank that would finish first; moves nearly all chunks",
    parameters: &[Background::PARAMETER],
    build: |parameters| Ok(Box::new(Greedy { background: Background::read(parameters)? })),
};

/// Places all chunks anew, heaviest first.
///
/// ```
/// use lb_strategies::{Strategy, metrics::max_over_avg, strategies::greedy::Greedy, synthetic::Workload};
/// let snapshot = Workload::Uniform.snapshot(1000, 10, 1);
/// let greedy = Greedy::default();
/// assert!(max_over_avg(&snapshot, &greedy.assign(&snapshot), greedy.terms().background) < 1.001);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy {
    /// The model of a neighbour's load.
    pub background: Background,
}

impl Strategy for Greedy {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let mut assignment = Assignment::current(snapshot);
        let mut loads = Loads::pinned(snapshot, self.background);
        let mut finish_first = FinishFirst::new(&loads);
        for (position, ticks) in by_falling_load(snapshot) {
            let ticks = loads.clamp_load(ticks);
            if let Some(rank) = finish_first.place(&mut loads, ticks) {
                assignment.ranks[position] = rank;
            }
        }
        assignment.within_memory(snapshot)
    }

    fn terms(&self) -> Terms {
        Terms { background: self.background, scatters: true, ..Terms::default() }
    }
}
