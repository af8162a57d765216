//! A policy for pools, and the machine that it makes for each rank.
//!
//! Every rank has one machine, a [`PoolRank`]: a state machine without clock, thread or socket. Whoever drives it (the
//! runtime, or [`cluster`](crate::cluster) in virtual time) tells it what happened and when, as [`Input`]s, and carries
//! out its [`Output`]s:
//!
//! ```text
//!  Begin, Wants, Message, Timer            Run, Send, WakeAt, Release, Closed
//! ------------------------------> PoolRank ---------------------------------->
//! ```
//!
//! The machine of rank 0 also holds what there is one of in a pool: the root pool, the monitor, the master.
//!
//! # What a driver promises
//! 1. `Begin` comes first and once. A worker says `Wants` when it begins, and then once after each `Run`, when it has
//!    executed the whole range; never otherwise.
//! 2. Messages between two ranks arrive once and in order. If a rank is lost, the driver ends the pool with an error.
//! 3. `now` is a clock of that rank that never goes back. Times of different ranks are never compared.
//! 4. `Timer` comes at or soon after the instant of the last `WakeAt`. One that comes for no reason does no harm.
//!
//! # What a machine promises
//! 1. Over all ranks each index of `0..iterations` is run exactly once, unless a policy says that its runs are *copies*
//!    ([`Output::Run`]), whatever the speeds, delays and orders.
//! 2. A worker that `Wants` is answered, at once or later, by a `Run` with a range that is not empty, or by `Release`,
//!    after which it does nothing more.
//! 3. `Closed` comes once, when all its workers are released and it expects no message; what comes later it ignores.
//! 4. It never fails, panics or spins: an `Output` costs the driver something, a `WakeAt` in the past is one `Timer`.

use std::ops::Range;

use super::message::Message;
use crate::rank::Rank;

/// Nanoseconds on the clock of one rank.
pub type Nanos = u64;

/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// What is known of a pool before it begins.
///
/// ```
/// use lb_strategies::pool::Pool;
/// let pool = Pool::new(1000, vec![8, 8]);
/// assert_eq!((pool.ranks(), pool.workers()), (2, 16));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// How many iterations there are; their indices begin at 0.
    pub iterations: u64,
    /// How many workers each rank has, at least one; there is at least one rank.
    pub workers: Vec<u32>,
    /// What one iteration costs, roughly, if anybody knows.
    pub cost_hint: Option<Nanos>,
    /// Relative clock speed of each rank's vCPUs, as far as it is known here: a rank knows at most its own for certain.
    /// 1 where nobody has measured it.
    pub clock_speeds: Vec<f64>,
}

impl Pool {
    /// A pool of which nothing else is known.
    pub fn new(iterations: u64, workers: Vec<u32>) -> Self {
        let clock_speeds = vec![1.0; workers.len()];
        Self { iterations, workers, cost_hint: None, clock_speeds }
    }

    /// How many ranks.
    pub fn ranks(&self) -> u32 {
        self.workers.len() as u32
    }

    /// How many workers on all ranks.
    pub fn workers(&self) -> u32 {
        self.workers.iter().sum()
    }

    /// How many workers a rank has.
    pub fn workers_of(&self, rank: Rank) -> u32 {
        self.workers[rank.0 as usize]
    }
}

/// A policy for pools: it makes the machines.
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
    fn rank(&self, pool: &Pool, rank: Rank) -> Box<dyn PoolRank>;

    /// Whether each index is run exactly once. If not, only how many are run counts: their indices are other numbers, each
    /// used once, and there may be a few too many.
    fn is_exact(&self) -> bool {
        true
    }

    /// Whether a rank's clock speed is to be measured before its machine is made; it takes about a millisecond.
    fn asks_for_clock_speed(&self) -> bool {
        false
    }
}

/// The part of a policy that one rank runs.
pub trait PoolRank: Send {
    /// Takes what happened at `now`, and adds what is to be done to `out`, in order.
    fn step(&mut self, now: Nanos, input: Input, out: &mut Vec<Output>);

    /// What it has decided so far, in one line for a person, if it decides anything.
    fn said(&self) -> Option<String> {
        None
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The pool begins.
    Begin,
    /// This worker has nothing to do: it has just begun, or has executed the whole of its last range.
    Wants {
        /// Its number on this rank.
        worker: u32,
    },
    /// Another rank's machine says something.
    Message {
        /// Who.
        from: Rank,
        /// What.
        message: Message,
    },
    /// The instant of the last `WakeAt` has come.
    Timer,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// This worker executes these iterations. They are never none.
    Run {
        /// Its number on this rank.
        worker: u32,
        /// Their indices.
        range: Range<u64>,
        /// Others may be executing the same: keep the result apart until `Commit` or `Discard` for this worker.
        copy: bool,
    },
    /// The result this worker keeps apart counts.
    Commit {
        /// Its number on this rank.
        worker: u32,
    },
    /// The result this worker keeps apart does not count: somebody else was first.
    Discard {
        /// Its number on this rank.
        worker: u32,
    },
    /// Tell another rank's machine.
    Send {
        /// Whom; never this rank.
        to: Rank,
        /// What.
        message: Message,
    },
    /// Give it a `Timer` then. Replaces the last.
    WakeAt(Nanos),
    /// This worker gets nothing more.
    Release {
        /// Its number on this rank.
        worker: u32,
    },
    /// This rank's part is over.
    Closed,
}
