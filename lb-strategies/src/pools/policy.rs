//! The trait of a policy for pools, which makes a [`Machine`](super::machine) for each rank.

use super::machine::{Machine, Nanos};
use crate::rank::Rank;

/// The facts about a pool that are known before it begins.
///
/// ```
/// use lb_strategies::pool::Pool;
/// let pool = Pool::new(1000, vec![8, 8]);
/// assert_eq!((pool.ranks(), pool.workers()), (2, 16));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Number of iterations; their indices begin at 0.
    pub iterations: u64,
    /// Number of workers of each rank, at least one; there is at least one rank.
    pub workers: Vec<u32>,
    /// Rough cost of an iteration, if it is known.
    pub cost_hint: Option<Nanos>,
    /// Relative clock speed of each rank's vCPUs; 1 where unknown. A rank may know only its own clock speed.
    pub clock_speeds: Vec<f64>,
}

impl Pool {
    /// A pool without further facts.
    pub fn new(iterations: u64, workers: Vec<u32>) -> Self {
        let clock_speeds = vec![1.0; workers.len()];
        Self { iterations, workers, cost_hint: None, clock_speeds }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.workers.len() as u32
    }

    /// Number of workers on all ranks.
    pub fn workers(&self) -> u32 {
        self.workers.iter().sum()
    }

    /// Number of workers of a rank.
    pub fn workers_of(&self, rank: Rank) -> u32 {
        self.workers[rank.0 as usize]
    }
}

/// A policy for pools, which makes the machine of each rank.
///
/// ```
/// use lb_strategies::{POOLS, Rank, pool::Pool};
/// let policy = POOLS.parse("static")?;
/// let machine = policy.rank(&Pool::new(100, vec![1, 1]), Rank(1));
/// # let _ = machine;
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub trait PoolStrategy: Send + Sync {
    /// The name in the table, in `CARIBOU_LB` and in reports.
    fn name(&self) -> &'static str;

    /// The machine of one rank.
    fn rank(&self, pool: &Pool, rank: Rank) -> Machine;

    /// True if each index counts exactly once, although a copy of it may be run. If false, only the number of
    /// iterations counts: indices are arbitrary numbers, each used once, and a few more iterations may be run.
    fn is_exact(&self) -> bool {
        true
    }

    /// True if ranks may be without work for a while ([`Input::Resize`](super::machine::Input::Resize)). The iterations
    /// that such a rank has not begun go to others.
    fn resizes(&self) -> bool {
        false
    }

    /// True if a rank's clock speed must be measured before its machine is made, which takes about 1 ms.
    fn asks_for_clock_speed(&self) -> bool {
        false
    }
}
