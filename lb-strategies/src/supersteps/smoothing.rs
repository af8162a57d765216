//! Predicts the next number of a series by dynamic exponential smoothing.
//!
//! Source: the predictor of Dobber et al., 2008, section 2.2.1, from Dobber, van der Mei and Koole (HPDC 2006).
//! Our part: smoothing runs with every weight of a grid, and the weight with the least recent squared error predicts.

use std::collections::VecDeque;

/// The weights of the newest number.
const GRID: [f64; 10] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0];

/// A series and its prediction.
///
/// ```
/// use lb_strategies::supersteps::Smoothing;
/// let mut series = Smoothing::new(20);
/// assert_eq!(series.predict(), None);
/// [1.0, 1.0, 1.0, 5.0, 5.0].iter().for_each(|&value| series.add(value));
/// assert_eq!(series.predict(), Some(5.0), "after a step the newest number tells most");
/// ```
#[derive(Clone, Debug)]
pub struct Smoothing {
    window: usize,
    /// The smoothed number for each weight of the grid.
    smoothed: Option<[f64; GRID.len()]>,
    /// The squared errors of the last predictions with each weight.
    errors: VecDeque<[f64; GRID.len()]>,
}

impl Smoothing {
    /// An empty series. The weight with the least error in the last `window` numbers is used.
    pub fn new(window: usize) -> Self {
        Self { window: window.max(1), smoothed: None, errors: VecDeque::new() }
    }

    /// Adds the next number. O(1).
    pub fn add(&mut self, value: f64) {
        let Some(smoothed) = &mut self.smoothed else {
            self.smoothed = Some([value; GRID.len()]);
            return;
        };
        if self.errors.len() == self.window {
            self.errors.pop_front();
        }
        self.errors.push_back(smoothed.map(|predicted| (predicted - value) * (predicted - value)));
        for (smoothed, weight) in smoothed.iter_mut().zip(GRID) {
            *smoothed += weight * (value - *smoothed);
        }
    }

    /// The prediction of the next number; none before the first. Of equally good weights, the highest is used.
    /// O(window).
    pub fn predict(&self) -> Option<f64> {
        self.smoothed.map(|smoothed| smoothed[self.best().0])
    }

    /// Standard error of the prediction as an estimate of the mean of numbers to come; 0 before any comparison.
    /// O(window).
    ///
    /// Smoothing with weight w leaves w / (2 - w) of the variance of independent numbers. An error of prediction also
    /// has the variance of the next number, together 2 / (2 - w). So the squared standard error is w / 2 of the mean
    /// square of the errors. It is slightly too small, because the weight with the least errors was chosen.
    pub fn standard_error(&self) -> f64 {
        let (at, squares) = self.best();
        (squares / self.errors.len().max(1) as f64 * GRID[at] / 2.0).sqrt()
    }

    /// The best weight of the grid, and the sum of its squared errors.
    fn best(&self) -> (usize, f64) {
        let error = |at: usize| self.errors.iter().map(|errors| errors[at]).sum::<f64>();
        let all = (0..GRID.len()).rev().map(|at| (at, error(at)));
        all.min_by(|one, other| one.1.total_cmp(&other.1)).expect("the grid has weights")
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg32;

    use super::*;

    /// Mean and largest error of the predictions of `steps` numbers around `mean`, without the first `settling`.
    fn off(
        series: &mut Smoothing,
        random: &mut Pcg32,
        mean: f64,
        settling: usize,
        steps: usize,
    ) -> (f64, f64) {
        let (mut sum, mut worst) = (0.0, 0.0_f64);
        for step in 0..steps {
            series.add(mean * (0.9 + 0.2 * random.random::<f64>()));
            let off = (series.predict().expect("there are numbers") / mean - 1.0).abs();
            if step >= settling {
                (sum, worst) = (sum + off, worst.max(off));
            }
        }
        (sum / (steps - settling) as f64, worst)
    }

    #[test]
    fn noise_is_smoothed_and_a_step_is_followed() {
        let (mut series, mut random) = (Smoothing::new(20), Pcg32::seed_from_u64(7));
        let (quiet, _) = off(&mut series, &mut random, 1.0, 50, 1000);
        assert!(quiet < 0.025, "{quiet}: single numbers are 0.05 off");
        let (_, after_a_step) = off(&mut series, &mut random, 3.0, 3, 20);
        assert!(after_a_step < 0.11, "{after_a_step}: it knows after three steps");
        let (quiet, _) = off(&mut series, &mut random, 3.0, 50, 1000);
        assert!(quiet < 0.025, "{quiet}: single numbers are 0.05 off");
    }

    #[test]
    fn the_standard_error_is_how_far_the_mean_is_off() {
        let mut random = Pcg32::seed_from_u64(7);
        let mut series = Smoothing::new(20);
        assert!(series.standard_error().abs() < 1e-12);
        // Averaged over many series, in squares.
        let (mut said, mut came) = (0.0, 0.0);
        for _ in 0..2000 {
            series = Smoothing::new(20);
            (0..60).for_each(|_| series.add(0.9 + 0.2 * random.random::<f64>()));
            said += series.standard_error().powi(2);
            came += (series.predict().expect("there are numbers") - 1.0).powi(2);
        }
        assert!((0.4 * came..came).contains(&said), "said {said}, came {came}");
        // After a jump, the last number is the prediction, and its error is as large as any.
        let jumps = [1.0, 1.1, 0.9, 9.0, 9.2, 8.8, 9.2, 8.8];
        series = Smoothing::new(4);
        jumps.iter().for_each(|&value| series.add(value));
        assert!(series.standard_error() < 0.3, "{}", series.standard_error());
    }
}
