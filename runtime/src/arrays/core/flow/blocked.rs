//! Stores the blocked chunks of a rank: the destinations that block each chunk, and whether its ready entry is parked.

use std::collections::{BTreeMap, BTreeSet};

use super::Destination;
use crate::ids::CellId;

#[derive(Debug)]
struct Blocked {
    by: Vec<Destination>,
    /// True if the ready entry of the chunk is parked.
    parked: bool,
}

#[derive(Debug, Default)]
pub(super) struct BlockedChunks {
    chunks: BTreeMap<CellId, Blocked>,
    parked: usize,
    /// Chunks that were blocked when they were held ([`prepare_leave`](BlockedChunks::prepare_leave)), until they leave
    /// ([`leave`](BlockedChunks::leave)).
    leaving: BTreeSet<CellId>,
}

impl BlockedChunks {
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn has_parked(&self) -> bool {
        self.parked > 0
    }

    /// These destinations, if any, block the chunk of a cell from now on.
    pub(super) fn block(&mut self, cell: CellId, by: Vec<Destination>) {
        if !by.is_empty() {
            let before = self.chunks.insert(cell, Blocked { by, parked: false });
            debug_assert!(before.is_none(), "a blocked chunk does not run");
        }
    }

    /// Chunks that `first` blocks are blocked by `second` too.
    pub(super) fn also_block(&mut self, first: Destination, second: Destination) {
        let by_first = |blocked: &&mut Blocked| blocked.by.contains(&first) && !blocked.by.contains(&second);
        self.chunks.values_mut().filter(by_first).for_each(|blocked| blocked.by.push(second));
    }

    /// True if this destination blocks any chunk.
    pub(super) fn any_by(&self, destination: Destination) -> bool {
        self.chunks.values().any(|blocked| blocked.by.contains(&destination))
    }

    /// Parks the ready entry of a cell if its chunk is blocked. True if so.
    pub(super) fn park(&mut self, cell: CellId) -> bool {
        let Some(blocked) = self.chunks.get_mut(&cell) else { return false };
        blocked.parked = true;
        self.parked += 1;
        true
    }

    /// A destination blocks no chunk any more. Returns the entries that are no longer parked.
    pub(super) fn unblock(&mut self, destination: Destination) -> Vec<CellId> {
        self.unblock_if(|blocked| {
            blocked.by.retain(|&by| by != destination);
            blocked.by.is_empty()
        })
    }

    /// Unblocks all chunks with parked entries, and returns these entries.
    pub(super) fn unblock_parked(&mut self) -> Vec<CellId> {
        self.unblock_if(|blocked| blocked.parked)
    }

    fn unblock_if(&mut self, is_free: impl Fn(&mut Blocked) -> bool) -> Vec<CellId> {
        let mut freed = Vec::new();
        self.chunks.retain(|&cell, blocked| {
            let is_free = is_free(blocked);
            freed.extend((is_free && blocked.parked).then_some(cell));
            !is_free
        });
        self.parked -= freed.len();
        freed
    }

    /// The chunk of a cell is about to leave: nothing blocks it any more. True if its entry was parked.
    pub(super) fn prepare_leave(&mut self, cell: CellId) -> bool {
        let Some(Blocked { parked, .. }) = self.chunks.remove(&cell) else { return false };
        self.leaving.insert(cell);
        self.parked -= usize::from(parked);
        parked
    }

    /// The chunk of a cell leaves. True if it was blocked when `prepare_leave` was called, or has been since.
    pub(super) fn leave(&mut self, cell: CellId) -> bool {
        self.prepare_leave(cell);
        self.leaving.remove(&cell)
    }

    /// The destinations that parked entries wait for, ascending.
    pub(super) fn awaited(&self) -> Vec<Destination> {
        let parked = self.chunks.values().filter(|blocked| blocked.parked);
        let mut awaited: Vec<Destination> = parked.flat_map(|blocked| blocked.by.iter().copied()).collect();
        awaited.sort_unstable();
        awaited.dedup();
        awaited
    }
}
