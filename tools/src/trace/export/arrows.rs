//! Which handler handles which message, and where a chunk that comes had left: the arrows of a picture.
//!
//! Only what is under way is remembered, and of that no more than [`UNDER_WAY_MAX`]: the messages of a rank whose file is
//! missing are never seen to arrive.

use caribou::trace::{ChunkId, RUNTIME};
use rustc_hash::FxHashMap;

/// Messages remembered; of more than these the oldest are forgotten, and have no arrow.
const UNDER_WAY_MAX: usize = 1 << 21;

/// Where a message, or a chunk, left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// The position of the row.
    pub(super) position: usize,
    /// Counts what left from that row.
    pub(super) event: u32,
    /// When.
    pub(super) at_ns: u64,
    pub(super) bytes: u64,
}

/// What is under way.
pub(super) struct Arrows {
    messages: FxHashMap<(ChunkId, u32), Left>,
    /// Those that were sent before any of `messages`.
    older: FxHashMap<(ChunkId, u32), Left>,
    /// Chunks between two ranks, with the rank that they go to.
    chunks: FxHashMap<ChunkId, (u32, Left)>,
    half: usize,
    /// What was handled or landed in a slice that began before it had left: its worker looked for work by then, or clocks
    /// differ by more than the way took.
    pub(super) backwards: u64,
}

impl Arrows {
    pub(super) fn new() -> Arrows {
        Arrows {
            messages: FxHashMap::default(),
            older: FxHashMap::default(),
            chunks: FxHashMap::default(),
            half: UNDER_WAY_MAX / 2,
            backwards: 0,
        }
    }

    /// A message left.
    pub(super) fn sent(&mut self, from: ChunkId, number: u32, left: Left) {
        if number == 0 || from == RUNTIME {
            return;
        }
        if self.messages.len() >= self.half {
            self.older = std::mem::take(&mut self.messages);
        }
        self.messages.insert((from, number), left);
    }

    /// A message begins to be handled; where it came from, if that is known.
    pub(super) fn handled(&mut self, from: ChunkId, number: u32, at_ns: u64) -> Option<Left> {
        if number == 0 {
            return None;
        }
        let key = (from, number);
        let left = self.messages.remove(&key).or_else(|| self.older.remove(&key))?;
        self.forwards(left, at_ns)
    }

    /// A chunk left for another rank.
    pub(super) fn departed(&mut self, chunk: ChunkId, rank: u32, left: Left) {
        self.chunks.insert(chunk, (rank, left));
    }

    /// Whether a chunk has left for this rank.
    pub(super) fn is_under_way(&self, chunk: ChunkId, rank: u32) -> bool {
        self.chunks.get(&chunk).is_some_and(|&(to, _)| to == rank)
    }

    /// A chunk is there; where it came from, if it came from another rank.
    pub(super) fn arrived(&mut self, chunk: ChunkId, rank: u32, at_ns: u64) -> Option<Left> {
        let &(to, left) = self.chunks.get(&chunk)?;
        if to != rank {
            return None;
        }
        self.chunks.remove(&chunk);
        self.forwards(left, at_ns)
    }

    fn forwards(&mut self, left: Left, at_ns: u64) -> Option<Left> {
        let forwards = left.at_ns <= at_ns;
        self.backwards += u64::from(!forwards);
        forwards.then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use caribou::trace::ArrayId;

    use super::*;

    #[test]
    fn what_never_arrives_is_forgotten() {
        let mut arrows = Arrows { half: 4, ..Arrows::new() };
        let from = ChunkId { array: ArrayId(0), key: 7 };
        let left = |event| Left { position: 0, event, at_ns: 0, bytes: 0 };
        (1..=100).for_each(|number| arrows.sent(from, number, left(number)));
        assert!(arrows.messages.len() + arrows.older.len() <= 8);
        assert_eq!(arrows.handled(from, 1, 5), None);
        assert_eq!(arrows.handled(from, 100, 5), Some(left(100)));
        assert_eq!(arrows.handled(from, 100, 5), None, "a message is handled once");
    }
}
