//! `none` leaves every chunk where it is. Other strategies are compared with it.

use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Strategy, Terms};
use crate::entry::Entry;

/// The entry in the table of strategies.
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
