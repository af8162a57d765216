//! Packets between the ranks of a program of arrays.
//!
//! A transport moves packets and keeps the order between each pair of ranks; it promises nothing else. Everything that
//! rank 0 decides (numbers of broadcasts, assignments) relies on that order, along the ways of the [tree](super::tree).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ascent::{Collected, NextSync};
use super::broadcast::again;
use super::census::Tally;
use super::crossings::{Counts, Epoch};
use super::envelope::{Delivery, Envelope, Payload};
use super::erased::{ErasedArray, ErasedSlot};
use super::freight::Freight;
use super::mail::Letter;
use super::moves::Moves;
use super::outline::Outline;
use super::pressure::Standing;
use super::quiescence::Traffic;
use super::reduction::{Partial, Values};
use super::section::SectionPart;
use super::seeds::Unstarted;
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
        epoch: Epoch,
    },
    /// Asks rank 0 to number a broadcast; with a mark for the bytes of those that the sender has made since the last, or 0.
    Announce { array: ArrayId, delivery: Box<Delivery>, mark: u64, epoch: Epoch },
    /// A numbered broadcast, down the tree: to every chunk of the array, in the order of the numbers. The ranks tell when
    /// they have taken in one that is marked.
    Broadcast { array: ArrayId, number: u64, delivery: Box<Delivery>, marked: bool },
    /// The sender and all ranks below it have taken in so many more marked broadcasts. To the parent.
    TookIn { more: u64 },
    /// The sender or a rank below it has so many chunks of an array, twice as many as was known of any. To the parent.
    MoreHear { array: ArrayId, chunks: u64 },
    /// Some rank has so many. Down the tree.
    MostHear { array: ArrayId, chunks: u64 },
    /// All ranks have taken in broadcasts of so many bytes: rank 0's answer to the mark of who made them.
    AllTookIn { bytes: u64 },
    /// Part of a reduction, to the parent.
    Partial { array: ArrayId, sequence: u64, partial: Box<Partial> },
    /// Part of a reduction over a section, to the section's root.
    SectionPart(Box<SectionPart>),
    /// The result of a reduction, down the tree to one chunk of this rank.
    Told { rank: Rank, to: ChunkId, tag: u32, values: Arc<Values> },
    /// The result of a reduction over a section, to those of its chunks that live on the receiving rank.
    SectionResult { array: ArrayId, keys: Vec<u64>, tag: u32, values: Arc<Values>, epoch: Epoch },
    /// A chunk, inserted or migrating.
    Arrive(Box<Traveller>),
    /// "I have no work." To a lifeline, which sends seeds as soon as it has some to spare.
    WantsSeeds,
    /// Chunks that have not started, for a rank that has asked.
    Seeds(Vec<Unstarted>),
    /// Loads and reports of ranks, to the parent; and to which sync they report next.
    Collected(Box<Collected>, NextSync),
    /// To which sync a rank and those below it report next, which is news. To the parent.
    Due(NextSync),
    /// Rank 0's decision, down the tree: who moves where; who stays may resume.
    Moves { sync: SyncId, moves: Moves },
    /// "We have switched, and have sent so many messages under the old routes." To the parent.
    Sent(Counts),
    /// So many messages were sent under the old routes to the receiver and the ranks below it. Down the tree.
    Expect(Counts),
    /// "We are drained, and have everybody who moves to us." To the parent.
    Flushed(Freight),
    /// Chunks that have moved may resume. Down the tree.
    Land,
    /// The arrays a rank has set up, to the parent, which passes it on to rank 0 if its own are others.
    Hello { rank: Rank, arrays: Vec<Outline> },
    /// So many bytes of messages are before this one, since the last: to be answered when the receiver has room.
    Mark { bytes: u64 },
    /// The answer to marks of so many bytes.
    Room { bytes: u64 },
    /// The sender owes the answer to so many bytes that were under way to another rank: a chunk has come from there with its mail.
    CameHere { by_way_of: Rank, bytes: u64 },
    /// "All I could run waits for others, and I am full." To rank 0.
    StandsStill { spell: u64, standing: Standing },
    /// That spell is over. To rank 0.
    GoesOn { spell: u64 },
    /// That spell does not end by itself.
    Stuck { spell: u64 },
    /// Asks for an answer once the receiver has nothing to do. Down the tree.
    Probe,
    /// Packets sent and received so far by idle ranks. To the parent.
    Answer(Traffic),
    /// Nothing moves any more: say what waits, and who has not contributed to these reductions. Down the tree.
    Explain { open: Vec<(ArrayId, u64)> },
    /// What waits on some ranks. To the parent.
    Waiting(Waiting),
    /// The run is over.
    Exit,
    /// The run cannot go on.
    Abort(Box<Error>),
}

/// What waits on some ranks, for people.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) lines: Vec<String>,
    /// Reports to syncs, with their arrays, that have not gone to rank 0.
    pub(crate) reported: Vec<(SyncId, ArrayId, Tally)>,
}

/// A chunk between two ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Traveller {
    pub(crate) chunk: ChunkId,
    pub(crate) cargo: Cargo,
    /// Messages it had not handled when it left.
    pub(crate) mail: Vec<Delivery>,
    /// The answers that its old rank owed, which its new one owes from now on: to whom, and bytes.
    pub(crate) owed: Vec<(Rank, u64)>,
    /// Its state's size, as the chunk says.
    pub(crate) bytes: u64,
    /// Bytes that it was encoded in, with the long runs of numbers of its mail, if it has left its process.
    #[serde(skip)]
    pub(crate) carried: Option<u64>,
    /// None for a chunk that was just inserted.
    pub(crate) journey: Option<Journey>,
    /// The routes under which it was inserted.
    pub(crate) epoch: Epoch,
    /// Of a chunk that was inserted without a parent.
    pub(crate) founder: Option<Founder>,
}

/// The origin of a chunk that was inserted without a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Founder {
    /// The rank of the handler that inserted it.
    pub(crate) rank: Rank,
    /// Rank 0 has admitted the chunk to the counts of its array.
    pub(crate) admitted: bool,
}

impl Traveller {
    /// A chunk that was just inserted.
    pub(crate) fn inserted(chunk: ChunkId, slot: Box<dyn ErasedSlot>) -> Traveller {
        Traveller { cargo: Cargo::Live(slot), ..Traveller::following(chunk) }
    }

    /// The same without its state, as it is outside of a process.
    pub(crate) fn following(chunk: ChunkId) -> Traveller {
        Traveller {
            chunk,
            cargo: Cargo::Follows,
            mail: Vec::new(),
            owed: Vec::new(),
            bytes: 0,
            carried: None,
            journey: None,
            epoch: Epoch::default(),
            founder: None,
        }
    }

    /// The bytes of the messages that it brings.
    pub(crate) fn mail_bytes(&self) -> u64 {
        let kept = if let Cargo::Live(slot) = &self.cargo { slot.kept_bytes() } else { 0 };
        kept + self.mail.iter().map(|delivery| delivery.bytes).sum::<u64>()
    }
}

/// The knowledge that a migrating chunk takes along from the rank it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journey {
    /// Number of the next broadcast of its array that it has not been given.
    pub(crate) broadcasts: u64,
    /// It was pressed there when it left.
    pub(crate) pressed: bool,
}

/// The state of a travelling chunk.
#[derive(Serialize, Deserialize)]
pub(crate) enum Cargo {
    /// Outside of a process: it follows the packet, see [`codec`](super::codec).
    Follows,
    /// Outside of a process, where a packet has several.
    Encoded(#[serde(with = "crate::wire::bulk")] Vec<u8>),
    /// Last, because serde numbers the variants it reads without the skipped ones.
    #[serde(skip)]
    Live(Box<dyn ErasedSlot>),
}

impl Cargo {
    /// Encodes a chunk in place.
    fn seal(&mut self) -> Result<(), WireError> {
        if let Cargo::Live(slot) = self {
            let mut bytes = Vec::new();
            slot.encode_into(&mut bytes)?;
            *self = Cargo::Encoded(bytes);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Cargo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Cargo::Live(_) => "Live",
            Cargo::Follows => "Follows",
            Cargo::Encoded(_) => "Encoded",
        })
    }
}

impl Packet {
    /// The message on a letter, which is blank then.
    #[inline(always)]
    pub(crate) fn of_letter(letter: &mut Letter, epoch: Epoch) -> Packet {
        Packet::Message(Envelope { to: letter.to, delivery: letter.message.take(), epoch })
    }

    /// Tells whether the packet counts in the search for quiescence; those of the search itself do not.
    pub(crate) fn counts(&self) -> bool {
        !matches!(self, Packet::Probe | Packet::Answer(_) | Packet::Explain { .. } | Packet::Waiting(_))
    }

    /// The routes under which it was sent, of a packet that counts when they change.
    pub(crate) fn epoch_mut(&mut self) -> Option<&mut Epoch> {
        match self {
            Packet::Message(Envelope { epoch, .. })
            | Packet::Multicast { epoch, .. }
            | Packet::Announce { epoch, .. }
            | Packet::SectionResult { epoch, .. } => Some(epoch),
            Packet::Arrive(traveller) if traveller.journey.is_none() => Some(&mut traveller.epoch),
            _ => None,
        }
    }

    /// Tells whether rank 0 says it to all ranks.
    pub(crate) fn is_to_all(&self) -> bool {
        matches!(
            self,
            Packet::Broadcast { .. }
                | Packet::MostHear { .. }
                | Packet::Moves { .. }
                | Packet::Land
                | Packet::Probe
                | Packet::Explain { .. }
        )
    }

    /// The same once more, of a packet that rank 0 says to all ranks.
    pub(crate) fn to_all(&self) -> Option<Packet> {
        Some(match self {
            Packet::Broadcast { array, number, delivery, marked } => {
                let (array, number, delivery, marked) = (*array, *number, Box::new(again(delivery)), *marked);
                Packet::Broadcast { array, number, delivery, marked }
            }
            Packet::Moves { sync, moves } => Packet::Moves { sync: *sync, moves: moves.clone() },
            Packet::MostHear { array, chunks } => Packet::MostHear { array: *array, chunks: *chunks },
            Packet::Land => Packet::Land,
            Packet::Probe => Packet::Probe,
            Packet::Explain { open } => Packet::Explain { open: open.clone() },
            _ => return None,
        })
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

    /// Encodes every typed message inside, and seeds, so that the packet can be serialised. Another chunk stays as it is.
    pub(crate) fn seal(&mut self, arrays: &[Arc<dyn ErasedArray>]) -> Result<(), WireError> {
        match self {
            Packet::Message(envelope) => seal(&mut envelope.delivery, &*arrays[envelope.to.array.index()]),
            Packet::AtQuiescence(envelope) => {
                seal(&mut envelope.delivery, &*arrays[envelope.to.array.index()])
            }
            Packet::Announce { array, delivery, .. } | Packet::Broadcast { array, delivery, .. } => {
                seal(delivery, &*arrays[array.index()])
            }
            Packet::Arrive(traveller) => {
                let array = &*arrays[traveller.chunk.array.index()];
                traveller.mail.iter_mut().try_for_each(|delivery| seal(delivery, array))
            }
            Packet::Seeds(seeds) => seeds.iter_mut().try_for_each(|seed| seed.cargo.seal()),
            _ => Ok(()),
        }
    }
}

fn seal(delivery: &mut Delivery, array: &dyn ErasedArray) -> Result<(), WireError> {
    let encoded = || {
        let mut bytes = Vec::new();
        array.encode_into(&delivery.payload, &mut bytes)?;
        Ok(bytes.into())
    };
    delivery.payload = match delivery.payload {
        Payload::Value(_) => Payload::Encoded(encoded()?),
        Payload::Insertion { key, .. } => Payload::EncodedInsertion { key, chunk: encoded()? },
        _ => return Ok(()),
    };
    Ok(())
}
