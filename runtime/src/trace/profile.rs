//! The bounded profile of one worker: how its time was spent, over the time of the run.
//!
//! The run is cut into bins of equal width. When more than [`BINS_MAX`] bins would be needed, neighbouring bins are
//! merged and the width doubles. So memory stays bounded, and the profile of a long run is coarser. (The summary mode
//! of Projections has the same idea.)

use serde::{Deserialize, Serialize};

use super::event::{NameId, Part};

/// Maximum number of bins of a profile.
pub const BINS_MAX: usize = 1000;
/// Width of the bins of a short run, ns.
const FIRST_BIN_NS: u64 = 1_000_000;

/// What a worker's time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Handlers of messages of one kind; CPU time. If a handler makes its chunk ready for deferred messages of the same
    /// kind, each of their handlers is counted. Without a trace they are timed together.
    Kind(NameId),
    /// Iterations of a pool; CPU time.
    Iterations,
    /// No work.
    Idle,
    /// Work of the runtime.
    Runtime(Part),
    /// Wall time that was not CPU time: another process had the vCPU, or a handler slept or did I/O.
    Lost,
}

/// Time of one worker by activity.
///
/// ```
/// use caribou::trace::{Activity, Profile};
/// let mut profile = Profile::default();
/// profile.add(Activity::Idle, 500_000, 2_500_000, 2_000_000, 1, 2_000_000);
/// assert_eq!(profile.rows[0].ns, [500_000, 1_000_000, 500_000]);
/// assert_eq!((profile.rows[0].total_ns(), profile.rows[0].calls()), (2_000_000, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// Width of a bin, ns.
    pub bin_ns: u64,
    /// One row per activity, in the order of their first occurrence.
    pub rows: Vec<Row>,
}

/// One activity over time. The columns end with the last bin in which the activity occurred.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The activity.
    pub activity: Activity,
    /// Time of the activity in each bin, ns.
    pub ns: Vec<u64>,
    /// Number of calls that ended in each bin.
    pub calls: Vec<u64>,
    /// The longest call that ended in each bin, ns.
    pub longest_ns: Vec<u64>,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile { bin_ns: FIRST_BIN_NS, rows: Vec::new() }
    }
}

impl Profile {
    /// Adds an activity that took `ns` ns in `calls` calls between two times, with the longest call of `longest_ns` ns.
    /// The time is spread evenly over the bins, and calls count in the last bin. Takes O(bins between).
    pub fn add(
        &mut self,
        activity: Activity,
        begin_ns: u64,
        end_ns: u64,
        ns: u64,
        calls: u64,
        longest_ns: u64,
    ) {
        while end_ns / self.bin_ns >= BINS_MAX as u64 {
            self.merge_bins();
        }
        let (first, last) = ((begin_ns / self.bin_ns) as usize, (end_ns / self.bin_ns) as usize);
        let bin_ns = self.bin_ns;
        let row = self.row(activity);
        if row.ns.len() <= last {
            row.ns.resize(last + 1, 0);
            row.calls.resize(last + 1, 0);
            row.longest_ns.resize(last + 1, 0);
        }
        row.calls[last] += calls;
        row.longest_ns[last] = row.longest_ns[last].max(longest_ns);
        let span_ns = end_ns.saturating_sub(begin_ns);
        let mut left_ns = ns;
        for bin in first..last {
            let inside_ns = (bin as u64 + 1) * bin_ns - begin_ns.max(bin as u64 * bin_ns);
            let part_ns = (u128::from(ns) * u128::from(inside_ns) / u128::from(span_ns.max(1))) as u64;
            row.ns[bin] += part_ns;
            left_ns -= part_ns;
        }
        row.ns[last] += left_ns;
    }

    /// The row of an activity. A linear search is enough: there are a few dozen rows, and frequent ones come first.
    fn row(&mut self, activity: Activity) -> &mut Row {
        let position = self.rows.iter().position(|row| row.activity == activity);
        let position = position.unwrap_or_else(|| {
            self.rows.push(Row { activity, ns: Vec::new(), calls: Vec::new(), longest_ns: Vec::new() });
            self.rows.len() - 1
        });
        &mut self.rows[position]
    }

    /// Merges bins in pairs, so that their width doubles.
    pub fn merge_bins(&mut self) {
        self.bin_ns = self.bin_ns.saturating_mul(2);
        for row in &mut self.rows {
            row.ns = row.ns.chunks(2).map(|pair| pair.iter().sum()).collect();
            row.calls = row.calls.chunks(2).map(|pair| pair.iter().sum()).collect();
            row.longest_ns =
                row.longest_ns.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
        }
    }

    /// Time of an activity in the whole run, ns.
    #[must_use]
    pub fn total_ns(&self, activity: Activity) -> u64 {
        self.rows.iter().filter(|row| row.activity == activity).map(Row::total_ns).sum()
    }

    /// Checks the plausibility of a profile, which may come from a file. Sums over a valid profile do not overflow.
    ///
    /// # Errors
    /// One line if it is not plausible.
    pub fn check(&self) -> Result<(), &'static str> {
        const MOST: u64 = super::TIME_MAX_NS;
        if self.bin_ns == 0 || self.bin_ns > MOST {
            return Err("a profile whose bins have an invalid width");
        }
        for row in &self.rows {
            let bins = row.ns.len();
            if bins > BINS_MAX || row.calls.len() != bins || row.longest_ns.len() != bins {
                return Err("a profile whose columns do not match");
            }
            let columns = row.ns.iter().chain(&row.calls).chain(&row.longest_ns);
            if columns.into_iter().any(|&value| value > MOST / BINS_MAX as u64 * 8) {
                return Err("a profile with values that are too large");
            }
        }
        Ok(())
    }
}

impl Row {
    /// Time in the whole run, ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.ns.iter().sum()
    }

    /// Calls in the whole run.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.iter().sum()
    }

    /// The longest call, ns.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        self.longest_ns.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merging_loses_nothing_and_memory_is_bounded(
            spans in prop::collection::vec((0u64..100_000_000_000, 0u64..5_000_000_000), 1..60),
        ) {
            let mut profile = Profile::default();
            let mut total_ns = 0;
            for &(begin_ns, long_ns) in &spans {
                profile.add(Activity::Idle, begin_ns, begin_ns + long_ns, long_ns / 2, 3, long_ns);
                total_ns += long_ns / 2;
            }
            let row = &profile.rows[0];
            prop_assert_eq!((row.total_ns(), row.calls()), (total_ns, 3 * spans.len() as u64));
            prop_assert_eq!(row.longest_ns(), spans.iter().map(|span| span.1).max().unwrap_or(0));
            prop_assert!(row.ns.len() <= BINS_MAX);
            prop_assert_eq!(profile.check(), Ok(()));
        }
    }

    #[test]
    fn a_bin_holds_no_more_than_its_width() {
        let mut profile = Profile::default();
        for millisecond in 0..5000 {
            let begin_ns = millisecond * 1_000_000;
            profile.add(Activity::Idle, begin_ns, begin_ns + 999_999, 999_999, 1, 999_999);
        }
        assert_eq!(profile.bin_ns, 8_000_000);
        assert!(profile.rows[0].ns.iter().all(|&ns| ns <= profile.bin_ns));
    }
}
