//! Chunks that do nothing, for tests of the core alone.

use std::borrow::Cow;

use crate::arrays::core::collectives::population::MemberReport;
use crate::arrays::core::lifecycle::erased::{ErasedArray, ErasedSlot};
use crate::arrays::core::lifecycle::signature::ArraySignature;
use crate::arrays::core::routing::envelope::Payload;
use crate::arrays::core::sync::sync_arrivals::SyncArrival;
use crate::ids::{ArrayId, CellId, ChunkId, Rank, SyncId};
use crate::wire::WireError;

/// An array of chunks that do nothing.
pub(super) struct IdleChunks {
    pub(super) chunks: u64,
    /// The rank of a key, given the number of ranks.
    pub(super) home: fn(u64, u32) -> Rank,
}

impl ErasedArray for IdleChunks {
    fn name(&self) -> &str {
        "IdleChunks"
    }
    fn kind(&self, _: &Payload) -> Cow<'static, str> {
        "message".into()
    }
    fn encoded_bytes(&self, _: &Payload) -> u64 {
        0
    }
    fn population(&self) -> u64 {
        self.chunks
    }
    fn keys_on(&self, rank: Rank, ranks: u32) -> Vec<u64> {
        (0..self.chunks).filter(|&key| self.home(key, ranks) == rank).collect()
    }
    fn home(&self, key: u64, ranks: u32) -> Rank {
        (self.home)(key, ranks)
    }
    fn create(&self, _: u64) -> Box<dyn ErasedSlot> {
        unreachable!("only the core is under test")
    }
    fn index_text(&self, key: u64) -> String {
        key.to_string()
    }
    fn leader(&self) -> Option<ArrayId> {
        None
    }
    fn syncs(&self) -> bool {
        true
    }
    fn signature(&self, _: u32) -> ArraySignature {
        ArraySignature::default()
    }
    fn encode_into(&self, _: &Payload, _: &mut Vec<u8>) -> Result<(), WireError> {
        unreachable!("nothing is sent")
    }
    fn decode_message(&self, _: &[u8], _: &mut Payload) -> Result<(), WireError> {
        unreachable!("nothing is sent")
    }
    fn decode_slot(&self, _: u64, _: &[u8]) -> Result<Box<dyn ErasedSlot>, WireError> {
        unreachable!("nothing is sent")
    }
}

/// The arrival of one of these chunks at a sync, where it waits.
pub(super) fn arrival(key: u64, sync: SyncId) -> SyncArrival {
    let report = MemberReport { sequence: sync.0, generation: 0, born: 0, leaving: false };
    let chunk = ChunkId { array: ArrayId(0), key };
    SyncArrival {
        chunk,
        cell: CellId(key as u32),
        report,
        declared: None,
        bytes: 0,
        migratable: true,
        wish: None,
        paused: true,
    }
}
