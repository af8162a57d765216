//! Maps the keys of one array's chunks on one rank to their cells: a dense table, and a hash map for outliers.
//!
//! Most keys on a rank are consecutive, or nearly so. The table has their cells: a lookup takes a subtraction and a
//! load, and a key takes 4 bytes. The table begins at the first key that came, or at a lower key once many lower keys
//! have come. It has at most eight places per chunk when it grows. All other keys are in the hash map.

use rustc_hash::FxHashMap;

use crate::ids::CellId;

/// The entry of a key without a chunk. No cell has this number.
const VACANT: CellId = CellId(u32::MAX);
/// The most places of the table per chunk.
const PLACES_MAX: usize = 8;

#[derive(Default)]
pub(crate) struct Residents {
    /// The key of the first place.
    first: u64,
    places: Vec<CellId>,
    /// Number of chunks in `places`.
    placed: usize,
    overflow: FxHashMap<u64, CellId>,
}

impl Residents {
    /// The cell of the chunk with this key. O(1).
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<CellId> {
        match self.place(key).and_then(|place| self.places.get(place)) {
            Some(&cell) => (cell != VACANT).then_some(cell),
            None => self.overflow.get(&key).copied(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.placed + self.overflow.len()
    }

    /// All keys with their cells, ascending. O(n log n).
    pub(crate) fn sorted(&self) -> Vec<(u64, CellId)> {
        let keys = (0..).map(|place| self.first.wrapping_add(place));
        let placed = keys.zip(self.places.iter().copied()).filter(|&(_, cell)| cell != VACANT);
        let mut all: Vec<_> = placed.chain(self.overflow.iter().map(|(&key, &cell)| (key, cell))).collect();
        all.sort_unstable();
        all
    }

    /// Adds a chunk. Returns the cell of the chunk that had its key. O(1), amortised.
    pub(crate) fn insert(&mut self, key: u64, cell: CellId) -> Option<CellId> {
        if self.len() == 0 {
            (self.first, self.places) = (key, Vec::new());
        }
        self.extend_to(key);
        let Some(place) = self.place(key).filter(|&place| place < self.places.len()) else {
            let before = self.overflow.insert(key, cell);
            if self.overflow.len() >= self.placed && self.overflow.len().is_power_of_two() {
                self.extend_down();
            }
            return before;
        };
        let before = std::mem::replace(&mut self.places[place], cell);
        self.placed += usize::from(before == VACANT);
        (before != VACANT).then_some(before)
    }

    pub(crate) fn remove(&mut self, key: u64) {
        match self.place(key).and_then(|place| self.places.get_mut(place)) {
            Some(place) => self.placed -= usize::from(std::mem::replace(place, VACANT) != VACANT),
            None => {
                self.overflow.remove(&key);
            }
        }
    }

    /// The position of a key in the table, if the table were long enough.
    #[inline]
    fn place(&self, key: u64) -> Option<usize> {
        usize::try_from(key.wrapping_sub(self.first)).ok()
    }

    /// Rebuilds the table from the least key, if that is below the first key of the table and enough places would be
    /// taken. O(n log n); the caller does so each time the number of hashed keys has doubled.
    fn extend_down(&mut self) {
        let all = self.sorted();
        let (Some(&(least, _)), Some(&(greatest, _))) = (all.first(), all.last()) else { return };
        if least < self.first && greatest - least < (PLACES_MAX * all.len()) as u64 {
            *self = Residents::default();
            for (key, cell) in all {
                self.insert(key, cell);
            }
        }
    }

    /// Extends the table to this key if enough places would then be taken. The table grows by doubling.
    fn extend_to(&mut self, key: u64) {
        let enough = PLACES_MAX * (self.len() + 1);
        let Some(place) = self.place(key).filter(|&place| place >= self.places.len() && place < enough)
        else {
            return;
        };
        let length = (place + 1).next_power_of_two();
        if length > enough {
            return;
        }
        self.places.resize(length, VACANT);
        let (first, places) = (self.first, &mut self.places);
        let mut moved = 0;
        self.overflow.retain(|&key, &mut cell| {
            let place = usize::try_from(key.wrapping_sub(first)).ok().and_then(|place| places.get_mut(place));
            let inside = place.map(|place| *place = cell).is_some();
            moved += usize::from(inside);
            !inside
        });
        self.placed += moved;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn consecutive_keys_lie_in_the_table() {
        let mut residents = Residents::default();
        (1000..2000).for_each(|key| assert_eq!(residents.insert(key, CellId(key as u32)), None));
        assert!(residents.overflow.is_empty());
        assert!(residents.places.len() <= 1024);
    }

    #[test]
    fn descending_keys_lie_in_the_table_too() {
        let mut residents = Residents::default();
        (1000..2024).rev().for_each(|key| assert_eq!(residents.insert(key, CellId(key as u32)), None));
        assert!(
            residents.overflow.len() <= 512 && residents.places.len() <= 1024,
            "{}",
            residents.overflow.len()
        );
        assert!((1000..2024).all(|key| residents.get(key) == Some(CellId(key as u32))));
        assert_eq!(residents.len(), 1024);
    }

    #[test]
    fn keys_far_from_each_other_make_no_table() {
        let mut residents = Residents::default();
        (0..1000).for_each(|key| assert_eq!(residents.insert(key << 32, CellId(key as u32)), None));
        assert!(residents.places.len() <= PLACES_MAX);
        assert_eq!(residents.get(999 << 32), Some(CellId(999)));
    }

    proptest! {
        #[test]
        fn it_is_a_map(
            changes in prop::collection::vec((any::<bool>(), 0u64..200, 0u8..4), 0..300),
            first in prop::sample::select(vec![0, 1 << 20, u64::MAX - 100]),
        ) {
            let (mut residents, mut model) = (Residents::default(), BTreeMap::new());
            for (cell, (insert, key, spread)) in (0..).map(CellId).zip(changes) {
                let key = first.wrapping_add(key << (8 * spread));
                if insert {
                    prop_assert_eq!(residents.insert(key, cell), model.insert(key, cell));
                } else {
                    residents.remove(key);
                    model.remove(&key);
                }
                prop_assert_eq!(residents.get(key), model.get(&key).copied());
                prop_assert_eq!(residents.len(), model.len());
            }
            prop_assert_eq!(residents.sorted(), model.into_iter().collect::<Vec<_>>());
        }
    }
}
