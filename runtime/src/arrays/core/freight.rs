//! The bytes that migrations carry: what chunks say beforehand, against what was encoded when they left their process.
//!
//! A chunk that does not override [`Chunk::state_bytes`](crate::Chunk::state_bytes) says the size of its type, which knows
//! nothing of what its pointers lead to. So each receiving process measures, rank 0 adds up by array, and from the first
//! migration on scales what the chunks of that array say. Within a process a chunk moves by its pointer: nothing is measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::packet::Traveller;
use crate::ids::ArrayId;

/// The bytes of some migrations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Freight {
    /// All that has moved: as encoded where it left a process, else as the chunks say.
    pub(crate) bytes: u64,
    measured: BTreeMap<ArrayId, Measured>,
}

/// Chunks of one array that left their process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    /// Bytes, as the chunks say.
    said: u64,
    /// Bytes, as they were encoded.
    carried: u64,
}

impl Freight {
    /// The freight of chunks that have arrived.
    pub(crate) fn of<'t>(travellers: impl IntoIterator<Item = &'t Traveller>) -> Freight {
        let mut freight = Freight::default();
        for traveller in travellers {
            let moved = traveller.carried.unwrap_or(traveller.bytes);
            freight.bytes = freight.bytes.saturating_add(moved);
            if let Some(carried) = traveller.carried {
                freight
                    .measured
                    .entry(traveller.chunk.array)
                    .or_default()
                    .add(traveller.bytes.max(1), carried);
            }
        }
        freight
    }

    pub(crate) fn add(&mut self, other: &Freight) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (&array, &Measured { said, carried }) in &other.measured {
            self.measured.entry(array).or_default().add(said, carried);
        }
    }
}

impl Measured {
    fn add(&mut self, said: u64, carried: u64) {
        self.said = self.said.saturating_add(said);
        self.carried = self.carried.saturating_add(carried);
    }
}

/// What rank 0 knows of the bytes of each array's chunks. Older migrations count half as much at each new one.
#[derive(Debug, Default)]
pub(crate) struct Scales(BTreeMap<ArrayId, Measured>);

impl Scales {
    /// A migration has ended.
    pub(crate) fn learn(&mut self, freight: &Freight) {
        for (&array, &Measured { said, carried }) in &freight.measured {
            let known = self.0.entry(array).or_default();
            *known = Measured { said: known.said / 2, carried: known.carried / 2 };
            known.add(said, carried);
        }
    }

    /// The bytes that a chunk would carry which says so many.
    pub(crate) fn bytes(&self, array: ArrayId, said: u64) -> u64 {
        let Some(&Measured { said: all, carried }) = self.0.get(&array) else { return said };
        let scaled = u128::from(said.max(1)) * u128::from(carried) / u128::from(all.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ChunkId;

    fn traveller(array: u32, bytes: u64, carried: Option<u64>) -> Traveller {
        let chunk = ChunkId { array: ArrayId(array), key: 0 };
        Traveller { bytes, carried, ..Traveller::following(chunk) }
    }

    #[test]
    fn what_was_carried_decides_and_only_for_its_array() {
        let mut here = Freight::of([&traveller(0, 24, Some(1_000)), &traveller(1, 500, None)]);
        here.add(&Freight::of([&traveller(0, 24, Some(3_000))]));
        assert_eq!(here.bytes, 4_500);
        let mut scales = Scales::default();
        assert_eq!(scales.bytes(ArrayId(0), 24), 24, "nothing has moved");
        scales.learn(&here);
        assert_eq!((scales.bytes(ArrayId(0), 24), scales.bytes(ArrayId(0), 48)), (2_000, 4_000));
        assert_eq!(scales.bytes(ArrayId(1), 500), 500, "it moved within its process");
        scales.learn(&Freight::of([&traveller(0, 24, Some(200)), &traveller(0, 24, Some(200))]));
        assert_eq!(scales.bytes(ArrayId(0), 24), 800, "the newest counts twice");
    }

    #[test]
    fn a_chunk_that_says_nothing_is_measured_all_the_same() {
        let mut scales = Scales::default();
        scales.learn(&Freight::of([&traveller(0, 0, Some(70))]));
        assert_eq!((scales.bytes(ArrayId(0), 0), scales.bytes(ArrayId(0), u64::MAX)), (70, u64::MAX));
    }
}
