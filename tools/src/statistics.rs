//! Statistics of lists of numbers. The median is `lb_strategies::median`.

/// The mean; 0 without numbers.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
