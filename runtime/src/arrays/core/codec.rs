//! The packets of arrays as bytes, and back.
//!
//! Forms are told apart by their first byte. A message between chunks is encoded in one go and decoded to a typed value
//! in one go: it is what comes most often. A chunk is written after the packet that carries it. Everything else is a
//! [`Packet`] as serde writes it. Long runs of numbers travel beside the bytes (see [`bulk`](crate::wire::bulk)).
//!
//! User code runs here (`Serialize` and `Deserialize` of messages and chunks), so no lock may be held.

use std::collections::VecDeque;
use std::sync::Arc;

use super::crossings::Epoch;
use super::envelope::{Delivery, Envelope, LETTER_BYTES, Payload};
use super::erased::ErasedArray;
use super::packet::{Cargo, Packet};
use crate::error::Error;
use crate::ids::{ArrayId, ChunkId, Rank, Sender};
use crate::wire::bulk::{Attachment, Block, gather, scatter};
use crate::wire::codec::Codec;
use crate::wire::{self, WireError};

const PACKET: u8 = 0;
const MESSAGE: u8 = 1;
const FAR_MESSAGE: u8 = 2;
const CHUNK: u8 = 3;

/// Encodes and decodes the packets of one rank.
#[derive(Clone)]
pub(crate) struct ArrayCodec {
    rank: Rank,
    arrays: Arc<[Arc<dyn ErasedArray>]>,
}

impl Codec for ArrayCodec {
    type Packet = Packet;

    #[inline]
    fn encode(&self, mut packet: Packet, bytes: &mut Vec<u8>) -> Result<Vec<Attachment>, Error> {
        if let Packet::Message(envelope) = &packet
            && envelope.delivery.payload.is_value()
        {
            let (encoded, attachments) = gather(|| self.encode_message(envelope, bytes));
            return match encoded {
                Ok(()) => Ok(attachments),
                Err(why) => Err(self.error(Subject::Message(envelope.to), &why)),
            };
        }
        let encoded = match &packet {
            Packet::Arrive(_) => self.encode_chunk(&mut packet, bytes),
            _ => self.encode_packet(&mut packet, bytes),
        };
        encoded.map_err(|why| self.error(Subject::of(&packet), &why))
    }

    /// A chunk on its way to another rank: see [`balance`](super::balance) for why that may take its time.
    #[inline]
    fn is_freight(packet: &Packet) -> bool {
        matches!(packet, Packet::Arrive(traveller) if traveller.journey.is_some())
    }

    #[inline]
    fn decode(&self, bytes: &[u8], blocks: VecDeque<Block>) -> Result<Packet, Error> {
        let Some((address, message)) = Address::take(bytes) else { return self.decode_other(bytes, blocks) };
        let Address { to, from, epoch } = address;
        let beside: usize = blocks.iter().map(Block::bytes).sum();
        match scatter(blocks, || self.array(to)?.decode_message(message)) {
            Ok(payload) => {
                let bytes = LETTER_BYTES + (message.len() + beside) as u64;
                let delivery = Delivery { from, bytes, payload };
                Ok(Packet::Message(Envelope { to, delivery, epoch }))
            }
            Err(why) => Err(self.error(Subject::Message(to), &why)),
        }
    }
}

impl ArrayCodec {
    pub(crate) fn new(rank: Rank, arrays: Arc<[Arc<dyn ErasedArray>]>) -> ArrayCodec {
        ArrayCodec { rank, arrays }
    }

    #[inline(never)]
    fn encode_packet(&self, packet: &mut Packet, bytes: &mut Vec<u8>) -> Result<Vec<Attachment>, WireError> {
        packet.seal(&self.arrays)?;
        bytes.push(PACKET);
        let (encoded, attachments) = gather(|| wire::encode_into(packet, bytes));
        encoded.map(|()| attachments)
    }

    #[inline]
    fn encode_message(&self, envelope: &Envelope, bytes: &mut Vec<u8>) -> Result<(), WireError> {
        let Envelope { to, delivery, epoch } = envelope;
        Address { to: *to, from: delivery.from, epoch: *epoch }.append(bytes);
        self.array(*to)?.encode_into(&delivery.payload, bytes)
    }

    fn encode_chunk(&self, packet: &mut Packet, bytes: &mut Vec<u8>) -> Result<Vec<Attachment>, WireError> {
        packet.seal(&self.arrays)?;
        let slot = match &mut *packet {
            Packet::Arrive(traveller) => match std::mem::replace(&mut traveller.cargo, Cargo::Follows) {
                Cargo::Live(slot) => slot,
                Cargo::Follows => return Err(WireError::new("the chunk is gone")),
            },
            other => unreachable!("{other:?} carries no chunk"),
        };
        bytes.push(CHUNK);
        let (encoded, attachments) = gather(|| {
            wire::encode_into(packet, bytes)?;
            slot.encode_into(bytes)
        });
        encoded.map(|()| attachments)
    }

    #[inline(never)]
    fn decode_other(&self, bytes: &[u8], blocks: VecDeque<Block>) -> Result<Packet, Error> {
        let mut subject = Subject::Unknown;
        scatter(blocks, || self.decode_packet(bytes, &mut subject)).map_err(|why| self.error(subject, &why))
    }

    fn decode_packet(&self, bytes: &[u8], subject: &mut Subject) -> Result<Packet, WireError> {
        let (&form, mut rest) = bytes.split_first().ok_or_else(|| WireError::new("it is empty"))?;
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

    #[inline]
    fn array(&self, chunk: ChunkId) -> Result<&dyn ErasedArray, WireError> {
        let array = self.arrays.get(chunk.array.index());
        array.map(|array| &**array).ok_or_else(no_such_array)
    }

    #[cold]
    fn error(&self, subject: Subject, why: &WireError) -> Error {
        let name = |chunk: ChunkId| match self.array(chunk) {
            Ok(array) => array.describe(chunk),
            Err(_) => format!("{chunk:?}"),
        };
        let what = match subject {
            Subject::Message(to) => format!("a message to {}", name(to)),
            Subject::Chunk(chunk) => name(chunk),
            Subject::Other(what) => format!("a packet `{what}`"),
            Subject::Unknown => "a packet".into(),
        };
        Error::Wire { rank: self.rank, what, why: why.to_string() }
    }
}

#[cold]
fn no_such_array() -> WireError {
    WireError::new("there is no such array here")
}

/// The receiver and the sender of a message. It stands before every message, so it is short: a form of fixed places for
/// small arrays and keys, which nearly all are, and one for all.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Address {
    to: ChunkId,
    from: Sender,
    epoch: Epoch,
}

/// The place of the epoch's bit in the form.
const EPOCH_SHIFT: u8 = 7;

/// Form, two arrays, two keys, a number.
const SHORT_BYTES: usize = 3 + 3 * 4;
const LONG_BYTES: usize = 1 + 3 * 4 + 2 * 8;

impl Address {
    #[inline]
    fn append(self, bytes: &mut Vec<u8>) {
        let Address { to, from, epoch } = self;
        let epoch = epoch.bit() << EPOCH_SHIFT;
        if (to.array.0 | from.array.0) < 1 << 8 && (to.key | from.key) < 1 << 32 {
            let mut short = [0; SHORT_BYTES];
            short[..3].copy_from_slice(&[MESSAGE | epoch, to.array.0 as u8, from.array.0 as u8]);
            short[3..7].copy_from_slice(&(to.key as u32).to_le_bytes());
            short[7..11].copy_from_slice(&(from.key as u32).to_le_bytes());
            short[11..].copy_from_slice(&from.number.to_le_bytes());
            bytes.extend_from_slice(&short);
        } else {
            bytes.push(FAR_MESSAGE | epoch);
            bytes.extend_from_slice(&to.array.0.to_le_bytes());
            bytes.extend_from_slice(&from.array.0.to_le_bytes());
            bytes.extend_from_slice(&from.number.to_le_bytes());
            bytes.extend_from_slice(&to.key.to_le_bytes());
            bytes.extend_from_slice(&from.key.to_le_bytes());
        }
    }

    /// The address of a message, and the message; none if this is something else.
    #[inline]
    fn take(bytes: &[u8]) -> Option<(Address, &[u8])> {
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let eight = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let &form = bytes.first()?;
        let address = |to: (u32, u64), from: (u32, u64), number| Address {
            to: ChunkId { array: ArrayId(to.0), key: to.1 },
            from: Sender { array: ArrayId(from.0), key: from.1, number },
            epoch: Epoch::of_bit(form >> EPOCH_SHIFT),
        };
        match form & !(1 << EPOCH_SHIFT) {
            MESSAGE if bytes.len() >= SHORT_BYTES => {
                let (to, from) = ((bytes[1].into(), four(3).into()), (bytes[2].into(), four(7).into()));
                Some((address(to, from, four(11)), &bytes[SHORT_BYTES..]))
            }
            FAR_MESSAGE if bytes.len() >= LONG_BYTES => {
                let (to, from) = ((four(1), eight(13)), (four(5), eight(21)));
                Some((address(to, from, four(9)), &bytes[LONG_BYTES..]))
            }
            _ => None,
        }
    }
}

/// The subject of an error: the thing that is being encoded or decoded.
#[derive(Clone, Copy)]
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
            Packet::AtQuiescence(envelope) => Subject::Message(envelope.to),
            Packet::Arrive(traveller) => Subject::Chunk(traveller.chunk),
            other => Subject::Other(serde_variant::to_variant_name(other).unwrap_or("packet")),
        }
    }
}

impl Payload {
    #[inline]
    fn is_value(&self) -> bool {
        matches!(self, Payload::Value(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_address_comes_out_as_it_went_in(
            arrays: [u32; 2],
            keys: [u64; 2],
            number: u32,
            epoch: bool,
            short: bool,
            message: Vec<u8>,
        ) {
            let [to, from] = [0, 1].map(|end| if short {
                ChunkId { array: ArrayId(arrays[end] % 256), key: keys[end] % (1 << 32) }
            } else {
                ChunkId { array: ArrayId(arrays[end]), key: keys[end] }
            });
            let (from, mut bytes) = (Sender::new(from, number), Vec::new());
            let epoch = Epoch::of_bit(epoch.into());
            Address { to, from, epoch }.append(&mut bytes);
            prop_assert!(!short || bytes.len() == SHORT_BYTES);
            bytes.extend_from_slice(&message);
            prop_assert_eq!(Address::take(&bytes), Some((Address { to, from, epoch }, &message[..])));
        }
    }

    #[test]
    fn what_is_no_packet_is_an_error_and_no_panic() {
        let codec = ArrayCodec::new(Rank(0), [].into());
        let mut address = Vec::new();
        let chunk = ChunkId { array: ArrayId(9), key: 9 };
        Address { to: chunk, from: Sender::new(chunk, 7), epoch: Epoch::default() }.append(&mut address);
        for bytes in [&[][..], &[MESSAGE], &[FAR_MESSAGE, 0], &[CHUNK], &[9, 9, 9], &[PACKET, 250], &address]
        {
            let error = codec.decode(bytes, VecDeque::new()).expect_err("it is no packet");
            assert!(matches!(error, Error::Wire { rank: Rank(0), .. }), "{bytes:?}: {error}");
        }
    }
}
