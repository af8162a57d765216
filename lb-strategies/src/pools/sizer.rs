//! Computes how many iterations a worker takes at once: as many as it runs in a given time.
//!
//! If a worker came back often, locks and clock readings would be expensive. If it came back rarely, new decisions
//! would reach it late. So the time between is given, and the worker's last ranges show how many iterations fit.

use crate::pools::machine::{Nanos, SECOND};

/// Largest ratio of a worker's next count to its last one, because a first iteration may be untypically short.
const GROWTH: u64 = 8;

/// The speed of one worker, and the number of iterations that it takes at once.
///
/// ```
/// use lb_strategies::pool::sizer::Sizer;
/// let mut sizer = Sizer::new(100_000_000, None);
/// assert_eq!(sizer.next(), 1, "nothing is known");
/// sizer.ran(1, 1_000); // one iteration of a microsecond
/// assert_eq!(sizer.next(), 8, "the fitting 100 000, but not at once");
/// ```
#[derive(Clone, Debug)]
pub struct Sizer {
    target: Nanos,
    /// Iterations per second; none before the first range.
    speed: Option<f64>,
    last: u64,
}

impl Sizer {
    /// Ranges last about `target`. `cost_hint` is the time of one iteration, if known.
    pub fn new(target: Nanos, cost_hint: Option<Nanos>) -> Self {
        let last = cost_hint.map_or(0, |cost| target / cost.max(1) / GROWTH);
        Self { target, speed: None, last }
    }

    /// Notes that the worker ran `iterations` in `took`. A range weighs as much as all earlier ranges together.
    pub fn ran(&mut self, iterations: u64, took: Nanos) {
        let speed = iterations as f64 * SECOND as f64 / took.max(1) as f64;
        self.speed = Some(self.speed.map_or(speed, |before| 0.5 * (before + speed)));
        self.last = iterations;
    }

    /// Iterations per second in the recent ranges.
    pub fn speed(&self) -> Option<f64> {
        self.speed
    }

    /// Number of iterations to take next; at least one.
    pub fn next(&self) -> u64 {
        let fitting = self.speed.map_or(1, |speed| (speed * self.target as f64 / SECOND as f64) as u64);
        let fitting = if self.speed.is_none() { self.last.max(1) } else { fitting };
        fitting.min(self.last.saturating_mul(GROWTH).max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_the_time_it_aims_at_and_follows_a_slowdown_at_once() {
        let mut sizer = Sizer::new(SECOND / 10, None);
        for _ in 0..12 {
            let taken = sizer.next();
            sizer.ran(taken, taken * 1_000);
        }
        assert_eq!(sizer.next(), 100_000);
        sizer.ran(100_000, SECOND);
        assert!(sizer.next() < 60_000);
    }

    #[test]
    fn a_hint_is_a_beginning_and_whole_tasks_go_one_by_one() {
        assert_eq!(Sizer::new(SECOND / 10, Some(1_000)).next(), 12_500);
        let mut sizer = Sizer::new(SECOND / 10, None);
        sizer.ran(1, 30 * SECOND);
        assert_eq!(sizer.next(), 1);
        sizer.ran(1, 0);
        assert_eq!(sizer.next(), 8);
    }
}
