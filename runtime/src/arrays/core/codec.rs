//! The codec of arrays: encodes packets to bytes, and decodes them. User code runs here (`Serialize` and `Deserialize`
//! of messages and chunks), so no lock may be held.
//!
//! | form, by its first byte | content |
//! |---|---|
//! | [`MESSAGE`], [`LONG_MESSAGE`] | a message between chunks: a [`MessageHeader`] and the encoded value |
//! | [`CHUNK`] | a [`Packet`] as serde writes it, followed by the chunk that it carries |
//! | [`PACKET`] | any other [`Packet`], as serde writes it |
//!
//! Messages are the most frequent packets, and expensive to copy. So a message is encoded directly from its node, and
//! decoded directly into a typed value on a node. Long runs of numbers travel beside the bytes (see
//! [`bulk`](crate::wire::bulk)).

use std::collections::VecDeque;
use std::sync::Arc;

use super::lifecycle::LifecyclePacket;
use super::lifecycle::erased::ErasedArray;
use super::lifecycle::seeds::UnstartedChunk;
use super::lifecycle::transfer::ChunkBody;
use super::packet::Packet;
use super::routing::envelope::{Delivery, Envelope, NODE_BYTES, Payload};
use super::routing::in_flight::Epoch;
use super::routing::message_list::{FreeList, MessageNode};
use super::termination::TerminationPacket;
use crate::error::Error;
use crate::ids::{ArrayId, ChunkId, Rank, Sender};
use crate::wire::bulk::{Attachment, Block, Gathering, gather, scatter};
use crate::wire::codec::{Codec, Encoded};
use crate::wire::{self, WireError};

const PACKET: u8 = 0;
const MESSAGE: u8 = 1;
const LONG_MESSAGE: u8 = 2;
const CHUNK: u8 = 3;

/// A received message, and the epoch of the routes under which it was sent.
pub(crate) type ReceivedMessage = (Box<MessageNode>, Epoch);

/// Encodes and decodes the packets of one rank.
#[derive(Clone)]
pub(crate) struct ArrayCodec {
    rank: Rank,
    arrays: Arc<[Arc<dyn ErasedArray>]>,
}

impl Codec for ArrayCodec {
    type Packet = Packet;

    #[inline]
    fn encode(&self, packet: &mut Packet, bytes: &mut Vec<u8>) -> Encoded {
        if let Packet::Message(Envelope { to, delivery, epoch }) = packet
            && delivery.payload.is_value()
        {
            return self.encode_message(*to, delivery, *epoch, bytes);
        }
        let encoded = match packet {
            Packet::Lifecycle(LifecyclePacket::TransferChunk(transfer))
                if !matches!(transfer.body, ChunkBody::Removed) =>
            {
                self.encode_chunk(packet, bytes)
            }
            _ => self.encode_packet(packet, bytes),
        };
        encoded.map_err(|why| self.error(Subject::of(packet), &why))
    }

    /// A migrating chunk is freight: other packets may overtake it, see [`migration`](super::sync::migration).
    #[inline]
    fn is_freight(packet: &Packet) -> bool {
        matches!(packet, Packet::Lifecycle(LifecyclePacket::TransferChunk(transfer)) if transfer.transit.is_some())
    }

    fn decode(&self, bytes: &[u8], blocks: VecDeque<Block>) -> Result<Packet, Error> {
        let Some((address, message)) = MessageHeader::take(bytes) else {
            return self.decode_other(bytes, blocks);
        };
        let MessageHeader { to, from, epoch } = address;
        let beside: usize = blocks.iter().map(Block::bytes).sum();
        let bytes = NODE_BYTES + (message.len() + beside) as u64;
        let mut delivery = Delivery { from, bytes, payload: Payload::Resume };
        self.decode_message(to, message, blocks, &mut delivery.payload).map_err(|why| *why)?;
        Ok(Packet::Message(Envelope { to, delivery, epoch }))
    }
}

impl ArrayCodec {
    pub(crate) fn new(rank: Rank, arrays: Arc<[Arc<dyn ErasedArray>]>) -> ArrayCodec {
        ArrayCodec { rank, arrays }
    }

    /// Appends a message between chunks, encoded directly from its typed value.
    #[inline(always)]
    pub(crate) fn encode_message(
        &self,
        to: ChunkId,
        delivery: &Delivery,
        epoch: Epoch,
        bytes: &mut Vec<u8>,
    ) -> Encoded {
        MessageHeader { to, from: delivery.from, epoch }.append(bytes);
        let gathering = Gathering::begin();
        let encoded = self.array(to).and_then(|array| array.encode_into(&delivery.payload, bytes));
        let beside = gathering.end();
        match encoded {
            Ok(()) => Ok(beside),
            Err(why) => Err(self.error(Subject::Message(to), &why)),
        }
    }

    /// Decodes a message between chunks onto a node. None if the bytes are another form.
    #[inline(always)]
    pub(crate) fn decode_onto(
        &self,
        bytes: &[u8],
        free_list: &mut FreeList,
    ) -> Option<Result<ReceivedMessage, Box<Error>>> {
        let (MessageHeader { to, from, epoch }, message) = MessageHeader::take(bytes)?;
        let mut node = free_list.prepare(to, from, NODE_BYTES + message.len() as u64);
        match self.decode_message(to, message, VecDeque::new(), &mut node.message.payload) {
            Ok(()) => Some(Ok((node, epoch))),
            Err(why) => Some(Err(why)),
        }
    }

    /// Decodes a message over a payload that need not be dropped. `blocks` is the data that came beside the bytes.
    #[inline(always)]
    fn decode_message(
        &self,
        to: ChunkId,
        message: &[u8],
        blocks: VecDeque<Block>,
        over: &mut Payload,
    ) -> Result<(), Box<Error>> {
        let decoded = scatter(blocks, || self.array(to)?.decode_message(message, over));
        decoded.map_err(|why| Box::new(self.error(Subject::Message(to), &why)))
    }

    #[inline(never)]
    fn encode_packet(
        &self,
        packet: &mut Packet,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Vec<Attachment>>, WireError> {
        packet.encode_in_place(&self.arrays)?;
        bytes.push(PACKET);
        let (encoded, attachments) = gather(|| wire::encode_into(packet, bytes));
        encoded.map(|()| attachments)
    }

    fn encode_chunk(
        &self,
        packet: &mut Packet,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Vec<Attachment>>, WireError> {
        packet.encode_in_place(&self.arrays)?;
        let slot = match &mut *packet {
            Packet::Lifecycle(LifecyclePacket::TransferChunk(transfer)) => {
                match std::mem::replace(&mut transfer.body, ChunkBody::Follows) {
                    ChunkBody::Live(slot) => slot,
                    ChunkBody::Follows | ChunkBody::Removed | ChunkBody::Encoded(_) => {
                        return Err(WireError::new("the chunk is gone"));
                    }
                }
            }
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
        let beside = blocks.iter().map(Block::bytes).sum();
        let packet = scatter(blocks, || self.decode_packet(bytes, beside, &mut subject));
        packet.and_then(|packet| self.decode_seeds(packet)).map_err(|why| self.error(subject, &why))
    }

    /// Decodes a packet. `beside` is the number of bytes that came beside it.
    fn decode_packet(&self, bytes: &[u8], beside: usize, subject: &mut Subject) -> Result<Packet, WireError> {
        let (&form, mut rest) = bytes.split_first().ok_or_else(|| WireError::new("it is empty"))?;
        let mut packet = wire::decode_first(&mut rest)?;
        *subject = Subject::of(&packet);
        match &mut packet {
            Packet::Lifecycle(LifecyclePacket::TransferChunk(transfer)) if form == CHUNK => {
                let ChunkId { key, .. } = transfer.chunk;
                transfer.encoded_bytes = Some((rest.len() + beside) as u64);
                transfer.body = ChunkBody::Live(self.array(transfer.chunk)?.decode_slot(key, rest)?);
            }
            Packet::Lifecycle(LifecyclePacket::TransferChunk(transfer))
                if !matches!(transfer.body, ChunkBody::Removed) || transfer.transit.is_none() =>
            {
                return Err(WireError::new("it has no chunk"));
            }
            Packet::Lifecycle(LifecyclePacket::TransferChunk(transfer)) => _ = self.array(transfer.chunk)?,
            _ if form != PACKET || !rest.is_empty() => return Err(WireError::new("it has no known form")),
            _ => {}
        }
        Ok(packet)
    }

    /// Decodes the chunks in a packet of several. Each chunk was encoded separately, with all its data inside.
    fn decode_seeds(&self, mut packet: Packet) -> Result<Packet, WireError> {
        if let Packet::Lifecycle(LifecyclePacket::Seeds(seeds)) = &mut packet {
            seeds.iter_mut().try_for_each(|seed| self.decode_seed(seed))?;
        }
        Ok(packet)
    }

    fn decode_seed(&self, seed: &mut UnstartedChunk) -> Result<(), WireError> {
        let ChunkBody::Encoded(bytes) = &seed.body else { return Err(WireError::new("a seed has no chunk")) };
        let slot = self.array(ChunkId { array: seed.array, key: 0 })?.decode_slot(0, bytes)?;
        seed.body = ChunkBody::Live(slot);
        Ok(())
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
    WireError::new("this rank has no such array")
}

/// The header of a message: its receiver, its sender and its epoch. The short form has fixed places for small arrays
/// and keys, which nearly all are. The long form is for all others.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MessageHeader {
    to: ChunkId,
    from: Sender,
    epoch: Epoch,
}

/// The position of the epoch's bit in the form.
const EPOCH_SHIFT: u8 = 7;

/// Bytes of the short header, two words: the form, two arrays, a byte of 0 and a key; a key and a number. A word is
/// stored and loaded as one: a load that spans several recent stores stalls (a store-forwarding failure).
const SHORT_BYTES: usize = 2 * 8;
/// Bytes of the long header.
const LONG_BYTES: usize = 1 + 3 * 4 + 2 * 8;

impl MessageHeader {
    #[inline(always)]
    fn append(self, bytes: &mut Vec<u8>) {
        let MessageHeader { to, from, epoch } = self;
        let epoch = epoch.bit() << EPOCH_SHIFT;
        if (to.array.0 | from.array.0) < 1 << 8 && (to.key | from.key) < 1 << 32 {
            let form =
                u64::from(MESSAGE | epoch) | u64::from(to.array.0) << 8 | u64::from(from.array.0) << 16;
            let words = [form | to.key << 32, from.key | u64::from(from.number) << 32];
            bytes.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
        } else {
            bytes.push(LONG_MESSAGE | epoch);
            bytes.extend_from_slice(&to.array.0.to_le_bytes());
            bytes.extend_from_slice(&from.array.0.to_le_bytes());
            bytes.extend_from_slice(&from.number.to_le_bytes());
            bytes.extend_from_slice(&to.key.to_le_bytes());
            bytes.extend_from_slice(&from.key.to_le_bytes());
        }
    }

    /// Splits a message into its header and its encoded value. None if the bytes are another form.
    #[inline]
    fn take(bytes: &[u8]) -> Option<(MessageHeader, &[u8])> {
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let eight = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let &form = bytes.first()?;
        let address = |to: (u32, u64), from: (u32, u64), number| MessageHeader {
            to: ChunkId { array: ArrayId(to.0), key: to.1 },
            from: Sender { array: ArrayId(from.0), key: from.1, number },
            epoch: Epoch::of_bit(form >> EPOCH_SHIFT),
        };
        match form & !(1 << EPOCH_SHIFT) {
            MESSAGE if bytes.len() >= SHORT_BYTES => {
                let (to, from) = (eight(0), eight(8));
                let key = |word: u64| word & u64::from(u32::MAX);
                let arrays = [to >> 8, to >> 16].map(|array| u32::from(array as u8));
                Some((
                    address((arrays[0], to >> 32), (arrays[1], key(from)), (from >> 32) as u32),
                    &bytes[SHORT_BYTES..],
                ))
            }
            LONG_MESSAGE if bytes.len() >= LONG_BYTES => {
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
            Packet::Termination(TerminationPacket::AtQuiescence(envelope)) => Subject::Message(envelope.to),
            Packet::Lifecycle(LifecyclePacket::TransferChunk(transfer)) => Subject::Chunk(transfer.chunk),
            other => Subject::Other(other.name()),
        }
    }
}

impl Payload {
    #[inline]
    pub(crate) fn is_value(&self) -> bool {
        matches!(self, Payload::Value(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_is_decoded_as_it_was_encoded(
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
            MessageHeader { to, from, epoch }.append(&mut bytes);
            prop_assert!(!short || bytes.len() == SHORT_BYTES);
            bytes.extend_from_slice(&message);
            prop_assert_eq!(MessageHeader::take(&bytes), Some((MessageHeader { to, from, epoch }, &message[..])));
        }
    }

    #[test]
    fn a_seed_without_its_chunk_is_an_error_with_that_reason() {
        let codec = ArrayCodec::new(Rank(0), [].into());
        for (body, why) in [
            (ChunkBody::Follows, "a seed has no chunk"),
            (ChunkBody::Encoded(vec![1, 2]), "this rank has no such array"),
        ] {
            let seed = UnstartedChunk { array: ArrayId(3), body };
            let mut bytes = vec![PACKET];
            let (encoded, beside) =
                gather(|| wire::encode_into(&Packet::from(LifecyclePacket::Seeds(vec![seed])), &mut bytes));
            assert!(encoded.is_ok() && beside.is_none(), "it is plain and short");
            let error = codec.decode(&bytes, VecDeque::new()).expect_err("it is no seed").to_string();
            assert!(error.contains("`Seeds`") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn bytes_that_are_no_packet_are_an_error_and_no_panic() {
        let codec = ArrayCodec::new(Rank(0), [].into());
        let mut address = Vec::new();
        let chunk = ChunkId { array: ArrayId(9), key: 9 };
        MessageHeader { to: chunk, from: Sender::new(chunk, 7), epoch: Epoch::default() }
            .append(&mut address);
        for bytes in [&[][..], &[MESSAGE], &[LONG_MESSAGE, 0], &[CHUNK], &[9, 9, 9], &[PACKET, 250], &address]
        {
            let error = codec.decode(bytes, VecDeque::new()).expect_err("it is no packet");
            assert!(matches!(error, Error::Wire { rank: Rank(0), .. }), "{bytes:?}: {error}");
        }
    }
}
