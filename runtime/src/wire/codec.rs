//! Encodes and decodes packets. Arrays and pools each supply a [`Codec`] to the transports.

use std::collections::VecDeque;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::bulk::{Attachment, Block, gather, scatter};
use super::{WireError, decode, encode_into};
use crate::error::Error;
use crate::ids::Rank;

/// Initial capacity for an encoded packet, bytes. Most packets are shorter.
const USUAL_BYTES: usize = 256;

/// The result of encoding a packet: the attachments that travel beside its bytes, if there are any. After an error, the
/// bytes may have part of the packet.
pub(crate) type Encoded = Result<Option<Vec<Attachment>>, Error>;

/// Encodes and decodes the packets of one rank. Long runs of numbers travel beside the bytes (see
/// [`bulk`](super::bulk)).
pub(crate) trait Codec {
    type Packet;

    /// Appends the encoded packet to `bytes`. The packet must not be used afterwards.
    fn encode(&self, packet: &mut Self::Packet, bytes: &mut Vec<u8>) -> Encoded;

    /// Tells whether a packet is *freight*: it may be long, and later packets need not wait for it. A transport may
    /// deliver later packets before freight.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "ranks of one process move packets whole"))]
    fn is_freight(_packet: &Self::Packet) -> bool {
        false
    }

    /// Decodes a packet. `blocks` came beside its bytes, in order.
    fn decode(&self, bytes: &[u8], blocks: VecDeque<Block>) -> Result<Self::Packet, Error>;

    /// Encodes and decodes the packet, as if it went to another process.
    #[inline(never)]
    fn round_trip(&self, mut packet: Self::Packet) -> Result<Self::Packet, Error> {
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        let attachments = self.encode(&mut packet, &mut bytes)?;
        self.decode(&bytes, attachments.iter().flatten().map(Block::copied).collect())
    }
}

/// Encodes packets by their serde implementation.
pub(crate) struct SerdeCodec<P> {
    rank: Rank,
    packets: PhantomData<fn() -> P>,
}

impl<P> SerdeCodec<P> {
    pub(crate) fn new(rank: Rank) -> SerdeCodec<P> {
        SerdeCodec { rank, packets: PhantomData }
    }

    fn error(&self, why: &WireError) -> Error {
        Error::Wire { rank: self.rank, what: "a packet".into(), why: why.to_string() }
    }
}

impl<P: Serialize + DeserializeOwned> Codec for SerdeCodec<P> {
    type Packet = P;

    fn encode(&self, packet: &mut P, bytes: &mut Vec<u8>) -> Encoded {
        let (encoded, attachments) = gather(|| encode_into(packet, bytes));
        encoded.map(|()| attachments).map_err(|why| self.error(&why))
    }

    fn decode(&self, bytes: &[u8], blocks: VecDeque<Block>) -> Result<P, Error> {
        scatter(blocks, || decode(bytes)).map_err(|why| self.error(&why))
    }
}
