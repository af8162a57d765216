//! Names of things that outlive a place.
//!
//! [`Rank`] and [`ChunkId`] come from `lb_strategies`, which speaks of the same things and sits below this crate.

pub(crate) use lb_strategies::{ChunkId, Rank};

/// A place inside a rank that holds one chunk: an index into the rank's table of cells.
///
/// Cells are reused; a [`ChunkId`] is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CellId(pub(crate) u32);

/// The sender of messages that no chunk sent: the runtime itself (start, resume, results of reductions).
pub(crate) const RUNTIME: ChunkId = ChunkId { array: u32::MAX, key: u64::MAX };
