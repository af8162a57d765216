//! The user's functions for a pool, with their types erased.

use std::any::Any;
use std::ops::Range;

use crate::checkpoint::PoolSignature;
use crate::wire::WireError;

/// The accumulated value of a worker, a rank or the whole pool.
pub(crate) type Accumulated = Box<dyn Any + Send>;

/// The work of a restarted pool before the restart.
pub(crate) struct Restored {
    /// The indices of the iterations that are in it.
    pub(crate) done: Vec<Range<u64>>,
    pub(crate) accumulated: Accumulated,
}

/// The user's functions, with their types erased.
pub(crate) trait PoolWork: Sync {
    /// Number of iterations that are to be executed; they have the numbers from 0. In a restarted pool these are not their
    /// indices.
    fn iterations(&self) -> u64;

    /// The indices of the iterations of these numbers.
    fn indices(&self, numbers: &Range<u64>) -> Vec<Range<u64>>;

    /// The work from before the restart. Once, in the process of rank 0.
    fn take_restored(&self) -> Option<Restored>;

    /// The description of the pool that a restart compares.
    fn signature(&self) -> PoolSignature;

    /// The value of no iterations.
    fn init(&self) -> Accumulated;

    /// Executes the iterations of a range.
    fn execute(&self, accumulated: &mut Accumulated, range: Range<u64>);

    fn merge(&self, accumulated: &mut Accumulated, other: Accumulated);

    fn encode(&self, accumulated: &Accumulated) -> Result<Vec<u8>, WireError>;

    fn decode(&self, bytes: &[u8]) -> Result<Accumulated, WireError>;

    /// Tells whether the pool can be cancelled.
    fn may_be_cancelled(&self) -> bool;

    /// Tells whether the pool is cancelled.
    fn is_cancelled(&self) -> bool;

    /// Time between two calls of [`progress`](Self::progress), ns; none if the program wants no reports.
    fn progress_interval_ns(&self) -> Option<u64>;

    /// Tells the program the number of iterations that all ranks have executed, with those before a restart.
    fn progress(&self, done: u64, now_ns: u64);
}

impl dyn PoolWork + '_ {
    /// Merges the next value into those before it; takes the first as it is.
    pub(crate) fn gather(&self, all: &mut Option<Accumulated>, next: Accumulated) {
        match all {
            Some(all) => self.merge(all, next),
            None => *all = Some(next),
        }
    }
}
