//! The packets between the ranks of a pool.
//!
//! # The end of a run
//! 1. A released worker hands in its accumulated value. When all workers have and the machine has ended, the rank has
//!    its *part* of the result. All other ranks send their parts to rank 0.
//! 2. When rank 0 has all parts, it checks by their checksums that every iteration was executed once, and merges the
//!    parts in rank order.
//! 3. Rank 0 sends the *result* to all ranks, which ends the run.
//!
//! A cancelled pool ends in the same way, with fewer iterations, because workers no longer request ranges.

use std::ops::Range;
use std::sync::Arc;

use lb_strategies::pool::Message;
use serde::{Deserialize, Serialize};

use crate::checkpoint::Written;
use crate::error::Error;
use crate::pools::report::PoolWorker;

/// A packet between the ranks of a pool.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum PoolPacket {
    /// A message from the machine of one rank to the machine of another.
    Machine(#[serde(serialize_with = "crate::wire::bulk::serialize_inline")] Message),
    /// From rank 0: requests a progress report at this interval.
    SubscribeProgress { every_ns: u64 },
    /// To rank 0: the number of iterations that the sender has executed.
    Progress { done: u64 },
    /// From rank 0: the number of iterations that all ranks have executed.
    Total { done: u64 },
    /// To rank 0: whether all workers of the sender wait.
    AllWaiting { all: bool },
    /// The pool is cancelled: each worker leaves after its current range.
    Cancel,
    /// From rank 0: ranks 0 to `active` - 1 are active from now on.
    Resize { active: u32 },
    /// From rank 0: the workers must copy their results for a checkpoint.
    Save { number: u64 },
    /// To rank 0: the sender has written its file of the checkpoint, or has failed to.
    Written(Result<Written, String>),
    /// To rank 0: the sender got a notice to end from this source.
    Notice(String),
    /// To rank 0: requests a checkpoint, because the sender's machine may be taken back soon.
    Ask,
    /// To rank 0: the sender's part of the result.
    RankResult(Box<Part>),
    /// From rank 0: the result.
    PoolResult(Box<PoolResult>),
    /// The run has failed.
    Abort(Box<Error>),
}

/// One rank's part of the result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The merged value of the workers, encoded; empty if the value itself is kept beside the part.
    #[serde(with = "crate::wire::bulk")]
    pub(crate) accumulated: Vec<u8>,
    pub(crate) checksum: IterationChecksum,
    pub(crate) workers: Vec<PoolWorker>,
    /// Number of messages that the rank's machine sent.
    pub(crate) messages: u64,
    /// What the rank's machine has decided, if it reports that.
    pub(crate) said: Option<String>,
}

/// The result of all ranks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PoolResult {
    /// The merged value of all ranks, encoded; empty if the value itself is kept beside the result.
    #[serde(with = "crate::wire::bulk")]
    pub(crate) accumulated: Arc<Vec<u8>>,
    pub(crate) iterations: u64,
    pub(crate) workers: Vec<PoolWorker>,
    /// Number of messages that the machines sent.
    pub(crate) messages: u64,
    /// The decision of the policy, from the lowest rank that reports one.
    pub(crate) said: Option<String>,
    /// True if not all iterations were executed.
    pub(crate) cancelled: bool,
}

/// A checksum of executed iterations: their number, and the sum of their indices (modulo 2^64).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IterationChecksum {
    pub(crate) count: u64,
    sum: u64,
}

impl IterationChecksum {
    pub(crate) fn of(range: &Range<u64>) -> IterationChecksum {
        let count = range.end - range.start;
        // One of the factors is even, so the division by 2 is exact.
        let twice = u128::from(count) * (u128::from(range.start) + u128::from(range.end).wrapping_sub(1));
        IterationChecksum { count, sum: if count == 0 { 0 } else { (twice / 2) as u64 } }
    }

    pub(crate) fn add(&mut self, other: IterationChecksum) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_ranges_add_up_to_the_sum_of_all() {
        let whole = 0..1_u64 << 63;
        let mut parts = IterationChecksum::default();
        for range in [0..1, 1..77, 77..77, 77..1 << 40, 1 << 40..1 << 63] {
            parts.add(IterationChecksum::of(&range));
        }
        assert_eq!(parts, IterationChecksum::of(&whole));
        let mut twice = IterationChecksum::of(&(0..5));
        twice.add(IterationChecksum::of(&(3..8)));
        assert_ne!(twice, IterationChecksum::of(&(0..10)), "the same number, but not the same iterations");
    }
}
