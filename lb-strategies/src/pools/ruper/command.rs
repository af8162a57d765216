//! Commands of a monitor to its rank.

use std::ops::Range;

use super::message::RuperMessage;
use super::task::Urgency;
use crate::rank::Rank;

/// A command of a monitor; a list of them is carried out in its order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Tell another rank's monitor.
    Send {
        /// The receiver.
        to: Rank,
        /// The message.
        message: RuperMessage,
    },
    /// The task has another total.
    SetTotal(u64),
    /// These indices are the rank's to execute.
    Grant(Vec<Range<u64>>),
    /// The task makes a rebalance.
    Rebalance(Urgency),
    /// The balance between ranks is over.
    BalanceOver,
}

/// The state of a rank's task at some instant, as its monitor knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TaskView {
    /// Iterations probably done.
    pub(crate) predicted: u64,
    /// Iterations registered.
    pub(crate) registered: u64,
    /// True if a worker waits for a quota or its release.
    pub(crate) any_parked: bool,
}
