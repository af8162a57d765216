//! Computes how far a value is from the others.

use std::cmp::Ordering;

use lb_strategies::median;

/// Smallest usual distance as a fraction of the median, because differences of one percent do not matter.
const FLOOR: f64 = 0.01;
/// Smallest usual distance, so that values near 0 get no score.
const LEAST: f64 = 1e-3;

/// A value with its score.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scored<W> {
    pub(super) who: W,
    pub(super) figure: &'static str,
    pub(super) value: f64,
    pub(super) median: f64,
    /// Distance from the median over the median of all distances.
    pub(super) score: f64,
}

impl<W> Scored<W> {
    /// Orders by score, the largest first. Equal scores keep their order in a stable sort.
    pub(super) fn strangest_first(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score)
    }

    pub(super) fn named(self, name: impl FnOnce(W) -> String) -> Scored<String> {
        let Scored { who, figure, value, median, score } = self;
        Scored { who: name(who), figure, value, median, score }
    }
}

/// The scores of `values`, which must not be NaN. Takes O(n log n).
pub(super) fn scored<W>(figure: &'static str, values: Vec<(W, f64)>) -> Vec<Scored<W>> {
    let middle = median(values.iter().map(|(_, value)| *value).collect()).unwrap_or(0.0);
    let off = median(values.iter().map(|(_, value)| (value - middle).abs()).collect()).unwrap_or(0.0);
    let usual = off.max(FLOOR * middle.abs()).max(LEAST);
    let score = |(who, value): (W, f64)| {
        let score = (value - middle).abs() / usual;
        Scored { who, figure, value, median: middle, score }
    };
    values.into_iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_counts_median_deviations() {
        let scores = scored("load", (1..).zip([2.0, 4.0, 3.0, 100.0, 1.0]).collect::<Vec<(u32, f64)>>());
        // The median is 3. The distances are 1 1 0 97 2, with median 1.
        let found: Vec<f64> = scores.iter().map(|score| score.score).collect();
        assert_eq!(found, [1.0, 1.0, 0.0, 97.0, 2.0]);
        assert!(scores.iter().all(|score| (score.median - 3.0).abs() < 1e-12));
    }

    #[test]
    fn values_that_hardly_differ_are_not_strange() {
        let scores = scored("speed", vec![((), 100.0), ((), 100.0), ((), 100.0), ((), 100.5)]);
        assert!(scores.iter().all(|score| score.score < 1.0), "{scores:?}");
    }
}
