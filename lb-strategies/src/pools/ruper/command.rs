//! What a monitor wants done.

use std::ops::Range;

use super::messages::RuperMessage;
use super::task::Urgency;
use crate::rank::Rank;

/// What a monitor wants done, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Tell another rank's monitor.
    Send {
        /// Whom.
        to: Rank,
        /// What.
        message: RuperMessage,
    },
    /// The task has another total.
    SetTotal(u64),
    /// These indices are the rank's to execute.
    Grant(Vec<Range<u64>>),
    /// The task makes a checkpoint.
    Checkpoint(Urgency),
    /// The balance between ranks is over.
    BalanceOver,
}

/// What a monitor knows of its rank's task at some instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TaskView {
    /// Iterations probably done.
    pub(crate) predicted: u64,
    /// Iterations registered.
    pub(crate) registered: u64,
    /// Whether a worker waits for a quota or its release.
    pub(crate) any_parked: bool,
}
