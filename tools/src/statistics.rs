//! Statistics of lists of numbers. The median is `lb_strategies::median`.

/// The mean; 0 without numbers.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// A mean, and the two numbers between which the middle 90 % of the numbers lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The mean.
    pub(crate) mean: f64,
    /// 5 % of the numbers are below it.
    pub(crate) low: f64,
    /// 5 % of the numbers are above it.
    pub(crate) high: f64,
}

impl Spread {
    /// The mean of `values` and their middle 90 %; all 0 without numbers.
    pub(crate) fn of(values: &[f64]) -> Self {
        Self::around(mean(values), values)
    }

    /// A mean that is computed in another way, such as a ratio of means, and the middle 90 % of `values`.
    pub(crate) fn around(mean: f64, values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1) as f64;
        let at = |part: f64| sorted.get((part * last).round() as usize).copied().unwrap_or(0.0);
        Self { mean, low: at(0.05), high: at(0.95) }
    }

    /// The spread in another unit, which is `factor` times as large a number.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { mean: factor * self.mean, low: factor * self.low, high: factor * self.high }
    }

    /// The ends of the middle 90 %.
    pub(crate) fn range(self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// The cell of a table: the mean, and the ends in brackets.
    pub(crate) fn cell(self, decimals: usize) -> String {
        let Self { mean, low, high } = self;
        format!("{mean:.decimals$} ({low:.decimals$} - {high:.decimals$})")
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the numbers are whole")]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_hundred_numbers_leaves_out_five_at_each_end() {
        let numbers: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let spread = Spread::of(&numbers);
        assert_eq!(spread, Spread { mean: 50.0, low: 5.0, high: 95.0 });
        assert_eq!(spread.times(0.1).cell(1), "5.0 (0.5 - 9.5)");
        assert_eq!(Spread::of(&[]).range(), [0.0; 2]);
    }
}
