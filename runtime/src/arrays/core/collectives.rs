//! Collectives: reductions and broadcasts that miss no chunk, also while chunks are inserted, removed or migrated.
//!
//! | module | purpose |
//! |---|---|
//! | [`tree`] | defines the tree of ranks: broadcasts go down it, aggregations go up |
//! | [`population`] | counts reports, and finds when all members have reported |
//! | [`reduction`], [`own`] | reduce over an array; combine values of a user-defined type |
//! | [`section`] | reduces over the chunks of a section |
//! | [`broadcast`] | delivers each broadcast to each chunk once, in one order on all ranks |
//! | [`exit_value`] | stores the value that a run ends with |

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::broadcast::{Broadcasts, duplicate};
use self::reduction::{Partial, Reductions, Values};
use self::section::{SectionPartial, Sections};
use super::lifecycle::erased::ErasedArray;
use super::routing::envelope::Delivery;
use super::routing::in_flight::Epoch;
use crate::ids::{ArrayId, ChunkId, Rank};
use crate::wire::WireError;

pub(crate) mod broadcast;
pub(crate) mod exit_value;
pub(crate) mod own;
pub(crate) mod population;
pub(crate) mod reduction;
pub(crate) mod section;
pub(crate) mod tree;

/// The state of one rank for collectives.
pub(crate) struct Collectives {
    pub(crate) reductions: Reductions,
    pub(crate) sections: Sections,
    pub(crate) broadcasts: Broadcasts,
}

impl Collectives {
    /// `populations` is the initial number of chunks of each array.
    pub(crate) fn new(rank: Rank, populations: &[u64]) -> Collectives {
        Collectives {
            reductions: Reductions::new(rank, populations),
            sections: Sections::new(rank),
            broadcasts: Broadcasts::new(populations.len()),
        }
    }
}

/// A packet of a collective.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum CollectivePacket {
    /// One message to the chunks of a section on the receiving rank.
    Multicast {
        from: ChunkId,
        array: ArrayId,
        keys: Vec<u64>,
        #[serde(with = "crate::wire::bulk")]
        message: Arc<[u8]>,
        epoch: Epoch,
    },
    /// A request to rank 0 to number a broadcast. `ack_request` is the number of bytes that the sender has broadcast
    /// since its last request for an ack, or 0 if no ack is due.
    BroadcastRequest { array: ArrayId, delivery: Box<Delivery>, ack_request: u64, epoch: Epoch },
    /// A numbered broadcast, down the tree: to every chunk of the array, in the order of the numbers.
    Broadcast { array: ArrayId, number: u64, delivery: Box<Delivery>, ack_requested: bool },
    /// A partial result of a reduction, to the parent.
    Partial { array: ArrayId, sequence: u64, partial: Box<Partial> },
    /// A partial result of a reduction over a section, to the root of the section.
    SectionPartial(Box<SectionPartial>),
    /// The result of a reduction, down the tree to one chunk of `rank`.
    ReductionResult { rank: Rank, to: ChunkId, tag: u32, values: Arc<Values> },
    /// The result of a reduction over a section, to its chunks on the receiving rank.
    SectionResult { array: ArrayId, keys: Vec<u64>, tag: u32, values: Arc<Values>, epoch: Epoch },
}

impl CollectivePacket {
    /// The epoch of the packet, if a cut counts it: it goes to ranks of chunks, or requests a number for a chunk.
    pub(crate) fn epoch_mut(&mut self) -> Option<&mut Epoch> {
        match self {
            CollectivePacket::Multicast { epoch, .. }
            | CollectivePacket::BroadcastRequest { epoch, .. }
            | CollectivePacket::SectionResult { epoch, .. } => Some(epoch),
            _ => None,
        }
    }

    pub(crate) fn copy_to_child(&self) -> Option<CollectivePacket> {
        let CollectivePacket::Broadcast { array, number, delivery, ack_requested } = self else {
            return None;
        };
        Some(CollectivePacket::Broadcast {
            array: *array,
            number: *number,
            delivery: Box::new(duplicate(delivery)),
            ack_requested: *ack_requested,
        })
    }

    /// Lets user code combine the values in a partial result. An error names the array and the fault.
    pub(crate) fn combine(&mut self) -> Result<(), (ArrayId, String)> {
        match self {
            CollectivePacket::Partial { array, sequence, partial } => {
                partial.combine().map_err(|why| (*array, format!("reduction {sequence}: {why}")))
            }
            CollectivePacket::SectionPartial(part) => part.combine().map_err(|why| (part.array, why)),
            other => unreachable!("{other:?} is no part of a reduction"),
        }
    }

    /// Encodes the typed message of a broadcast.
    pub(crate) fn encode_in_place(&mut self, arrays: &[Arc<dyn ErasedArray>]) -> Result<(), WireError> {
        match self {
            CollectivePacket::BroadcastRequest { array, delivery, .. }
            | CollectivePacket::Broadcast { array, delivery, .. } => {
                delivery.encode_in_place(&*arrays[array.index()])
            }
            _ => Ok(()),
        }
    }
}
