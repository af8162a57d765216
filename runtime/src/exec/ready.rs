//! Queues of ready tokens, and the order in which a worker looks through them.

use std::collections::VecDeque;

use crossbeam_deque::{Injector, Steal, Stealer, Worker as Deque};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use crate::ids::CellId;

/// One worker's own queue.
pub(crate) enum Ready {
    /// The rank has one worker: first in, first out, nobody else can look.
    Alone(VecDeque<CellId>),
    /// Others of the rank may steal from it.
    Stealing(Deque<CellId>),
    /// The simulation: any token may be next.
    Seeded { tokens: Vec<CellId>, rng: Pcg32 },
}

/// The part of the queues that all workers of a rank see; empty for a rank with one worker.
#[derive(Default)]
pub(crate) struct Queues {
    /// Tokens sent to a worker by others: those of chunks it ran last.
    pub(crate) inboxes: Vec<Injector<CellId>>,
    pub(crate) stealers: Vec<Stealer<CellId>>,
}

impl Queues {
    /// The queues of `workers` workers.
    pub(crate) fn new(workers: u32) -> (Queues, Vec<Ready>) {
        if workers == 1 {
            return (Queues::default(), vec![Ready::Alone(VecDeque::new())]);
        }
        let deques: Vec<_> = (0..workers).map(|_| Deque::new_fifo()).collect();
        let inboxes = (0..workers).map(|_| Injector::new()).collect();
        let stealers = deques.iter().map(Deque::stealer).collect();
        (Queues { inboxes, stealers }, deques.into_iter().map(Ready::Stealing).collect())
    }

    /// Whether there is a token that `worker` could take.
    pub(crate) fn any(&self) -> bool {
        self.inboxes.iter().any(|inbox| !inbox.is_empty())
            || self.stealers.iter().any(|deque| !deque.is_empty())
    }
}

impl Ready {
    pub(crate) fn seeded(seed: u64) -> Ready {
        Ready::Seeded { tokens: Vec::new(), rng: Pcg32::seed_from_u64(seed) }
    }

    #[inline]
    pub(crate) fn push(&mut self, token: CellId) {
        match self {
            Ready::Alone(queue) => queue.push_back(token),
            Ready::Stealing(deque) => deque.push(token),
            Ready::Seeded { tokens, .. } => tokens.push(token),
        }
    }

    /// Whether the worker's own queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Ready::Alone(queue) => queue.is_empty(),
            Ready::Stealing(deque) => deque.is_empty(),
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
    pub(crate) fn find(&mut self, me: u32, queues: &Queues) -> Option<CellId> {
        match self {
            Ready::Alone(queue) => queue.pop_front(),
            Ready::Seeded { tokens, .. } if tokens.is_empty() => None,
            Ready::Seeded { tokens, rng } => Some(tokens.swap_remove(rng.random_range(0..tokens.len()))),
            Ready::Stealing(deque) => deque.pop().or_else(|| steal(deque, me as usize, queues)),
        }
    }
}

fn steal(deque: &Deque<CellId>, me: usize, queues: &Queues) -> Option<CellId> {
    loop {
        let own = queues.inboxes[me].steal_batch_and_pop(deque);
        let others = (1..queues.stealers.len()).map(|step| (me + step) % queues.stealers.len());
        let found: Steal<CellId> = std::iter::once(own)
            .chain(others.flat_map(|other| [queues.stealers[other].steal(), queues.inboxes[other].steal()]))
            .collect();
        if !found.is_retry() {
            return found.success();
        }
    }
}
