//! Defines the entries of a mailbox: [`Delivery`], and the [`Payload`] inside it.
//!
//! A payload is a typed value until it leaves the process. A value of up to four words is stored inline, so a message
//! between neighbours allocates nothing. Only [`Slot`](crate::arrays::api::slot::Slot) and the codec read a payload.

use std::any::Any;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallbox::SmallBox;

use super::in_flight::Epoch;
use super::message_list::MessageNode;
use crate::arrays::core::collectives::reduction::Values;
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::ids::{ChunkId, Sender};
use crate::trace::queued_bytes::QueuedBytesGuard;
use crate::wire::WireError;

/// A typed message behind the erasure boundary: a [`WideOption`] of it, so that the message can be taken out in place.
pub(crate) type Value = SmallBox<dyn Any + Send, [usize; 5]>;

/// A message until it is taken: an `Option` with a tag of one word, so that copies are in whole words. After a copy in
/// parts, a load that spans several recent stores stalls until they retire (a store-forwarding failure).
#[repr(u64)]
pub(crate) enum WideOption<M> {
    Filled(M),
    Empty,
}

impl<M> WideOption<M> {
    #[inline]
    pub(crate) fn get(&self) -> Option<&M> {
        match self {
            WideOption::Filled(message) => Some(message),
            WideOption::Empty => None,
        }
    }

    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<M> {
        match std::mem::replace(self, WideOption::Empty) {
            WideOption::Filled(message) => Some(message),
            WideOption::Empty => None,
        }
    }
}

/// The payload of a delivery.
#[derive(Serialize, Deserialize)]
pub(crate) enum Payload {
    /// An encoded message. It is shared, because a broadcast goes to many ranks.
    Encoded(#[serde(with = "crate::wire::bulk")] Arc<[u8]>),
    /// The result of a reduction; `Chunk::reduced` makes it a message. `number` is the reduction's number if the result
    /// goes to all chunks of its array: a chunk that joined after that reduction does not get the result.
    Reduced { tag: u32, values: Arc<Values>, number: Option<u64> },
    /// The chunk's first delivery.
    Start,
    /// The first delivery after a sync.
    Resume,
    /// The chunk continues with its deferred messages.
    Deferred,
    /// A chunk that the receiver is to insert into its array, encoded.
    EncodedInsertion {
        key: u64,
        #[serde(with = "crate::wire::bulk")]
        chunk: Arc<[u8]>,
    },
    /// A message of the array's type; never serialised in this form, see
    /// [`Packet::encode_in_place`](crate::arrays::core::packet::Packet::encode_in_place). The skipped variants are last,
    /// because serde numbers the variants that it reads without them.
    #[serde(skip)]
    Value(Value),
    /// A chunk that the receiver is to insert: an `Option` of the array's type; never serialised in this form either.
    #[serde(skip)]
    Insertion { key: u64, chunk: Box<dyn Any + Send> },
    /// An encoded message for several chunks of this rank; it never leaves the rank in this form.
    #[serde(skip)]
    Shared(Arc<Shared>),
}

/// An encoded message that a rank stores once for several receivers, until the last of them has taken it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bytes: Arc<[u8]>,
    _held: QueuedBytesGuard,
}

impl Payload {
    /// Overwrites a payload that need not be dropped, such as the payload of a free node.
    #[inline(always)]
    pub(crate) fn overwrite(&mut self, payload: Payload) {
        #[expect(clippy::mem_forget, reason = "dropping nothing is a twentieth of a message")]
        std::mem::forget(std::mem::replace(self, payload));
    }

    /// Number of encoded bytes. 0 for a shared message: its bytes are counted once for all its receivers.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Payload::Encoded(bytes) | Payload::EncodedInsertion { chunk: bytes, .. } => bytes.len() as u64,
            _ => 0,
        }
    }

    /// True if the payload is a chunk that the receiver is to insert, and not a message.
    pub(crate) fn is_insertion(&self) -> bool {
        matches!(self, Payload::Insertion { .. } | Payload::EncodedInsertion { .. })
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Payload::Value(_) => "Value",
            Payload::Encoded(_) => "Encoded",
            Payload::Shared(_) => "Shared",
            Payload::Reduced { .. } => "Reduced",
            Payload::Start => "Start",
            Payload::Resume => "Resume",
            Payload::Deferred => "Deferred",
            Payload::Insertion { .. } => "Insertion",
            Payload::EncodedInsertion { .. } => "EncodedInsertion",
        })
    }
}

/// One entry of a mailbox.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) from: Sender,
    /// Approximate bytes of the waiting delivery: 0 for one of the runtime, only the node for a shared message.
    pub(crate) bytes: u64,
    pub(crate) payload: Payload,
}

/// Bytes of a delivery without its message.
pub(crate) const NODE_BYTES: u64 = size_of::<MessageNode>() as u64;

impl Delivery {
    /// A delivery that is sent by the runtime, not by a chunk.
    pub(crate) fn by_runtime(payload: Payload) -> Delivery {
        Delivery { from: Sender::RUNTIME, bytes: 0, payload }
    }

    /// The same delivery for several chunks of this rank, which each get a
    /// [duplicate](crate::arrays::core::collectives::broadcast::duplicate). Each chunk counts a node. `hold` counts the
    /// bytes of an encoded message once for all chunks.
    pub(crate) fn shared(mut self, hold: impl FnOnce(u64) -> QueuedBytesGuard) -> Delivery {
        if let Payload::Encoded(bytes) = self.payload {
            self.payload = Payload::Shared(Arc::new(Shared { _held: hold(bytes.len() as u64), bytes }));
        }
        self
    }

    /// The same delivery for one chunk, which also counts the bytes of an encoded message.
    pub(crate) fn unshared(mut self) -> Delivery {
        self.bytes += self.payload.bytes();
        self
    }

    /// The same delivery for a chunk that leaves this rank. It no longer shares its message.
    pub(crate) fn for_other_rank(mut self) -> Delivery {
        if let Payload::Shared(shared) = &self.payload {
            self.payload = Payload::Encoded(shared.bytes.clone());
            return self.unshared();
        }
        self
    }

    /// Takes the delivery and leaves a placeholder.
    pub(crate) fn take(&mut self) -> Delivery {
        std::mem::replace(self, Delivery::by_runtime(Payload::Resume))
    }
}

/// A delivery in flight to another rank.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) to: ChunkId,
    pub(crate) delivery: Delivery,
    /// The epoch of the routes under which the message was sent.
    pub(crate) epoch: Epoch,
}

impl Envelope {
    /// Encodes a typed message, so that the envelope can be serialised.
    pub(crate) fn encode_in_place(&mut self, arrays: &[Arc<dyn ErasedArray>]) -> Result<(), WireError> {
        self.delivery.encode_in_place(&*arrays[self.to.array.index()])
    }
}

impl Delivery {
    /// Encodes a typed message to a chunk of `array`, so that the delivery can be serialised.
    pub(crate) fn encode_in_place(&mut self, array: &dyn ErasedArray) -> Result<(), WireError> {
        let encoded = || {
            let mut bytes = Vec::new();
            array.encode_into(&self.payload, &mut bytes)?;
            Ok(bytes.into())
        };
        self.payload = match self.payload {
            Payload::Value(_) => Payload::Encoded(encoded()?),
            Payload::Insertion { key, .. } => Payload::EncodedInsertion { key, chunk: encoded()? },
            _ => return Ok(()),
        };
        Ok(())
    }
}
