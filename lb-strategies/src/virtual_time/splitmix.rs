//! SplitMix64: random numbers that are the same on every platform and in every language. (`exponential` and `normal`
//! may differ in their last bits, because they use the logarithm and the cosine of the platform.)
//!
//! Scenarios name their seeds, so that a reader can repeat them with ten lines of any language. The stream of a library
//! may change with its next version. The numbers are spread evenly, but are not fit for cryptography.

use std::f64::consts::TAU;

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The generator of Steele, Lea and Flood (OOPSLA 2014): one addition and one mix per number.
///
/// ```
/// use lb_strategies::virtual_time::SplitMix64;
/// let mut rng = SplitMix64::new(1_234_567);
/// assert_eq!(rng.number(), 6_457_827_717_110_365_317, "the published first number of this seed");
/// assert!((0.0..1.0).contains(&rng.uniform()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Uniform in `0.0..1.0`: the upper 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.number() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// Standard normal (Box and Muller, one of the two).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }
}

/// The mix of the generator: a hash of 64 bits.
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_they_should_have() {
        let mut rng = SplitMix64::new(7);
        let mean = |draw: &mut dyn FnMut() -> f64| (0..100_000).map(|_| draw()).sum::<f64>() / 1e5;
        assert!((mean(&mut || rng.uniform()) - 0.5).abs() < 0.01);
        assert!((mean(&mut || rng.exponential(30.0)) - 30.0).abs() < 0.5);
        assert!(mean(&mut || rng.normal()).abs() < 0.02);
        assert!((mean(&mut || rng.normal().powi(2)) - 1.0).abs() < 0.02);
    }
}
