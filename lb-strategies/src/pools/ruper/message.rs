//! Defines the messages between rank 0 and the other ranks ([RUPER-LB paper](super), §2.2 and Fig. 4).
//!
//! The paper's monitors wait for the answers to their requests. Here no monitor waits. A request to finish has a number
//! that its answer echoes, so that requests of both sides may be in flight at once. Durations in messages are on the
//! sender's clock; no absolute time is ever sent.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::pools::machine::{self, Nanos};

/// An output of a machine of this policy.
pub(super) type Output = machine::Output<RuperMessage>;

/// A message between rank 0 and another rank.
///
/// ```
/// use lb_strategies::pool::ruper::RuperMessage;
/// let message = RuperMessage::Granted { ranges: vec![0..10, 15..20], quota: None };
/// assert_eq!(message.clone(), message);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RuperMessage {
    /// To rank 0: this rank begins (the paper's instruction 0).
    Start,
    /// To a rank: its first quota.
    StartOk {
        /// Iterations that it may execute in all.
        quota: u64,
    },
    /// To a rank: send a report (the paper's instruction 1).
    ReportRequest,
    /// To rank 0: the progress of a rank (instruction 2, or the answer to 1).
    Report {
        /// The reason for the report.
        reason: Reason,
        /// Iterations that its workers have probably done by now.
        predicted: u64,
        /// Iterations that its workers have reported.
        registered: u64,
        /// Nanoseconds since its last report, on its own clock.
        elapsed: Nanos,
    },
    /// To a rank: its new quota. The balance continues.
    Assign {
        /// Number of the request that this answers.
        sequence: u64,
        /// Iterations that it may execute in all.
        quota: u64,
    },
    /// To a rank: its final quota, with all indices that it still needs. The balance between ranks has ended.
    End {
        /// Iterations that it executes in all.
        quota: u64,
        /// The indices that it has not yet been granted.
        ranges: Vec<Range<u64>>,
    },
    /// To rank 0: a request for indices.
    Claim {
        /// Number of indices.
        count: u64,
    },
    /// To a rank: indices that it gets.
    Granted {
        /// The indices.
        ranges: Vec<Range<u64>>,
        /// Its quota, if the quota allows fewer indices than it claimed.
        quota: Option<u64>,
    },
    /// To rank 0: the last message of this rank.
    Bye {
        /// Iterations that its workers have reported.
        registered: u64,
    },
}

/// The reason for a report of a rank.
///
/// ```
/// use lb_strategies::pool::ruper::Reason;
/// assert_eq!(Reason::Requested.sequence(), 0);
/// assert_eq!(Reason::Finish { sequence: 3 }.sequence(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// Rank 0 has asked for it.
    Requested,
    /// The rank's workers have finished or soon will, and the rank asks whether they may leave.
    Finish {
        /// Number of the request, counted from 1.
        sequence: u64,
    },
}

impl Reason {
    /// The number that the answer echoes; 0 if the rank asked for nothing.
    pub fn sequence(self) -> u64 {
        match self {
            Self::Requested => 0,
            Self::Finish { sequence } => sequence,
        }
    }
}
