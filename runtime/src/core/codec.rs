//! A packet as bytes, and back: what leaves a process.
//!
//! Three forms, told apart by their first byte. A message between chunks is encoded in one go and decoded to a typed value
//! in one go: it is what comes most often. A chunk is written after the packet that carries it. Everything else is a
//! [`Packet`] as serde writes it. Long runs of numbers travel beside the bytes (see [`bulk`](super::bulk)).
//!
//! User code runs here (`Serialize` and `Deserialize` of messages and chunks), so no lock may be held; what it panics with
//! becomes an [`Error::Wire`] that names the chunk.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::bulk::{Attachment, Block, gather, scatter};
use super::envelope::{Delivery, Envelope, Payload};
use super::erased::ErasedArray;
use super::packet::{Cargo, Packet};
use super::wire::{self, WireError};
use crate::error::Error;
use crate::ids::{ChunkId, Rank};

const PACKET: u8 = 0;
const MESSAGE: u8 = 1;
const CHUNK: u8 = 2;

/// Encodes and decodes the packets of one rank.
#[derive(Clone)]
pub(crate) struct Codec {
    rank: Rank,
    arrays: Arc<[Arc<dyn ErasedArray>]>,
}

impl Codec {
    pub(crate) fn new(rank: Rank, arrays: Arc<[Arc<dyn ErasedArray>]>) -> Codec {
        Codec { rank, arrays }
    }

    /// Appends the packet to `bytes`; what travels beside them comes back. Of a packet that fails, nothing stands there.
    pub(crate) fn encode(&self, packet: Packet, bytes: &mut Vec<u8>) -> Result<Vec<Attachment>, Error> {
        let start = bytes.len();
        let subject = Subject::of(&packet);
        let encoded = caught(|| {
            let (encoded, attachments) = match packet {
                Packet::Message(Envelope { to, delivery }) if delivery.payload.is_value() => {
                    gather(|| self.encode_message(to, &delivery, bytes))
                }
                Packet::Arrive(_) => return self.encode_chunk(packet, bytes),
                mut other => {
                    other.seal(&self.arrays)?;
                    bytes.push(PACKET);
                    gather(|| wire::encode_into(&other, bytes))
                }
            };
            encoded.map(|()| attachments)
        });
        encoded.map_err(|why| {
            bytes.truncate(start);
            self.error(subject, &why)
        })
    }

    #[inline]
    fn encode_message(&self, to: ChunkId, delivery: &Delivery, bytes: &mut Vec<u8>) -> Result<(), WireError> {
        bytes.push(MESSAGE);
        wire::encode_into(&(to, delivery.from), bytes)?;
        self.array(to)?.encode_into(&delivery.payload, bytes)
    }

    fn encode_chunk(&self, mut packet: Packet, bytes: &mut Vec<u8>) -> Result<Vec<Attachment>, WireError> {
        packet.seal(&self.arrays)?;
        let slot = match &mut packet {
            Packet::Arrive(traveller) => match std::mem::replace(&mut traveller.cargo, Cargo::Follows) {
                Cargo::Live(slot) => slot,
                Cargo::Follows => return Err(WireError::new("the chunk is gone")),
            },
            other => unreachable!("{other:?} carries no chunk"),
        };
        bytes.push(CHUNK);
        let (encoded, attachments) = gather(|| {
            wire::encode_into(&packet, bytes)?;
            slot.encode_into(bytes)
        });
        encoded.map(|()| attachments)
    }

    /// Decodes a packet. `blocks` came beside it, in order.
    pub(crate) fn decode(&self, bytes: &[u8], blocks: VecDeque<Block>) -> Result<Packet, Error> {
        let mut subject = Subject::Unknown;
        caught(|| scatter(blocks, || self.decode_form(bytes, &mut subject)))
            .map_err(|why| self.error(subject, &why))
    }

    #[inline]
    fn decode_form(&self, bytes: &[u8], subject: &mut Subject) -> Result<Packet, WireError> {
        let (&form, mut rest) = bytes.split_first().ok_or_else(|| WireError::new("it is empty"))?;
        if form == MESSAGE {
            let (to, from): (ChunkId, ChunkId) = wire::decode_first(&mut rest)?;
            *subject = Subject::Message(to);
            let payload = self.array(to)?.decode_message(rest)?;
            return Ok(Packet::Message(Envelope { to, delivery: Delivery { from, payload } }));
        }
        let mut packet = wire::decode_first(&mut rest)?;
        *subject = Subject::of(&packet);
        match &mut packet {
            Packet::Arrive(traveller) if form == CHUNK => {
                let ChunkId { key, .. } = traveller.chunk;
                traveller.cargo = Cargo::Live(self.array(traveller.chunk)?.decode_slot(key, rest)?);
            }
            _ if form != PACKET || !rest.is_empty() => return Err(WireError::new("it has no known form")),
            _ => {}
        }
        Ok(packet)
    }

    fn array(&self, chunk: ChunkId) -> Result<&dyn ErasedArray, WireError> {
        let array = self.arrays.get(chunk.array as usize);
        array.map(|array| &**array).ok_or_else(|| WireError::new("there is no such array here"))
    }

    fn error(&self, subject: Subject, why: &WireError) -> Error {
        let name = |chunk: ChunkId| match self.array(chunk) {
            Ok(array) => format!("{}[{}]", array.name(), array.index_text(chunk.key)),
            Err(_) => format!("{chunk:?}"),
        };
        let what = match subject {
            Subject::Message(to) => format!("a message to {}", name(to)),
            Subject::Chunk(chunk) => name(chunk),
            Subject::Other(what) => format!("a packet `{what}`"),
            Subject::Unknown => "a packet".into(),
        };
        Error::Wire { rank: self.rank.0, what, why: why.to_string() }
    }
}

/// What is being encoded or decoded, for the error that names it.
enum Subject {
    Message(ChunkId),
    Chunk(ChunkId),
    Other(&'static str),
    Unknown,
}

impl Subject {
    #[inline]
    fn of(packet: &Packet) -> Subject {
        match packet {
            Packet::Message(envelope) => Subject::Message(envelope.to),
            Packet::Arrive(traveller) => Subject::Chunk(traveller.chunk),
            other => Subject::Other(serde_variant::to_variant_name(other).unwrap_or("packet")),
        }
    }
}

/// A panic of user code as an error.
#[inline]
fn caught<R>(act: impl FnOnce() -> Result<R, WireError>) -> Result<R, WireError> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(WireError::new(format!("it panicked: {}", text.unwrap_or_default())))
    })
}

impl Payload {
    #[inline]
    fn is_value(&self) -> bool {
        matches!(self, Payload::Value(_))
    }
}
