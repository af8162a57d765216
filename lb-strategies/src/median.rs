//! Computes the median, for all policies in the same way.

/// The number in the middle, or the mean of the two in the middle; none if there are no numbers. O(n log n).
///
/// ```
/// assert_eq!(lb_strategies::median(vec![9.0, 1.0, 5.0]), Some(5.0));
/// assert_eq!(lb_strategies::median(vec![1.0, 9.0, 4.0, 2.0]), Some(3.0));
/// assert_eq!(lb_strategies::median(Vec::new()), None);
/// ```
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.len() / 2;
    let lower = values.len().checked_sub(1)? / 2;
    Some(f64::midpoint(values[lower], values[upper]))
}
