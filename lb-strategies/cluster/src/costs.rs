//! Defines the cost of iterations: all equal, or lognormal with a few expensive ones.

use std::ops::Range;
use std::sync::Arc;

use lb_strategies::virtual_time::splitmix::{SplitMix64, mix};

/// Number of different costs: many, so that the largest is rare, and few enough for the cache.
const DRAWS: usize = 1 << 16;

/// Units of work of each iteration; the mean is 1.
///
/// ```
/// use virtual_cluster::Costs;
/// assert_eq!(Costs::Equal.work(10..20), 10.0);
/// let costs = Costs::lognormal(1.5, 1);
/// assert!((costs.work(0..1_000_000) / 1e6 - 1.0).abs() < 0.02);
/// assert_eq!(costs.work(0..7) + costs.work(7..8), costs.work(0..8));
/// ```
#[derive(Clone, Debug)]
pub enum Costs {
    /// Each iteration costs 1.
    Equal,
    /// Each index has one of 65536 draws, chosen by a hash of the index and the seed.
    Drawn {
        /// The costs to choose from.
        draws: Arc<[f64]>,
        /// Seed of the choice.
        seed: u64,
    },
}

impl Costs {
    /// Lognormal costs: `exp(sigma * normal)`, scaled to a mean of 1. With `sigma = 1.5`, one iteration in a thousand
    /// costs more than 33 times the mean.
    pub fn lognormal(sigma: f64, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let draws: Vec<f64> = (0..DRAWS).map(|_| (sigma * rng.normal()).exp()).collect();
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        Self::Drawn { draws: draws.iter().map(|draw| draw / mean).collect(), seed: rng.number() }
    }

    /// The sum of the costs of these iterations. O(length), unless all costs are equal.
    pub fn work(&self, range: Range<u64>) -> f64 {
        match self {
            Self::Equal => (range.end - range.start) as f64,
            Self::Drawn { draws, seed } => {
                range.map(|index| draws[mix(index.wrapping_add(*seed)) as usize % DRAWS]).sum()
            }
        }
    }

    /// The largest cost of these iterations.
    pub fn most(&self, range: Range<u64>) -> f64 {
        range.map(|index| self.work(index..index + 1)).fold(0.0, f64::max)
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the sums are exact, or are to be the same to the bit")]
mod tests {
    use super::*;

    #[test]
    fn lognormal_costs_have_the_spread_asked_for() {
        let costs = Costs::lognormal(1.5, 9);
        let logs: Vec<f64> = (0..50_000).map(|index| costs.work(index..index + 1).ln()).collect();
        let mean = logs.iter().sum::<f64>() / 5e4;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 5e4;
        assert!((mean + 1.125).abs() < 0.03, "{mean}");
        assert!((variance.sqrt() - 1.5).abs() < 0.02, "{variance}");
        let other = Costs::lognormal(1.5, 10);
        assert!((0..100).any(|index| costs.work(index..index + 1) != other.work(index..index + 1)));
    }
}
