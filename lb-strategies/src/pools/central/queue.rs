//! Grants indices to workers that ask for them, and dismisses all workers when everything has run.

use std::collections::VecDeque;
use std::ops::Range;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::{Outbox, SizeRule};
use crate::pools::policy::Pool;
use crate::pools::range_set::RangeSet;
use crate::rank::{Rank, WorkerId};

/// A message between the queue and a rank.
///
/// ```
/// use lb_strategies::{WorkerId, pool::central::QueueMessage};
/// assert_ne!(QueueMessage::Ask { worker: WorkerId(0), fitting: 1 }, QueueMessage::Dismiss);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum QueueMessage {
    /// A worker has no indices left.
    Ask {
        /// Number of the worker on its rank.
        worker: WorkerId,
        /// Number of iterations that the worker runs in the time that `chunk` sets.
        fitting: u64,
    },
    /// A worker gets indices.
    Grant {
        /// Number of the worker on the receiving rank.
        worker: WorkerId,
        /// The indices.
        range: Range<u64>,
    },
    /// Everything has run: release all workers.
    Dismiss,
}

/// The role of worker 0 of rank 0.
///
/// ```
/// use lb_strategies::pool::central::Master;
/// assert_ne!(Master::Apart, Master::Works);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Master {
    /// It only hands out work, unless it is the only worker.
    Apart,
    /// It executes iterations as all workers do.
    Works,
}

#[derive(Clone, Copy, Debug)]
struct Asks {
    rank: Rank,
    worker: WorkerId,
    fitting: u64,
}

/// The queue of rank 0. Indices wait in it for workers, or workers wait for indices or the end.
///
/// ```
/// use lb_strategies::{Rank, WorkerId, pool::Pool};
/// use lb_strategies::pool::central::{Outbox, Master, Queue, QueueMessage, SizeRule};
/// let pool = Pool::new(5, vec![1, 1]);
/// let mut queue = Queue::new(&pool, SizeRule::Fixed(5), Master::Apart);
/// let mut outbox = Outbox::new();
/// queue.ask(Rank(0), WorkerId(0), 1, &mut outbox);
/// assert!(outbox.is_empty(), "it is the master");
/// queue.ask(Rank(1), WorkerId(0), 1, &mut outbox);
/// assert_eq!(outbox.pop_front(), Some((Rank(1), QueueMessage::Grant { worker: WorkerId(0), range: 0..5 })));
/// queue.ask(Rank(1), WorkerId(0), 1, &mut outbox);
/// assert_eq!(outbox, [(Rank(0), QueueMessage::Dismiss), (Rank(1), QueueMessage::Dismiss)]);
/// ```
#[derive(Clone, Debug)]
pub struct Queue {
    /// Indices that are not granted.
    waiting: RangeSet,
    rule: SizeRule,
    master: Master,
    ranks: u32,
    /// On all ranks together.
    workers: u32,
    asking: VecDeque<Asks>,
    /// Workers that have not come back from their grant.
    granted: LiteMap<(Rank, WorkerId), ()>,
    dismissed: bool,
}

impl Queue {
    /// A queue in which all indices wait, and no worker.
    pub fn new(pool: &Pool, rule: SizeRule, master: Master) -> Self {
        Self {
            waiting: RangeSet::from(0..pool.iterations),
            rule,
            master,
            ranks: pool.ranks(),
            workers: pool.workers(),
            asking: VecDeque::new(),
            granted: LiteMap::new(),
            dismissed: false,
        }
    }

    /// Number of waiting indices.
    pub fn waiting(&self) -> u64 {
        self.waiting.len()
    }

    /// Takes up to `count` of the lowest waiting indices in one range; `None` if none waits.
    pub fn take(&mut self, count: u64) -> Option<Range<u64>> {
        self.waiting.take_front(count)
    }

    /// Lets these indices wait again.
    pub fn give_back(&mut self, range: Range<u64>) {
        self.waiting.insert(range);
    }

    /// Notes that a worker has no indices. The worker is served in its turn.
    pub fn ask(&mut self, rank: Rank, worker: WorkerId, fitting: u64, outbox: &mut Outbox<QueueMessage>) {
        self.granted.remove(&(rank, worker));
        self.asking.push_back(Asks { rank, worker, fitting });
        self.serve(outbox);
    }

    /// Gives indices to the waiting workers while there are any. Dismisses all ranks when everything has run.
    pub fn serve(&mut self, outbox: &mut Outbox<QueueMessage>) {
        while self.waiting() > 0 {
            let next = self.asking.iter().position(|asks| self.works(asks));
            let Some(Asks { rank, worker, fitting }) = next.and_then(|at| self.asking.remove(at)) else {
                return;
            };
            let count = self.rule.next(self.waiting(), self.working(), fitting);
            let range = self.take(count).expect("some wait, and a size is at least 1");
            self.granted.insert((rank, worker), ());
            outbox.push_back((rank, QueueMessage::Grant { worker, range }));
        }
        if self.granted.is_empty() && !self.dismissed {
            self.dismissed = true;
            outbox.extend((0..self.ranks).map(|rank| (Rank(rank), QueueMessage::Dismiss)));
        }
    }

    fn has_master(&self) -> bool {
        self.master == Master::Apart && self.workers > 1
    }

    fn working(&self) -> u64 {
        u64::from(self.workers - u32::from(self.has_master()))
    }

    fn works(&self, asks: &Asks) -> bool {
        (asks.rank, asks.worker) != (Rank(0), WorkerId(0)) || !self.has_master()
    }
}
