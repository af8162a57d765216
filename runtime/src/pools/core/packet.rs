//! Packets between the ranks of a pool, with the parts of the result.
//!
//! # The end
//! 1. When the machine of a rank is through and all workers have been released and have handed in what they accumulated, the
//!    rank has its *part*. All but rank 0 send it there.
//! 2. When rank 0 has all parts, it checks that every iteration was executed once, merges them in the order of the ranks,
//!    and tells everybody the *whole*. With that the run is over.
//!
//! A pool that is cancelled goes the same way, with fewer iterations: nobody asks the machine any more.

use std::ops::Range;
use std::sync::Arc;

use lb_strategies::pool::Message;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::pools::report::PoolWorker;

/// A packet between the ranks of a pool.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum PoolPacket {
    /// From one machine to another.
    Machine(#[serde(serialize_with = "crate::wire::bulk::serialize_inline")] Message),
    /// Rank 0 wants to hear of progress so often.
    SubscribeProgress { every_ns: u64 },
    /// Iterations that a rank has executed, to rank 0.
    Progress { done: u64 },
    /// Iterations that all have executed, from rank 0.
    Total { done: u64 },
    /// Tells rank 0 that all workers of a rank wait, or no longer.
    AllWaiting { all: bool },
    /// Everybody stops after what is in hand.
    Cancel,
    /// The part of a rank, to rank 0.
    RankResult(Box<Part>),
    /// The parts of all ranks together.
    PoolResult(Box<PoolResult>),
    /// The run cannot go on.
    Abort(Box<Error>),
}

/// The part of one rank.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Merged over its workers; empty where it is kept beside.
    #[serde(with = "crate::wire::bulk")]
    pub(crate) accumulated: Vec<u8>,
    pub(crate) checksum: IterationChecksum,
    pub(crate) workers: Vec<PoolWorker>,
    /// That its machine sent.
    pub(crate) messages: u64,
    pub(crate) said: Option<String>,
}

/// The parts of all ranks together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PoolResult {
    /// Merged over all ranks; empty where it is kept beside.
    #[serde(with = "crate::wire::bulk")]
    pub(crate) accumulated: Arc<Vec<u8>>,
    pub(crate) iterations: u64,
    pub(crate) workers: Vec<PoolWorker>,
    pub(crate) messages: u64,
    pub(crate) said: Option<String>,
    pub(crate) cancelled: bool,
}

/// Executed iterations in two numbers: how many, and the sum of their indices (modulo 2^64).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IterationChecksum {
    pub(crate) count: u64,
    sum: u64,
}

impl IterationChecksum {
    pub(crate) fn of(range: &Range<u64>) -> IterationChecksum {
        let count = range.end - range.start;
        // One of both factors is even.
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
        assert_ne!(twice, IterationChecksum::of(&(0..10)), "as many, but not the same");
    }
}
