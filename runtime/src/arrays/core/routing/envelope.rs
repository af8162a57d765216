//! The contents of a mailbox: a delivery, and the payload inside it.
//!
//! A payload is a typed value until it leaves the process; small values (up to four words) lie inline, so a message
//! between neighbours allocates nothing. Only [`Slot::deliver`](crate::arrays::api::slot::Slot) and the wire ever look inside.

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

/// A typed message behind the erasure boundary: a [`WideOption`] of it, so that it can be taken out where it lies.
pub(crate) type Value = SmallBox<dyn Any + Send, [usize; 5]>;

/// The place of a message, which is there until it is taken. An `Option` whose tag is a word of its own: the message is copied
/// whole, and not in parts, for which a processor would have to wait where it reads in one go what was just written.
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
    /// A message, encoded; in one place, because a broadcast goes to many ranks.
    Encoded(#[serde(with = "crate::wire::bulk")] Arc<[u8]>),
    /// The result of a reduction; `Chunk::reduced` makes it a message. With the number of the reduction where it is told to
    /// all of its array: who joined later had no part in it, and is not told.
    Reduced { tag: u32, values: Arc<Values>, number: Option<u64> },
    /// The chunk's first delivery.
    Start,
    /// The first delivery after a sync.
    Resume,
    /// The chunk goes on with messages that it kept.
    Deferred,
    /// A chunk that the receiver is to insert into its array, encoded.
    EncodedInsertion {
        key: u64,
        #[serde(with = "crate::wire::bulk")]
        chunk: Arc<[u8]>,
    },
    /// A message of the array's type; never serialised in this form, see [`Packet::encode_in_place`](crate::arrays::core::packet::Packet::encode_in_place).
    /// Last, because serde numbers the variants it reads without the skipped ones.
    #[serde(skip)]
    Value(Value),
    /// A chunk that the receiver is to insert: an `Option` of the array's type; never serialised in this form either.
    #[serde(skip)]
    Insertion { key: u64, chunk: Box<dyn Any + Send> },
    /// A message, encoded, for several chunks of this rank, which it does not leave in this form.
    #[serde(skip)]
    Shared(Arc<Shared>),
}

/// An encoded message that lies in the memory of a rank once, and waits there until the last of its receivers has it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bytes: Arc<[u8]>,
    _held: QueuedBytesGuard,
}

impl Payload {
    /// Writes this over what may be forgotten, as the payload on a blank node may.
    #[inline(always)]
    pub(crate) fn overwrite(&mut self, payload: Payload) {
        #[expect(clippy::mem_forget, reason = "dropping nothing is a twentieth of a message")]
        std::mem::forget(std::mem::replace(self, payload));
    }

    /// Those of what is encoded, but for a shared message: they are held for all who share it.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Payload::Encoded(bytes) | Payload::EncodedInsertion { chunk: bytes, .. } => bytes.len() as u64,
            _ => 0,
        }
    }

    /// Tells whether it is no message, but a chunk that the receiver is to insert.
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
    /// Those that it takes up while it waits, about; none for what the runtime says. Where an encoded message is shared those of
    /// its node alone.
    pub(crate) bytes: u64,
    pub(crate) payload: Payload,
}

/// The bytes of a delivery besides those of its message.
pub(crate) const NODE_BYTES: u64 = size_of::<MessageNode>() as u64;

impl Delivery {
    /// Something that the runtime says.
    pub(crate) fn by_runtime(payload: Payload) -> Delivery {
        Delivery { from: Sender::RUNTIME, bytes: 0, payload }
    }

    /// The same for several chunks of this rank, each of which is to get it [again](crate::arrays::core::collectives::broadcast::duplicate): its node
    /// counts with each, and an encoded message once with all of them, as `hold` is told.
    pub(crate) fn shared(mut self, hold: impl FnOnce(u64) -> QueuedBytesGuard) -> Delivery {
        if let Payload::Encoded(bytes) = self.payload {
            self.payload = Payload::Shared(Arc::new(Shared { _held: hold(bytes.len() as u64), bytes }));
        }
        self
    }

    /// The same for one chunk: an encoded message counts with that.
    pub(crate) fn unshared(mut self) -> Delivery {
        self.bytes += self.payload.bytes();
        self
    }

    /// The same of what may be shared, for a chunk that leaves this rank.
    pub(crate) fn for_other_rank(mut self) -> Delivery {
        if let Payload::Shared(shared) = &self.payload {
            self.payload = Payload::Encoded(shared.bytes.clone());
            return self.unshared();
        }
        self
    }

    /// Takes it from where it lies; there it is now of no use.
    pub(crate) fn take(&mut self) -> Delivery {
        std::mem::replace(self, Delivery::by_runtime(Payload::Resume))
    }
}

/// A delivery on its way to another rank.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) to: ChunkId,
    pub(crate) delivery: Delivery,
    /// The routes under which it was sent.
    pub(crate) epoch: Epoch,
}

impl Envelope {
    /// Encodes a typed message, so that the envelope can be serialised.
    pub(crate) fn encode_in_place(&mut self, arrays: &[Arc<dyn ErasedArray>]) -> Result<(), WireError> {
        self.delivery.encode_in_place(&*arrays[self.to.array.index()])
    }
}

impl Delivery {
    /// The same of a message to a chunk of `array`.
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
