//! `program`: the program itself moves chunks; the strategy only moves them off unavailable ranks.

use crate::arrays::finish_first::FinishFirst;
use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Background, Strategy, Terms};
use crate::entry::Entry;

/// The table's line.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "program",
    summary: "chunks move where the program says (Ctx::migrate_to), and off an unavailable rank",
    parameters: &[],
    build: |_| Ok(Box::new(ProgramDirected)),
};

/// Leaves the placement to the program, but moves chunks off an unavailable rank. Unlike under [`none`](super::none),
/// syncs decide, and the moves of the program are made.
///
/// ```
/// use lb_strategies::{Assignment, Strategy, strategies::program::ProgramDirected, synthetic::Workload};
/// let snapshot = Workload::Ramp.snapshot(8, 2, 1);
/// assert_eq!(ProgramDirected.assign(&snapshot), Assignment::current(&snapshot));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramDirected;

impl Strategy for ProgramDirected {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    /// The program moves chunks for reasons of its own.
    fn terms(&self) -> Terms {
        Terms { must_pay: false, ..Terms::default() }
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let mut assignment = Assignment::current(snapshot);
        let mut loads = Loads::placed(snapshot, &assignment, Background::Share);
        let mut finish_first = FinishFirst::new(&loads);
        for (chunk, rank) in snapshot.chunks.iter().zip(&mut assignment.ranks) {
            let available = snapshot.ranks.get(rank.index()).is_some_and(|rank| rank.available);
            if chunk.migratable && !available {
                let ticks = loads.clamp_load(chunk.ticks);
                *rank = finish_first.place(&mut loads, ticks).unwrap_or(*rank);
            }
        }
        assignment
    }
}
