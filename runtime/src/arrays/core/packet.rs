//! Packets between the ranks of a program of arrays.
//!
//! A transport moves packets and keeps the order between each pair of ranks; it promises nothing else. Everything that
//! rank 0 decides (numbers of broadcasts, assignments) relies on that order, along the ways of the [tree](super::collectives::tree).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::collectives::broadcast::duplicate;
use super::collectives::population::Tally;
use super::collectives::reduction::{Partial, Values};
use super::collectives::section::SectionPartial;
use super::flow::StallReport;
use super::lifecycle::erased::{ErasedArray, ErasedSlot};
use super::lifecycle::seeds::UnstartedChunk;
use super::lifecycle::signature::ArraySignature;
use super::routing::envelope::{Delivery, Envelope, Payload};
use super::routing::in_flight::{CountsByRank, Epoch};
use super::routing::message_list::MessageNode;
use super::sync::migration_bytes::MigrationBytes;
use super::sync::move_list::MoveList;
use super::sync::report_aggregation::{AggregatedReports, NextSync};
use super::termination::quiescence::Traffic;
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
    BroadcastRequest { array: ArrayId, delivery: Box<Delivery>, ack_request: u64, epoch: Epoch },
    /// A numbered broadcast, down the tree: to every chunk of the array, in the order of the numbers. The ranks tell when
    /// they have taken in one that is ack_requested.
    Broadcast { array: ArrayId, number: u64, delivery: Box<Delivery>, ack_requested: bool },
    /// The sender and all ranks below it have taken in so many more ack_requested broadcasts. To the parent.
    BroadcastAck { more: u64 },
    /// The sender or a rank below it has so many chunks of an array, twice as many as was known of any. To the parent.
    ReceiversGrew { array: ArrayId, chunks: u64 },
    /// Some rank has so many. Down the tree.
    MaxReceivers { array: ArrayId, chunks: u64 },
    /// All ranks have taken in broadcasts of so many bytes: rank 0's answer to the mark of who made them.
    BroadcastAckedByAll { bytes: u64 },
    /// Part of a reduction, to the parent.
    Partial { array: ArrayId, sequence: u64, partial: Box<Partial> },
    /// Part of a reduction over a section, to the section's root.
    SectionPartial(Box<SectionPartial>),
    /// The result of a reduction, down the tree to one chunk of this rank.
    ReductionResult { rank: Rank, to: ChunkId, tag: u32, values: Arc<Values> },
    /// The result of a reduction over a section, to those of its chunks that live on the receiving rank.
    SectionResult { array: ArrayId, keys: Vec<u64>, tag: u32, values: Arc<Values>, epoch: Epoch },
    /// A chunk, inserted or migrating.
    TransferChunk(Box<ChunkTransfer>),
    /// "I have no work." To a lifeline, which sends seeds as soon as it has some to spare.
    SeedRequest,
    /// Chunks that have not started, for a rank that has asked.
    Seeds(Vec<UnstartedChunk>),
    /// Loads and reports of ranks, to the parent; and to which sync they report next.
    AggregatedReports(Box<AggregatedReports>, NextSync),
    /// To which sync a rank and those below it report next, which is news. To the parent.
    NextSyncChanged(NextSync),
    /// Rank 0's decision, down the tree: who moves where; who stays may resume.
    SyncDecision { sync: SyncId, moves: MoveList },
    /// "We have switched, and have sent so many messages under the old routes." To the parent.
    SentCounts(CountsByRank),
    /// So many messages were sent under the old routes to the receiver and the ranks below it. Down the tree.
    ExpectedCounts(CountsByRank),
    /// "We are drained, and have everybody who moves to us." To the parent.
    Flushed(MigrationBytes),
    /// Chunks that have moved may resume. Down the tree.
    CompleteMigration,
    /// The arrays a rank has set up, to the parent, which passes it on to rank 0 if its own are others.
    Hello { rank: Rank, arrays: Vec<ArraySignature> },
    /// So many bytes of messages are before this one, since the last: to be answered when the receiver has room.
    AckRequest { bytes: u64 },
    /// The answer to marks of so many bytes.
    Ack { bytes: u64 },
    /// The sender owes the answer to so many bytes that were under way to another rank: a chunk has come from there with its mail.
    DeferredAckMoved { first_receiver: Rank, bytes: u64 },
    /// "All I could run waits for others, and I am full." To rank 0.
    Stalled { stall_number: u64, stall_report: StallReport },
    /// That stall_number is over. To rank 0.
    StallEnded { stall_number: u64 },
    /// That stall_number does not end by itself.
    Deadlocked { stall_number: u64 },
    /// Asks for an answer once the receiver has nothing to do. Down the tree.
    Probe,
    /// Packets sent and received so far by idle ranks. To the parent.
    ProbeReply(Traffic),
    /// Nothing moves any more: say what waits, and who has not contributed to these reductions. Down the tree.
    Explain { open: Vec<(ArrayId, u64)> },
    /// What waits on some ranks. To the parent.
    StallExplanation(StallExplanation),
    /// The run is over.
    Exit,
    /// The run cannot go on.
    Abort(Box<Error>),
}

/// What waits on some ranks, for people.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StallExplanation {
    pub(crate) lines: Vec<String>,
    /// Reports to syncs, with their arrays, that have not gone to rank 0.
    pub(crate) reported: Vec<(SyncId, ArrayId, Tally)>,
}

/// A chunk between two ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChunkTransfer {
    pub(crate) chunk: ChunkId,
    pub(crate) body: ChunkBody,
    /// Messages it had not handled when it left.
    pub(crate) messages: Vec<Delivery>,
    /// The answers that its old rank owed, which its new one owes from now on: to whom, and bytes.
    pub(crate) deferred_acks: Vec<(Rank, u64)>,
    /// Its state's size, as the chunk says.
    pub(crate) bytes: u64,
    /// Bytes that it was encoded in, with the long runs of numbers of its mail, if it has left its process.
    #[serde(skip)]
    pub(crate) encoded_bytes: Option<u64>,
    /// None for a chunk that was just inserted.
    pub(crate) transit: Option<Transit>,
    /// The routes under which it was inserted.
    pub(crate) epoch: Epoch,
    /// Of a chunk that was inserted without a parent.
    pub(crate) origin: Option<Origin>,
}

/// The origin of a chunk that was inserted without a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The rank of the handler that inserted it.
    pub(crate) rank: Rank,
    /// Rank 0 has admitted the chunk to the counts of its array.
    pub(crate) admitted: bool,
}

impl ChunkTransfer {
    /// A chunk that was just inserted.
    pub(crate) fn inserted(chunk: ChunkId, slot: Box<dyn ErasedSlot>) -> ChunkTransfer {
        ChunkTransfer { body: ChunkBody::Live(slot), ..ChunkTransfer::without_body(chunk) }
    }

    /// The same without its state, as it is outside of a process.
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
        }
    }

    /// The bytes of the messages that it brings.
    pub(crate) fn queued_bytes(&self) -> u64 {
        let kept = if let ChunkBody::Live(slot) = &self.body { slot.deferred_bytes() } else { 0 };
        kept + self.messages.iter().map(|delivery| delivery.bytes).sum::<u64>()
    }
}

/// The knowledge that a migrating chunk takes along from the rank it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transit {
    /// Number of the next broadcast of its array that it has not been given.
    pub(crate) next_broadcast: u64,
    /// It was blocked there when it left.
    pub(crate) blocked: bool,
}

/// The state of a travelling chunk.
#[derive(Serialize, Deserialize)]
pub(crate) enum ChunkBody {
    /// Outside of a process: it follows the packet, see [`codec`](super::codec).
    Follows,
    /// Outside of a process, where a packet has several.
    Encoded(#[serde(with = "crate::wire::bulk")] Vec<u8>),
    /// Last, because serde numbers the variants it reads without the skipped ones.
    #[serde(skip)]
    Live(Box<dyn ErasedSlot>),
}

impl ChunkBody {
    /// Encodes a chunk in place.
    fn encode_in_place(&mut self) -> Result<(), WireError> {
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
            ChunkBody::Encoded(_) => "Encoded",
        })
    }
}

impl Packet {
    /// The message on a node, which is blank then.
    #[inline(always)]
    pub(crate) fn from_node(node: &mut MessageNode, epoch: Epoch) -> Packet {
        Packet::Message(Envelope { to: node.to, delivery: node.message.take(), epoch })
    }

    /// Tells whether the packet counts in the search for quiescence; those of the search itself do not.
    pub(crate) fn is_counted(&self) -> bool {
        !matches!(
            self,
            Packet::Probe | Packet::ProbeReply(_) | Packet::Explain { .. } | Packet::StallExplanation(_)
        )
    }

    /// The routes under which it was sent, of a packet that counts when they change.
    pub(crate) fn epoch_mut(&mut self) -> Option<&mut Epoch> {
        match self {
            Packet::Message(Envelope { epoch, .. })
            | Packet::Multicast { epoch, .. }
            | Packet::BroadcastRequest { epoch, .. }
            | Packet::SectionResult { epoch, .. } => Some(epoch),
            Packet::TransferChunk(transfer) if transfer.transit.is_none() => Some(&mut transfer.epoch),
            _ => None,
        }
    }

    /// Tells whether rank 0 says it to all ranks.
    pub(crate) fn is_tree_broadcast(&self) -> bool {
        matches!(
            self,
            Packet::Broadcast { .. }
                | Packet::MaxReceivers { .. }
                | Packet::SyncDecision { .. }
                | Packet::CompleteMigration
                | Packet::Probe
                | Packet::Explain { .. }
        )
    }

    /// The same once more, of a packet that rank 0 says to all ranks.
    pub(crate) fn copy_to_child(&self) -> Option<Packet> {
        Some(match self {
            Packet::Broadcast { array, number, delivery, ack_requested } => {
                let (array, number, delivery, ack_requested) =
                    (*array, *number, Box::new(duplicate(delivery)), *ack_requested);
                Packet::Broadcast { array, number, delivery, ack_requested }
            }
            Packet::SyncDecision { sync, moves } => {
                Packet::SyncDecision { sync: *sync, moves: moves.clone() }
            }
            Packet::MaxReceivers { array, chunks } => Packet::MaxReceivers { array: *array, chunks: *chunks },
            Packet::CompleteMigration => Packet::CompleteMigration,
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
            Packet::SectionPartial(part) => part.combine().map_err(|why| (part.array, why)),
            other => unreachable!("{other:?} is no part of a reduction"),
        }
    }

    /// Encodes every typed message inside, and seeds, so that the packet can be serialised. Another chunk stays as it is.
    pub(crate) fn encode_in_place(&mut self, arrays: &[Arc<dyn ErasedArray>]) -> Result<(), WireError> {
        match self {
            Packet::Message(envelope) => {
                encode_in_place(&mut envelope.delivery, &*arrays[envelope.to.array.index()])
            }
            Packet::AtQuiescence(envelope) => {
                encode_in_place(&mut envelope.delivery, &*arrays[envelope.to.array.index()])
            }
            Packet::BroadcastRequest { array, delivery, .. } | Packet::Broadcast { array, delivery, .. } => {
                encode_in_place(delivery, &*arrays[array.index()])
            }
            Packet::TransferChunk(transfer) => {
                let array = &*arrays[transfer.chunk.array.index()];
                transfer.messages.iter_mut().try_for_each(|delivery| encode_in_place(delivery, array))
            }
            Packet::Seeds(seeds) => seeds.iter_mut().try_for_each(|seed| seed.body.encode_in_place()),
            _ => Ok(()),
        }
    }
}

fn encode_in_place(delivery: &mut Delivery, array: &dyn ErasedArray) -> Result<(), WireError> {
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
