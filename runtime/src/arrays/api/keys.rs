//! The packed indices that an array starts with, in stretches of consecutive ones.
//!
//! Every rank has those of the whole array, to know where a chunk is at home. Most arrays are a stretch, or one a row: so
//! they take 16 bytes a row, and not a chunk.

use std::hash::Hasher;

use rustc_hash::FxHasher;

/// Packed indices, ascending.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    stretches: Vec<Stretch>,
    len: u64,
    /// The first two that are not in rising order.
    disordered: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u64,
    /// Number of those before it.
    before: u64,
}

impl Keys {
    /// Number of them.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The first two that are not in rising order, if there are any.
    pub(crate) fn disordered(&self) -> Option<(u64, u64)> {
        self.disordered
    }

    /// Number of those that are less than `key`. O(log of the stretches).
    pub(crate) fn position(&self, key: u64) -> u64 {
        let behind = self.stretches.partition_point(|stretch| stretch.first <= key);
        let Some(&Stretch { first, before }) = self.stretches[..behind].last() else { return 0 };
        (before + (key - first)).min(self.end(behind - 1))
    }

    /// The one with `position` others before it, which there is. O(log of the stretches).
    pub(crate) fn nth(&self, position: u64) -> u64 {
        let behind = self.stretches.partition_point(|stretch| stretch.before <= position);
        self.stretches[..behind].last().map_or(0, |stretch| stretch.first + (position - stretch.before))
    }

    /// A hash of all of them. O(stretches).
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_u64(self.len);
        for &Stretch { first, before } in &self.stretches {
            hasher.write_u64(first);
            hasher.write_u64(before);
        }
        hasher.finish()
    }

    /// Number of those up to the end of a stretch.
    fn end(&self, stretch: usize) -> u64 {
        self.stretches.get(stretch + 1).map_or(self.len, |next| next.before)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        let stretches = self.stretches.iter().enumerate();
        stretches.flat_map(|(number, &Stretch { first, before })| {
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
                all.stretches.push(Stretch { first: key, before: all.len });
                if let Some(last) = last.filter(|&last| last >= key) {
                    all.disordered.get_or_insert((last, key));
                }
            }
            all.len += 1;
            last = Some(key);
        }
        all.stretches.shrink_to_fit();
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stretches_are_the_keys_that_they_were_made_of(keys in prop::collection::btree_set(0..60u64, 0..40), key in 0..64u64) {
            let stretches: Keys = keys.iter().copied().collect();
            prop_assert_eq!(stretches.iter().collect::<BTreeSet<_>>(), keys.clone());
            prop_assert_eq!(stretches.len(), keys.len() as u64);
            prop_assert_eq!(stretches.position(key), keys.range(..key).count() as u64);
            prop_assert!(keys.iter().enumerate().all(|(nth, &key)| stretches.nth(nth as u64) == key));
            prop_assert!(stretches.disordered().is_none());
        }
    }

    #[test]
    fn a_stretch_takes_one_entry_and_may_end_with_the_last_key_that_there_is() {
        let keys: Keys = (u64::MAX - 999..=u64::MAX).collect();
        assert_eq!((keys.stretches.len(), keys.len(), keys.position(u64::MAX)), (1, 1_000, 999));
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
        let disordered = |keys: &[u64]| keys.iter().copied().collect::<Keys>().disordered();
        assert_eq!(disordered(&[1, 2, 2, 1]), Some((2, 2)));
        assert_eq!(disordered(&[7, 3]), Some((7, 3)));
    }
}
