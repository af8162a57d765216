//! Packets between the ranks of a program of arrays.
//!
//! A transport moves packets and keeps the order between each pair of ranks; it promises nothing else. Everything that
//! rank 0 decides (numbers of broadcasts, assignments) relies on that order.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::balance::Move;
use super::census::Tally;
use super::collect::Collected;
use super::envelope::{Delivery, Envelope, Payload};
use super::erased::{ErasedArray, ErasedSlot};
use super::reduction::{Partial, Values};
use super::section::SectionPart;
use crate::error::Error;
use crate::ids::{ArrayId, ChunkId, Rank, SyncId};
use crate::wire::WireError;

/// One thing said by one rank to another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Packet {
    /// A message between chunks.
    Message(Envelope),
    /// A message between chunks that rank 0 sends when nothing else is left to do.
    AtQuiescence(Box<Envelope>),
    /// One message to the chunks of a section that live on the receiving rank.
    Multicast {
        from: ChunkId,
        array: ArrayId,
        keys: Vec<u64>,
        #[serde(with = "crate::wire::bulk")]
        message: Arc<[u8]>,
    },
    /// Asks rank 0 to number a broadcast.
    Announce { array: ArrayId, delivery: Box<Delivery> },
    /// A numbered broadcast: to every chunk of the array, in the order of the numbers.
    Broadcast { array: ArrayId, number: u64, delivery: Box<Delivery> },
    /// Part of a reduction, to the parent.
    Partial { array: ArrayId, sequence: u64, partial: Box<Partial> },
    /// Part of a reduction over a section, to the section's root.
    SectionPart(Box<SectionPart>),
    /// The result of a reduction over a section, to those of its chunks that live on the receiving rank.
    SectionResult { array: ArrayId, keys: Vec<u64>, tag: u32, values: Arc<Values> },
    /// A chunk, inserted or migrating.
    Arrive(Box<Traveller>),
    /// Loads and reports of a rank, to rank 0.
    Collected(Box<Collected>),
    /// Rank 0's decision: who moves where; who stays may resume.
    Moves { sync: SyncId, moves: Arc<[Move]> },
    /// "Every message I sent under the old routes is before this one."
    Marker { sync: SyncId },
    /// "I have all markers, and everybody who moves to me." To rank 0.
    Flushed { sync: SyncId, moved_bytes: u64 },
    /// Chunks that have moved may resume.
    Land { sync: SyncId },
    /// Checksum of the arrays a rank has set up, to rank 0.
    Hello { checksum: u64 },
    /// So many bytes of messages are before this one, since the last: to be answered when the receiver has room.
    Mark { bytes: u64 },
    /// The answer to marks of so many bytes.
    Room { bytes: u64 },
    /// "All I could run waits for these ranks, and I am full." To rank 0.
    StandsStill { spell: u64, waits_for: Vec<Rank> },
    /// That spell is over. To rank 0.
    GoesOn { spell: u64 },
    /// That spell does not end by itself.
    Widen { spell: u64 },
    /// Asks for an answer once the receiver has nothing to do.
    Probe { wave: u64 },
    /// Packets sent and received so far by an idle rank.
    Answer { wave: u64, sent: u64, received: u64 },
    /// Nothing moves any more: say what waits, and who has not contributed to these reductions.
    Explain { open: Vec<(ArrayId, u64)> },
    /// Chunks that wait on one rank; and its reports to syncs, with their arrays, that are not complete there.
    Waiting { lines: Vec<String>, reported: Vec<(SyncId, ArrayId, Tally)> },
    /// The run is over.
    Exit,
    /// The run cannot go on.
    Abort(Box<Error>),
}

/// A chunk between two ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Traveller {
    pub(crate) chunk: ChunkId,
    pub(crate) cargo: Cargo,
    /// Messages it had not handled when it left.
    pub(crate) mail: Vec<Delivery>,
    /// Its state's size, as the chunk says.
    pub(crate) bytes: u64,
    /// None for a chunk that was just inserted.
    pub(crate) journey: Option<Journey>,
}

/// The knowledge that a migrating chunk takes along from the rank it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journey {
    /// Number of the next broadcast of its array that it has not been given.
    pub(crate) broadcasts: u64,
}

/// The state of a travelling chunk.
#[derive(Serialize, Deserialize)]
pub(crate) enum Cargo {
    /// Outside of a process: it follows the packet, see [`codec`](super::codec).
    Follows,
    /// Last, because serde numbers the variants it reads without the skipped ones.
    #[serde(skip)]
    Live(Box<dyn ErasedSlot>),
}

impl std::fmt::Debug for Cargo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Cargo::Live(_) => "Live",
            Cargo::Follows => "Follows",
        })
    }
}

impl Packet {
    /// Tells whether the packet counts in the search for quiescence; those of the search itself do not.
    pub(crate) fn counts(&self) -> bool {
        !matches!(
            self,
            Packet::Probe { .. } | Packet::Answer { .. } | Packet::Explain { .. } | Packet::Waiting { .. }
        )
    }

    /// Lets user code combine the values in a part of a reduction. Else tells of which array they are, and the fault.
    pub(crate) fn combine(&mut self) -> Result<(), (ArrayId, String)> {
        match self {
            Packet::Partial { array, sequence, partial } => {
                partial.combine().map_err(|why| (*array, format!("reduction {sequence}: {why}")))
            }
            Packet::SectionPart(part) => part.combine().map_err(|why| (part.array, why)),
            other => unreachable!("{other:?} is no part of a reduction"),
        }
    }

    /// Encodes every typed message inside, so that the packet can be serialised. A chunk stays as it is.
    pub(crate) fn seal(&mut self, arrays: &[Arc<dyn ErasedArray>]) -> Result<(), WireError> {
        match self {
            Packet::Message(envelope) => seal(&mut envelope.delivery, &*arrays[envelope.to.array.index()]),
            Packet::AtQuiescence(envelope) => {
                seal(&mut envelope.delivery, &*arrays[envelope.to.array.index()])
            }
            Packet::Announce { array, delivery } | Packet::Broadcast { array, delivery, .. } => {
                seal(delivery, &*arrays[array.index()])
            }
            Packet::Arrive(traveller) => {
                let array = &*arrays[traveller.chunk.array.index()];
                traveller.mail.iter_mut().try_for_each(|delivery| seal(delivery, array))
            }
            _ => Ok(()),
        }
    }
}

fn seal(delivery: &mut Delivery, array: &dyn ErasedArray) -> Result<(), WireError> {
    let encoded = || {
        let mut bytes = Vec::new();
        array.encode_into(&delivery.payload, &mut bytes).map(|()| bytes.into())
    };
    delivery.payload = match delivery.payload {
        Payload::Value(_) => Payload::Encoded(encoded()?),
        Payload::Insertion { key, .. } => Payload::EncodedInsertion { key, chunk: encoded()? },
        _ => return Ok(()),
    };
    Ok(())
}
