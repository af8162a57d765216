//! Divides a span of time into equal bins, and adds amounts of time to the bins.

use crate::trace::select::Window;

/// Largest number of bins. It suffices for pictures, and products of times and numbers of bins stay within 64 bits.
pub(crate) const BINS_MAX: usize = 1000;

/// A span of time in equal bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bins {
    pub(crate) window: Window,
    pub(crate) count: usize,
}

impl Bins {
    /// `count` bins, at least one and at most [`BINS_MAX`].
    pub(crate) fn new(window: Window, count: usize) -> Bins {
        Bins { window, count: count.clamp(1, BINS_MAX) }
    }

    /// Begin of a bin in ns. For the number of bins, the end of the last bin.
    pub(crate) fn edge_ns(&self, bin: usize) -> u64 {
        self.window.from_ns + self.window.length_ns() * bin as u64 / self.count as u64
    }

    pub(crate) fn bin(&self, bin: usize) -> Window {
        Window { from_ns: self.edge_ns(bin), to_ns: self.edge_ns(bin + 1) }
    }

    /// The bin of a time inside the window. The end of the window is in the last bin.
    pub(crate) fn position(&self, at_ns: u64) -> usize {
        let into_ns = at_ns.saturating_sub(self.window.from_ns).min(self.window.length_ns());
        let bin = into_ns * self.count as u64 / self.window.length_ns().max(1);
        (bin as usize).min(self.count - 1)
    }

    /// Returns whether something that ended at `end_ns` ended in the window. The begin is excluded, except at 0, so
    /// that each time is in exactly one of several adjacent windows.
    pub(crate) fn ends_inside(&self, end_ns: u64) -> bool {
        let after_begin = end_ns > self.window.from_ns || self.window.from_ns == 0;
        after_begin && end_ns <= self.window.to_ns
    }

    /// Adds an amount, spent evenly between two times, to the bins in `into`. Returns the part of the amount that lies
    /// in the window. Takes O(number of bins between the times).
    pub(crate) fn spread(&self, begin_ns: u64, end_ns: u64, amount: f64, into: &mut [f64]) -> f64 {
        if end_ns <= begin_ns {
            let inside = if self.ends_inside(end_ns) { amount } else { 0.0 };
            into[self.position(end_ns)] += inside;
            return inside;
        }
        let overlap_ns = self.window.overlap_ns(begin_ns, end_ns);
        if overlap_ns == 0 {
            return 0.0;
        }
        let (first, last) = (self.position(begin_ns), self.position(end_ns));
        let per_ns = amount / (end_ns - begin_ns) as f64;
        let inside = if overlap_ns == end_ns - begin_ns { amount } else { per_ns * overlap_ns as f64 };
        if first == last {
            into[first] += inside;
            return inside;
        }
        for (bin, sum) in into.iter_mut().enumerate().take(last + 1).skip(first) {
            *sum += per_ns * self.bin(bin).overlap_ns(begin_ns, end_ns) as f64;
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spread_is_all_there_but_for_what_lies_outside() {
        let bins = Bins::new(Window { from_ns: 100, to_ns: 1_100 }, 7);
        let mut sums = [0.0; 7];
        let inside = bins.spread(50, 150, 10.0, &mut sums) + bins.spread(300, 1_300, 20.0, &mut sums);
        assert!((inside - 21.0).abs() < 1e-9, "{inside}");
        assert!((sums.iter().sum::<f64>() - inside).abs() < 1e-9, "{sums:?}");
        assert!((sums[6] - 20.0 * (1_100 - bins.edge_ns(6)) as f64 / 1_000.0).abs() < 1e-9);
    }

    #[test]
    fn every_moment_is_in_the_bin_whose_edges_are_around_it() {
        let bins = Bins::new(Window { from_ns: 3, to_ns: 1_000 }, 13);
        for at_ns in 3..1_000 {
            let inside = bins.bin(bins.position(at_ns));
            assert!((inside.from_ns..=inside.to_ns).contains(&at_ns), "{at_ns} {inside:?}");
        }
        assert_eq!((bins.position(0), bins.position(5_000)), (0, 12));
    }

    #[test]
    fn windows_that_follow_each_other_share_no_end() {
        let (one, two) = (Window { from_ns: 0, to_ns: 10 }, Window { from_ns: 10, to_ns: 20 });
        for end_ns in 0..=20 {
            let in_both = [one, two].map(|window| u32::from(Bins::new(window, 1).ends_inside(end_ns)));
            assert_eq!(in_both.iter().sum::<u32>(), 1, "{end_ns}");
        }
    }
}
