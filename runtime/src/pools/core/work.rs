//! What users wrote of a pool, without its types.

use std::any::Any;
use std::ops::Range;

use crate::wire::WireError;

/// What a worker, a rank or the whole pool has accumulated.
pub(crate) type Accumulated = Box<dyn Any + Send>;

/// What users wrote, without its types.
pub(crate) trait PoolWork: Sync {
    /// How many iterations there are.
    fn iterations(&self) -> u64;

    /// Nothing accumulated yet.
    fn init(&self) -> Accumulated;

    /// Executes some iterations.
    fn execute(&self, accumulated: &mut Accumulated, range: Range<u64>);

    fn merge(&self, accumulated: &mut Accumulated, other: Accumulated);

    fn encode(&self, accumulated: &Accumulated) -> Result<Vec<u8>, WireError>;

    fn decode(&self, bytes: &[u8]) -> Result<Accumulated, WireError>;

    /// Whether anybody could want to stop it.
    fn may_be_cancelled(&self) -> bool;

    /// Whether somebody does.
    fn is_cancelled(&self) -> bool;

    /// How often somebody wants to hear of progress, ns.
    fn follow_every_ns(&self) -> Option<u64>;

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
