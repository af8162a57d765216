//! The table of cells of a rank: a stable place for every chunk.
//!
//! A ready token is a cell's number, so scheduling a chunk counts no references. Cells never move: the table grows by
//! segments, each twice as long as the one before, and is never shrunk; freed cells are used again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::mailbox::Mailbox;
use crate::arrays::core::envelope::Delivery;
use crate::arrays::core::erased::ErasedSlot;
use crate::arrays::core::mail::Mail;
use crate::ids::{CellId, ChunkId};
use crate::threads::guarded::{Guarded, Tag};

/// Length of the first segment.
const FIRST: u32 = 64;
const SEGMENTS: usize = 27;

/// One chunk's place: its mailbox and what its handlers have cost.
pub(crate) struct Cell {
    pub(crate) mailbox: Mailbox<Box<dyn ErasedSlot>, Delivery>,
    /// CPU time since the last sync, ns.
    load_ns: AtomicU64,
    /// The worker that ran it last: its next token goes there.
    pub(crate) last_worker: AtomicU32,
}

impl Cell {
    fn new(owner: Tag) -> Cell {
        Cell { mailbox: Mailbox::new(owner), load_ns: AtomicU64::new(0), last_worker: AtomicU32::new(0) }
    }

    /// Charges CPU time. Only the worker that ran the chunk charges it, so load and store need not be one step; two
    /// workers that ran it in turn may lose a few ns to each other, below the error of the measurement.
    #[inline]
    pub(crate) fn charge(&self, ns: i64) {
        let load = self.load_ns.load(Ordering::Relaxed);
        self.load_ns.store(load.saturating_add_signed(ns), Ordering::Relaxed);
    }

    /// Takes the CPU time since the last call.
    pub(crate) fn take_load(&self) -> u64 {
        self.load_ns.swap(0, Ordering::Relaxed)
    }
}

struct Free {
    cells: Vec<CellId>,
    next: u32,
}

/// All cells of a rank.
pub(crate) struct Cells {
    owner: Tag,
    segments: [OnceLock<Box<[Cell]>>; SEGMENTS],
    free: Guarded<Free>,
}

impl Cells {
    pub(crate) fn new(owner: Tag) -> Cells {
        let free = Guarded::new(owner, Free { cells: Vec::new(), next: 0 });
        Cells { owner, segments: [const { OnceLock::new() }; SEGMENTS], free }
    }

    /// The cell with this number. O(1).
    #[inline]
    pub(crate) fn get(&self, id: CellId) -> &Cell {
        let (segment, offset) = locate(id);
        &self.segments[segment].get().expect("a cell's segment is made before its number is known")[offset]
    }

    /// Moves a chunk into a cell that was reserved for it. True if the caller now has its token.
    pub(crate) fn settle(&self, id: CellId, chunk: ChunkId, slot: Box<dyn ErasedSlot>, mail: Mail) -> bool {
        let cell = self.get(id);
        cell.load_ns.store(0, Ordering::Relaxed);
        cell.mailbox.settle(chunk, slot, mail)
    }

    /// A cell that nobody else will be given.
    pub(crate) fn reserve(&self) -> CellId {
        let mut free = self.free.lock();
        if let Some(id) = free.cells.pop() {
            return id;
        }
        let id = CellId(free.next);
        free.next = free.next.checked_add(1).expect("a rank holds at most 4 billion chunks");
        let (segment, _) = locate(id);
        let length = FIRST << segment;
        self.segments[segment].get_or_init(|| (0..length).map(|_| Cell::new(self.owner)).collect());
        id
    }

    /// Returns a vacated cell.
    pub(crate) fn free(&self, id: CellId) {
        self.free.lock().cells.push(id);
    }

    /// Every cell that was ever used.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cell> {
        let used = self.free.lock().next;
        (0..used).map(|id| self.get(CellId(id)))
    }
}

fn locate(id: CellId) -> (usize, usize) {
    let position = u64::from(id.0) + u64::from(FIRST);
    let segment = position.ilog2() - FIRST.ilog2();
    (segment as usize, (position - (u64::from(FIRST) << segment)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_each_other_without_gap_or_overlap() {
        assert_eq!(locate(CellId(0)), (0, 0));
        assert_eq!(locate(CellId(63)), (0, 63));
        assert_eq!(locate(CellId(64)), (1, 0));
        assert_eq!(locate(CellId(191)), (1, 127));
        assert_eq!(locate(CellId(192)), (2, 0));
        assert_eq!(locate(CellId(u32::MAX)).0, SEGMENTS - 1);
    }
}
