//! The user's functions for a pool, without their types.

use std::any::Any;
use std::ops::Range;

use crate::wire::WireError;

/// The accumulated value of a worker, a rank or the whole pool.
pub(crate) type Accumulated = Box<dyn Any + Send>;

/// The user's functions, without their types.
pub(crate) trait PoolWork: Sync {
    /// Number of iterations.
    fn iterations(&self) -> u64;

    /// Nothing accumulated yet.
    fn init(&self) -> Accumulated;

    /// Executes some iterations.
    fn execute(&self, accumulated: &mut Accumulated, range: Range<u64>);

    fn merge(&self, accumulated: &mut Accumulated, other: Accumulated);

    fn encode(&self, accumulated: &Accumulated) -> Result<Vec<u8>, WireError>;

    fn decode(&self, bytes: &[u8]) -> Result<Accumulated, WireError>;

    /// Tells whether the pool can be cancelled.
    fn may_be_cancelled(&self) -> bool;

    /// Tells whether it is cancelled.
    fn is_cancelled(&self) -> bool;

    /// Time between two calls to tell of progress, ns; none if nobody follows.
    fn progress_interval_ns(&self) -> Option<u64>;

    /// That many iterations were executed on all ranks.
    fn progress(&self, done: u64, now_ns: u64);
}

impl dyn PoolWork + '_ {
    /// Merges what comes next into what there is; the first is what there is.
    pub(crate) fn gather(&self, all: &mut Option<Accumulated>, next: Accumulated) {
        match all {
            Some(all) => self.merge(all, next),
            None => *all = Some(next),
        }
    }
}
