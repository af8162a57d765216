//! Counts values in bins that are wider for larger values, as HdrHistogram does. With 16 bins per octave, quantiles are
//! right within 3 % for any value, in 8 KiB of memory.

/// Bins per octave.
const STEPS: u64 = 16;
/// Bins for all values of 64 bits: one for each value below 16, then 60 octaves.
const BINS: usize = (STEPS + 60 * STEPS) as usize;

/// Numbers of values by size.
#[derive(Clone, Debug)]
pub(crate) struct LogHistogram {
    counts: Vec<u64>,
    /// Sum of the values in each octave.
    sums: Vec<f64>,
    count: u64,
    longest: u64,
}

/// The values between two powers of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Octave {
    pub(crate) from: u64,
    /// Exclusive upper limit.
    pub(crate) to: u64,
    pub(crate) count: u64,
    pub(crate) sum: f64,
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self { counts: vec![0; BINS], sums: vec![0.0; 65], count: 0, longest: 0 }
    }
}

impl LogHistogram {
    pub(crate) fn add(&mut self, value: u64) {
        self.counts[bin(value)] += 1;
        self.sums[octave(value)] += value as f64;
        self.count += 1;
        self.longest = self.longest.max(value);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sums.iter().sum()
    }

    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// The value that the fraction `part` of the values does not exceed, within 3 %; 0 without values.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let wanted = ((part * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (number, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                let (low, width) = edge(number as u64);
                return (low as f64 + (width - 1) as f64 / 2.0).min(self.longest as f64);
            }
        }
        0.0
    }

    /// All octaves from the smallest value to the largest, including empty ones.
    pub(crate) fn octaves(&self) -> Vec<Octave> {
        let mut octaves: Vec<Octave> = (0..65)
            .map(|number| {
                let (from, to) = bounds(number);
                Octave { from, to, count: 0, sum: self.sums[number] }
            })
            .collect();
        for (number, count) in self.counts.iter().enumerate() {
            octaves[octave(edge(number as u64).0)].count += count;
        }
        let first = octaves.iter().position(|octave| octave.count > 0).unwrap_or(octaves.len());
        let last = octaves.iter().rposition(|octave| octave.count > 0).map_or(first, |last| last + 1);
        octaves.drain(first..last).collect()
    }
}

/// Octave of a value. Octave 0 has only the value 0; octave k begins at 2^(k-1).
fn octave(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()) as usize
}

fn bounds(octave: usize) -> (u64, u64) {
    match octave {
        0 => (0, 1),
        64 => (1 << 63, u64::MAX),
        other => (1 << (other - 1), 1 << other),
    }
}

fn bin(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let exponent = u64::from(value.ilog2());
    ((exponent - 3) * STEPS + ((value >> (exponent - 4)) & (STEPS - 1))) as usize
}

/// The smallest value of a bin, and the number of different values in it.
fn edge(bin: u64) -> (u64, u64) {
    if bin < STEPS {
        return (bin, 1);
    }
    let shift = bin / STEPS - 1;
    ((STEPS + bin % STEPS) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bin() {
        let around = (0..64).flat_map(|power| (-1..=1).map(move |step| (1i128 << power) + step));
        for value in around.chain([12_345, i128::from(u64::MAX)]).map(|value| value as u64) {
            let (low, width) = edge(bin(value) as u64);
            assert!(low <= value && value - low < width, "{value}: {low} and {width} more");
        }
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn quantiles_agree_with_a_sorted_list_within_three_percent() {
        let mut spread = LogHistogram::default();
        let mut values: Vec<u64> = (1..5000u64).map(|number| number * number % 7919 * number + 3).collect();
        values.iter().for_each(|&value| spread.add(value));
        values.sort_unstable();
        for part in [0.01, 0.5, 0.9, 0.99, 1.0] {
            let exact = values[((part * values.len() as f64).ceil() as usize).max(1) - 1] as f64;
            let found = spread.quantile(part);
            assert!((found - exact).abs() <= 0.032 * exact, "{part}: {found} for {exact}");
        }
        assert_eq!(spread.longest(), *values.last().unwrap());
    }

    #[test]
    fn octaves_have_all_values_and_their_sum() {
        let mut spread = LogHistogram::default();
        [0, 5, 6, 7, 64].iter().for_each(|&value| spread.add(value));
        let octaves = spread.octaves();
        let octave = |from, to, count, sum| Octave { from, to, count, sum };
        assert_eq!(octaves[0], octave(0, 1, 1, 0.0));
        assert_eq!(octaves[3], octave(4, 8, 3, 18.0));
        assert_eq!(*octaves.last().unwrap(), octave(64, 128, 1, 64.0));
        assert_eq!(octaves.len(), 8);
        assert_eq!(LogHistogram::default().octaves(), []);
        assert!(LogHistogram::default().quantile(0.5).abs() < 1e-12);
    }
}
