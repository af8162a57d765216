//! Arrows of a picture: from sends to handlers, and from where a chunk left to where it came.
//!
//! Slices come in the order of their begins, so what left is seen first, and no handler waits for its send.

use caribou::trace::ChunkId;
use rustc_hash::FxHashMap;

use crate::trace::analysis::messages::{IN_FLIGHT_MAX, Matcher};

/// The place that a message, or a chunk, left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrowStart {
    /// The position of the row.
    pub(super) position: usize,
    /// Counts what left from that row.
    pub(super) event: u32,
    /// Time of it.
    pub(super) at_ns: u64,
    pub(super) bytes: u64,
}

/// Messages and chunks under way.
pub(super) struct Arrows {
    messages: Matcher<ArrowStart, ()>,
    /// Chunks between two ranks, with the rank that they go to.
    chunks: FxHashMap<ChunkId, (u32, ArrowStart)>,
    /// Number handled or landed in a slice that began before it had left: its worker looked for work by then, or clocks
    /// differ by more than the way took.
    pub(super) backwards: u64,
}

impl Arrows {
    pub(super) fn new() -> Arrows {
        Arrows { messages: Matcher::new(IN_FLIGHT_MAX, 0), chunks: FxHashMap::default(), backwards: 0 }
    }

    /// A message left.
    pub(super) fn sent(&mut self, from: ChunkId, number: u32, left: ArrowStart) {
        self.messages.sent(from, number, left);
    }

    /// A message begins to be handled; where it came from, if that is known.
    pub(super) fn handled(&mut self, from: ChunkId, number: u32, at_ns: u64) -> Option<ArrowStart> {
        let left = self.messages.handled(from, number, ()).other()?;
        self.forwards(left, at_ns)
    }

    /// A chunk left for another rank.
    pub(super) fn departed(&mut self, chunk: ChunkId, rank: u32, left: ArrowStart) {
        self.chunks.insert(chunk, (rank, left));
    }

    /// Tells whether a chunk has left for this rank.
    pub(super) fn is_in_flight(&self, chunk: ChunkId, rank: u32) -> bool {
        self.chunks.get(&chunk).is_some_and(|&(to, _)| to == rank)
    }

    /// A chunk is there; where it came from, if it came from another rank.
    pub(super) fn arrived(&mut self, chunk: ChunkId, rank: u32, at_ns: u64) -> Option<ArrowStart> {
        let &(to, left) = self.chunks.get(&chunk)?;
        if to != rank {
            return None;
        }
        self.chunks.remove(&chunk);
        self.forwards(left, at_ns)
    }

    fn forwards(&mut self, left: ArrowStart, at_ns: u64) -> Option<ArrowStart> {
        let forwards = left.at_ns <= at_ns;
        self.backwards += u64::from(!forwards);
        forwards.then_some(left)
    }
}
