//! Divides the ranges of one rank among its workers, in pieces (chunked self-scheduling).
//!
//! A worker takes as many iterations as it runs in `chunk` seconds, but at most the rank's free iterations / (2 x its
//! workers). Towards the end, pieces shrink to single iterations. So all workers end within one piece of each other,
//! and no worker holds more than its present piece. The [`leases`](super) policy supplies the ranges.

use std::ops::Range;

use super::{Pace, SpeedEstimator};
use crate::pools::machine::{Nanos, SECOND};
use crate::pools::range_set::RangeSet;
use crate::rank::WorkerId;

/// Largest ratio of a worker's next piece to its last one, because a first iteration may be untypically short.
const GROWTH: u64 = 8;

/// The ranges of one rank, and the pieces that its workers execute.
///
/// ```
/// use lb_strategies::WorkerId;
/// use lb_strategies::pool::{SECOND, leases::RangePool};
/// let worker = WorkerId(0);
/// let mut pool = RangePool::new(2, SECOND / 10, None);
/// pool.insert(0..1000);
/// assert_eq!(pool.claim(0, worker), Some(0..1), "nothing is known of this worker");
/// assert_eq!(pool.finish(SECOND / 1000, worker), Some(0..1));
/// assert_eq!(pool.claim(SECOND / 1000, worker), Some(1..9), "a hundred fit, but not at once");
/// assert_eq!(pool.speed(SECOND / 1000), Some(2000.0), "the other worker is taken to be as fast");
/// ```
#[derive(Debug)]
pub struct RangePool {
    ranges: RangeSet,
    workers: Vec<Worker>,
    chunk: Nanos,
    pace: Pace,
}

#[derive(Debug)]
struct Worker {
    estimator: SpeedEstimator,
    /// The range that it executes, and the start time.
    running: Option<(Range<u64>, Nanos)>,
    last: u64,
}

impl RangePool {
    /// A pool without ranges. Pieces last about `chunk`; the first are sized by `cost_hint`.
    pub fn new(workers: u32, chunk: Nanos, cost_hint: Option<Nanos>) -> Self {
        let last = cost_hint.map_or(0, |cost| chunk / cost.max(1) / GROWTH);
        let worker = |_| Worker { estimator: SpeedEstimator::default(), running: None, last };
        Self {
            ranges: RangeSet::default(),
            workers: (0..workers).map(worker).collect(),
            chunk,
            pace: Pace::Fixed,
        }
    }

    /// Sets the pace that determines the length of pieces.
    #[must_use]
    pub fn with_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Number of iterations that were not begun.
    pub fn len(&self) -> u64 {
        self.ranges.len()
    }

    /// True if all iterations have begun.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// True if any worker executes a range.
    pub fn is_running(&self) -> bool {
        self.workers.iter().any(|worker| worker.running.is_some())
    }

    /// The workers that execute a range.
    pub fn running(&self) -> impl Iterator<Item = WorkerId> {
        (0..)
            .map(WorkerId)
            .zip(&self.workers)
            .filter(|(_, worker)| worker.running.is_some())
            .map(|(number, _)| number)
    }

    /// The time that a worker still needs for its piece. If the piece is late, as long again as it has run.
    pub fn rest(&self, now: Nanos, worker: WorkerId) -> Nanos {
        let Worker { estimator, running, .. } = &self.workers[worker.index()];
        let Some((range, since)) = running else { return 0 };
        let age = now.saturating_sub(*since);
        let whole = estimator.speed().map_or(0, |speed| took(range.end - range.start, speed));
        if age < whole { whole - age } else { age }
    }

    /// The time that the fastest worker of this rank takes for this number of iterations; `None` while no speed is
    /// known.
    pub fn typical(&self, iterations: u64) -> Option<Nanos> {
        let speeds = self.workers.iter().filter_map(|worker| worker.estimator.speed());
        speeds.reduce(f64::max).map(|speed| took(iterations, speed))
    }

    /// Notes that a worker executes a range that is no piece of this pool.
    pub fn begin(&mut self, now: Nanos, worker: WorkerId, range: Range<u64>) {
        self.workers[worker.index()].running = Some((range, now));
    }

    /// Adds iterations.
    pub fn insert(&mut self, range: Range<u64>) {
        self.ranges.insert(range);
    }

    /// The next piece for an idle worker; `None` if the pool is empty.
    pub fn claim(&mut self, now: Nanos, worker: WorkerId) -> Option<Range<u64>> {
        let share = self.ranges.len() / (2 * self.workers.len() as u64);
        let worker = &mut self.workers[worker.index()];
        debug_assert!(worker.running.is_none(), "a worker executes one range at a time");
        let fitting = worker.estimator.speed().map_or(u64::MAX, |speed| {
            let iteration = (SECOND as f64 / speed) as Nanos;
            per(speed, self.pace.piece(self.chunk, iteration, worker.estimator.variation()))
        });
        let count = fitting.min(worker.last.saturating_mul(GROWTH)).min(share).max(1);
        let range = self.ranges.take_front(count)?;
        worker.running = Some((range.clone(), now));
        Some(range)
    }

    /// Notes that a worker has executed its piece, and returns the piece; `None` if there was none.
    pub fn finish(&mut self, now: Nanos, worker: WorkerId) -> Option<Range<u64>> {
        let worker = &mut self.workers[worker.index()];
        let (range, since) = worker.running.take()?;
        worker.last = range.end - range.start;
        worker.estimator.sample(worker.last, now.saturating_sub(since));
        Some(range)
    }

    /// Gives up to `count` iterations away, from the end.
    pub fn split_off(&mut self, count: u64) -> RangeSet {
        self.ranges.take_back(count)
    }

    /// Iterations per second of all workers; `None` before any is measured. O(workers).
    ///
    /// The speed of a worker that is late with its piece is bounded by the time so far. A worker without a measured
    /// speed counts as fast as the mean of the others.
    pub fn speed(&self, now: Nanos) -> Option<f64> {
        let speeds = self.workers.iter().filter_map(|worker| worker.speed(now));
        let (known, sum) = speeds.fold((0u32, 0.0), |(known, sum), speed| (known + 1, sum + speed));
        (known > 0).then(|| sum / f64::from(known) * self.workers.len() as f64)
    }

    /// Coefficient of variation of the time of one iteration, averaged over workers; `None` before it is measured.
    pub fn variation(&self) -> Option<f64> {
        let variations = self.workers.iter().filter_map(|worker| worker.estimator.variation());
        let (known, sum) =
            variations.fold((0u32, 0.0), |(known, sum), of_worker| (known + 1, sum + of_worker));
        (known > 0).then(|| sum / f64::from(known))
    }
}

impl Worker {
    fn speed(&self, now: Nanos) -> Option<f64> {
        let shown = self.running.as_ref().and_then(|(range, since)| {
            let age = now.saturating_sub(*since);
            (age > 0).then(|| (range.end - range.start) as f64 * SECOND as f64 / age as f64)
        });
        match (self.estimator.speed(), shown) {
            (Some(speed), Some(shown)) => Some(speed.min(shown)),
            (speed, shown) => speed.or(shown),
        }
    }
}

/// The time that iterations take at a speed.
fn took(iterations: u64, speed: f64) -> Nanos {
    (iterations as f64 / speed * SECOND as f64) as Nanos
}

/// Number of iterations that fit into a time at a speed.
fn per(speed: f64, time: Nanos) -> u64 {
    (speed * time as f64 / SECOND as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_shrink_to_single_iterations() {
        let mut pool = RangePool::new(4, SECOND, Some(1_000_000));
        pool.insert(0..800);
        let mut sizes = Vec::new();
        for step in 1.. {
            let Some(range) = pool.claim(step, WorkerId(0)) else { break };
            sizes.push(range.end - range.start);
            pool.finish(step + sizes.last().unwrap() * 1_000_000, WorkerId(0));
        }
        assert_eq!(sizes.iter().sum::<u64>(), 800);
        assert_eq!(sizes[0], 100);
        assert!(sizes.windows(2).all(|pair| pair[1] <= pair[0]), "{sizes:?}");
        assert_eq!(sizes.last(), Some(&1));
    }

    #[test]
    fn a_worker_that_stands_still_shows_it() {
        let mut pool = RangePool::new(1, SECOND, None);
        pool.insert(0..800);
        pool.claim(0, WorkerId(0));
        pool.finish(SECOND / 100, WorkerId(0));
        pool.claim(SECOND / 100, WorkerId(0));
        assert_eq!(pool.speed(SECOND / 100), Some(100.0));
        let speed = pool.speed(10 * SECOND).unwrap();
        assert!(speed < 1.0, "{speed}");
    }

    #[test]
    fn what_is_cut_comes_from_the_tail() {
        let mut pool = RangePool::new(1, SECOND, None);
        pool.insert(0..10);
        assert_eq!(pool.claim(0, WorkerId(0)), Some(0..1));
        assert_eq!(pool.split_off(4), RangeSet::from(6..10));
        assert_eq!(pool.len(), 5);
    }
}
