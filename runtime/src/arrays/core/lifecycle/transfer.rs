//! Defines [`ChunkTransfer`]: a chunk between two ranks, which was inserted or spawned, or migrates.

use serde::{Deserialize, Serialize};

use super::erased::ErasedSlot;
use crate::arrays::core::routing::envelope::Delivery;
use crate::arrays::core::routing::in_flight::Epoch;
use crate::ids::{ChunkId, Rank};
use crate::wire::WireError;

/// A chunk between two ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChunkTransfer {
    pub(crate) chunk: ChunkId,
    pub(crate) body: ChunkBody,
    /// Messages that the chunk had not handled when it left.
    pub(crate) messages: Vec<Delivery>,
    /// Acks that its old rank deferred and its new rank sends from now on: receivers and bytes.
    pub(crate) deferred_acks: Vec<(Rank, u64)>,
    /// The chunk's `state_bytes`.
    pub(crate) bytes: u64,
    /// Bytes of the encoded chunk, with the bulk data of its messages, if the chunk has left its process.
    #[serde(skip)]
    pub(crate) encoded_bytes: Option<u64>,
    /// None for a chunk that was just inserted.
    pub(crate) transit: Option<Transit>,
    /// The epoch of the routes under which the chunk was inserted.
    pub(crate) epoch: Epoch,
    /// Present for a chunk that was inserted without a parent.
    pub(crate) origin: Option<Origin>,
    /// The first broadcast that an inserted chunk has not received, if the chunk had to wait for its index.
    pub(crate) next_broadcast: Option<u64>,
}

/// The origin of a chunk that was inserted without a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The rank of the handler that inserted the chunk.
    pub(crate) rank: Rank,
    /// True if rank 0 has admitted the chunk to the counts of its array.
    pub(crate) admitted: bool,
}

impl ChunkTransfer {
    pub(crate) fn inserted(chunk: ChunkId, slot: Box<dyn ErasedSlot>) -> ChunkTransfer {
        ChunkTransfer { body: ChunkBody::Live(slot), ..ChunkTransfer::without_body(chunk) }
    }

    /// A chunk without its state. Between processes the state follows the packet.
    pub(crate) fn without_body(chunk: ChunkId) -> ChunkTransfer {
        ChunkTransfer {
            chunk,
            body: ChunkBody::Follows,
            messages: Vec::new(),
            deferred_acks: Vec::new(),
            bytes: 0,
            encoded_bytes: None,
            transit: None,
            epoch: Epoch::default(),
            origin: None,
            next_broadcast: None,
        }
    }

    /// Bytes of the messages that the chunk brings.
    pub(crate) fn queued_bytes(&self) -> u64 {
        let deferred = if let ChunkBody::Live(slot) = &self.body { slot.deferred_bytes() } else { 0 };
        deferred + self.messages.iter().map(|delivery| delivery.bytes).sum::<u64>()
    }
}

/// Data that the old rank of a migrating chunk sends along to the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transit {
    /// The first broadcast of its array that the chunk has not received.
    pub(crate) next_broadcast: u64,
    /// True if flow control of the old rank blocked the chunk when it left.
    pub(crate) blocked: bool,
    /// True if the chunk has come to a sync, and resumes.
    pub(crate) resumes: bool,
}

impl Transit {
    /// The transit of a chunk that has received all broadcasts of its array before this one.
    pub(crate) const fn after(next_broadcast: u64) -> Transit {
        Transit { next_broadcast, blocked: false, resumes: false }
    }
}

/// The state of a chunk between two ranks.
#[derive(Serialize, Deserialize)]
pub(crate) enum ChunkBody {
    /// Between processes: the state follows the packet, see [`codec`](crate::arrays::core::codec).
    Follows,
    /// The chunk was removed: only its index moves, with its pending messages.
    Removed,
    /// Between processes, in a packet of several chunks, and in a checkpoint.
    Encoded(#[serde(with = "crate::wire::bulk")] Vec<u8>),
    /// Within a process. The last variant, because serde numbers the variants it reads without the skipped ones.
    #[serde(skip)]
    Live(Box<dyn ErasedSlot>),
}

impl ChunkBody {
    pub(crate) fn encode_in_place(&mut self) -> Result<(), WireError> {
        if let ChunkBody::Live(slot) = self {
            let mut bytes = Vec::new();
            slot.encode_into(&mut bytes)?;
            *self = ChunkBody::Encoded(bytes);
        }
        Ok(())
    }
}

impl std::fmt::Debug for ChunkBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ChunkBody::Live(_) => "Live",
            ChunkBody::Follows => "Follows",
            ChunkBody::Removed => "Removed",
            ChunkBody::Encoded(_) => "Encoded",
        })
    }
}
