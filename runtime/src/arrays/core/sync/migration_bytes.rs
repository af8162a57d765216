//! Counts the bytes that migrations move, and corrects the sizes that chunks declare. Rank 0 uses the corrected sizes
//! as the sizes of chunks in the reports to the balancer.
//!
//! A chunk that does not override [`Chunk::state_bytes`](crate::Chunk::state_bytes) declares the size of its type,
//! without the memory behind its pointers. So each receiving process measures the encoded size, and rank 0 adds up the
//! sizes per array. From the first migration on, rank 0 scales the declared sizes of the array by encoded over declared
//! bytes. A chunk that moves within a process is not encoded and therefore not measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arrays::core::lifecycle::transfer::ChunkTransfer;
use crate::ids::ArrayId;

/// The bytes of some migrations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MigrationBytes {
    /// All bytes that have moved: the encoded size of chunks that left a process, the declared size of all others.
    pub(crate) bytes: u64,
    measured: BTreeMap<ArrayId, SizeCounts>,
}

/// The sizes of chunks of one array that left their process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SizeCounts {
    /// Bytes that the chunks declared.
    declared: u64,
    /// Bytes of the encoded chunks.
    encoded: u64,
}

impl MigrationBytes {
    /// The bytes of chunks that have arrived.
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

/// The sizes of each array's chunks, on rank 0. Each migration halves the weight of all earlier ones.
#[derive(Debug, Default)]
pub(crate) struct SizeScales(BTreeMap<ArrayId, SizeCounts>);

impl SizeScales {
    pub(crate) fn learn(&mut self, migration_bytes: &MigrationBytes) {
        for (&array, &SizeCounts { declared, encoded }) in &migration_bytes.measured {
            let known = self.0.entry(array).or_default();
            *known = SizeCounts { declared: known.declared / 2, encoded: known.encoded / 2 };
            known.add(declared, encoded);
        }
    }

    /// The expected encoded size of a chunk that declares this number of bytes.
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
    fn measured_sizes_scale_the_declared_sizes_of_their_array_only() {
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
    fn a_chunk_that_declares_no_bytes_is_measured_too() {
        let mut scales = SizeScales::default();
        scales.learn(&MigrationBytes::of([&transfer(0, 0, Some(70))]));
        assert_eq!((scales.bytes(ArrayId(0), 0), scales.bytes(ArrayId(0), u64::MAX)), (70, u64::MAX));
    }
}
