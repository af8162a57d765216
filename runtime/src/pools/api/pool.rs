//! Pools: independent iterations, spread over the workers of all ranks. How they run is in `run/pool.rs`.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::pools::core::work::{Accumulated, PoolWork};
use crate::pools::report::PoolReport;
use crate::wire::{self, WireError};

/// A result that the iterations of a pool add up to.
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
///
/// Parts of other ranks come encoded: a field that serde skips is lost on the way. One rank alone encodes nothing; two do.
///
/// Results can be added (`u64`, `i64`, `f64`, pairs of them, `Box<[u64]>`) or collected ([`Collected`]).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how two of it are merged",
    note = "to collect results use `Collected<T>`, to add them element by element `Box<[T]>`; your own type implements \
            `Accumulator`"
)]
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

/// Their sum.
impl Accumulator for i64 {
    fn merge(&mut self, other: i64) {
        *self += other;
    }
}

/// Nothing: what the iterations do is done elsewhere.
impl Accumulator for () {
    fn merge(&mut self, (): ()) {}
}

/// Each for itself.
impl<A: Accumulator, B: Accumulator> Accumulator for (A, B) {
    fn merge(&mut self, other: (A, B)) {
        self.0.merge(other.0);
        self.1.merge(other.1);
    }
}

/// Element by element.
///
/// ```
/// use caribou::{Config, pool};
/// let last_digits = pool(&Config::default(), 1000, || vec![0_u64; 10].into_boxed_slice(), |counts, range| {
///     range.for_each(|number| counts[number as usize % 10] += 1);
/// })?;
/// assert_eq!(*last_digits.result, [100; 10]);
/// # Ok::<(), caribou::Error>(())
/// ```
///
/// # Panics
/// If they are not of the same length.
impl<A: Accumulator> Accumulator for Box<[A]> {
    fn merge(&mut self, other: Box<[A]>) {
        let (ours, theirs) = (self.len(), other.len());
        assert_eq!(ours, theirs, "slices are added element by element, so all workers need the same length");
        self.iter_mut().zip(other).for_each(|(mine, its)| mine.merge(its));
    }
}

/// The values that the iterations have found, in no particular order.
///
/// ```
/// use caribou::{Collected, Config, pool};
/// let found = pool(&Config::default(), 1000, Collected::default, |found: &mut Collected<u64>, range| {
///     found.0.extend(range.filter(|number| number % 250 == 7));
/// })?;
/// let mut found = found.result.0;
/// found.sort();
/// assert_eq!(found, [7, 257, 507, 757]);
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected<T>(
    /// All of it.
    pub Vec<T>,
);

impl<T> Default for Collected<T> {
    fn default() -> Collected<T> {
        Collected(Vec::new())
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Accumulator for Collected<T> {
    fn merge(&mut self, other: Collected<T>) {
        self.0.extend(other.0);
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

    /// Tells whether it was cancelled.
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
    pub(crate) config: &'p Config,
    pub(crate) iterations: u64,
    cost_hint: Option<Duration>,
    cancel: Option<Cancel>,
    follow: Option<Follow<'p>>,
}

/// The progress of a pool.
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

    /// Hints at the rough cost of one iteration: the first ranges are of a sensible size then.
    #[must_use]
    pub fn cost_hint(mut self, cost: Duration) -> Pool<'p> {
        self.cost_hint = Some(cost).filter(|cost| !cost.is_zero());
        self
    }

    /// The pool stops when somebody cancels.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Pool<'p> {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Tells how far all ranks together are, at most so often and at the end, in every process. All processes must want
    /// that, or none. It is called by the thread that speaks to other ranks, which wait meanwhile.
    #[must_use]
    pub fn on_progress(mut self, every: Duration, tell: impl Fn(PoolProgress) + Sync + 'p) -> Pool<'p> {
        self.follow = Some(Follow { every, tell: Box::new(tell) });
        self
    }

    /// The facts that policies are told.
    pub(crate) fn facts(&self, workers: Vec<u32>) -> lb_strategies::pool::Pool {
        let mut facts = lb_strategies::pool::Pool::new(self.iterations, workers);
        facts.cost_hint = self.cost_hint.map(ns_of);
        facts
    }
}

/// More often nobody is told of progress, ns.
const FOLLOW_MIN_NS: u64 = 1_000_000;

fn ns_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The user's functions: here their types are erased.
pub(crate) struct Work<'p, A, I, B> {
    pool: &'p Pool<'p>,
    init: I,
    body: B,
    accumulates: PhantomData<fn() -> A>,
}

impl<'p, A, I, B> Work<'p, A, I, B> {
    pub(crate) fn new(pool: &'p Pool<'p>, init: I, body: B) -> Work<'p, A, I, B> {
        Work { pool, init, body, accumulates: PhantomData }
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

    fn follow_every_ns(&self) -> Option<u64> {
        self.pool.follow.as_ref().map(|follow| ns_of(follow.every).max(FOLLOW_MIN_NS))
    }

    fn progress(&self, done: u64, now_ns: u64) {
        if let Some(follow) = &self.pool.follow {
            (follow.tell)(PoolProgress { done, iterations: self.pool.iterations, elapsed_ns: now_ns });
        }
    }
}
