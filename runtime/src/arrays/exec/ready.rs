//! Run queues of ready entries, and the order in which a worker searches them.
//!
//! A worker takes its *newest* entry, but every [`OLDEST_EVERY`]th time the *oldest*, so that no entry starves. On a
//! ring of chunks that only send, shared by two workers, this is a third faster than first in, first out. A worker that
//! is alone on its rank always takes the oldest entry where that is faster: see [`queue_order`](super::queue_order).
//!
//! Several workers of a rank steal from each other, the oldest entry first. The newest entry is stored separately and
//! cannot be stolen, because its worker is about to run it from its own cache. Before other work that may take long,
//! the worker makes the entry available ([`ReadyQueue::share_newest`]).
//!
//! When chunks leave the rank, their entries are withdrawn. On a rank with several workers, all other entries then go
//! to the inboxes, oldest first.

use std::collections::VecDeque;

use crossbeam_deque::{Injector, Steal, Stealer, Worker as Deque};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::cells::{Cell, Cells};
use super::queue_order::{QueueOrder, TurnStats};
use crate::ids::{CellId, WorkerId};

/// A worker takes its oldest entry once per this number of entries.
const OLDEST_EVERY: u32 = 8;

/// The own run queue of one worker. `repr(u8)` gives an explicit tag, since a tag in a niche takes longer to read.
#[repr(u8)]
pub(crate) enum ReadyQueue<'r> {
    /// The rank has one worker, so the queue is private. The newest entry, often the only one, has its own place.
    Single {
        newest: Option<(CellId, &'r Cell)>,
        older: VecDeque<CellId>,
        taken: u32,
        queue_order: QueueOrder,
    },
    /// Other workers of the rank may steal the older entries, and send entries to the inbox of this worker. Every
    /// second time that the oldest entry is due, the inbox is read first, in case the own queue is never empty.
    Stealing { newest: Option<(CellId, &'r Cell)>, older: Deque<CellId>, taken: u32 },
    /// In a simulation the seed picks the next entry.
    Seeded { entries: Vec<CellId>, rng: Pcg32 },
}

/// The part of the queues that all workers of a rank access; empty for a rank with one worker.
#[derive(Default)]
pub(crate) struct SharedQueues {
    /// Entries that other workers sent to their home worker, by home worker.
    pub(crate) inboxes: Vec<Injector<CellId>>,
    pub(crate) stealers: Vec<Stealer<CellId>>,
}

impl SharedQueues {
    /// The shared queues, and the own queue of each of `workers` workers.
    pub(crate) fn new<'r>(workers: u32) -> (SharedQueues, Vec<ReadyQueue<'r>>) {
        if workers == 1 {
            return (
                SharedQueues::default(),
                vec![ReadyQueue::Single {
                    newest: None,
                    older: VecDeque::new(),
                    taken: 0,
                    queue_order: QueueOrder::new(),
                }],
            );
        }
        let deques: Vec<_> = (0..workers).map(|_| Deque::new_lifo()).collect();
        let inboxes = (0..workers).map(|_| Injector::new()).collect();
        let stealers = deques.iter().map(Deque::stealer).collect();
        let ready = |older| ReadyQueue::Stealing { newest: None, older, taken: 0 };
        (SharedQueues { inboxes, stealers }, deques.into_iter().map(ready).collect())
    }

    /// Removes the entries that `consumes` accepts. All others go to the inboxes of their workers, oldest first.
    /// Returns the number of the others. An entry that a worker takes at the same time may stay.
    pub(super) fn withdraw(&self, mut consumes: impl FnMut(CellId) -> bool) -> usize {
        let mut left = 0;
        for (inbox, deque) in self.inboxes.iter().zip(&self.stealers) {
            // The inbox first: a worker that runs out of entries moves entries from the inbox to its deque.
            let sent: Vec<CellId> = drain(inbox.len(), || inbox.steal()).collect();
            let older: Vec<CellId> = drain(deque.len(), || deque.steal()).collect();
            for entry in older.into_iter().chain(sent).filter(|&entry| !consumes(entry)) {
                inbox.push(entry);
                left += 1;
            }
        }
        left
    }

    /// True if there is an entry that any worker could take.
    pub(crate) fn any(&self) -> bool {
        self.inboxes.iter().any(|inbox| !inbox.is_empty())
            || self.stealers.iter().any(|deque| !deque.is_empty())
    }
}

impl<'r> ReadyQueue<'r> {
    pub(crate) fn seeded(seed: u64) -> ReadyQueue<'r> {
        ReadyQueue::Seeded { entries: Vec::new(), rng: Pcg32::seed_from_u64(seed) }
    }

    /// Stores the entry of the chunk in this cell as the newest. Returns false if the worker is not alone or has a
    /// newest entry: then the caller must [push](Self::push) the entry.
    #[inline]
    pub(crate) fn push_newest(&mut self, entry: CellId, cell: &'r Cell) -> bool {
        let ReadyQueue::Single { newest: newest @ None, .. } = self else { return false };
        *newest = Some((entry, cell));
        true
    }

    /// Pushes the entry of the chunk in this cell as the newest.
    pub(crate) fn push(&mut self, entry: CellId, cell: &'r Cell) {
        match self {
            ReadyQueue::Single { newest, older, .. } => {
                // Not by `extend`, which takes three times as long for one entry.
                if let Some((entry, _)) = newest.replace((entry, cell)) {
                    older.push_back(entry);
                }
            }
            ReadyQueue::Stealing { newest, older, .. } => {
                if let Some((entry, _)) = newest.replace((entry, cell)) {
                    older.push(entry);
                }
            }
            ReadyQueue::Seeded { entries, .. } => entries.push(entry),
        }
    }

    /// Removes the entries that `consumes` accepts, among the entries that only this worker can take. In a simulation
    /// the seed leaves some of them.
    pub(super) fn withdraw(&mut self, mut consumes: impl FnMut(CellId) -> bool) {
        match self {
            ReadyQueue::Single { newest, older, .. } => {
                newest.take_if(|&mut (entry, _)| consumes(entry));
                older.retain(|&entry| !consumes(entry));
            }
            ReadyQueue::Stealing { newest, .. } => {
                newest.take_if(|&mut (entry, _)| consumes(entry));
            }
            ReadyQueue::Seeded { entries, rng } => {
                entries.retain(|&entry| rng.random() || !consumes(entry));
            }
        }
    }

    /// True if the worker's own queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            ReadyQueue::Single { newest, older, .. } => newest.is_none() && older.is_empty(),
            ReadyQueue::Stealing { newest, older, .. } => newest.is_none() && older.is_empty(),
            ReadyQueue::Seeded { entries, .. } => entries.is_empty(),
        }
    }

    /// Updates the queue order of a lone worker after a turn.
    pub(super) fn learn(&mut self, turn: &TurnStats) {
        if let ReadyQueue::Single { newest, older, queue_order, .. } = self {
            queue_order.learn(turn, older.len() + usize::from(newest.is_some()));
        }
    }

    /// Lets other workers steal the newest entry. True if there was one: the caller may have to wake a worker.
    #[inline]
    pub(crate) fn share_newest(&mut self) -> bool {
        let ReadyQueue::Stealing { newest: newest @ Some(_), older, .. } = self else { return false };
        newest.take().into_iter().for_each(|(entry, _)| older.push(entry));
        true
    }

    /// The next entry for worker `me`: from its own queue, then from its inbox, then from the other workers in turn,
    /// beginning with its neighbour. At another worker, the queue comes before the inbox. That inbox is read too,
    /// because its worker may be busy for long.
    ///
    /// ```text
    /// newest  or  older.pop()  or  inbox[me].steal_batch_and_pop()
    ///         or  for other in me+1.. : older[other].steal() or inbox[other].steal()
    /// ```
    #[inline]
    pub(crate) fn find(
        &mut self,
        me: WorkerId,
        queues: &SharedQueues,
        cells: &'r Cells,
    ) -> Option<(CellId, &'r Cell)> {
        let with_cell = |entry| (entry, cells.get(entry));
        match self {
            ReadyQueue::Single { newest, older, taken, queue_order } => {
                *taken = taken.wrapping_add(1);
                if older.is_empty() {
                    newest.take()
                } else if queue_order.is_oldest_first() || taken.is_multiple_of(OLDEST_EVERY) {
                    older.pop_front().map(with_cell)
                } else {
                    newest.take().or_else(|| older.pop_back().map(with_cell))
                }
            }
            ReadyQueue::Stealing { newest, taken, .. } => {
                *taken = taken.wrapping_add(1);
                let newest = if taken.is_multiple_of(OLDEST_EVERY) { None } else { newest.take() };
                newest.or_else(|| self.find_among(me, queues).map(with_cell))
            }
            ReadyQueue::Seeded { .. } => self.find_among(me, queues).map(with_cell),
        }
    }

    /// [`find`](Self::find) for a worker that is not alone and does not take its newest entry, or for a simulation.
    #[inline(never)]
    fn find_among(&mut self, me: WorkerId, queues: &SharedQueues) -> Option<CellId> {
        match self {
            ReadyQueue::Single { .. } => unreachable!("a lone worker has one queue"),
            ReadyQueue::Seeded { entries, .. } if entries.is_empty() => None,
            ReadyQueue::Seeded { entries, rng } => {
                Some(entries.swap_remove(rng.random_range(0..entries.len())))
            }
            ReadyQueue::Stealing { newest, older, taken } => {
                let mine = &queues.stealers[me.index()];
                let sent = &queues.inboxes[me.index()];
                let first = match *taken % (2 * OLDEST_EVERY) {
                    0 => mine.steal().success().or_else(|| sent.steal().success()),
                    OLDEST_EVERY => sent.steal().success().or_else(|| mine.steal().success()),
                    _ => None,
                };
                let newest = || newest.take().map(|(entry, _)| entry);
                first.or_else(newest).or_else(|| older.pop()).or_else(|| steal(older, me.index(), queues))
            }
        }
    }
}

/// Up to `most` entries that `steal` finds, until nothing is left. Tries again where another worker was faster.
fn drain(most: usize, steal: impl Fn() -> Steal<CellId>) -> impl Iterator<Item = CellId> {
    let tries = std::iter::repeat_with(steal).take_while(|stolen| !stolen.is_empty());
    tries.filter_map(Steal::success).take(most)
}

fn steal(own: &Deque<CellId>, me: usize, queues: &SharedQueues) -> Option<CellId> {
    let workers = queues.stealers.len();
    loop {
        // Each source is tried only if the sources before it had no entry: an entry that was taken must be run.
        let mut found = queues.inboxes[me].steal_batch_and_pop(own);
        for other in (1..workers).map(|step| (me + step) % workers) {
            found =
                found.or_else(|| queues.stealers[other].steal()).or_else(|| queues.inboxes[other].steal());
        }
        if !found.is_retry() {
            return found.success();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue_order::PAUSE_MIN;
    use super::*;
    use crate::threads::elided_mutex::Tag;

    /// A table with one cell per entry.
    fn cells() -> Cells {
        let cells = Cells::new(Tag::SHARED, false);
        while cells.reserve() != CellId(63) {}
        cells
    }

    fn push<'r>(ready: &mut ReadyQueue<'r>, entry: u32, cells: &'r Cells) {
        let entry = CellId(entry);
        let cell = cells.get(entry);
        if !ready.push_newest(entry, cell) {
            ready.push(entry, cell);
        }
    }

    /// The entry that this worker finds next. Checks the cell that comes with it.
    fn find<'r>(ready: &mut ReadyQueue<'r>, me: u32, queues: &SharedQueues, cells: &'r Cells) -> Option<u32> {
        let (entry, cell) = ready.find(WorkerId(me), queues, cells)?;
        assert!(std::ptr::eq(cell, cells.get(entry)));
        Some(entry.0)
    }

    #[test]
    fn a_lone_worker_takes_the_oldest_first_when_messages_batch_up() {
        let cells = cells();
        let (queues, mut ready) = SharedQueues::new(1);
        let mut next_four = || {
            (0..4).for_each(|entry| push(&mut ready[0], entry, &cells));
            let found = [(); 4].map(|()| find(&mut ready[0], 0, &queues, &cells));
            let gather = TurnStats { runs: 512, messages: 2048, ns: 1 };
            (0..PAUSE_MIN).for_each(|_| ready[0].learn(&gather));
            found
        };
        assert_eq!(next_four(), [3, 2, 1, 0].map(Some));
        assert_eq!(next_four(), [0, 1, 2, 3].map(Some));
        assert_eq!(next_four(), [0, 1, 2, 3].map(Some));
    }

    #[test]
    fn the_newest_goes_first_and_the_oldest_does_not_starve() {
        let cells = cells();
        for (workers, turns) in [(1, OLDEST_EVERY), (2, 2 * OLDEST_EVERY)] {
            let (queues, mut ready) = SharedQueues::new(workers);
            push(&mut ready[0], 0, &cells);
            let mut waited = 0;
            for newer in 1.. {
                push(&mut ready[0], newer, &cells);
                // Every second time that the oldest entry is due, the inbox is read first.
                queues.inboxes.iter().for_each(|inbox| inbox.push(CellId(63)));
                match find(&mut ready[0], 0, &queues, &cells) {
                    Some(0) => break,
                    Some(63) if workers > 1 => {}
                    found => assert_eq!(found, Some(newer)),
                }
                waited += 1;
            }
            assert_eq!(waited, turns - 1, "{workers}");
        }
    }

    #[test]
    fn a_worker_that_always_has_own_work_still_reads_its_inbox() {
        let cells = cells();
        let (queues, mut ready) = SharedQueues::new(2);
        queues.inboxes[0].push(CellId(63));
        let found = (0..OLDEST_EVERY).any(|own| {
            push(&mut ready[0], 2 * own, &cells);
            push(&mut ready[0], 2 * own + 1, &cells);
            find(&mut ready[0], 0, &queues, &cells) == Some(63)
        });
        assert!(found);
    }

    #[test]
    fn the_newest_entry_is_private_until_it_is_shared() {
        let cells = cells();
        let (queues, mut ready) = SharedQueues::new(2);
        let [owner, thief] = &mut ready[..] else { panic!("two were asked for") };
        let mut steal = || find(thief, 1, &queues, &cells);
        assert!(!owner.share_newest());
        (0..2).for_each(|entry| push(owner, entry, &cells));
        assert_eq!([steal(), steal()], [Some(0), None]);
        assert!(!owner.is_empty() && !queues.any());
        assert!(owner.share_newest() && !owner.share_newest());
        assert!(!owner.is_empty() && queues.any());
        assert_eq!(steal(), Some(1));
        assert!(owner.is_empty());
    }

    #[test]
    fn every_ready_entry_is_found_once_in_any_queue() {
        let cells = cells();
        let (queues, mut ready) = SharedQueues::new(3);
        let mut thief = ready.remove(0);
        for (worker, own) in (0..).zip(&mut ready) {
            push(own, worker, &cells);
            assert!(own.share_newest());
            queues.inboxes[worker as usize + 1].push(CellId(10 + worker));
        }
        queues.inboxes[0].push(CellId(20));
        let mut found: Vec<u32> = std::iter::from_fn(|| find(&mut thief, 0, &queues, &cells)).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 1, 10, 11, 20]);
    }

    /// Withdraws the odd entries from the queues of all workers, on behalf of the first. Returns these entries.
    fn withdraw_odd(ready: &mut ReadyQueue<'_>, queues: &SharedQueues) -> Vec<u32> {
        let mut withdrawn = Vec::new();
        let mut is_odd = |CellId(entry)| {
            let odd = !entry.is_multiple_of(2);
            withdrawn.extend(odd.then_some(entry));
            odd
        };
        ready.withdraw(&mut is_odd);
        queues.withdraw(is_odd);
        withdrawn.sort_unstable();
        withdrawn
    }

    #[test]
    fn a_lone_worker_withdraws_entries_and_finds_the_others() {
        let cells = cells();
        let (queues, mut ready) = SharedQueues::new(1);
        (0..10).for_each(|entry| push(&mut ready[0], entry, &cells));
        assert_eq!(withdraw_odd(&mut ready[0], &queues), [1, 3, 5, 7, 9], "the newest is among them");
        let found: Vec<u32> = std::iter::from_fn(|| find(&mut ready[0], 0, &queues, &cells)).collect();
        assert_eq!(found, [8, 6, 4, 2, 0]);
    }

    #[test]
    fn entries_are_withdrawn_from_all_workers_and_the_others_wait_in_their_inboxes_in_order() {
        let cells = cells();
        let (queues, mut ready) = SharedQueues::new(2);
        (0..4).for_each(|entry| push(&mut ready[0], entry, &cells));
        (10..14).for_each(|entry| push(&mut ready[1], entry, &cells));
        (20..24).for_each(|entry| queues.inboxes[1].push(CellId(entry)));
        // 13 is the newest of the other worker.
        assert_eq!(withdraw_odd(&mut ready[0], &queues), [1, 3, 11, 21, 23]);
        let sent = |worker: usize| -> Vec<u32> {
            drain(9, || queues.inboxes[worker].steal()).map(|entry| entry.0).collect()
        };
        assert_eq!((sent(0), sent(1)), (vec![0, 2], vec![10, 12, 20, 22]));
    }

    #[test]
    fn entries_that_other_workers_take_meanwhile_are_found_once() {
        let cells = cells();
        for _ in 0..200 {
            let (queues, mut ready) = SharedQueues::new(3);
            for (own, first) in ready.iter_mut().zip([0, 20, 40]) {
                (first..first + 20).for_each(|entry| push(own, entry, &cells));
                own.share_newest();
            }
            let mut caller = ready.remove(0);
            let mut found = std::thread::scope(|scope| {
                let queues = &queues;
                let find_all = |(me, mut own): (u32, ReadyQueue<'_>)| {
                    std::iter::from_fn(|| own.find_among(WorkerId(me), queues)).collect::<Vec<CellId>>()
                };
                let thieves: Vec<_> =
                    (1..).zip(ready).map(|thief| scope.spawn(move || find_all(thief))).collect();
                let mut found = withdraw_odd(&mut caller, queues);
                for thief in thieves {
                    found.extend(thief.join().expect("it only takes entries").iter().map(|entry| entry.0));
                }
                found
            });
            found.extend(std::iter::from_fn(|| find(&mut caller, 0, &queues, &cells)));
            found.sort_unstable();
            assert_eq!(found, Vec::from_iter(0..60), "each is withdrawn or found, once");
        }
    }
}
