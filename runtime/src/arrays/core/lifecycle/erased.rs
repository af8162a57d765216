//! Type erasure: the traits by which the core and the workers use arrays and chunks of user types. [`api::slot`]
//! implements both traits for every `Chunk`; no code of the core or the workers is generic over chunks.
//!
//! [`api::slot`]: crate::arrays::api::slot

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use super::handler::{ChunkRecord, Handler};
use super::signature::ArraySignature;
use crate::arrays::core::routing::envelope::{Delivery, Payload};
use crate::checkpoint::Store;
use crate::ids::{ArrayId, ChunkId, Rank};
use crate::wire::WireError;

/// One chunk with its deferred messages.
pub(crate) trait ErasedSlot: Send {
    /// Runs the handler for the delivery, then the handlers of deferred messages that have become ready. Takes the
    /// delivery apart, so nothing may read it afterwards. The error is boxed, so that the result fits into registers.
    fn deliver<'a>(
        &'a mut self,
        delivery: &mut Delivery,
        handler: &'a mut Handler<'a>,
    ) -> Result<(), Box<WireError>>;
    fn record(&mut self) -> &mut ChunkRecord;
    /// The load that the chunk declares for the phase, ns of ticks. None if the measured load counts.
    fn declared_load(&self) -> Option<u64>;
    fn migratable(&self) -> bool;
    /// Bytes that a migration would move.
    fn state_bytes(&self) -> u64;
    fn on_depart(&mut self);
    fn on_arrive(&mut self);
    /// Number of messages that are deferred because the chunk is not ready for them or waits at a sync.
    fn deferred(&self) -> usize;
    /// Bytes of the messages that are deferred until the end of a sync. Only these count as queued on the rank.
    fn deferred_bytes(&self) -> u64;
    /// What the chunk waits for, in the words of the program.
    fn waits_for(&self) -> Option<String>;
    /// The deferred messages, when the chunk was removed.
    fn into_deferred(self: Box<Self>) -> Vec<Delivery>;
    /// Appends the chunk, its record and its deferred messages as bytes.
    fn encode_into(&self, bytes: &mut Vec<u8>) -> Result<(), WireError>;
}

/// One array: makes, names, places and encodes its chunks.
pub(crate) trait ErasedArray: Send + Sync {
    /// The chunk type's short name.
    fn name(&self) -> &str;
    /// The kind of a message: the name of the enum variant, else "message". An insertion names its chunk too.
    fn kind(&self, payload: &Payload) -> Cow<'static, str>;
    /// The length of a message when encoded; 0 if the message cannot be encoded.
    fn encoded_bytes(&self, payload: &Payload) -> u64;
    /// Number of chunks at the start.
    fn population(&self) -> u64;
    /// Keys of the chunks that start on `rank`, ascending.
    fn keys_on(&self, rank: Rank, ranks: u32) -> Vec<u64>;
    /// The rank on which an initial or an inserted chunk is created, the same on every rank.
    fn home(&self, key: u64, ranks: u32) -> Rank;
    fn create(&self, key: u64) -> Box<dyn ErasedSlot>;
    fn index_text(&self, key: u64) -> String;
    /// The readable name of one of its chunks.
    fn describe(&self, chunk: ChunkId) -> String {
        format!("{}[{}] of array {}", self.name(), self.index_text(chunk.key), chunk.array)
    }
    /// The leader of this array: each chunk stays on the rank of the leader's chunk of the same key.
    fn leader(&self) -> Option<ArrayId>;
    /// False for an array without balancing: its chunks do not move, and syncs do not wait for them.
    fn syncs(&self) -> bool;
    /// True for an array with chunks that move at syncs only.
    fn at_syncs(&self) -> bool {
        false
    }
    /// True for an array with one chunk on each rank, which a restarted run makes anew.
    fn is_group(&self) -> bool {
        false
    }
    /// The signature that must be the same on all of `ranks` ranks. Computes the homes of a sample of the indices.
    fn signature(&self, ranks: u32) -> ArraySignature;
    /// True for an array that takes spawned chunks. The rank that starts such a chunk gives it its key.
    fn has_seeds(&self) -> bool {
        false
    }
    /// Appends the encoding of a message, or of a chunk to insert; the payload is a typed value.
    fn encode_into(&self, payload: &Payload, bytes: &mut Vec<u8>) -> Result<(), WireError>;
    /// Writes the typed value over a payload, which is not dropped.
    fn decode_message(&self, bytes: &[u8], over: &mut Payload) -> Result<(), WireError>;
    fn decode_slot(&self, key: u64, bytes: &[u8]) -> Result<Box<dyn ErasedSlot>, WireError>;
}

/// The arrays and services that the setup function of a rank has described.
pub(crate) struct RankSetup {
    pub(crate) arrays: Arc<[Arc<dyn ErasedArray>]>,
    pub(crate) services: Vec<Box<dyn Any + Send + Sync>>,
    /// Where checkpoints are written, if the run makes any.
    pub(crate) checkpoints: Option<Arc<Store>>,
}
