//! Finds the arrows of a picture: from sends to handlers, and from departures to arrivals of chunks. Slices must come
//! in order of their begins. Then a send is seen before its handler, and no handler has to wait for its send.

use caribou::trace::ChunkId;
use rustc_hash::FxHashMap;

use crate::trace::analysis::messages::{IN_FLIGHT_MAX, Matcher};

/// The send of a message or the departure of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrowStart {
    /// Index of the row.
    pub(super) position: usize,
    /// Number of this departure among those of the row.
    pub(super) event: u32,
    /// Time of the departure.
    pub(super) at_ns: u64,
    pub(super) bytes: u64,
}

/// Messages and chunks in flight.
pub(super) struct Arrows {
    messages: Matcher<ArrowStart, ()>,
    /// Chunks between two ranks, each with its new rank.
    chunks: FxHashMap<ChunkId, (u32, ArrowStart)>,
    /// Number of messages or chunks that arrived in a slice which began before they left. The worker had begun to look
    /// for work by then, or clocks differ by more than the latency.
    pub(super) backwards: u64,
}

impl Arrows {
    pub(super) fn new() -> Arrows {
        Arrows { messages: Matcher::new(IN_FLIGHT_MAX, 0), chunks: FxHashMap::default(), backwards: 0 }
    }

    /// Adds the send of a message.
    pub(super) fn sent(&mut self, from: ChunkId, number: u32, left: ArrowStart) {
        self.messages.sent(from, number, left);
    }

    /// Returns the send of a message that is handled from `at_ns` on, if it is known.
    pub(super) fn handled(&mut self, from: ChunkId, number: u32, at_ns: u64) -> Option<ArrowStart> {
        let left = self.messages.handled(from, number, ()).other()?;
        self.forwards(left, at_ns)
    }

    /// Adds the departure of a chunk for another rank.
    pub(super) fn departed(&mut self, chunk: ChunkId, rank: u32, left: ArrowStart) {
        self.chunks.insert(chunk, (rank, left));
    }

    /// Returns whether a chunk has left for this rank.
    pub(super) fn is_in_flight(&self, chunk: ChunkId, rank: u32) -> bool {
        self.chunks.get(&chunk).is_some_and(|&(to, _)| to == rank)
    }

    /// Returns the departure of a chunk that arrives, if it came from another rank.
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
