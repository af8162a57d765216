//! The iterations that a restarted pool still has to execute, numbered from 0.

use std::ops::Range;

/// Iterations in ascending order, with their numbers. Policies and workers use the numbers instead of the indices.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undone {
    /// Ranges in ascending order, none empty, each with the number of its first iteration.
    ranges: Vec<(u64, Range<u64>)>,
    count: u64,
}

impl Undone {
    /// All of `0..iterations` that are in none of the ranges `done`. The error names an iteration that is there twice
    /// or does not exist.
    pub(crate) fn beside(iterations: u64, mut done: Vec<Range<u64>>) -> Result<Undone, String> {
        done.retain(|range| !range.is_empty());
        done.sort_unstable_by_key(|range| range.start);
        let mut undone = Undone { ranges: Vec::new(), count: 0 };
        let mut from = 0;
        for range in done {
            if range.start < from {
                return Err(format!("it contains iteration {} twice", range.start));
            }
            undone.push(from..range.start);
            from = range.end;
        }
        if from > iterations {
            return Err(format!(
                "it contains iteration {}, expected at most {iterations} iterations",
                from - 1
            ));
        }
        undone.push(from..iterations);
        Ok(undone)
    }

    fn push(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            let first = self.count;
            self.count += range.end - range.start;
            self.ranges.push((first, range));
        }
    }

    /// Number of iterations.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The indices of the iterations with these numbers, in order. Takes O(log n + returned ranges) for n ranges.
    pub(crate) fn indices(&self, numbers: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let begin =
            self.ranges.partition_point(|(first, range)| first + (range.end - range.start) <= numbers.start);
        let part = move |(first, range): &(u64, Range<u64>)| {
            let start = range.start + numbers.start.saturating_sub(*first);
            let end = range.end.min(range.start + numbers.end.saturating_sub(*first));
            start..end
        };
        self.ranges[begin..].iter().map(part).take_while(|range| !range.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_iterations_that_are_left() {
        let undone = Undone::beside(20, vec![9..12, 0..3, 4..5, 7..7, 5..6]).expect("none is there twice");
        assert_eq!(undone.count(), 20 - 3 - 1 - 1 - 3);
        let all: Vec<u64> = undone.indices(0..undone.count()).flatten().collect();
        assert_eq!(all, [3, 6, 7, 8, 12, 13, 14, 15, 16, 17, 18, 19]);
        for begin in 0..=undone.count() {
            for end in begin..=undone.count() {
                let some: Vec<u64> = undone.indices(begin..end).flatten().collect();
                assert_eq!(some, all[begin as usize..end as usize]);
            }
        }
        let all = 0..5;
        let nothing = Undone::beside(5, vec![all]).expect("none is there twice");
        assert_eq!((nothing.count(), nothing.indices(0..0).count()), (0, 0));
    }

    #[test]
    fn iterations_that_cannot_be_are_named() {
        let why = |done| Undone::beside(10, done).expect_err("it cannot be");
        assert_eq!(why(vec![0..4, 3..5]), "it contains iteration 3 twice");
        assert_eq!(why(vec![0..2, 5..11]), "it contains iteration 10, expected at most 10 iterations");
    }
}
