//! The chunk table of a rank: each chunk has a stable slot, a *cell*. Workers find chunks by the number of the cell.
//!
//! A ready entry is the number of a cell, so scheduling a chunk counts no references. Cells never move: the table grows
//! by segments and never shrinks, and freed cells are reused. Each segment is twice as long as the one before, up to
//! the longest that a number can address.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::facts::Facts;
use super::mailbox::Mailbox;
use crate::arrays::core::lifecycle::erased::ErasedSlot;
use crate::arrays::core::routing::envelope::Delivery;
use crate::arrays::core::routing::message_list::MessageList;
use crate::ids::{CellId, ChunkId, WorkerId};
use crate::threads::elided_mutex::{ElidedMutex, Tag};

/// Lengths of the first segment and of the longest.
const FIRST: u32 = 64;
const LONGEST: u32 = 1 << OFFSET_BITS;
/// A cell's number holds the number of its segment in the high bits and the offset within the segment in the low bits.
const OFFSET_BITS: u32 = 26;
/// Number of segments that a cell's number can address. The last one is never allocated: no cell has the greatest
/// number.
const SEGMENTS: usize = 1 << (u32::BITS - OFFSET_BITS);

/// The cell of one chunk: its mailbox, its load and its home worker.
pub(crate) struct Cell {
    pub(crate) mailbox: Mailbox<Box<dyn ErasedSlot>, Delivery>,
    /// CPU time since the last sync, ns.
    load_ns: AtomicU64,
    /// Number of messages handled since the last window.
    handled: AtomicU32,
    /// The home worker: ready entries of the chunk go to its queue.
    home: AtomicU32,
    /// The last thief and its number of steals in a row: see [`StealCount`].
    steals: AtomicU32,
    /// The facts that a window reports.
    pub(super) facts: Facts,
}

/// The worker that stole the chunk last, in the high bits, and its number of steals in a row, in the low bits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StealCount(u32);

/// Number of steals in a row after which the thief becomes the home worker. It is large because short tasks are stolen
/// several times in a row by chance. Also, a chunk with a new home worker sends to its old neighbours on another worker
/// from then on.
const MOVE_HOME_AFTER: u32 = 128;
const COUNT_BITS: u32 = 8;

impl StealCount {
    const NONE: StealCount = StealCount(0);
    /// No worker has run the chunk on this rank yet. The chunk counts as stolen by a worker that does not exist.
    const NEW: StealCount = StealCount((u32::MAX << COUNT_BITS) + 1);

    /// Counts one more steal by `worker`.
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
            handled: AtomicU32::new(0),
            home: AtomicU32::new(0),
            steals: AtomicU32::new(StealCount::NONE.0),
            facts: Facts::default(),
        }
    }

    /// Adds CPU time to the load of the chunk. Only the worker that ran the chunk charges it, so load and store need
    /// not be one atomic step. Two workers in turn may lose a few ns to each other, less than the measurement error.
    #[inline]
    pub(crate) fn charge(&self, ns: u64, handled: u32) {
        let load = self.load_ns.load(Ordering::Relaxed);
        self.load_ns.store(load.wrapping_add(ns), Ordering::Relaxed);
        let before = self.handled.load(Ordering::Relaxed);
        self.handled.store(before.wrapping_add(handled), Ordering::Relaxed);
    }

    /// Subtracts CPU time that was charged in excess.
    pub(crate) fn refund(&self, ns: u64) {
        let load = self.load_ns.load(Ordering::Relaxed);
        self.load_ns.store(load.saturating_sub(ns), Ordering::Relaxed);
    }

    /// The home worker: ready entries of the chunk go to its queue.
    #[inline]
    pub(crate) fn home(&self) -> WorkerId {
        WorkerId(self.home.load(Ordering::Relaxed))
    }

    pub(crate) fn set_home(&self, worker: WorkerId) {
        self.home.store(worker.0, Ordering::Relaxed);
    }

    /// Counts a run by `worker`. True if another worker ran the chunk last. A chunk that is stolen now and then stays
    /// at its home worker, so that messages of its neighbours there need no other worker. A chunk that one worker
    /// steals again and again moves to that worker.
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

    /// Takes the CPU time charged since the last call.
    pub(crate) fn take_load(&self) -> u64 {
        self.load_ns.swap(0, Ordering::Relaxed)
    }

    /// Takes the number of messages handled since the last call.
    pub(crate) fn take_handled(&self) -> u32 {
        self.handled.swap(0, Ordering::Relaxed)
    }
}

struct Free {
    cells: Vec<CellId>,
    next: CellId,
}

pub(crate) struct Cells {
    owner: Tag,
    segments: [OnceLock<Box<[Cell]>>; SEGMENTS],
    free: ElidedMutex<Free>,
    /// True if windows report [`Facts`].
    asks_facts: bool,
}

impl Cells {
    pub(crate) fn new(owner: Tag, asks_facts: bool) -> Cells {
        let free = ElidedMutex::new(owner, Free { cells: Vec::new(), next: CellId(0) });
        Cells { owner, segments: [const { OnceLock::new() }; SEGMENTS], free, asks_facts }
    }

    /// The cell with this number. O(1).
    #[inline]
    pub(crate) fn get(&self, id: CellId) -> &Cell {
        let (segment, offset) = locate(id);
        &self.segments[segment].get().expect("a cell's segment is made before its number is known")[offset]
    }

    /// Moves a chunk that has not started into its reserved cell. The caller now owns its ready entry.
    pub(crate) fn settle_new(&self, id: CellId, chunk: ChunkId, slot: Box<dyn ErasedSlot>) {
        self.renewed(id).mailbox.settle_new(chunk, slot);
    }

    /// Moves a chunk into its reserved cell, with its messages. True if the caller now owns its ready entry.
    pub(crate) fn settle(
        &self,
        id: CellId,
        chunk: ChunkId,
        slot: Box<dyn ErasedSlot>,
        mail: MessageList,
    ) -> bool {
        self.renewed(id).mailbox.settle(chunk, slot, mail)
    }

    /// Resets a cell for a chunk that is about to move in.
    fn renewed(&self, id: CellId) -> &Cell {
        let cell = self.get(id);
        cell.load_ns.store(0, Ordering::Relaxed);
        cell.handled.store(0, Ordering::Relaxed);
        cell.steals.store(StealCount::NEW.0, Ordering::Relaxed);
        cell.facts.reset(self.asks_facts);
        cell
    }

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

    /// Returns a vacated cell to the free list.
    pub(crate) fn free(&self, id: CellId) {
        self.free.lock().cells.push(id);
    }

    /// Every cell that was ever reserved.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cell> {
        let (last, used) = locate(self.free.lock().next);
        let segments = self.segments.iter().map_while(OnceLock::get).enumerate();
        segments.flat_map(move |(segment, cells)| if segment < last { &cells[..] } else { &cells[..used] })
    }
}

/// The segment of a cell, and its offset there.
#[inline]
fn locate(id: CellId) -> (usize, usize) {
    ((id.0 >> OFFSET_BITS) as usize, (id.0 % LONGEST) as usize)
}

fn length(segment: usize) -> u32 {
    FIRST << (LONGEST / FIRST).ilog2().min(segment as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_reserved_once_and_freed_cells_are_reused() {
        let cells = Cells::new(Tag::SHARED, false);
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
    fn a_worker_that_keeps_stealing_a_chunk_becomes_its_home() {
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
    fn a_run_tells_whether_another_worker_ran_the_chunk_last() {
        let cells = Cells::new(Tag::SHARED, false);
        let cell = cells.renewed(cells.reserve());
        cell.set_home(WorkerId(1));
        let mut had = vec![(1, true), (1, false), (0, true), (0, false), (1, true), (2, true), (0, true)];
        had.extend(vec![(0, false); 2 * MOVE_HOME_AFTER as usize]);
        for (run, (worker, anew)) in had.into_iter().enumerate() {
            assert_eq!(cell.count_run(WorkerId(worker)), anew, "run {run} by {worker}");
        }
    }

    #[test]
    fn segments_double_up_to_the_longest() {
        assert_eq!([0, 1, 2].map(length), [64, 128, 256]);
        assert_eq!([20, 21, SEGMENTS - 1].map(length), [LONGEST; 3]);
        assert_eq!(locate(CellId((20 << OFFSET_BITS) + LONGEST - 1)), (20, LONGEST as usize - 1));
    }
}
