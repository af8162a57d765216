//! Writes the `.sum` files of Projections: the busy time of a row in up to a thousand intervals, and the total time of
//! each entry. The viewer shows them if logs are too large to be read.
//!
//! The format, version 4.0, has one line with the numbers of intervals and entries, and one with the percentages of the
//! intervals. Then one line each has the times, calls and longest calls of the entries. There are no marks.

use std::fmt::Write;
use std::path::Path;

use crate::Error;
use crate::trace::analysis::bins::{BINS_MAX, Bins};
use crate::trace::select::Window;

/// Intervals are multiples of 1 us, here in ns.
const US: u64 = 1_000;

/// Sums of one row.
pub(super) struct Sum {
    bins: Bins,
    busy_ns: Vec<f64>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    ns: u64,
    calls: u64,
    longest_ns: u64,
}

impl Sum {
    /// Sums over the window, in the shortest possible intervals.
    pub(super) fn new(window: Window, entries: usize) -> Sum {
        let interval_ns = window.length_ns().div_ceil(BINS_MAX as u64).next_multiple_of(US).max(US);
        let count = window.length_ns().div_ceil(interval_ns).max(1);
        let to_ns = window.from_ns.saturating_add(interval_ns.saturating_mul(count));
        let bins = Bins::new(Window { to_ns, ..window }, count as usize);
        Sum { bins, busy_ns: vec![0.0; bins.count], entries: vec![Entry::default(); entries] }
    }

    /// Adds one execution of an entry.
    pub(super) fn add(&mut self, entry: u32, begin_ns: u64, end_ns: u64) {
        let long_ns = end_ns - begin_ns;
        self.bins.spread(begin_ns, end_ns, long_ns as f64, &mut self.busy_ns);
        let entry = &mut self.entries[entry as usize];
        entry.ns = entry.ns.saturating_add(long_ns);
        entry.calls += 1;
        entry.longest_ns = entry.longest_ns.max(long_ns);
    }

    pub(super) fn save(&self, dir: &Path, base: &str, row: u32, rows: u32) -> Result<(), Error> {
        let file = dir.join(format!("{base}.{row}.sum"));
        std::fs::write(&file, self.text(row, rows)).map_err(|source| Error::Unwritable { file, source })
    }

    fn text(&self, row: u32, rows: u32) -> String {
        let mut text = String::new();
        self.write(row, rows, &mut text).expect("a String takes everything");
        text
    }

    fn write(&self, row: u32, rows: u32, out: &mut String) -> std::fmt::Result {
        let interval_ns = self.bins.bin(0).length_ns() as f64;
        let (bins, entries) = (self.bins.count, self.entries.len());
        let seconds = interval_ns / 1e9;
        writeln!(out, "ver:4.0 {row}/{rows} count:{bins} ep:{entries} interval:{seconds:e} phases:1")?;
        let percent = |ns: &f64| (100.0 * ns / interval_ns).clamp(0.0, 100.0) as u32;
        let percents: Vec<u32> = self.busy_ns.iter().map(percent).collect();
        for same in percents.chunk_by(|one, other| one == other) {
            write!(out, "{:4}", same[0])?;
            if same.len() > 1 {
                write!(out, "+{}", same.len())?;
            }
        }
        writeln!(out)?;
        let mut line = |name: &str, of: fn(&Entry) -> u64| {
            let values = self.entries.iter().map(|entry| of(entry).min(i32::MAX as u64).to_string());
            writeln!(out, "{name}: {}", values.collect::<Vec<_>>().join(" "))
        };
        line("EPExeTime", |entry| entry.ns / US)?;
        line("EPCallTime", |entry| entry.calls)?;
        line("MaxEPTime", |entry| entry.longest_ns / US)?;
        writeln!(out, "NumMarks: 0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_summed_up_by_interval_and_by_entry() {
        let mut sum = Sum::new(Window { from_ns: 1_000_000, to_ns: 1_004_000 }, 3);
        sum.add(1, 1_000_000, 1_002_000);
        sum.add(1, 1_002_000, 1_002_500);
        sum.add(2, 1_003_000, 1_003_000);
        let expected = "ver:4.0 1/2 count:4 ep:3 interval:1e-6 phases:1\n 100+2  50   0\nEPExeTime: 0 2 0\n\
             EPCallTime: 0 2 1\nMaxEPTime: 0 2 0\nNumMarks: 0\n";
        assert_eq!(sum.text(1, 2), expected);
    }
}
