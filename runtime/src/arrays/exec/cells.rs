//! The table of cells of a rank: a stable place for every chunk.
//!
//! A ready entry is a cell's number, so scheduling a chunk counts no references. Cells never move: the table grows by
//! segments, each twice as long as the one before as far as numbers go, and is never shrunk; freed cells are used again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::mailbox::Mailbox;
use crate::arrays::core::lifecycle::erased::ErasedSlot;
use crate::arrays::core::routing::envelope::Delivery;
use crate::arrays::core::routing::message_list::MessageList;
use crate::ids::{CellId, ChunkId, WorkerId};
use crate::threads::elided_mutex::{ElidedMutex, Tag};

/// Length of the first segment, and of the longest.
const FIRST: u32 = 64;
const LONGEST: u32 = 1 << OFFSET_BITS;
/// A cell's number is that of its segment, and in the low bits its place there.
const OFFSET_BITS: u32 = 26;
/// As many as have numbers; the last is never made: no cell has the greatest number.
const SEGMENTS: usize = 1 << (u32::BITS - OFFSET_BITS);

/// One chunk's place: its mailbox and what its handlers have cost.
pub(crate) struct Cell {
    pub(crate) mailbox: Mailbox<Box<dyn ErasedSlot>, Delivery>,
    /// CPU time since the last sync, ns.
    load_ns: AtomicU64,
    /// The worker that gets its entries.
    home: AtomicU32,
    /// The worker that has stolen it since it was at home or with another, and how often: see [`StealCount`].
    steals: AtomicU32,
}

/// A thief in the high bits, and in the low ones how often it has stolen the chunk in a row.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StealCount(u32);

/// Who steals a chunk so often in a row keeps it. Often: short tasks are stolen some times in a row by chance, and a chunk
/// that has moved away from its neighbours writes to another worker from then on.
const MOVE_HOME_AFTER: u32 = 128;
const COUNT_BITS: u32 = 8;

impl StealCount {
    const NONE: StealCount = StealCount(0);
    /// Nobody has run it here yet: it counts as stolen by a worker that there is not.
    const NEW: StealCount = StealCount((u32::MAX << COUNT_BITS) + 1);

    /// One more.
    fn by(self, worker: WorkerId) -> StealCount {
        let first = worker.0 << COUNT_BITS;
        if self.is_by(worker) { StealCount(self.0 + 1) } else { StealCount(first + 1) }
    }

    fn is_by(self, worker: WorkerId) -> bool {
        self != StealCount::NONE && self.0 >> COUNT_BITS == worker.0
    }

    fn count(self) -> u32 {
        self.0 % (1 << COUNT_BITS)
    }
}

impl Cell {
    fn new(owner: Tag) -> Cell {
        Cell {
            mailbox: Mailbox::new(owner),
            load_ns: AtomicU64::new(0),
            home: AtomicU32::new(0),
            steals: AtomicU32::new(StealCount::NONE.0),
        }
    }

    /// Charges CPU time. Only the worker that ran the chunk charges it, so load and store need not be one step; two
    /// workers that ran it in turn may lose a few ns to each other, below the error of the measurement.
    #[inline]
    pub(crate) fn charge(&self, ns: u64) {
        let load = self.load_ns.load(Ordering::Relaxed);
        self.load_ns.store(load.wrapping_add(ns), Ordering::Relaxed);
    }

    /// Takes back what was charged too much.
    pub(crate) fn refund(&self, ns: u64) {
        let load = self.load_ns.load(Ordering::Relaxed);
        self.load_ns.store(load.saturating_sub(ns), Ordering::Relaxed);
    }

    /// The worker that gets its entries.
    #[inline]
    pub(crate) fn home(&self) -> WorkerId {
        WorkerId(self.home.load(Ordering::Relaxed))
    }

    /// Its entries go to this worker from now on.
    pub(crate) fn set_home(&self, worker: WorkerId) {
        self.home.store(worker.0, Ordering::Relaxed);
    }

    /// A worker runs it; true if it is not the one that ran it last. Where a chunk is stolen now and then it stays at home,
    /// with its neighbours, whose messages to it then need no other worker; where another worker has time for it again and
    /// again, it moves there.
    #[inline]
    pub(crate) fn count_run(&self, worker: WorkerId) -> bool {
        let before = StealCount(self.steals.load(Ordering::Relaxed));
        let at_home = self.home() == worker;
        if at_home && before == StealCount::NONE {
            return false;
        }
        let mut steals = if at_home { StealCount::NONE } else { before.by(worker) };
        if steals.count() == MOVE_HOME_AFTER {
            self.set_home(worker);
            steals = StealCount::NONE;
        }
        self.steals.store(steals.0, Ordering::Relaxed);
        at_home || !before.is_by(worker)
    }

    /// Takes the CPU time since the last call.
    pub(crate) fn take_load(&self) -> u64 {
        self.load_ns.swap(0, Ordering::Relaxed)
    }
}

struct Free {
    cells: Vec<CellId>,
    next: CellId,
}

/// All cells of a rank.
pub(crate) struct Cells {
    owner: Tag,
    segments: [OnceLock<Box<[Cell]>>; SEGMENTS],
    free: ElidedMutex<Free>,
}

impl Cells {
    pub(crate) fn new(owner: Tag) -> Cells {
        let free = ElidedMutex::new(owner, Free { cells: Vec::new(), next: CellId(0) });
        Cells { owner, segments: [const { OnceLock::new() }; SEGMENTS], free }
    }

    /// The cell with this number. O(1).
    #[inline]
    pub(crate) fn get(&self, id: CellId) -> &Cell {
        let (segment, offset) = locate(id);
        &self.segments[segment].get().expect("a cell's segment is made before its number is known")[offset]
    }

    /// Moves a chunk that has not started into a cell that was reserved for it. The caller now has its entry.
    pub(crate) fn settle_new(&self, id: CellId, chunk: ChunkId, slot: Box<dyn ErasedSlot>) {
        self.renewed(id).mailbox.settle_new(chunk, slot);
    }

    /// The same of one that comes with mail. True if the caller now has its entry.
    pub(crate) fn settle(
        &self,
        id: CellId,
        chunk: ChunkId,
        slot: Box<dyn ErasedSlot>,
        mail: MessageList,
    ) -> bool {
        self.renewed(id).mailbox.settle(chunk, slot, mail)
    }

    /// A cell that a chunk is about to get.
    fn renewed(&self, id: CellId) -> &Cell {
        let cell = self.get(id);
        cell.load_ns.store(0, Ordering::Relaxed);
        cell.steals.store(StealCount::NEW.0, Ordering::Relaxed);
        cell
    }

    /// A cell that nobody else will be given.
    pub(crate) fn reserve(&self) -> CellId {
        let mut free = self.free.lock();
        if let Some(id) = free.cells.pop() {
            return id;
        }
        let id = free.next;
        let (segment, offset) = locate(id);
        let segments = &self.segments;
        assert!(segment + 1 < SEGMENTS, "a rank holds at most 2.9 billion chunks");
        let cells =
            segments[segment].get_or_init(|| (0..length(segment)).map(|_| Cell::new(self.owner)).collect());
        let last = offset + 1 == cells.len();
        free.next = if last { CellId((segment as u32 + 1) << OFFSET_BITS) } else { CellId(id.0 + 1) };
        id
    }

    /// Returns a vacated cell.
    pub(crate) fn free(&self, id: CellId) {
        self.free.lock().cells.push(id);
    }

    /// Every cell that was ever used.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cell> {
        let (last, used) = locate(self.free.lock().next);
        let segments = self.segments.iter().map_while(OnceLock::get).enumerate();
        segments.flat_map(move |(segment, cells)| if segment < last { &cells[..] } else { &cells[..used] })
    }
}

/// The segment of a cell, and its place there.
#[inline]
fn locate(id: CellId) -> (usize, usize) {
    ((id.0 >> OFFSET_BITS) as usize, (id.0 % LONGEST) as usize)
}

/// The length of a segment.
fn length(segment: usize) -> u32 {
    FIRST << (LONGEST / FIRST).ilog2().min(segment as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_all_cells_are_seen_and_used_again() {
        let cells = Cells::new(Tag::SHARED);
        let mut given: Vec<CellId> = (0..1000).map(|_| cells.reserve()).collect();
        assert_eq!(cells.iter().count(), 1000);
        for (number, &id) in given.iter().enumerate() {
            cells.get(id).set_home(WorkerId(number as u32));
        }
        assert!(cells.iter().map(|cell| cell.home().0).eq(0..1000));
        cells.free(given[500]);
        assert_eq!(cells.reserve(), given[500]);
        given.dedup();
        assert_eq!(given.len(), 1000);
    }

    #[test]
    fn who_steals_a_chunk_again_and_again_keeps_it() {
        let cell = Cell::new(Tag::SHARED);
        cell.set_home(WorkerId(1));
        let home_after = |runs: &[u32]| {
            for &worker in runs {
                cell.count_run(WorkerId(worker));
            }
            cell.home().0
        };
        let often = MOVE_HOME_AFTER as usize;
        assert_eq!(home_after(&[&vec![0; often - 1], &[1][..]].concat()), 1);
        assert_eq!(home_after(&[0, 2].repeat(often)), 1, "nobody in a row");
        assert_eq!(home_after(&vec![2; often - 1]), 2, "the last of those before counts");
        assert_eq!(home_after(&vec![1; often - 1]), 2, "its old home is a thief like any other");
        assert_eq!(home_after(&[1]), 1);
    }

    #[test]
    fn who_runs_a_chunk_that_another_had_hears_of_it() {
        let cells = Cells::new(Tag::SHARED);
        let cell = cells.renewed(cells.reserve());
        cell.set_home(WorkerId(1));
        let mut had = vec![(1, true), (1, false), (0, true), (0, false), (1, true), (2, true), (0, true)];
        had.extend(vec![(0, false); 2 * MOVE_HOME_AFTER as usize]);
        for (run, (worker, anew)) in had.into_iter().enumerate() {
            assert_eq!(cell.count_run(WorkerId(worker)), anew, "run {run} by {worker}");
        }
    }

    #[test]
    fn segments_double_up_to_the_longest_that_has_numbers() {
        assert_eq!([0, 1, 2].map(length), [64, 128, 256]);
        assert_eq!([20, 21, SEGMENTS - 1].map(length), [LONGEST; 3]);
        assert_eq!(locate(CellId((20 << OFFSET_BITS) + LONGEST - 1)), (20, LONGEST as usize - 1));
    }
}
