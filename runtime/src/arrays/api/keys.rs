//! Stores the packed indices with which an array starts, in ranges of consecutive ones.
//!
//! Every rank has the indices of the whole array, to find the home rank of any chunk. Most arrays are one range, or one
//! range per row, so they take 16 bytes per row and not per chunk.

use std::hash::Hasher;

use rustc_hash::FxHasher;

/// Packed indices, ascending.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    ranges: Vec<KeyRange>,
    len: u64,
    /// The first two keys in succession that do not ascend.
    first_unordered: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct KeyRange {
    first: u64,
    /// Number of keys before the range.
    before: u64,
}

/// The position of a key among the keys with which an array starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum KeyPosition {
    /// The key is one of these keys; `position` keys are before it.
    Member { position: u64 },
    /// The key is between two of these keys, which are `width` apart; `nearest` keys are before the nearer one.
    Gap { nearest: u64, width: u64 },
    /// The key is less than all of these keys, or greater.
    Outside,
}

impl Keys {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The first two keys in succession that do not ascend, if there are any.
    pub(crate) fn first_unordered(&self) -> Option<(u64, u64)> {
        self.first_unordered
    }

    /// The position of a key. O(log of the ranges).
    pub(crate) fn position(&self, key: u64) -> KeyPosition {
        let behind = self.ranges.partition_point(|range| range.first <= key);
        let Some(range) = behind.checked_sub(1) else { return KeyPosition::Outside };
        let KeyRange { first, before } = self.ranges[range];
        let end = self.end(range);
        let last = first + (end - before - 1);
        match self.ranges.get(behind) {
            _ if key <= last => KeyPosition::Member { position: before + (key - first) },
            Some(next) => {
                let position = if key - last <= next.first - key { end - 1 } else { end };
                KeyPosition::Gap { nearest: position, width: next.first - last }
            }
            None => KeyPosition::Outside,
        }
    }

    /// The distance from the first key to the last one.
    pub(crate) fn span(&self) -> u64 {
        let [first, .., last] = self.ranges[..] else { return self.len.saturating_sub(1) };
        last.first + (self.len - last.before - 1) - first.first
    }

    /// The key with `position` keys before it, which must exist. O(log of the ranges).
    pub(crate) fn nth(&self, position: u64) -> u64 {
        let behind = self.ranges.partition_point(|range| range.before <= position);
        self.ranges[..behind].last().map_or(0, |range| range.first + (position - range.before))
    }

    /// A hash of all keys. O(ranges).
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_u64(self.len);
        for &KeyRange { first, before } in &self.ranges {
            hasher.write_u64(first);
            hasher.write_u64(before);
        }
        hasher.finish()
    }

    /// Number of keys up to the end of a range.
    fn end(&self, range: usize) -> u64 {
        self.ranges.get(range + 1).map_or(self.len, |next| next.before)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        let ranges = self.ranges.iter().enumerate();
        ranges.flat_map(|(number, &KeyRange { first, before })| {
            (0..self.end(number) - before).map(move |nth| first + nth)
        })
    }
}

impl FromIterator<u64> for Keys {
    fn from_iter<T: IntoIterator<Item = u64>>(keys: T) -> Keys {
        let mut all = Keys::default();
        let mut last: Option<u64> = None;
        for key in keys {
            if last.is_none_or(|last| last.checked_add(1) != Some(key)) {
                all.ranges.push(KeyRange { first: key, before: all.len });
                if let Some(last) = last.filter(|&last| last >= key) {
                    all.first_unordered.get_or_insert((last, key));
                }
            }
            all.len += 1;
            last = Some(key);
        }
        all.ranges.shrink_to_fit();
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn position(keys: &BTreeSet<u64>, key: u64) -> KeyPosition {
        let position = |key: u64| keys.range(..key).count() as u64;
        match (keys.range(..=key).next_back(), keys.range(key..).next()) {
            (Some(&below), Some(&above)) if below == above => KeyPosition::Member { position: position(key) },
            (Some(&below), Some(&above)) => {
                let nearer = if key - below <= above - key { below } else { above };
                KeyPosition::Gap { nearest: position(nearer), width: above - below }
            }
            _ => KeyPosition::Outside,
        }
    }

    proptest! {
        #[test]
        fn stretches_are_the_keys_that_they_were_made_of(keys in prop::collection::btree_set(0..60u64, 0..40), key in 0..64u64) {
            let ranges: Keys = keys.iter().copied().collect();
            prop_assert_eq!(ranges.iter().collect::<BTreeSet<_>>(), keys.clone());
            prop_assert_eq!(ranges.len(), keys.len() as u64);
            prop_assert!(keys.iter().enumerate().all(|(nth, &key)| ranges.nth(nth as u64) == key));
            prop_assert_eq!(ranges.position(key), position(&keys, key));
            let span = keys.last().zip(keys.first()).map_or(0, |(last, first)| last - first);
            prop_assert_eq!(ranges.span(), span);
            prop_assert!(ranges.first_unordered().is_none());
        }
    }

    #[test]
    fn a_stretch_takes_one_entry_and_may_end_with_the_last_key_that_there_is() {
        let keys: Keys = (u64::MAX - 999..=u64::MAX).collect();
        assert_eq!((keys.ranges.len(), keys.len()), (1, 1_000));
        assert_eq!(keys.position(u64::MAX), KeyPosition::Member { position: 999 });
        assert!(keys.iter().eq(u64::MAX - 999..=u64::MAX));
    }

    #[test]
    fn other_keys_have_another_hash() {
        let hash = |keys: &[u64]| keys.iter().copied().collect::<Keys>().hash();
        let all: [&[u64]; 6] = [&[], &[0], &[1], &[0, 1], &[0, 2], &[0, 2, 3]];
        assert_eq!(all.map(hash).iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(hash(&[4, 5, 9]), hash(&[4, 5, 9]));
    }

    #[test]
    fn the_first_two_out_of_order_are_told() {
        let first_unordered = |keys: &[u64]| keys.iter().copied().collect::<Keys>().first_unordered();
        assert_eq!(first_unordered(&[1, 2, 2, 1]), Some((2, 2)));
        assert_eq!(first_unordered(&[7, 3]), Some((7, 3)));
    }
}
