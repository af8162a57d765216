//! The interface of pools: independent iterations, spread over the workers of all ranks. `pools/run.rs` runs them.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::checkpoint::PoolSignature;
use crate::config::Config;
use crate::pools::api::accumulator::Accumulator;
use crate::pools::core::undone::Undone;
use crate::pools::core::work::{Accumulated, PoolWork, Restored};
use crate::pools::report::PoolReport;
use crate::text::type_name_without_paths;
use crate::wire::{self, WireError};

/// Stops a pool from outside.
///
/// ```
/// use caribou::pools::Cancel;
/// use caribou::{Config, Pool};
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
    /// Makes every worker of every rank stop after its current range. The pool ends with the result so far.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Tells whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The outcome of a pool.
///
/// ```
/// let outcome = caribou::pool(&caribou::Config::default(), 10, || 0, |sum: &mut u64, range| *sum += range.sum::<u64>())?;
/// assert_eq!((outcome.result, outcome.report.iterations), (45, 10));
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PoolOutcome<A> {
    /// The result that all workers of all ranks have accumulated; the same in every process.
    pub result: A,
    /// The report of the run.
    pub report: PoolReport,
}

/// A pool that is ready to run. Each index counts exactly once in its result. [`pool`](crate::pool) names the policies
/// that may execute an iteration twice.
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
    pub(crate) config: &'p Config,
    pub(crate) iterations: u64,
    cost_hint: Option<Duration>,
    cancel: Option<Cancel>,
    progress: Option<ProgressCallback<'p>>,
}

/// The progress of a pool.
///
/// ```
/// let progress = caribou::pools::PoolProgress { done: 30, iterations: 120, elapsed_ns: 1_000 };
/// assert_eq!(progress.done * 100 / progress.iterations, 25);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolProgress {
    /// Number of iterations executed on all ranks, as far as reported.
    pub done: u64,
    /// Number of iterations of the pool.
    pub iterations: u64,
    /// Time since the run began, ns.
    pub elapsed_ns: u64,
}

struct ProgressCallback<'p> {
    every: Duration,
    tell: Box<dyn Fn(PoolProgress) + Sync + 'p>,
}

impl<'p> Pool<'p> {
    /// A pool of `iterations` under this configuration.
    pub fn new(config: &'p Config, iterations: u64) -> Pool<'p> {
        Pool { config, iterations, cost_hint: None, cancel: None, progress: None }
    }

    /// Sets the approximate cost of one iteration, so that the first ranges have a suitable size.
    #[must_use]
    pub fn cost_hint(mut self, cost: Duration) -> Pool<'p> {
        self.cost_hint = Some(cost).filter(|cost| !cost.is_zero());
        self
    }

    /// Makes the pool stop when `cancel` is called.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Pool<'p> {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Calls `tell` with the progress of all ranks, at most once per `every` and at the end, in every process. All
    /// processes must set this, or none. The thread that communicates with other ranks calls `tell`, and the other
    /// ranks wait meanwhile.
    #[must_use]
    pub fn on_progress(mut self, every: Duration, tell: impl Fn(PoolProgress) + Sync + 'p) -> Pool<'p> {
        self.progress = Some(ProgressCallback { every, tell: Box::new(tell) });
        self
    }

    /// What policies get to know about the pool, with this number of iterations.
    pub(crate) fn facts(&self, iterations: u64, workers: Vec<u32>) -> lb_strategies::pool::Pool {
        let mut facts = lb_strategies::pool::Pool::new(iterations, workers);
        facts.cost_hint = self.cost_hint.map(ns_of);
        facts
    }
}

/// Minimum interval between two reports of progress, ns.
const PROGRESS_MIN_NS: u64 = 1_000_000;

fn ns_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The functions of the user, with their types; [`PoolWork`] erases the types.
pub(crate) struct Work<'p, A, I, B> {
    pool: &'p Pool<'p>,
    init: I,
    body: B,
    /// The iterations that are left in a restarted pool, after its checkpoint was read.
    undone: OnceLock<Undone>,
    restored: Mutex<Option<Restored>>,
    accumulates: PhantomData<fn() -> A>,
}

impl<'p, A, I, B> Work<'p, A, I, B> {
    pub(crate) fn new(pool: &'p Pool<'p>, init: I, body: B) -> Work<'p, A, I, B> {
        let (undone, restored) = (OnceLock::new(), Mutex::new(None));
        Work { pool, init, body, undone, restored, accumulates: PhantomData }
    }

    /// Restarts the pool: the iterations `done` count as executed. The process of rank 0 has their accumulated value.
    pub(crate) fn go_on_from(
        &self,
        done: Vec<Range<u64>>,
        accumulated: Option<Accumulated>,
    ) -> Result<(), String> {
        let undone = Undone::beside(self.pool.iterations, done.clone())?;
        self.undone.get_or_init(|| undone);
        let restored = accumulated.map(|accumulated| Restored { done, accumulated });
        *self.restored.lock().unwrap_or_else(PoisonError::into_inner) = restored;
        Ok(())
    }

    /// Number of iterations that were executed before the pool was restarted.
    pub(crate) fn done_before(&self) -> u64 {
        self.undone.get().map_or(0, |undone| self.pool.iterations - undone.count())
    }
}

/// The accumulated value, with its type.
pub(crate) fn typed<A: 'static>(accumulated: Accumulated) -> A {
    *accumulated.downcast().expect("a pool accumulates one type")
}

impl<A, I, B> PoolWork for Work<'_, A, I, B>
where
    A: Accumulator,
    I: Fn() -> A + Sync,
    B: Fn(&mut A, Range<u64>) + Sync,
{
    fn iterations(&self) -> u64 {
        self.pool.iterations - self.done_before()
    }

    fn indices(&self, numbers: &Range<u64>) -> Vec<Range<u64>> {
        match self.undone.get() {
            Some(undone) => undone.indices(numbers.clone()).collect(),
            None => vec![numbers.clone()],
        }
    }

    fn take_restored(&self) -> Option<Restored> {
        self.restored.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn signature(&self) -> PoolSignature {
        PoolSignature { iterations: self.pool.iterations, accumulated: type_name_without_paths::<A>() }
    }

    fn init(&self) -> Accumulated {
        Box::new((self.init)())
    }

    fn execute(&self, accumulated: &mut Accumulated, range: Range<u64>) {
        let accumulated = accumulated.downcast_mut().expect("a pool accumulates one type");
        match self.undone.get() {
            Some(undone) => undone.indices(range).for_each(|indices| (self.body)(accumulated, indices)),
            None => (self.body)(accumulated, range),
        }
    }

    fn merge(&self, accumulated: &mut Accumulated, other: Accumulated) {
        let accumulated: &mut A = accumulated.downcast_mut().expect("a pool accumulates one type");
        accumulated.merge(typed(other));
    }

    fn encode(&self, accumulated: &Accumulated) -> Result<Vec<u8>, WireError> {
        let accumulated = accumulated.downcast_ref::<A>().expect("a pool accumulates one type");
        wire::catching::<A, _>("encoded", || wire::encode(accumulated))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Accumulated, WireError> {
        Ok(Box::new(wire::catching::<A, _>("decoded", || wire::decode::<A>(bytes))?))
    }

    fn may_be_cancelled(&self) -> bool {
        self.pool.cancel.is_some()
    }

    fn is_cancelled(&self) -> bool {
        self.pool.cancel.as_ref().is_some_and(Cancel::is_cancelled)
    }

    fn progress_interval_ns(&self) -> Option<u64> {
        self.pool.progress.as_ref().map(|follow| ns_of(follow.every).max(PROGRESS_MIN_NS))
    }

    fn progress(&self, done: u64, now_ns: u64) {
        if let Some(follow) = &self.pool.progress {
            let (done, iterations) = (done + self.done_before(), self.pool.iterations);
            (follow.tell)(PoolProgress { done, iterations, elapsed_ns: now_ns });
        }
    }
}
