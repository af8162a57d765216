//! `none`: every chunk stays where it is. The baseline that every other strategy is measured against.

use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Strategy, Terms};
use crate::entry::Entry;

/// The table's line.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "none",
    summary: "every chunk stays where it is, even on an unavailable rank",
    parameters: &[],
    build: |_| Ok(Box::new(Stay)),
};

/// Moves nothing.
///
/// ```
/// use lb_strategies::{Assignment, Strategy, strategies::none::Stay, synthetic::Workload};
/// let snapshot = Workload::Ramp.snapshot(8, 2, 1);
/// assert_eq!(Stay.assign(&snapshot), Assignment::current(&snapshot));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Stay;

impl Strategy for Stay {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn terms(&self) -> Terms {
        Terms { moves: false, ..Terms::default() }
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        Assignment::current(snapshot)
    }
}
