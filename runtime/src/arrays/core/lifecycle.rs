//! The lifecycle of chunks: how they are set up, inserted, spawned and removed, and what their handlers may do.
//!
//! | module | purpose |
//! |---|---|
//! | [`erased`] | defines chunks and arrays without their types |
//! | [`handler`], [`activity`] | define the effects of a handler and the record of its chunk; record what a worker does |
//! | [`signature`] | checks that all ranks have set up the same arrays |
//! | [`transfer`] | defines a chunk between two ranks |
//! | [`seeds`] | keeps spawned chunks until an idle rank starts them |

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::erased::ErasedArray;
use self::seeds::{Seeds, UnstartedChunk};
use self::signature::ArraySignature;
use self::transfer::ChunkTransfer;
use super::collectives::tree::Tree;
use super::routing::in_flight::Epoch;
use crate::ids::Rank;
use crate::wire::WireError;

pub(crate) mod activity;
pub(crate) mod erased;
pub(crate) mod handler;
pub(crate) mod seeds;
pub(crate) mod signature;
pub(crate) mod transfer;

/// The arrays of one rank, and its chunks that have not started.
pub(crate) struct Lifecycle {
    pub(crate) seeds: Seeds,
    /// The arrays as this rank has set them up.
    pub(crate) signatures: Vec<ArraySignature>,
}

impl Lifecycle {
    pub(crate) fn new(tree: &Tree, arrays: &[Arc<dyn ErasedArray>]) -> Lifecycle {
        let &Tree { rank, ranks, .. } = tree;
        Lifecycle {
            seeds: Seeds::new(rank, ranks, arrays.iter().any(|array| array.has_seeds())),
            signatures: arrays.iter().map(|array| array.signature(ranks)).collect(),
        }
    }
}

/// A packet about chunks and arrays.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LifecyclePacket {
    /// A chunk, inserted or migrating.
    TransferChunk(Box<ChunkTransfer>),
    /// The sender has no work. To a *lifeline* (see [`seeds`]), which sends seeds as soon as it has some to spare.
    SeedRequest,
    /// Chunks that have not started, for a rank that has sent a `SeedRequest`.
    Seeds(Vec<UnstartedChunk>),
    /// The arrays that `rank` has set up. To the parent, which sends the packet on to rank 0 if its own arrays differ.
    Hello { rank: Rank, arrays: Vec<ArraySignature> },
}

impl LifecyclePacket {
    /// The epoch of the routes by which an inserted chunk goes to its rank. None for other packets.
    pub(crate) fn epoch_mut(&mut self) -> Option<&mut Epoch> {
        match self {
            LifecyclePacket::TransferChunk(transfer) if transfer.transit.is_none() => {
                Some(&mut transfer.epoch)
            }
            _ => None,
        }
    }

    /// Encodes typed messages and seeds inside. The codec writes the chunk of a transfer after the packet.
    pub(crate) fn encode_in_place(&mut self, arrays: &[Arc<dyn ErasedArray>]) -> Result<(), WireError> {
        match self {
            LifecyclePacket::TransferChunk(transfer) => {
                let array = &*arrays[transfer.chunk.array.index()];
                transfer.messages.iter_mut().try_for_each(|delivery| delivery.encode_in_place(array))
            }
            LifecyclePacket::Seeds(seeds) => {
                seeds.iter_mut().try_for_each(|seed| seed.body.encode_in_place())
            }
            _ => Ok(()),
        }
    }
}
