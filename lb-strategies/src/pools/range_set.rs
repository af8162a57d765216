//! Sets of indices, as disjoint ranges in ascending order.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of indices as disjoint ranges that do not touch.
///
/// Taking from either end is O(log ranges) per range taken. Inserting and removing a range is O(log ranges), too.
///
/// ```
/// use lb_strategies::pool::RangeSet;
/// let mut set = RangeSet::from(0..10);
/// assert_eq!(set.take_front(3), Some(0..3));
/// assert_eq!(set.take_back(2).ranges().collect::<Vec<_>>(), [8..10]);
/// set.insert(0..1);
/// assert_eq!((set.len(), set.ranges().collect::<Vec<_>>()), (6, vec![0..1, 3..8]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// End of each range by its begin.
    ends: BTreeMap<u64, u64>,
    len: u64,
}

impl From<Range<u64>> for RangeSet {
    fn from(range: Range<u64>) -> Self {
        let mut set = Self::default();
        set.insert(range);
        set
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::default();
        for range in ranges {
            set.insert(range);
        }
        set
    }
}

impl RangeSet {
    /// Number of indices.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ranges, in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(&begin, &end)| begin..end)
    }

    /// Adds a range. Returns the number of its indices that were not in the set.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let before = self.len;
        let Range { mut start, mut end } = range;
        // Ranges that overlap or touch become one.
        while let Some((&begin, &last)) =
            self.ends.range(..=end).next_back().filter(|&(_, &last)| last >= start)
        {
            start = start.min(begin);
            end = end.max(last);
            self.ends.remove(&begin);
            self.len -= last - begin;
        }
        self.ends.insert(start, end);
        self.len += end - start;
        self.len - before
    }

    /// Removes a range. Returns the number of its indices that were in the set.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let before = self.len;
        while let Some((&begin, &last)) =
            self.ends.range(..range.end).next_back().filter(|&(_, &last)| last > range.start)
        {
            if range.is_empty() {
                break;
            }
            self.ends.remove(&begin);
            self.len -= last - begin;
            for rest in [begin..range.start, range.end..last] {
                if rest.start < rest.end {
                    self.ends.insert(rest.start, rest.end);
                    self.len += rest.end - rest.start;
                }
            }
        }
        before - self.len
    }

    /// True if the index is in the set.
    pub fn contains(&self, index: u64) -> bool {
        self.ends.range(..=index).next_back().is_some_and(|(_, &end)| end > index)
    }

    /// Takes up to `count` indices from the front, in one range; `None` if there are none or `count` is 0.
    pub fn take_front(&mut self, count: u64) -> Option<Range<u64>> {
        let (&begin, &end) = self.ends.iter().next()?;
        let taken = begin..end.min(begin.saturating_add(count));
        (self.remove(taken.clone()) > 0).then_some(taken)
    }

    /// Takes up to `count` indices from the back, in as many ranges as needed.
    pub fn take_back(&mut self, count: u64) -> RangeSet {
        let mut taken = RangeSet::default();
        while taken.len < count {
            let Some((&begin, &end)) = self.ends.iter().next_back() else { break };
            let range = begin.max(end.saturating_sub(count - taken.len))..end;
            self.remove(range.clone());
            taken.insert(range);
        }
        taken
    }

    /// Takes everything.
    pub fn take(&mut self) -> RangeSet {
        std::mem::take(self)
    }

    /// Adds all indices of another set. Returns the number of them that were not in the set.
    pub fn extend(&mut self, other: &RangeSet) -> u64 {
        other.ranges().map(|range| self.insert(range)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(Range<u64>),
        Remove(Range<u64>),
        Front(u64),
        Back(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let range = || (0u64..40, 0u64..12).prop_map(|(begin, len)| begin..begin + len);
        let step = prop_oneof![
            range().prop_map(Step::Insert),
            range().prop_map(Step::Remove),
            (0u64..9).prop_map(Step::Front),
            (0u64..9).prop_map(Step::Back),
        ];
        prop::collection::vec(step, 0..40)
    }

    proptest! {
        #[test]
        fn it_is_a_set(steps in steps()) {
            let (mut set, mut model) = (RangeSet::default(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Insert(range) => {
                        let new = range.clone().filter(|&index| model.insert(index)).count() as u64;
                        prop_assert_eq!(set.insert(range), new);
                    }
                    Step::Remove(range) => {
                        let gone = range.clone().filter(|index| model.remove(index)).count() as u64;
                        prop_assert_eq!(set.remove(range), gone);
                    }
                    Step::Front(count) => {
                        let taken: Vec<u64> = set.take_front(count).into_iter().flatten().collect();
                        prop_assert!(taken.len() as u64 <= count);
                        prop_assert_eq!(taken.is_empty(), model.is_empty() || count == 0);
                        prop_assert!(taken.iter().zip(model.clone()).all(|(&index, first)| index == first));
                        taken.iter().for_each(|index| { model.remove(index); });
                    }
                    Step::Back(count) => {
                        let taken: Vec<u64> = set.take_back(count).ranges().flatten().collect();
                        prop_assert_eq!(taken.len() as u64, count.min(model.len() as u64));
                        prop_assert!(taken.iter().rev().zip(model.iter().rev()).all(|(a, b)| a == b));
                        taken.iter().for_each(|index| { model.remove(index); });
                    }
                }
                prop_assert_eq!(set.len(), model.len() as u64);
                prop_assert!(set.ranges().flatten().eq(model.iter().copied()));
                let ranges: Vec<_> = set.ranges().collect();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "they do not touch");
            }
        }
    }
}
