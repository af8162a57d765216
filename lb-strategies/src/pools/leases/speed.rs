//! The speed of a worker: an average that forgets, its deviation, and a new start at a step change.
//!
//! A sample is one executed range: its iterations and its duration. It is weighted by its duration: the average is
//! iterations over seconds, so a thousand short ranges do not outvote a long one. The average does not predict a trend,
//! and knows nothing of running ranges; [`range_pool`](super::range_pool) bounds the speed by those.

use crate::pools::machine::{Nanos, SECOND};

/// Time after which a sample counts `1/e`: three times 2 s, in which a neighbour shows.
const MEMORY: f64 = 6.0;

/// The memory also spans this many samples, so that long tasks of unequal cost are averaged, too.
const SAMPLES: f64 = 8.0;

/// A deviation below this fraction of the speed is no change, even of a steady speed.
const STEADY: f64 = 0.1;

/// The number of standard deviations by which two samples in a row must be off to be a step change.
const SURPRISE: f64 = 3.0;

/// One range contributes at most this to the square of the coefficient of variation: a collapse is no property of the
/// iterations.
const VARIATION_MAX: f64 = 16.0;

/// The speed of one worker, from its ranges.
///
/// The speed is `v += a (m - v)` with `a = 1 - exp(-duration / memory)`, its variance `s = (1 - a)(s + a (m - v)^2)`. Two
/// samples in a row that are more than three standard deviations off to the same side replace the speed.
///
/// ```
/// use lb_strategies::pool::{SECOND, leases::SpeedEstimator};
/// let mut estimator = SpeedEstimator::default();
/// assert_eq!(estimator.speed(), None);
/// for _ in 0..50 {
///     estimator.sample(100, SECOND / 10);
/// }
/// assert_eq!(estimator.speed(), Some(1000.0));
/// estimator.sample(5, SECOND / 10);
/// assert!(estimator.speed() > Some(900.0), "one range may be an accident");
/// estimator.sample(5, SECOND / 10);
/// assert_eq!(estimator.speed(), Some(50.0), "two are a fact");
/// ```
#[derive(Clone, Debug, Default)]
pub struct SpeedEstimator {
    estimate: Option<Estimate>,
}

#[derive(Clone, Debug)]
struct Estimate {
    /// Iterations per second.
    speed: f64,
    variance: f64,
    /// The error of the last sample, if it was a surprise.
    surprise: Option<f64>,
    /// Seconds of all samples, and of a recent one.
    seen: f64,
    duration: f64,
    samples: f64,
    /// Of the time of a single iteration: variance over squared mean.
    variation: f64,
}

impl SpeedEstimator {
    /// The worker has executed `iterations` in `took`.
    pub fn sample(&mut self, iterations: u64, took: Nanos) {
        let seconds = took.max(1) as f64 / SECOND as f64;
        let measured = iterations as f64 / seconds;
        match &mut self.estimate {
            Some(estimate) => estimate.sample(iterations as f64, seconds, measured),
            None => {
                self.estimate = Some(Estimate {
                    speed: measured,
                    variance: 0.0,
                    surprise: None,
                    seen: seconds,
                    duration: seconds,
                    samples: 1.0,
                    variation: 0.0,
                });
            }
        }
    }

    /// Iterations per second; `None` before the first sample.
    pub fn speed(&self) -> Option<f64> {
        self.estimate.as_ref().map(|estimate| estimate.speed)
    }

    /// Standard deviation of the speed of a range, in iterations per second; 0 before the second sample.
    pub fn deviation(&self) -> f64 {
        self.estimate.as_ref().map_or(0.0, |estimate| estimate.variance.sqrt())
    }

    /// Coefficient of variation of the time of one iteration, if iterations were independent; `None` before three samples.
    pub fn variation(&self) -> Option<f64> {
        self.estimate.as_ref().filter(|estimate| estimate.samples >= 3.0).map(|it| it.variation.sqrt())
    }
}

impl Estimate {
    fn sample(&mut self, iterations: f64, seconds: f64, measured: f64) {
        self.seen += seconds;
        self.samples += 1.0;
        self.duration = 0.5 * (self.duration + seconds);
        let memory = MEMORY.max(SAMPLES * self.duration);
        // In the beginning a plain average.
        let weight = (1.0 - (-seconds / memory).exp()).max(seconds / self.seen).min(1.0);
        // Of c iterations the mean varies c times less than a single one.
        let relative = self.speed / measured - 1.0;
        let variation = (iterations * relative * relative).min(VARIATION_MAX);
        self.variation += (variation - self.variation) / self.samples.min(32.0);

        let off = measured - self.speed;
        let surprising = off.abs() > SURPRISE * self.variance.sqrt().max(STEADY * self.speed);
        let again = surprising && self.surprise.is_some_and(|before| (before > 0.0) == (off > 0.0));
        self.surprise = surprising.then_some(off);
        self.variance = (1.0 - weight) * (self.variance + weight * off * off);
        self.speed = if again { measured } else { self.speed + weight * off };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples: &[(u64, f64)]) -> SpeedEstimator {
        let mut estimator = SpeedEstimator::default();
        for &(iterations, seconds) in samples {
            estimator.sample(iterations, (seconds * SECOND as f64) as Nanos);
        }
        estimator
    }

    #[test]
    fn a_slow_first_iteration_is_soon_forgotten() {
        let estimator = after(&[(1, 1e-4), (8, 8e-5), (64, 64e-5), (512, 512e-5), (4096, 4096e-5)]);
        assert!((estimator.speed().unwrap() / 1e5 - 1.0).abs() < 0.05, "{estimator:?}");
    }

    #[test]
    fn a_range_that_stood_still_does_not_stop_the_worker() {
        let mut steady = vec![(100, 0.1); 100];
        steady.push((100, 900.0));
        steady.extend([(50, 0.05); 3]);
        let speed = after(&steady).speed().unwrap();
        assert!((500.0..=1000.0).contains(&speed), "{speed}");
    }

    #[test]
    fn unequal_tasks_are_averaged_by_their_time() {
        let tasks: Vec<(u64, f64)> =
            (0..200).map(|task| (1, if task % 4 == 0 { 90.0 } else { 10.0 })).collect();
        let estimator = after(&tasks);
        let speed = estimator.speed().unwrap();
        assert!((0.02..0.06).contains(&speed), "one in 30 s on average, but {speed}");
        assert!(estimator.variation().unwrap() > 0.5);
        assert!(after(&[(10, 0.1); 9]).variation().unwrap() < 1e-6);
    }
}
