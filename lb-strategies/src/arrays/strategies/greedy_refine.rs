//! `greedy-refine` reaches the balance of `greedy` up to a tolerance, with a fraction of the moves.
//!
//! Greedy is run only for its maximum completion time M. Then chunks are placed heaviest first. A chunk stays if its
//! rank finishes by M x tolerance with it, else it goes to the rank that would finish first. The idea is from
//! GreedyRefineLB in Charm++. If the result is no better than the current placement, nothing moves, because greedy is
//! not always better.

use crate::arrays::finish_first::{FinishFirst, by_falling_load};
use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Background, Strategy, Terms};
use crate::entry::Entry;
use crate::parameters::Parameter;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "greedy-refine",
    summary: "the balance of greedy up to a tolerance, with fewer moves",
    parameters: &[
        Parameter {
            name: "tolerance",
            default: "1.02",
            meaning: "completion time allowed, divided by that of greedy",
        },
        Background::PARAMETER,
    ],
    build: |parameters| {
        let tolerance = parameters.number("tolerance", 1.0..=10.0)?;
        Ok(Box::new(GreedyRefine { tolerance, background: Background::read(parameters)? }))
    },
};

/// Keeps chunks in place while their rank stays below greedy's maximum.
///
/// ```
/// use lb_strategies::{Assignment, Strategy, metrics::Moved, strategies::greedy_refine::GreedyRefine};
/// use lb_strategies::synthetic::Workload;
/// let snapshot = Workload::Uniform.snapshot(1000, 10, 1);
/// let strategy = GreedyRefine { tolerance: 1.02, background: Default::default() };
/// assert!(Moved::of(&snapshot, &strategy.assign(&snapshot)).chunks < 100);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GreedyRefine {
    /// Maximum completion time allowed, divided by greedy's; at least 1.
    pub tolerance: f64,
    /// The model of a neighbour's load.
    pub background: Background,
}

impl Strategy for GreedyRefine {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let order = by_falling_load(snapshot);
        let pinned = Loads::pinned(snapshot, self.background);
        let limit_ns = (greedy_max_ns(&order, pinned.clone()) as f64 * self.tolerance) as u64;
        let (mut assignment, mut loads) = (Assignment::current(snapshot), pinned);
        pack(snapshot, &order, &mut loads, &mut assignment, limit_ns);
        assignment
            .unless_worse(snapshot, &loads, self.background)
            .within_memory_or_stay(snapshot, self.background)
    }

    fn terms(&self) -> Terms {
        Terms { background: self.background, scatters: true, ..Terms::default() }
    }
}

/// Places chunks in `order` and adds them to `loads`. A chunk stays where `assignment` has it if that rank finishes by
/// `limit_ns` with it. Else the chunk goes where it finishes first.
pub(crate) fn pack(
    snapshot: &Snapshot,
    order: &[(usize, u64)],
    loads: &mut Loads,
    assignment: &mut Assignment,
    limit_ns: u64,
) {
    let mut finish_first = FinishFirst::new(loads);
    for &(position, ticks) in order {
        let ticks = loads.clamp_load(ticks);
        let home = assignment.ranks[position];
        let usable = snapshot.ranks.get(home.index()).is_some_and(|rank| rank.available);
        if usable && loads.completion_with(home, ticks) <= limit_ns {
            loads.ticks[home.index()] += ticks;
        } else if let Some(rank) = finish_first.place(loads, ticks) {
            assignment.ranks[position] = rank;
        }
    }
}

/// The maximum completion time of greedy's plan.
fn greedy_max_ns(order: &[(usize, u64)], mut loads: Loads) -> u64 {
    let mut finish_first = FinishFirst::new(&loads);
    for &(_, ticks) in order {
        let ticks = loads.clamp_load(ticks);
        finish_first.place(&mut loads, ticks);
    }
    loads.max_ns()
}
