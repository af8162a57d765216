//! Estimates the 80th percentile of a stream of values in 44 bytes. The P2 algorithm of Jain and Chlamtac
//! (Communications of the ACM 28(10), 1985) moves five markers along a parabola. It is exact for up to five values.
//!
//! The median would be unsuitable. Many chunks have next to nothing to do in most handlers and all work in few of them.
//! Then the median is next to nothing.

/// The percentile that counts as usual.
const PART: f64 = 0.8;
/// Quantiles of the five markers: the ends, the percentile, and half way to each end.
const PARTS: [f64; 5] = [0.0, PART / 2.0, PART, (1.0 + PART) / 2.0, 1.0];

/// The estimate so far.
#[derive(Clone, Debug, Default)]
pub(super) struct QuantileEstimator {
    heights: [f32; 5],
    places: [u32; 5],
    count: u32,
}

impl QuantileEstimator {
    pub(super) fn add(&mut self, value: f64) {
        let value = value as f32;
        self.count = self.count.saturating_add(1);
        if self.count <= 5 {
            let known = self.count as usize;
            self.heights[known - 1] = value;
            self.heights[..known].sort_unstable_by(f32::total_cmp);
            self.places = [1, 2, 3, 4, 5];
            return;
        }
        self.heights[0] = self.heights[0].min(value);
        self.heights[4] = self.heights[4].max(value);
        let cell = (1..4).find(|&marker| value < self.heights[marker]).unwrap_or(4);
        self.places[cell..].iter_mut().for_each(|place| *place = place.saturating_add(1));
        (1..4).for_each(|marker| self.adjust(marker));
    }

    /// Moves a marker by one place if it is at least one place away from its quantile.
    fn adjust(&mut self, marker: usize) {
        let place = |marker: usize| f64::from(self.places[marker]);
        let height = |marker: usize| f64::from(self.heights[marker]);
        let wanted = 1.0 + (f64::from(self.count) - 1.0) * PARTS[marker];
        let (off, here) = (wanted - place(marker), place(marker));
        let (below, above) = (place(marker - 1), place(marker + 1));
        let step = if off >= 1.0 && above - here > 1.0 {
            1.0
        } else if off <= -1.0 && here - below > 1.0 {
            -1.0
        } else {
            return;
        };
        let (low, middle, high) = (height(marker - 1), height(marker), height(marker + 1));
        let rise = (here - below + step) * (high - middle) / (above - here)
            + (above - here - step) * (middle - low) / (here - below);
        let parabola = middle + step / (above - below) * rise;
        let straight = if step > 0.0 {
            middle + (high - middle) / (above - here)
        } else {
            middle - (middle - low) / (here - below)
        };
        self.heights[marker] = if low < parabola && parabola < high { parabola } else { straight } as f32;
        self.places[marker] = (here + step) as u32;
    }

    /// Number of values.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The value that four in five values do not exceed, exact or estimated; 0 without values.
    pub(super) fn value(&self) -> f64 {
        let few = (f64::from(self.count) * PART).ceil() as usize;
        f64::from(self.heights[if self.count <= 5 { few.saturating_sub(1) } else { 2 }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few_values_the_largest_is_usual() {
        for (values, expected) in [(&[7.0][..], 7.0), (&[9.0, 1.0, 5.0], 9.0)] {
            let mut usual = QuantileEstimator::default();
            values.iter().for_each(|&value| usual.add(value));
            assert!((usual.value() - expected).abs() < 1e-9, "{values:?}: {}", usual.value());
        }
    }

    #[test]
    fn the_estimate_is_near_the_fourth_quintile_of_the_sorted_list() {
        let spread = |number: u64| (number * 7919 % 10_007) as f64;
        let skewed = |number: u64| (spread(number) / 1000.0).exp();
        for of in [&spread as &dyn Fn(u64) -> f64, &skewed] {
            let mut values: Vec<f64> = (0..10_007).map(of).collect();
            let mut usual = QuantileEstimator::default();
            values.iter().for_each(|&value| usual.add(value));
            values.sort_by(f64::total_cmp);
            let exact = values[8005];
            assert!((usual.value() - exact).abs() < 0.1 * exact, "{} for {exact}", usual.value());
        }
    }
}
