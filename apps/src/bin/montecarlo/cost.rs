//! Adds work that changes no result, to make histories as heavy and as unequal as in programs with richer physics.
//!
//! The work is a number of steps and not a time, so that a history that is interrupted or runs on a slow vCPU does as
//! much. The number is drawn from the history's own stream after its photon has ended, so that no tally depends on it.

use std::hint::black_box;

use rand::{Rng, RngExt};

/// Steps per microsecond of a core at 3 GHz. Each is a multiplication and an addition, 4 cycles, after the one before.
const STEPS_PER_US: f64 = 750.0;

/// Standard deviation of the logarithm of costs: the heaviest of a thousand histories is about thirty times the mean.
const WIDTH: f64 = 1.5;

/// The distribution of costs over histories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CostDistribution {
    /// Every history has the same extra work.
    #[default]
    Uniform,
    /// The extra work is log-normal: most histories are light, a few are very heavy.
    Heterogeneous,
}

/// The extra work of each history beside its physics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// Extra work of a history on average, in microseconds of a core at 3 GHz.
    pub(crate) mean_us: f64,
    /// Its distribution.
    pub(crate) spread: CostDistribution,
}

impl Cost {
    /// Does the extra work of the history that has drawn the rest of its numbers from `rng`.
    pub(crate) fn spend(self, rng: &mut impl Rng) {
        if self.mean_us > 0.0 {
            black_box(toil(self.steps(rng)));
        }
    }

    /// Steps of a history.
    fn steps(self, rng: &mut impl Rng) -> u64 {
        let factor = match self.spread {
            CostDistribution::Uniform => 1.0,
            // Its mean is 1.
            CostDistribution::Heterogeneous => (WIDTH * normal(rng) - 0.5 * WIDTH * WIDTH).exp(),
        };
        (self.mean_us * STEPS_PER_US * factor).round() as u64
    }
}

/// A number with the standard normal distribution (Box and Muller 1958).
fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// A chain of steps, each of which needs the result of the step before.
fn toil(steps: u64) -> u64 {
    (0..steps)
        .fold(1, |state: u64, step| black_box(state).wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::random::stream;
    use caribou_apps::estimate::Moments;

    fn steps(spread: CostDistribution) -> Vec<u64> {
        let cost = Cost { mean_us: 10.0, spread };
        (0..100_000).map(|history| cost.steps(&mut stream(1, history))).collect()
    }

    #[test]
    fn unequal_costs_have_the_mean_that_was_asked_for_and_a_long_tail() {
        let steps = steps(CostDistribution::Heterogeneous);
        let mut moments = Moments::default();
        steps.iter().for_each(|&steps| moments.add(steps));
        assert!(moments.mean().deviation(7500.0) < 4.0, "{}", moments.mean());
        let light = steps.iter().filter(|&&steps| steps < 7500).count();
        let heavy = steps.iter().filter(|&&steps| steps > 10 * 7500).count();
        // The normal distribution below WIDTH / 2, and above WIDTH / 2 + ln 10 / WIDTH.
        assert!((76_000..79_000).contains(&light) && (900..1250).contains(&heavy), "{light} {heavy}");
    }

    #[test]
    fn equal_costs_are_equal() {
        assert!(steps(CostDistribution::Uniform).iter().all(|&steps| steps == 7500));
    }
}
