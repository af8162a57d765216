//! Estimates the speed of a worker by a decaying average and its deviation. An abrupt change restarts both.
//!
//! A sample is one executed range, with its iterations and duration. Samples are weighted by duration, so that a
//! thousand short ranges do not outweigh a long one. The average does not predict a trend, and leaves running ranges
//! out. [`range_pool`](super::range_pool) bounds the speed by running ranges.

use crate::pools::machine::{Nanos, SECOND};

/// Seconds after which the weight of a sample is `1/e`: three times the 2 s in which a neighbour becomes visible.
const MEMORY: f64 = 6.0;

/// The memory spans at least this many samples, so that long iterations of unequal cost are averaged too.
const SAMPLES: f64 = 8.0;

/// A deviation below this part of the speed is no change, even if the speed was steady.
const STEADY: f64 = 0.1;

/// Number of standard deviations by which two samples in a row must deviate to be an abrupt change.
const SURPRISE: f64 = 3.0;

/// The largest contribution of one range to the square of the coefficient of variation, because a collapse of the speed
/// is no property of the iterations.
const VARIATION_MAX: f64 = 16.0;

/// The speed of one worker, from its ranges.
///
/// The speed is `v += a (m - v)` with `a = 1 - exp(-duration / memory)`, and its variance `s = (1 - a)(s + a (m -
/// v)^2)`. Two samples in a row replace the speed if both deviate by over three standard deviations to the same side.
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
    /// The error of the last sample, if it was large.
    surprise: Option<f64>,
    /// Seconds of all samples, and the mean of the recent ones.
    seen: f64,
    duration: f64,
    samples: f64,
    /// Variance over squared mean of the time of a single iteration.
    variation: f64,
}

impl SpeedEstimator {
    /// Adds a range of `iterations` that took `took`.
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

    /// Coefficient of variation of the time of one iteration, if iterations are independent; `None` before three
    /// samples.
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
        // At first a plain average.
        let weight = (1.0 - (-seconds / memory).exp()).max(seconds / self.seen).min(1.0);
        // The mean of c iterations varies c times less than a single iteration.
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
