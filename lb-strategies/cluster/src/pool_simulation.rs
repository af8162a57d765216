//! Simulates a pool on a cluster in virtual time. The machines of the policies are those of production.

mod event;
mod history;

use std::ops::Range;

use self::history::EventLoop;
use lb_strategies::Rank;
use lb_strategies::pools::driver::Driver;
use lb_strategies::pools::machine::Nanos;
use lb_strategies::pools::policy::{Pool, PoolStrategy};
use lb_strategies::pools::range_set::RangeSet;
use lb_strategies::virtual_time::links::Links;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// A pool before its run on a cluster.
///
/// ```
/// use virtual_cluster::{RunPool, Traces};
/// use lb_strategies::{POOLS, pool::{Pool, SECOND}};
/// let policy = POOLS.parse("static")?;
/// let mut vcpus = Traces::constant(|worker| if worker.number == 0 { 100.0 } else { 50.0 });
/// let run = RunPool::new(&Pool::new(1000, vec![2]), &*policy, &mut vcpus).run();
/// assert_eq!(run.executed.len(), 1000);
/// assert_eq!(run.makespan(), 10 * SECOND, "half of it at 50 a second");
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct RunPool<'r> {
    pool: Pool,
    drivers: Vec<Driver>,
    vcpus: &'r mut dyn Vcpus,
    links: Box<dyn Links + 'r>,
    /// Units of work of some iterations together.
    work: Box<dyn Fn(Range<u64>) -> f64 + 'r>,
    starts: Vec<(Worker, Nanos)>,
    end: Nanos,
}

impl<'r> RunPool<'r> {
    /// One unit of work per iteration, links without delay, and all workers present from the start.
    pub fn new(pool: &Pool, policy: &dyn PoolStrategy, vcpus: &'r mut dyn Vcpus) -> Self {
        let driver = |(rank, &workers)| Driver::new(policy.rank(pool, rank), workers);
        Self {
            drivers: (0..).map(Rank).zip(&pool.workers).map(driver).collect(),
            pool: pool.clone(),
            vcpus,
            links: Box::new(0),
            work: Box::new(|range| (range.end - range.start) as f64),
            starts: Vec::new(),
            end: Nanos::MAX,
        }
    }

    /// Sets the links between ranks.
    #[must_use]
    pub fn links(mut self, links: impl Links + 'r) -> Self {
        self.links = Box::new(links);
        self
    }

    /// Sets the work of iterations.
    #[must_use]
    pub fn work(mut self, work: impl Fn(Range<u64>) -> f64 + 'r) -> Self {
        self.work = Box::new(work);
        self
    }

    /// Lets this worker come at `at`.
    #[must_use]
    pub fn late(mut self, worker: Worker, at: Nanos) -> Self {
        self.starts.push((worker, at));
        self
    }

    /// Stops at `at`, even if the pool is not finished, because policies may hang.
    #[must_use]
    pub fn until(mut self, at: Nanos) -> Self {
        self.end = at;
        self
    }

    /// Runs the pool to the end.
    pub fn run(self) -> PoolRun {
        EventLoop::new(self).run()
    }
}

/// The record of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolRun {
    /// The indices that were executed.
    pub executed: RangeSet,
    /// Number of iterations executed more than once, without copies.
    pub repeated: u64,
    /// Number of iterations executed by copies that were discarded.
    pub discarded: u64,
    /// Each worker of each rank, in order.
    pub workers: Vec<WorkerRun>,
    /// By worker: the ranges that it executed and that count, in its order.
    pub ranges: Vec<Vec<Range<u64>>>,
    /// Time at which each rank was `Closed`; `None` if never, because the policy hangs.
    pub closed: Vec<Option<Nanos>>,
    /// Number of messages between ranks.
    pub messages: u64,
    /// Number of inputs of the machines: `Wants` and all others.
    pub inputs: u64,
    /// The decisions of the machine of rank 0, at the end.
    pub said: Option<String>,
    /// Digest of all events in order: two runs with the same digest had the same history.
    pub digest: u64,
}

/// What one worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerRun {
    /// Number of iterations.
    pub done: u64,
    /// Number of ranges.
    pub chunks: u64,
    /// Time in which it executed ranges, at any speed.
    pub busy: Nanos,
    /// Time of the end of its last range.
    pub end: Nanos,
    /// Time of its release.
    pub released: Option<Nanos>,
}

impl PoolRun {
    /// Time at which the last iteration ended.
    pub fn makespan(&self) -> Nanos {
        self.workers.iter().map(|worker| worker.end).max().unwrap_or(0)
    }

    /// Time in which workers had nothing to execute before the makespan, added up over workers.
    pub fn idle(&self) -> Nanos {
        let makespan = self.makespan();
        self.workers.iter().map(|worker| makespan - worker.busy.min(makespan)).sum()
    }

    /// Time from the end of the first worker to the end of the last.
    pub fn spread(&self) -> Nanos {
        let first = self.workers.iter().map(|worker| worker.end).min().unwrap_or(0);
        self.makespan() - first
    }

    /// End of the last range of each rank. `pool` must be the pool of the run.
    pub fn rank_ends(&self, pool: &Pool) -> Vec<Nanos> {
        let mut workers = self.workers.iter();
        let end_of = |&count: &u32| workers.by_ref().take(count as usize).map(|worker| worker.end).max();
        pool.workers.iter().map(end_of).map(|end| end.unwrap_or(0)).collect()
    }

    /// True if all ranks closed, all workers were released, and each index below `iterations` was executed once.
    pub fn is_complete(&self, iterations: u64) -> bool {
        self.repeated == 0
            && self.executed == RangeSet::from(0..iterations)
            && self.closed.iter().all(Option::is_some)
            && self.workers.iter().all(|worker| worker.released.is_some())
    }
}
