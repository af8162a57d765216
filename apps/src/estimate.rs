//! Computes estimates from simulations: a value and its standard error.
//!
//! All merged sums are whole numbers, because such sums do not depend on their order. So a result has the same bits
//! wherever its parts ran. Fractions and square roots come last, here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value and its standard error, in the same unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// The standard deviation of that mean; NaN where too few samples leave it unknown.
    pub standard_error: f64,
}

impl Estimate {
    /// The fraction `hits / samples` of independent yes-or-no samples, with the error of a binomial.
    #[must_use]
    pub fn fraction(hits: u64, samples: u64) -> Self {
        let value = hits as f64 / samples as f64;
        Self { value, standard_error: (value * (1.0 - value) / samples as f64).sqrt() }
    }

    /// Multiplies value and error by `factor`, to change their unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { value: self.value * factor, standard_error: self.standard_error * factor.abs() }
    }

    /// The distance between this and the value of theory, in standard errors.
    #[must_use]
    pub fn deviation(self, expected: f64) -> f64 {
        let difference = (self.value - expected).abs();
        if difference == 0.0 { 0.0 } else { difference / self.standard_error }
    }
}

/// Shows as many decimals as the first two digits of the error need.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, standard_error } = *self;
        if !value.is_finite() {
            return f.write_str("-");
        }
        let known = standard_error.is_finite() && standard_error > 0.0;
        let decimals =
            if known { (1.0 - standard_error.log10().floor()).clamp(0.0, 12.0) as usize } else { 4 };
        write!(f, "{value:.decimals$}")?;
        if standard_error.is_finite() { write!(f, " ± {standard_error:.decimals$}") } else { Ok(()) }
    }
}

/// The sums that give a mean and its error: number of values, their sum, the sum of their squares.
///
/// ```
/// use caribou_apps::estimate::Moments;
///
/// let (mut here, mut there) = (Moments::default(), Moments::default());
/// [1, 2].into_iter().for_each(|value| here.add(value));
/// there.add(6);
/// here.merge(there);
/// assert_eq!(here.mean().value, 3.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// Values added.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The sum of their squares. Values below 2^32 cannot overflow it, however many there are.
    pub squares: u128,
}

impl Moments {
    /// Adds one value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.squares += u128::from(value) * u128::from(value);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The mean of the added samples.
    #[must_use]
    pub fn mean(&self) -> Estimate {
        self.mean_over(self.count)
    }

    /// The mean over `samples` samples; samples that were not added are zero.
    #[must_use]
    pub fn mean_over(&self, samples: u64) -> Estimate {
        let samples = samples as f64;
        let value = self.sum as f64 / samples;
        let variance = (self.squares as f64 / samples - value * value).max(0.0);
        Estimate { value, standard_error: (variance / (samples - 1.0)).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| moments.add(value));
        moments
    }

    #[test]
    fn the_error_of_a_mean_is_the_textbook_s() {
        // Variance of 2, 4, 4, 4, 5, 5, 7, 9 with n - 1: 32 / 7; of their mean: an eighth of it.
        let mean = moments(&[2, 4, 4, 4, 5, 5, 7, 9]).mean();
        assert!((mean.value - 5.0).abs() < 1e-12);
        assert!((mean.standard_error - (32.0_f64 / 7.0 / 8.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn samples_that_were_not_added_are_zeros() {
        assert_eq!(moments(&[3, 5]).mean_over(4), moments(&[3, 0, 5, 0]).mean());
    }

    #[test]
    fn merging_in_any_order_gives_the_same_sums() {
        let (mut left, mut right) = (moments(&[1, u64::from(u32::MAX)]), moments(&[7]));
        let (first, second) = (left, right);
        left.merge(second);
        right.merge(first);
        assert_eq!(left, right);
        assert_eq!(left, moments(&[7, u64::from(u32::MAX), 1]));
    }

    #[test]
    fn a_single_sample_leaves_the_error_unknown() {
        assert!(moments(&[4]).mean().standard_error.is_nan());
        assert_eq!(moments(&[4]).mean().to_string(), "4.0000");
        assert_eq!(Moments::default().mean().to_string(), "-");
    }

    #[test]
    fn digits_follow_the_error() {
        let shown = |value, standard_error| Estimate { value, standard_error }.to_string();
        assert_eq!(shown(0.123_456, 0.000_67), "0.12346 ± 0.00067");
        assert_eq!(shown(1234.5, 67.0), "1234 ± 67");
        assert_eq!(shown(0.5, 0.0), "0.5000 ± 0.0000");
    }

    #[test]
    fn a_fraction_has_the_error_of_a_binomial() {
        let half = Estimate::fraction(50, 100);
        assert!((half.standard_error - 0.05).abs() < 1e-12);
        assert!((half.deviation(0.4) - 2.0).abs() < 1e-9);
    }
}
