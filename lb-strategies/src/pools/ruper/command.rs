//! Defines the commands of a monitor (the part of a rank that talks to other ranks) to its rank.

use std::ops::Range;

use super::message::RuperMessage;
use super::task::Urgency;
use crate::rank::Rank;

/// A command of a monitor. The rank carries out commands in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Send a message to the monitor of another rank.
    Send {
        /// The receiver.
        to: Rank,
        /// The message.
        message: RuperMessage,
    },
    /// Change the total of the task.
    SetTotal(u64),
    /// Add these indices to the rank's supply.
    Grant(Vec<Range<u64>>),
    /// Rebalance the task.
    Rebalance(Urgency),
    /// The balance between ranks has ended.
    BalanceOver,
}

/// The state of a rank's task that its monitor needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TaskView {
    /// Iterations probably done by now.
    pub(crate) predicted: u64,
    /// Iterations that workers have reported.
    pub(crate) registered: u64,
    /// True if a worker waits for a quota or its release.
    pub(crate) any_parked: bool,
}
