//! Names of ranks, workers, arrays, chunks, cells and syncs.
//!
//! [`Rank`], [`WorkerId`], [`ArrayId`] and [`ChunkId`] come from the crate `lb_strategies`.

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use lb_strategies::{ArrayId, ChunkId, Rank, WorkerId};

/// A place inside a rank that holds one chunk: an index into the rank's table of cells.
///
/// Cells are reused; a [`ChunkId`] is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CellId(pub(crate) u32);

/// The number of a sync. Syncs count from 0 in a run, for all arrays together. Records have the bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct SyncId(pub(crate) u64);

impl SyncId {
    /// The sync after this one.
    pub(crate) fn next(self) -> SyncId {
        SyncId(self.0 + 1)
    }
}

impl fmt::Display for SyncId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The sender of messages that no chunk sent: the runtime (start, resume, results of reductions).
pub(crate) const RUNTIME: ChunkId = ChunkId { array: ArrayId(u32::MAX), key: u64::MAX };

/// The rank that makes decisions, assigns numbers and gathers reports for all ranks.
pub(crate) const ROOT: Rank = Rank(0);

/// The sending chunk and its count of messages, which together name a message.
///
/// Each chunk counts its own messages, so that ranks need not agree on numbers. The size is that of a [`ChunkId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sender {
    pub(crate) array: ArrayId,
    /// Counts the chunk's messages to single chunks from 1, and again from 1 after 2^32 - 1. 0 for all other messages.
    pub(crate) number: u32,
    pub(crate) key: u64,
}

const _: () = assert!(size_of::<Sender>() == size_of::<ChunkId>(), "a message carries one");

impl Sender {
    pub(crate) const RUNTIME: Sender = Sender { array: RUNTIME.array, number: 0, key: RUNTIME.key };

    #[inline]
    pub(crate) fn new(chunk: ChunkId, number: u32) -> Sender {
        Sender { array: chunk.array, number, key: chunk.key }
    }

    #[inline]
    pub(crate) fn chunk(self) -> ChunkId {
        ChunkId { array: self.array, key: self.key }
    }
}
