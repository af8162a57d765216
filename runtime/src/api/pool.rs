//! Pools: independent iterations, spread over the workers of all ranks.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lb_strategies::pool::PoolStrategy;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::Config;
#[cfg(feature = "mpi")]
use crate::core::erased::ErasedArray;
use crate::core::pool::{PoolCore, Whole};
use crate::core::wire::{self, WireError};
use crate::error::Error;
use crate::exec::pool::{Accumulated, PoolRun, PoolWork, simulation};
use crate::ids::Rank;
use crate::report::{PoolReport, Report};
use crate::run::{ReadyRank, Seat, Shape, run_shape};

/// What the iterations of a pool add up to.
///
/// Each worker has one, and at the end they are merged: first those of a rank, in the order of its workers, then those of
/// all ranks. Which iterations went into which depends on the run, so a result that is the same every time needs a merge
/// that does not care (integers; floating-point sums differ in their last bits).
///
/// ```
/// use caribou::Accumulator;
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Hits { inside: u64, all: u64 }
/// impl Accumulator for Hits {
///     fn merge(&mut self, other: Hits) {
///         self.inside += other.inside;
///         self.all += other.all;
///     }
/// }
/// let mut hits = Hits { inside: 1, all: 2 };
/// hits.merge(Hits { inside: 3, all: 3 });
/// assert_eq!((hits.inside, hits.all), (4, 5));
/// ```
pub trait Accumulator: Serialize + DeserializeOwned + Send + 'static {
    /// Adds what another has accumulated.
    fn merge(&mut self, other: Self);
}

/// Their sum.
impl Accumulator for u64 {
    fn merge(&mut self, other: u64) {
        *self += other;
    }
}

/// Their sum.
impl Accumulator for f64 {
    fn merge(&mut self, other: f64) {
        *self += other;
    }
}

/// Element by element; the longer one's rest stays.
impl<A: Accumulator> Accumulator for Vec<A> {
    fn merge(&mut self, mut other: Vec<A>) {
        if other.len() > self.len() {
            std::mem::swap(self, &mut other);
        }
        self.iter_mut().zip(other).for_each(|(mine, its)| mine.merge(its));
    }
}

/// Stops a pool from outside.
///
/// ```
/// use caribou::{Cancel, Config, Pool};
/// let cancel = Cancel::default();
/// let config = Config::default().workers(1);
/// let pool = Pool::new(&config, u64::MAX / 2).cancelled_by(&cancel);
/// let outcome = pool.run(|| 0, |done: &mut u64, range| { *done += range.end - range.start; cancel.cancel(); })?;
/// assert!(outcome.report.cancelled && outcome.result == outcome.report.iterations);
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Every worker of every rank stops after the range in hand; the pool ends with what it has.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody has said so.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What a pool ends with.
///
/// ```
/// let outcome = caribou::pool(&caribou::Config::default(), 10, || 0, |sum: &mut u64, range| *sum += range.sum::<u64>())?;
/// assert_eq!((outcome.result, outcome.report.iterations), (45, 10));
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PoolOutcome<A> {
    /// What all workers of all ranks have accumulated; the same in every process.
    pub result: A,
    /// How it went.
    pub report: PoolReport,
}

/// Executes `body` for all of `0..iterations`, each once, on all workers of all ranks; what they accumulate is merged.
///
/// `body` gets ranges that add up to about 0.1 s each, or single iterations that take longer. `CARIBOU_LB` selects the
/// policy that hands them out. Under `mpirun` every process calls this with the same arguments. More can be said with
/// [`Pool`].
///
/// ```
/// use caribou::{Config, stream};
/// use rand::RngExt;
///
/// // Pi by throwing darts: each has random numbers of its own, so the answer does not depend on who threw it.
/// let hits = caribou::pool(&Config::default(), 10_000, || 0, |hits: &mut u64, range| {
///     for dart in range {
///         let mut random = stream(42, dart);
///         let (x, y): (f64, f64) = (random.random(), random.random());
///         *hits += u64::from(x * x + y * y < 1.0);
///     }
/// })?;
/// let pi = 4.0 * hits.result as f64 / 10_000.0;
/// assert!((pi - 3.14159).abs() < 0.1);
/// # Ok::<(), caribou::Error>(())
/// ```
///
/// # Errors
/// An iteration that panicked, a result that does not survive encoding, a process that was killed: see [`Error`].
pub fn pool<A: Accumulator>(
    config: &Config,
    iterations: u64,
    init: impl Fn() -> A + Sync,
    body: impl Fn(&mut A, Range<u64>) + Sync,
) -> Result<PoolOutcome<A>, Error> {
    Pool::new(config, iterations).run(init, body)
}

/// A pool about to run.
///
/// ```
/// use caribou::{Config, Pool};
/// use std::time::Duration;
/// let config = Config::default().workers(2).lb("static")?;
/// let outcome = Pool::new(&config, 100)
///     .cost_hint(Duration::from_micros(1))
///     .on_progress(Duration::from_millis(100), |progress| assert!(progress.done <= 100))
///     .run(|| 0, |count: &mut u64, range| *count += range.count() as u64)?;
/// assert_eq!(outcome.result, 100);
/// # Ok::<(), caribou::Error>(())
/// ```
pub struct Pool<'p> {
    config: &'p Config,
    iterations: u64,
    cost_hint: Option<Duration>,
    cancel: Option<Cancel>,
    follow: Option<Follow<'p>>,
}

/// How far a pool is.
///
/// ```
/// let progress = caribou::PoolProgress { done: 30, iterations: 120, elapsed_ns: 1_000 };
/// assert_eq!(progress.done * 100 / progress.iterations, 25);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolProgress {
    /// Iterations executed on all ranks, as far as is known.
    pub done: u64,
    /// Iterations in all.
    pub iterations: u64,
    /// Since the run began, ns.
    pub elapsed_ns: u64,
}

struct Follow<'p> {
    every: Duration,
    tell: Box<dyn Fn(PoolProgress) + Sync + 'p>,
}

impl<'p> Pool<'p> {
    /// A pool of `iterations` under this configuration.
    pub fn new(config: &'p Config, iterations: u64) -> Pool<'p> {
        Pool { config, iterations, cost_hint: None, cancel: None, follow: None }
    }

    /// What one iteration costs, roughly: the first ranges are of a sensible size then.
    #[must_use]
    pub fn cost_hint(mut self, cost: Duration) -> Pool<'p> {
        self.cost_hint = Some(cost);
        self
    }

    /// The pool stops when somebody cancels.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Pool<'p> {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Tells how far all ranks together are, at most so often, in every process. All processes must want that, or none.
    #[must_use]
    pub fn on_progress(mut self, every: Duration, tell: impl Fn(PoolProgress) + Sync + 'p) -> Pool<'p> {
        self.follow = Some(Follow { every, tell: Box::new(tell) });
        self
    }

    /// Runs it; see [`pool`].
    ///
    /// # Errors
    /// Those of [`pool`].
    pub fn run<A: Accumulator>(
        &self,
        init: impl Fn() -> A + Sync,
        body: impl Fn(&mut A, Range<u64>) + Sync,
    ) -> Result<PoolOutcome<A>, Error> {
        self.run_by(init, body, |shape| run_shape(self.config, shape))
    }

    /// Runs it in `runtime`, in a program that uses MPI itself. Collective.
    ///
    /// # Errors
    /// Those of [`pool`].
    #[cfg(feature = "mpi")]
    pub fn run_in<A: Accumulator>(
        &self,
        runtime: &mut crate::Runtime,
        init: impl Fn() -> A + Sync,
        body: impl Fn(&mut A, Range<u64>) + Sync,
    ) -> Result<PoolOutcome<A>, Error> {
        self.run_by(init, body, |shape| runtime.run_shape(self.config, shape))
    }

    fn run_by<A: Accumulator>(
        &self,
        init: impl Fn() -> A + Sync,
        body: impl Fn(&mut A, Range<u64>) + Sync,
        run: impl FnOnce(&dyn Shape) -> Result<Report, Error>,
    ) -> Result<PoolOutcome<A>, Error> {
        let policy = self.config.balance_pools()?;
        let shape = PoolShape { pool: self, policy, init, body, result: Mutex::new(None) };
        let report = match self.config.simulate {
            Some(seed) => shape.simulate(seed)?,
            None => run(&shape)?,
        };
        let result = shape.result.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (result, whole): (A, Whole) = result.expect("a run that did not fail has delivered its result");
        Ok(PoolOutcome { result, report: self.report(whole, report) })
    }

    /// What policies are told of it.
    fn facts(&self, workers: Vec<u32>) -> lb_strategies::pool::Pool {
        let mut facts = lb_strategies::pool::Pool::new(self.iterations, workers);
        facts.cost_hint = self.cost_hint.map(|cost| cost.as_nanos() as u64);
        facts
    }

    fn report(&self, whole: Whole, report: Report) -> PoolReport {
        PoolReport {
            lb: self.config.pool_lb_spec().into(),
            elapsed_ns: whole.workers.iter().map(|worker| worker.end_ns).max().unwrap_or(0),
            iterations: whole.iterations,
            cancelled: whole.cancelled,
            placement: report.placement,
            workers_per_rank: report.workers_per_rank,
            pinned: report.pinned,
            messages: whole.messages,
            decision: whole.said,
            clocks: report.clocks,
            workers: whole.workers,
        }
    }
}

/// A pool with what users wrote.
struct PoolShape<'p, A, I, B> {
    pool: &'p Pool<'p>,
    policy: Arc<dyn PoolStrategy>,
    init: I,
    body: B,
    result: Mutex<Option<(A, Whole)>>,
}

impl<A, I, B> PoolShape<'_, A, I, B>
where
    A: Accumulator,
    I: Fn() -> A + Sync,
    B: Fn(&mut A, Range<u64>) + Sync,
{
    /// Runs it in one thread and virtual time.
    fn simulate(&self, seed: u64) -> Result<Report, Error> {
        let (ranks, workers) = self.pool.config.pool_size();
        let facts = self.pool.facts(vec![workers; ranks as usize]);
        let (accumulated, whole) = simulation::run(self, &facts, &*self.policy, seed)?;
        self.deliver(accumulated, whole);
        Ok(Report { workers_per_rank: facts.workers, ..Report::default() })
    }

    fn deliver(&self, accumulated: Accumulated, whole: Whole) {
        let result = (typed(accumulated), whole);
        self.result.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(result);
    }
}

fn typed<A: 'static>(accumulated: Accumulated) -> A {
    *accumulated.downcast().expect("a pool accumulates one type")
}

impl<A, I, B> Shape for PoolShape<'_, A, I, B>
where
    A: Accumulator,
    I: Fn() -> A + Sync,
    B: Fn(&mut A, Range<u64>) + Sync,
{
    #[cfg(feature = "mpi")]
    fn text(&self) -> String {
        format!("a pool of {} iterations", self.pool.iterations)
    }

    fn lb<'c>(&self, config: &'c Config) -> &'c str {
        config.pool_lb_spec()
    }

    fn size(&self, config: &Config) -> (u32, u32) {
        config.pool_size()
    }

    /// One for the monitor.
    fn sleepers(&self, workers: u32) -> u32 {
        workers + 1
    }

    fn name_of_driver(&self, rank: Rank) -> String {
        format!("caribou {rank} monitor")
    }

    fn set_up(&self, _rank: Rank, _ranks: u32) -> Result<Box<dyn ReadyRank + '_>, Error> {
        Ok(Box::new(PoolOfRank { shape: self }))
    }
}

struct PoolOfRank<'p, A, I, B> {
    shape: &'p PoolShape<'p, A, I, B>,
}

impl<A, I, B> ReadyRank for PoolOfRank<'_, A, I, B>
where
    A: Accumulator,
    I: Fn() -> A + Sync,
    B: Fn(&mut A, Range<u64>) + Sync,
{
    #[cfg(feature = "mpi")]
    fn arrays(&self) -> Arc<[Arc<dyn ErasedArray>]> {
        Arc::new([])
    }

    fn run(self: Box<Self>, seat: Seat<'_>) {
        let workers: Vec<u32> = seat.plan.seats.iter().map(|seats| seats.workers).collect();
        let own = workers[seat.rank.index()];
        let facts = self.shape.pool.facts(workers);
        let machine = self.shape.policy.rank(&facts, seat.rank);
        let core = PoolCore::new(machine, own);
        let deliver = |accumulated, whole| self.shape.deliver(accumulated, whole);
        let exact = self.shape.policy.is_exact();
        PoolRun { work: self.shape, seat, core, exact, deliver: &deliver }.run();
    }
}

impl<A, I, B> PoolWork for PoolShape<'_, A, I, B>
where
    A: Accumulator,
    I: Fn() -> A + Sync,
    B: Fn(&mut A, Range<u64>) + Sync,
{
    fn iterations(&self) -> u64 {
        self.pool.iterations
    }

    fn init(&self) -> Accumulated {
        Box::new((self.init)())
    }

    fn execute(&self, accumulated: &mut Accumulated, range: Range<u64>) {
        (self.body)(accumulated.downcast_mut().expect("a pool accumulates one type"), range);
    }

    fn merge(&self, accumulated: &mut Accumulated, other: Accumulated) {
        let accumulated: &mut A = accumulated.downcast_mut().expect("a pool accumulates one type");
        accumulated.merge(typed(other));
    }

    fn encode(&self, accumulated: &Accumulated) -> Result<Vec<u8>, WireError> {
        wire::encode(accumulated.downcast_ref::<A>().expect("a pool accumulates one type"))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Accumulated, WireError> {
        Ok(Box::new(wire::decode::<A>(bytes)?))
    }

    fn may_be_cancelled(&self) -> bool {
        self.pool.cancel.is_some()
    }

    fn is_cancelled(&self) -> bool {
        self.pool.cancel.as_ref().is_some_and(Cancel::is_cancelled)
    }

    fn follow_every_ns(&self) -> Option<u64> {
        self.pool.follow.as_ref().map(|follow| (follow.every.as_nanos() as u64).max(1))
    }

    fn progress(&self, done: u64, now_ns: u64) {
        if let Some(follow) = &self.pool.follow {
            (follow.tell)(PoolProgress { done, iterations: self.pool.iterations, elapsed_ns: now_ns });
        }
    }
}
