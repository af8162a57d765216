//! Queues of ready tokens, and the order in which a worker looks through them.
//!
//! A lone worker takes the *newest* token: the chunk whose last message was sent a moment ago, so that its data and its
//! neighbour's are still in the cache, and a step follows the step before it through memory while both are warm. Every
//! [`OLDEST_EVERY`]th time it takes the *oldest*, so that nobody waits for ever. On a stencil larger than the cache that is
//! a tenth faster than first in, first out, which goes through memory once a step. Several workers of a rank take their
//! oldest, and steal.

use std::collections::VecDeque;

use crossbeam_deque::{Injector, Stealer, Worker as Deque};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::cells::{Cell, Cells};
use crate::ids::{CellId, WorkerId};

/// A lone worker takes the newest token, but every so many times the oldest.
const OLDEST_EVERY: u32 = 8;

/// One worker's own queue. With a tag of its own: one in a niche takes longer to read, at each token.
#[repr(u8)]
pub(crate) enum Ready<'r> {
    /// The rank has one worker, nobody else can look. The newest token is apart, with its cell: it is often the only one.
    /// See [`Ready::find`] for the order.
    Alone { newest: Option<(CellId, &'r Cell)>, older: VecDeque<CellId>, taken: u32 },
    /// Others of the rank may steal from it. What others sent is looked at first every so many times: a worker whose own
    /// queue is never empty would not get there otherwise.
    Stealing { deque: Deque<CellId>, taken: u32 },
    /// The simulation: any token may be next.
    Seeded { tokens: Vec<CellId>, rng: Pcg32 },
}

/// The part of the queues that all workers of a rank see; empty for a rank with one worker.
#[derive(Default)]
pub(crate) struct Queues {
    /// Tokens sent to a worker by others: those of chunks that are at home there.
    pub(crate) inboxes: Vec<Injector<CellId>>,
    pub(crate) stealers: Vec<Stealer<CellId>>,
}

impl Queues {
    /// The queues of `workers` workers.
    pub(crate) fn new<'r>(workers: u32) -> (Queues, Vec<Ready<'r>>) {
        if workers == 1 {
            return (
                Queues::default(),
                vec![Ready::Alone { newest: None, older: VecDeque::new(), taken: 0 }],
            );
        }
        let deques: Vec<_> = (0..workers).map(|_| Deque::new_fifo()).collect();
        let inboxes = (0..workers).map(|_| Injector::new()).collect();
        let stealers = deques.iter().map(Deque::stealer).collect();
        (
            Queues { inboxes, stealers },
            deques.into_iter().map(|deque| Ready::Stealing { deque, taken: 0 }).collect(),
        )
    }

    /// Tells whether there is a token that `worker` could take.
    pub(crate) fn any(&self) -> bool {
        self.inboxes.iter().any(|inbox| !inbox.is_empty())
            || self.stealers.iter().any(|deque| !deque.is_empty())
    }
}

impl<'r> Ready<'r> {
    pub(crate) fn seeded(seed: u64) -> Ready<'r> {
        Ready::Seeded { tokens: Vec::new(), rng: Pcg32::seed_from_u64(seed) }
    }

    /// Puts in the token of the chunk in this cell, if the worker is alone and there is no newest one. True if it did; otherwise
    /// it is to be [pushed](Self::push).
    #[inline]
    pub(crate) fn push_newest(&mut self, token: CellId, cell: &'r Cell) -> bool {
        let Ready::Alone { newest: newest @ None, .. } = self else { return false };
        *newest = Some((token, cell));
        true
    }

    /// Puts in the token of the chunk in this cell.
    pub(crate) fn push(&mut self, token: CellId, cell: &'r Cell) {
        match self {
            Ready::Alone { newest, older, .. } => {
                // Not by `extend`, which takes three times as long for one.
                if let Some((token, _)) = newest.replace((token, cell)) {
                    older.push_back(token);
                }
            }
            Ready::Stealing { deque, .. } => deque.push(token),
            Ready::Seeded { tokens, .. } => tokens.push(token),
        }
    }

    /// Tells whether the worker's own queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Ready::Alone { newest, older, .. } => newest.is_none() && older.is_empty(),
            Ready::Stealing { deque, .. } => deque.is_empty(),
            Ready::Seeded { tokens, .. } => tokens.is_empty(),
        }
    }

    /// The next token for worker `me`: its own queue, then what others sent it, then what it can steal, looking at its
    /// neighbours in turn: first at their queues, then at what was sent to them (they may be busy for long).
    ///
    /// ```text
    /// own deque.pop()  or  inbox[me].steal_batch_and_pop()  or  for other in me+1.. : deque[other].steal() or inbox[other].steal()
    /// ```
    #[inline]
    pub(crate) fn find(
        &mut self,
        me: WorkerId,
        queues: &Queues,
        cells: &'r Cells,
    ) -> Option<(CellId, &'r Cell)> {
        let with_cell = |token| (token, cells.get(token));
        match self {
            Ready::Alone { newest, older, taken } => {
                *taken = taken.wrapping_add(1);
                if older.is_empty() {
                    newest.take()
                } else if taken.is_multiple_of(OLDEST_EVERY) {
                    older.pop_front().map(with_cell)
                } else {
                    newest.take().or_else(|| older.pop_back().map(with_cell))
                }
            }
            Ready::Stealing { .. } | Ready::Seeded { .. } => self.find_among(me, queues).map(with_cell),
        }
    }

    /// The same for a worker that is not alone, or that a seed directs.
    #[inline(never)]
    fn find_among(&mut self, me: WorkerId, queues: &Queues) -> Option<CellId> {
        match self {
            Ready::Alone { .. } => unreachable!("a lone worker has one queue"),
            Ready::Seeded { tokens, .. } if tokens.is_empty() => None,
            Ready::Seeded { tokens, rng } => Some(tokens.swap_remove(rng.random_range(0..tokens.len()))),
            Ready::Stealing { deque, taken } => {
                *taken = taken.wrapping_add(1);
                let inbox = &queues.inboxes[me.index()];
                let sent = taken.is_multiple_of(OLDEST_EVERY).then(|| inbox.steal().success()).flatten();
                sent.or_else(|| deque.pop()).or_else(|| steal(deque, me.index(), queues))
            }
        }
    }
}

fn steal(deque: &Deque<CellId>, me: usize, queues: &Queues) -> Option<CellId> {
    let workers = queues.stealers.len();
    loop {
        // Each look is made only if those before it found nothing: a token that was taken must be run.
        let mut found = queues.inboxes[me].steal_batch_and_pop(deque);
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
    use super::*;
    use crate::threads::guarded::Tag;

    /// As many cells as there are tokens.
    fn cells() -> Cells {
        let cells = Cells::new(Tag::SHARED);
        while cells.reserve() != CellId(63) {}
        cells
    }

    fn push<'r>(ready: &mut Ready<'r>, token: u32, cells: &'r Cells) {
        let token = CellId(token);
        let cell = cells.get(token);
        if !ready.push_newest(token, cell) {
            ready.push(token, cell);
        }
    }

    /// The token that this worker finds next; its cell comes with it.
    fn find<'r>(ready: &mut Ready<'r>, me: u32, queues: &Queues, cells: &'r Cells) -> Option<u32> {
        let (token, cell) = ready.find(WorkerId(me), queues, cells)?;
        assert!(std::ptr::eq(cell, cells.get(token)));
        Some(token.0)
    }

    #[test]
    fn the_newest_goes_first_and_the_oldest_is_not_forgotten() {
        let cells = cells();
        let (queues, mut ready) = Queues::new(1);
        push(&mut ready[0], 0, &cells);
        let mut waited = 0;
        for newer in 1.. {
            push(&mut ready[0], newer, &cells);
            match find(&mut ready[0], 0, &queues, &cells) {
                Some(0) => break,
                found => assert_eq!(found, Some(newer)),
            }
            waited += 1;
        }
        assert_eq!(waited, OLDEST_EVERY - 1);
    }

    #[test]
    fn what_others_sent_is_found_by_a_worker_that_always_has_work_of_its_own() {
        let cells = cells();
        let (queues, mut ready) = Queues::new(2);
        queues.inboxes[0].push(CellId(63));
        let found = (0..2 * OLDEST_EVERY).any(|own| {
            push(&mut ready[0], own, &cells);
            find(&mut ready[0], 0, &queues, &cells) == Some(63)
        });
        assert!(found);
    }

    #[test]
    fn every_token_is_found_once_wherever_it_lies() {
        let cells = cells();
        let (queues, mut ready) = Queues::new(3);
        let mut thief = ready.remove(0);
        for (worker, own) in (0..).zip(&mut ready) {
            push(own, worker, &cells);
            queues.inboxes[worker as usize + 1].push(CellId(10 + worker));
        }
        queues.inboxes[0].push(CellId(20));
        let mut found: Vec<u32> = std::iter::from_fn(|| find(&mut thief, 0, &queues, &cells)).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 1, 10, 11, 20]);
    }
}
