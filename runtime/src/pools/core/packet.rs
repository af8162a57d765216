//! Packets between the ranks of a pool, with the parts of the result.
//!
//! # The end of a run
//! 1. A worker that is released hands in its accumulated value. Once all workers have and the machine has ended, the rank
//!    has its *part*. All ranks but rank 0 send it there.
//! 2. When rank 0 has all parts, it checks that every iteration was executed once, and merges the parts in the order of the
//!    ranks.
//! 3. Rank 0 sends the *result* to all ranks. With that the run is over.
//!
//! A cancelled pool ends the same way, with fewer iterations: the workers no longer ask the machine.

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
    /// Rank 0 asks for a progress report at this interval.
    SubscribeProgress { every_ns: u64 },
    /// Number of iterations that the sender has executed, to rank 0.
    Progress { done: u64 },
    /// Number of iterations that all ranks have executed, from rank 0.
    Total { done: u64 },
    /// Tells rank 0 whether all workers of the sender wait.
    AllWaiting { all: bool },
    /// The pool is cancelled: each worker leaves after its current range.
    Cancel,
    /// Ranks 0 to `active` - 1 have work from now on. From rank 0.
    Resize { active: u32 },
    /// Rank 0 makes a checkpoint: the workers copy their work.
    Save { number: u64 },
    /// The sender has written its file of the checkpoint, or has failed to. To rank 0.
    Written(Result<Written, String>),
    /// The sender got a notice to end from this source. To rank 0.
    Notice(String),
    /// The sender asks for a checkpoint, since its machine may be taken back soon. To rank 0.
    Ask,
    /// The part of the sender, to rank 0.
    RankResult(Box<Part>),
    /// The result, from rank 0.
    PoolResult(Box<PoolResult>),
    /// The run cannot go on.
    Abort(Box<Error>),
}

/// The result of one rank.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The encoded value of its workers, merged; empty where the value itself is kept beside the part.
    #[serde(with = "crate::wire::bulk")]
    pub(crate) accumulated: Vec<u8>,
    pub(crate) checksum: IterationChecksum,
    pub(crate) workers: Vec<PoolWorker>,
    /// Number of messages that its machine sent.
    pub(crate) messages: u64,
    /// The report of its machine on its decisions, if there is one.
    pub(crate) said: Option<String>,
}

/// The result of all ranks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PoolResult {
    /// The encoded value of all ranks, merged; empty where the value itself is kept beside the result.
    #[serde(with = "crate::wire::bulk")]
    pub(crate) accumulated: Arc<Vec<u8>>,
    pub(crate) iterations: u64,
    pub(crate) workers: Vec<PoolWorker>,
    /// Number of messages that the machines sent.
    pub(crate) messages: u64,
    /// The report on decisions from the lowest rank that has one.
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
        // One of the two factors is even.
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
