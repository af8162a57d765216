//! One rank of a pool: the policy's machine, what each worker is to do next, and the way to the result.
//!
//! ```text
//! worker wants ---+                          +--> an order for a worker
//! packet ---------+--> PoolCore -- machine --+--> packets for other ranks
//! time -----------+                          +--> when to come back
//! ```
//!
//! # The end
//! 1. When the machine is closed and all workers have been released and have handed in what they accumulated, the rank
//!    has its *part*. All but rank 0 send it there.
//! 2. When rank 0 has all parts, it checks that every iteration was executed once, merges them in the order of the ranks,
//!    and tells everybody the *whole*. With that the run is over.
//!
//! A pool that is cancelled goes the same way, with fewer iterations: nobody asks the machine any more.
//!
//! The time and what users accumulate are arguments; there is no thread, clock or user type here.

use std::ops::Range;
use std::sync::Arc;

use lb_strategies::pool::{Input, Message, Output, PoolRank};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ids::Rank;
use crate::pools::report::PoolWorker;

/// What the ranks of a pool say to each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum PoolPacket {
    /// From one machine to another.
    Machine(Message),
    /// Rank 0 wants to hear of progress so often.
    Follow { every_ns: u64 },
    /// Iterations that a rank has executed, to rank 0.
    Progress { done: u64 },
    /// Iterations that all have executed, from rank 0.
    Total { done: u64 },
    /// Everybody stops after what is in hand.
    Cancel,
    /// What a rank has done, to rank 0.
    Part(Box<Part>),
    /// What all have done.
    Whole(Box<Whole>),
    /// The run cannot go on.
    Abort(Box<Error>),
}

/// What one rank has done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Merged over its workers; empty where it is kept beside.
    #[serde(with = "crate::wire::bulk")]
    pub(crate) accumulated: Vec<u8>,
    pub(crate) tally: Tally,
    pub(crate) workers: Vec<PoolWorker>,
    /// That its machine sent.
    pub(crate) messages: u64,
    pub(crate) said: Option<String>,
}

/// What all ranks have done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Whole {
    /// Merged over all ranks; empty where it is kept beside.
    #[serde(with = "crate::wire::bulk")]
    pub(crate) accumulated: Arc<Vec<u8>>,
    pub(crate) iterations: u64,
    pub(crate) workers: Vec<PoolWorker>,
    pub(crate) messages: u64,
    pub(crate) said: Option<String>,
    pub(crate) cancelled: bool,
}

/// Which iterations were executed, in two numbers: how many, and the sum of their indices (modulo 2^64).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    sum: u64,
}

impl Tally {
    pub(crate) fn of(range: &Range<u64>) -> Tally {
        let count = range.end - range.start;
        // One of both factors is even.
        let twice = u128::from(count) * (u128::from(range.start) + u128::from(range.end).wrapping_sub(1));
        Tally { count, sum: if count == 0 { 0 } else { (twice / 2) as u64 } }
    }

    pub(crate) fn add(&mut self, other: Tally) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Execute these iterations; if `apart`, keep the result apart until told what becomes of it.
    Run { range: Range<u64>, apart: bool },
    /// Hand in what was accumulated, and go.
    Leave,
}

/// What is told to a worker.
#[derive(Debug, Default)]
struct Desk {
    order: Option<Order>,
    /// Whether the result it kept apart counts.
    counts: Option<bool>,
}

impl Desk {
    fn dismiss(&mut self) {
        self.order = Some(Order::Leave);
        // What is kept apart and was not decided on may be somebody else's too: it is not counted.
        self.counts = self.counts.or(Some(false));
    }
}

/// What has to be done for the core besides what it says itself.
#[derive(Debug, Default)]
pub(crate) struct Todo {
    pub(crate) packets: Vec<(Rank, PoolPacket)>,
    /// Workers that may be asleep and have an order now.
    pub(crate) awake: Vec<u32>,
}

/// One rank of a pool.
pub(crate) struct PoolCore {
    machine: Box<dyn PoolRank>,
    outputs: Vec<Output>,
    desks: Vec<Desk>,
    /// Workers that have handed in nothing yet.
    working: u32,
    wake_at_ns: Option<u64>,
    closed: bool,
    cancelled: bool,
    messages: u64,
}

impl PoolCore {
    pub(crate) fn new(machine: Box<dyn PoolRank>, workers: u32) -> PoolCore {
        PoolCore {
            machine,
            outputs: Vec::new(),
            desks: (0..workers).map(|_| Desk::default()).collect(),
            working: workers,
            wake_at_ns: None,
            closed: false,
            cancelled: false,
            messages: 0,
        }
    }

    /// Tells the machine that the pool begins.
    pub(crate) fn begin(&mut self, now_ns: u64, todo: &mut Todo) {
        self.tell(now_ns, Input::Begin, todo);
    }

    /// A worker has nothing to do.
    pub(crate) fn wants(&mut self, worker: u32, now_ns: u64, todo: &mut Todo) {
        if self.cancelled {
            self.desks[worker as usize].dismiss();
            return;
        }
        self.tell(now_ns, Input::Wants { worker }, todo);
    }

    /// What a worker is told, once: whether what it kept apart counts, and what to do.
    pub(crate) fn take_order(&mut self, worker: u32) -> Option<(Option<bool>, Order)> {
        let desk = &mut self.desks[worker as usize];
        let order = desk.order.take()?;
        Some((desk.counts.take(), order))
    }

    /// Whether [`take_order`](Self::take_order) would return something.
    pub(crate) fn has_order(&self, worker: u32) -> bool {
        self.desks[worker as usize].order.is_some()
    }

    /// A worker was released and has handed in what it accumulated. True if it was the last.
    pub(crate) fn handed_in(&mut self) -> bool {
        self.working -= 1;
        self.is_through()
    }

    /// Whether nothing will be executed here any more, and the machine wants nothing.
    pub(crate) fn is_through(&self) -> bool {
        self.working == 0 && (self.closed || self.cancelled)
    }

    /// Another rank's machine says something.
    pub(crate) fn hear(&mut self, from: Rank, message: Message, now_ns: u64, todo: &mut Todo) {
        self.tell(now_ns, Input::Message { from, message }, todo);
    }

    /// Tells the machine the time if it wanted to know it; says when it wants to know it next.
    pub(crate) fn pass_time(&mut self, now_ns: u64, todo: &mut Todo) -> Option<u64> {
        if self.wake_at_ns.is_some_and(|at| at <= now_ns) {
            self.wake_at_ns = None;
            self.tell(now_ns, Input::Timer, todo);
        }
        self.wake_at_ns
    }

    /// When the machine wants to know the time.
    pub(crate) fn wake_at_ns(&self) -> Option<u64> {
        self.wake_at_ns
    }

    /// From now on workers that want something leave.
    pub(crate) fn cancel(&mut self, todo: &mut Todo) {
        if std::mem::replace(&mut self.cancelled, true) {
            return;
        }
        self.wake_at_ns = None;
        for (worker, desk) in (0..).zip(&mut self.desks) {
            // Who waits for an order leaves; who runs asks again.
            if desk.order.is_none() {
                desk.dismiss();
                todo.awake.push(worker);
            }
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Messages that the machine has sent.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// What the machine has decided, in one line.
    pub(crate) fn said(&self) -> Option<String> {
        self.machine.said()
    }

    fn tell(&mut self, now_ns: u64, input: Input, todo: &mut Todo) {
        if self.cancelled {
            return;
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        self.machine.step(now_ns, input, &mut outputs);
        for output in outputs.drain(..) {
            self.carry_out(output, todo);
        }
        self.outputs = outputs;
    }

    fn carry_out(&mut self, output: Output, todo: &mut Todo) {
        match output {
            Output::Run { worker, range, copy } => {
                self.order(worker, Order::Run { range, apart: copy }, todo);
            }
            Output::Release { worker } => self.order(worker, Order::Leave, todo),
            Output::Commit { worker } => self.desks[worker as usize].counts = Some(true),
            Output::Discard { worker } => self.desks[worker as usize].counts = Some(false),
            Output::Send { to, message } => {
                self.messages += 1;
                todo.packets.push((to, PoolPacket::Machine(message)));
            }
            Output::WakeAt(at) => self.wake_at_ns = Some(at),
            Output::Closed => self.closed = true,
        }
    }

    fn order(&mut self, worker: u32, order: Order, todo: &mut Todo) {
        let before = self.desks[worker as usize].order.replace(order);
        assert!(before.is_none(), "a policy gives a worker one order at a time");
        todo.awake.push(worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_strategies::POOLS;
    use lb_strategies::pool::Pool;

    fn core(iterations: u64, workers: u32) -> PoolCore {
        let policy = POOLS.parse("static").expect("it is in the table");
        PoolCore::new(policy.rank(&Pool::new(iterations, vec![workers]), Rank(0)), workers)
    }

    /// What a worker is told when it wants something.
    fn next(core: &mut PoolCore, worker: u32, now_ns: u64) -> Option<Order> {
        core.wants(worker, now_ns, &mut Todo::default());
        core.take_order(worker).map(|(_, order)| order)
    }

    #[test]
    fn the_sums_of_ranges_add_up_to_the_sum_of_all() {
        let whole = 0..1_u64 << 63;
        let mut parts = Tally::default();
        for range in [0..1, 1..77, 77..77, 77..1 << 40, 1 << 40..1 << 63] {
            parts.add(Tally::of(&range));
        }
        assert_eq!(parts, Tally::of(&whole));
        let mut twice = Tally::of(&(0..5));
        twice.add(Tally::of(&(3..8)));
        assert_ne!(twice, Tally::of(&(0..10)), "as many, but not the same");
    }

    #[test]
    fn a_rank_is_through_when_all_workers_have_handed_in() {
        let mut core = core(3, 2);
        core.begin(0, &mut Todo::default());
        let mut tally = Tally::default();
        for worker in [0, 1] {
            while let Some(Order::Run { range, .. }) = next(&mut core, worker, 1) {
                tally.add(Tally::of(&range));
            }
        }
        assert_eq!(tally, Tally::of(&(0..3)));
        assert!(!core.is_through() && !core.handed_in() && core.handed_in());
    }

    #[test]
    fn a_cancelled_pool_gives_out_nothing_more() {
        let mut core = core(1000, 1);
        core.begin(0, &mut Todo::default());
        assert!(matches!(next(&mut core, 0, 1), Some(Order::Run { .. })));
        let mut todo = Todo::default();
        core.cancel(&mut todo);
        core.cancel(&mut todo);
        // It was running, and may also be told so when it comes back.
        assert_eq!(next(&mut core, 0, 2), Some(Order::Leave));
        assert!(core.handed_in());
    }
}
