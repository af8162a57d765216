//! The functions of the user of a pool, with their types erased.

use std::any::Any;
use std::ops::Range;

use crate::checkpoint::PoolSignature;
use crate::wire::WireError;

/// The accumulated value of a worker, a rank or the whole pool.
pub(crate) type Accumulated = Box<dyn Any + Send>;

/// The results of a restarted pool from before the restart.
pub(crate) struct Restored {
    /// The indices of the iterations whose results are in `accumulated`.
    pub(crate) done: Vec<Range<u64>>,
    pub(crate) accumulated: Accumulated,
}

/// The functions of the user, with their types erased.
pub(crate) trait PoolWork: Sync {
    /// Number of iterations to execute. They are numbered from 0; in a restarted pool the numbers differ from the
    /// indices.
    fn iterations(&self) -> u64;

    /// The indices of the iterations with these numbers.
    fn indices(&self, numbers: &Range<u64>) -> Vec<Range<u64>>;

    /// Takes the results from before the restart. There are some once, in the process of rank 0.
    fn take_restored(&self) -> Option<Restored>;

    /// The description of the pool that a restart compares.
    fn signature(&self) -> PoolSignature;

    /// The neutral accumulated value, without iterations.
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

    /// Passes the number of iterations that all ranks have executed to the program, plus those before a restart.
    fn progress(&self, done: u64, now_ns: u64);
}

impl dyn PoolWork + '_ {
    /// Merges the next value into `all`, or makes it the first.
    pub(crate) fn gather(&self, all: &mut Option<Accumulated>, next: Accumulated) {
        match all {
            Some(all) => self.merge(all, next),
            None => *all = Some(next),
        }
    }
}
