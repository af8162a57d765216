//! The bytes that migrations carry: what chunks say beforehand, against what was encoded when they left their process.
//!
//! A chunk that does not override [`Chunk::state_bytes`](crate::Chunk::state_bytes) says the size of its type, which knows
//! nothing of what its pointers lead to. So each receiving process measures, rank 0 adds up by array, and from the first
//! migration on scales what the chunks of that array say. Within a process a chunk moves by its pointer: nothing is measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arrays::core::lifecycle::transfer::ChunkTransfer;
use crate::ids::ArrayId;

/// The bytes of some migrations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MigrationBytes {
    /// All that has moved: as encoded where it left a process, else as the chunks say.
    pub(crate) bytes: u64,
    measured: BTreeMap<ArrayId, SizeCounts>,
}

/// Chunks of one array that left their process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SizeCounts {
    /// Bytes, as the chunks say.
    declared: u64,
    /// Bytes, as they were encoded.
    encoded: u64,
}

impl MigrationBytes {
    /// The migration_bytes of chunks that have arrived.
    pub(crate) fn of<'t>(chunks: impl IntoIterator<Item = &'t ChunkTransfer>) -> MigrationBytes {
        let mut migration_bytes = MigrationBytes::default();
        for transfer in chunks {
            let moved = transfer.encoded_bytes.unwrap_or(transfer.bytes);
            migration_bytes.bytes = migration_bytes.bytes.saturating_add(moved);
            if let Some(encoded) = transfer.encoded_bytes {
                migration_bytes
                    .measured
                    .entry(transfer.chunk.array)
                    .or_default()
                    .add(transfer.bytes.max(1), encoded);
            }
        }
        migration_bytes
    }

    pub(crate) fn add(&mut self, other: &MigrationBytes) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (&array, &SizeCounts { declared, encoded }) in &other.measured {
            self.measured.entry(array).or_default().add(declared, encoded);
        }
    }
}

impl SizeCounts {
    fn add(&mut self, declared: u64, encoded: u64) {
        self.declared = self.declared.saturating_add(declared);
        self.encoded = self.encoded.saturating_add(encoded);
    }
}

/// What rank 0 knows of the bytes of each array's chunks. Older migrations count half as much at each new one.
#[derive(Debug, Default)]
pub(crate) struct SizeScales(BTreeMap<ArrayId, SizeCounts>);

impl SizeScales {
    /// A migration has ended.
    pub(crate) fn learn(&mut self, migration_bytes: &MigrationBytes) {
        for (&array, &SizeCounts { declared, encoded }) in &migration_bytes.measured {
            let known = self.0.entry(array).or_default();
            *known = SizeCounts { declared: known.declared / 2, encoded: known.encoded / 2 };
            known.add(declared, encoded);
        }
    }

    /// The bytes that a chunk would carry which says so many.
    pub(crate) fn bytes(&self, array: ArrayId, declared: u64) -> u64 {
        let Some(&SizeCounts { declared: all, encoded }) = self.0.get(&array) else { return declared };
        let scaled = u128::from(declared.max(1)) * u128::from(encoded) / u128::from(all.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ChunkId;

    fn transfer(array: u32, bytes: u64, encoded: Option<u64>) -> ChunkTransfer {
        let chunk = ChunkId { array: ArrayId(array), key: 0 };
        ChunkTransfer { bytes, encoded_bytes: encoded, ..ChunkTransfer::without_body(chunk) }
    }

    #[test]
    fn what_was_carried_decides_and_only_for_its_array() {
        let mut here = MigrationBytes::of([&transfer(0, 24, Some(1_000)), &transfer(1, 500, None)]);
        here.add(&MigrationBytes::of([&transfer(0, 24, Some(3_000))]));
        assert_eq!(here.bytes, 4_500);
        let mut scales = SizeScales::default();
        assert_eq!(scales.bytes(ArrayId(0), 24), 24, "nothing has moved");
        scales.learn(&here);
        assert_eq!((scales.bytes(ArrayId(0), 24), scales.bytes(ArrayId(0), 48)), (2_000, 4_000));
        assert_eq!(scales.bytes(ArrayId(1), 500), 500, "it moved within its process");
        scales.learn(&MigrationBytes::of([&transfer(0, 24, Some(200)), &transfer(0, 24, Some(200))]));
        assert_eq!(scales.bytes(ArrayId(0), 24), 800, "the newest counts twice");
    }

    #[test]
    fn a_chunk_that_says_nothing_is_measured_all_the_same() {
        let mut scales = SizeScales::default();
        scales.learn(&MigrationBytes::of([&transfer(0, 0, Some(70))]));
        assert_eq!((scales.bytes(ArrayId(0), 0), scales.bytes(ArrayId(0), u64::MAX)), (70, u64::MAX));
    }
}
