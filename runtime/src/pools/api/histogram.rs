//! An accumulator that counts values in bins of equal width.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::accumulator::Accumulator;

/// A histogram with bins of equal width over a range of values. Values below the range, values from its upper end on,
/// and NaN are counted separately, so that no value is lost.
///
/// A bin includes its lower edge and excludes its upper edge. Adding a value takes O(1), merging takes O(bins). Counts
/// are exact in any order. For bins of equal ratio, add the logarithm.
///
/// ```
/// use caribou::pools::Histogram;
/// use caribou::random::stream;
/// use caribou::{Config, pool};
/// use rand::RngExt;
///
/// // The sum of two dice has 2 to 12 points: a bin for each.
/// let points = pool(&Config::default(), 36_000, || Histogram::new(2.0..13.0, 11), |points, range| {
///     for throw in range {
///         let mut random = stream(1, throw);
///         points.add(f64::from(random.random_range(1..=6) + random.random_range(1..=6)));
///     }
/// })?
/// .result;
/// assert_eq!((points.total(), points.below(), points.above(), points.nan()), (36_000, 0, 0, 0));
/// assert_eq!(points.edges(5), 7.0..8.0);
/// assert_eq!(points.counts().iter().max(), Some(&points.counts()[5]), "seven is the most frequent");
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    range: Range<f64>,
    counts: Vec<u64>,
    below: u64,
    above: u64,
    nan: u64,
}

impl Histogram {
    /// An empty histogram of `bins` bins, which divide `range` equally.
    ///
    /// # Panics
    /// If there are no bins. If the range is empty, not finite or wider than the largest `f64`. If the bins are
    /// narrower than the difference of neighbouring `f64` numbers.
    #[must_use]
    pub fn new(range: Range<f64>, bins: usize) -> Self {
        let extent = range.end - range.start;
        let is_wide = extent == f64::INFINITY && range.start.is_finite() && range.end.is_finite();
        assert!(!is_wide, "a histogram over {range:?}: expected a range no wider than {:e}", f64::MAX);
        assert!(
            extent > 0.0 && extent.is_finite(),
            "a histogram over {range:?}: expected a finite range whose end is greater than its start"
        );
        assert!(bins > 0, "a histogram over {range:?}: expected at least one bin");
        let width = extent / bins as f64;
        assert!(
            range.start + width > range.start && range.end - width < range.end,
            "a histogram over {range:?}: {bins} bins are narrower than the resolution of `f64`"
        );
        Self { range, counts: vec![0; bins], below: 0, above: 0, nan: 0 }
    }

    /// Counts a value.
    pub fn add(&mut self, value: f64) {
        *if value.is_nan() {
            &mut self.nan
        } else if value < self.range.start {
            &mut self.below
        } else if value >= self.range.end {
            &mut self.above
        } else {
            let bin = self.bin(value);
            &mut self.counts[bin]
        } += 1;
    }

    /// The bin of a value within the range.
    fn bin(&self, value: f64) -> usize {
        let last = self.counts.len() - 1;
        let place = (value - self.range.start) / (self.range.end - self.range.start);
        let bin = ((place * self.counts.len() as f64) as usize).min(last);
        // The quotient is rounded, so it is compared with the edges.
        if value < self.edge(bin) {
            bin - 1
        } else if bin < last && value >= self.edge(bin + 1) {
            bin + 1
        } else {
            bin
        }
    }

    /// The lower edge of a bin.
    fn edge(&self, bin: usize) -> f64 {
        let extent = self.range.end - self.range.start;
        if bin == self.counts.len() {
            self.range.end
        } else {
            self.range.start + extent * (bin as f64 / self.counts.len() as f64)
        }
    }

    /// The number of values in each bin, lowest bin first.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The lower and upper edge of a bin.
    ///
    /// # Panics
    /// If the bin does not exist.
    #[must_use]
    pub fn edges(&self, bin: usize) -> Range<f64> {
        assert!(bin < self.counts.len(), "bin {bin} of a histogram of {}", self.counts.len());
        self.edge(bin)..self.edge(bin + 1)
    }

    /// The number of values below the range.
    #[must_use]
    pub fn below(&self) -> u64 {
        self.below
    }

    /// The number of values at the end of the range or above it.
    #[must_use]
    pub fn above(&self) -> u64 {
        self.above
    }

    /// The number of values that are not a number.
    #[must_use]
    pub fn nan(&self) -> u64 {
        self.nan
    }

    /// The number of all values, including NaN and values outside the range.
    #[must_use]
    pub fn total(&self) -> u64 {
        let all = self.counts.iter().chain([&self.below, &self.above, &self.nan]);
        all.fold(0, |total, count| total.saturating_add(*count))
    }
}

/// Adds the counts bin by bin.
///
/// # Panics
/// If the histograms differ in range or number of bins.
impl Accumulator for Histogram {
    fn merge(&mut self, other: Self) {
        let same = self.range == other.range && self.counts.len() == other.counts.len();
        assert!(
            same,
            "histograms are added bin by bin, so all workers need the same bins: {} bins over {:?}, and {} over {:?}",
            self.counts.len(),
            self.range,
            other.counts.len(),
            other.range
        );
        self.counts.merge(other.counts);
        self.below.merge(other.below);
        self.above.merge(other.above);
        self.nan.merge(other.nan);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_value_is_counted_somewhere() {
        let mut histogram = Histogram::new(-1.0..1.0, 4);
        for value in [f64::NEG_INFINITY, -1.1, -1.0, -0.5, -0.1, -0.0, 0.0, 0.9, 1.0, f64::INFINITY, f64::NAN]
        {
            histogram.add(value);
        }
        assert_eq!(histogram.counts(), [1, 2, 2, 1]);
        assert_eq!((histogram.below(), histogram.above(), histogram.nan(), histogram.total()), (2, 2, 1, 11));
    }

    proptest! {
        #[test]
        fn a_value_is_in_the_bin_whose_edges_it_lies_between(
            start in -1e3..1e3_f64, extent in 1e-3..1e3_f64, bins in 1..300_usize, part in 0.0..1.0_f64, edge in 0..300_usize,
        ) {
            let empty = Histogram::new(start..start + extent, bins);
            let on_an_edge = empty.edges(edge % bins).start;
            for value in [start + extent * part, on_an_edge, on_an_edge.next_down()] {
                let mut histogram = empty.clone();
                histogram.add(value);
                let bin = histogram.counts().iter().position(|count| *count == 1);
                match bin {
                    Some(bin) => prop_assert!(histogram.edges(bin).contains(&value), "{value} {bin}"),
                    None => prop_assert!(!(start..start + extent).contains(&value), "{value}"),
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_a_histogram_or_be_merged_is_told() {
        let panic = |act: &dyn Fn()| {
            let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("it is refused");
            *panic.downcast::<String>().expect("the panic has a text")
        };
        let new = |range: Range<f64>, bins| panic(&|| drop(Histogram::new(range.clone(), bins)));
        let told = "a histogram over 1.0..1.0: expected a finite range whose end is greater than its start";
        assert_eq!(new(1.0..1.0, 3), told);
        assert!(new(f64::NAN..1.0, 3).ends_with("greater than its start"));
        assert!(new(0.0..f64::INFINITY, 3).ends_with("greater than its start"));
        assert!(new(f64::MAX..f64::MIN, 3).ends_with("greater than its start"));
        assert!(
            new(f64::MIN..f64::MAX, 3).ends_with("expected a range no wider than 1.7976931348623157e308")
        );
        assert_eq!(new(0.0..1.0, 0), "a histogram over 0.0..1.0: expected at least one bin");
        assert!(
            new(1.0..1.0 + 4.0 * f64::EPSILON, 100)
                .ends_with("100 bins are narrower than the resolution of `f64`")
        );
        let merged = panic(&|| Histogram::new(0.0..1.0, 2).merge(Histogram::new(0.0..1.0, 3)));
        assert!(
            merged.ends_with("need the same bins: 2 bins over 0.0..1.0, and 3 over 0.0..1.0"),
            "{merged}"
        );
    }
}
