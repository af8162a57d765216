//! The median of values that pass by, in 50 bytes.
//!
//! P2 of Jain and Chlamtac (Communications of the ACM 28(10), 1985): five markers, moved along a parabola. Exact for up to
//! five values, an estimate after that.

/// Where the markers are meant to be: the ends, the quarters and the median.
const PARTS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// The median so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Median {
    heights: [f32; 5],
    places: [u32; 5],
    count: u32,
}

impl Median {
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

    /// Moves a marker by one place if it is more than that from where it is meant to be.
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

    /// How many values there were.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The middle value, or an estimate of it; of an even few the lower. 0 if there was none.
    pub(super) fn value(&self) -> f64 {
        let at = if self.count < 5 { (self.count as usize).saturating_sub(1) / 2 } else { 2 };
        f64::from(self.heights[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_their_exact_median() {
        for (values, expected) in
            [(&[7.0][..], 7.0), (&[9.0, 1.0, 5.0], 5.0), (&[5.0, 4.0, 3.0, 2.0, 1.0], 3.0)]
        {
            let mut median = Median::default();
            values.iter().for_each(|&value| median.add(value));
            assert!((median.value() - expected).abs() < 1e-9, "{values:?}: {}", median.value());
        }
    }

    #[test]
    fn the_estimate_is_near_the_median_of_the_sorted_list() {
        let spread = |number: u64| (number * 7919 % 10_007) as f64;
        let skewed = |number: u64| (spread(number) / 1000.0).exp();
        for of in [&spread as &dyn Fn(u64) -> f64, &skewed] {
            let mut values: Vec<f64> = (0..10_007).map(of).collect();
            let mut median = Median::default();
            values.iter().for_each(|&value| median.add(value));
            values.sort_by(f64::total_cmp);
            let exact = values[5003];
            assert!((median.value() - exact).abs() < 0.1 * exact, "{} for {exact}", median.value());
        }
    }
}
