//! `program` leaves the placement to the program, and moves chunks only off unavailable ranks.

use crate::arrays::finish_first::FinishFirst;
use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Background, Strategy, Terms};
use crate::entry::Entry;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "program",
    summary: "chunks move where the program says (Ctx::migrate_to), and off an unavailable rank",
    parameters: &[],
    build: |_| Ok(Box::new(ProgramDirected)),
};

/// Moves chunks only off unavailable ranks. Unlike under [`none`](super::none), chunks wait at syncs for a decision,
/// and the moves that the program wants are made.
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

    /// Moves need not pay, because the program moves chunks for other reasons.
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
