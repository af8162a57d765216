//! Where the workers of a rank and its monitor meet: one lock, and everybody's bed.
//!
//! # Rules
//! 1. What anybody waits for is in [`Inner`], and changes only under its lock, in [`Meeting::with`].
//! 2. Who has changed it wakes those whom it concerns, after the lock: workers that have an order now, and the monitor when
//!    there is something to send, another time to wait for, or nothing left to do.
//! 3. Who goes to sleep looks once more, under the lock, when it has said that it sleeps (see [`sleep`](crate::threads::sleep)).
//!    So nothing is missed, whichever comes first; loom tries both.

use std::sync::Arc;
use std::sync::PoisonError;
use std::time::Duration;

use crate::ids::Rank;
use crate::pools::core::rank::{Order, PoolCore, PoolPacket, Tally, Todo};
use crate::pools::core::work::Accumulated;
use crate::pools::report::PoolWorker;
use crate::threads::crew::Crew;
use crate::threads::sync::{Mutex, MutexGuard};

/// The bed of the monitor; workers' follow.
const MONITOR: usize = 0;

pub(super) struct Meeting {
    pub(super) crew: Arc<Crew>,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) core: PoolCore,
    /// For the transport, which only the monitor may call.
    pub(super) outbound: Vec<(Rank, PoolPacket)>,
    /// What workers have handed in.
    pub(super) parts: Vec<(Accumulated, Tally, PoolWorker)>,
}

impl Meeting {
    pub(super) fn new(crew: Arc<Crew>, core: PoolCore) -> Meeting {
        Meeting { crew, inner: Mutex::new(Inner { core, outbound: Vec::new(), parts: Vec::new() }) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread sleeps in the monitor's bed.
    pub(super) fn occupy_as_monitor(&self) {
        self.crew.sleepers[MONITOR].occupy();
    }

    /// The calling thread sleeps in a worker's bed.
    pub(super) fn occupy_as(&self, worker: u32) {
        self.crew.sleepers[bed_of(worker)].occupy();
    }

    /// Changes what all share, and wakes whom that concerns.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Inner, &mut Todo) -> T) -> T {
        let mut todo = Todo::default();
        let (answer, concerns_monitor) = {
            let mut inner = self.lock();
            let wake_at_ns = inner.core.wake_at_ns();
            let answer = change(&mut inner, &mut todo);
            let news = !todo.packets.is_empty() || inner.core.wake_at_ns() != wake_at_ns;
            inner.outbound.append(&mut todo.packets);
            (answer, news || inner.core.is_through())
        };
        for worker in todo.awake {
            self.crew.sleepers[bed_of(worker)].wake();
        }
        if concerns_monitor {
            self.crew.sleepers[MONITOR].wake();
        }
        answer
    }

    /// Waits for an order for this worker; none if the run is over.
    pub(super) fn wait_for_order(&self, worker: u32) -> Option<(Option<bool>, Order)> {
        loop {
            if self.crew.stopped() {
                return None;
            }
            if let Some(order) = self.lock().core.take_order(worker) {
                return Some(order);
            }
            let called = || self.crew.stopped() || self.lock().core.has_order(worker);
            self.crew.sleepers[bed_of(worker)].park(None, called);
        }
    }

    /// A worker that has handed in waits until the pool is over on this rank.
    pub(super) fn wait_for_end(&self, worker: u32) {
        while !self.crew.stopped() {
            self.crew.sleepers[bed_of(worker)].park(None, || self.crew.stopped());
        }
    }

    /// The monitor sleeps until there is something to send, the time that the core waits for is not `wake_at_ns` any more,
    /// nothing is left to do (and it `expects` that), something has `come`, or `timeout` has passed.
    pub(super) fn rest(
        &self,
        wake_at_ns: Option<u64>,
        expects_end: bool,
        timeout: Option<Duration>,
        come: impl FnOnce() -> bool,
    ) {
        self.crew.sleepers[MONITOR].park(timeout, || {
            let news = {
                let inner = self.lock();
                !inner.outbound.is_empty()
                    || inner.core.wake_at_ns() != wake_at_ns
                    || (expects_end && inner.core.is_through())
            };
            news || self.crew.stopped() || come()
        });
    }
}

fn bed_of(worker: u32) -> usize {
    worker as usize + 1
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use lb_strategies::pool::central::QueueMessage;
    use lb_strategies::pool::{Input, Message, Output, PoolRank};
    use loom::thread;

    /// What somebody who wants something makes the machine ask for.
    enum Way {
        Message,
        Time,
    }

    /// Answers whoever wants something when the other rank has spoken.
    struct Asks {
        way: Way,
        wants: Option<u32>,
        heard: bool,
    }

    impl PoolRank for Asks {
        fn step(&mut self, now: u64, input: Input, out: &mut Vec<Output>) {
            match input {
                Input::Wants { worker } => {
                    self.wants = Some(worker);
                    out.push(match self.way {
                        Way::Message => Output::Send { to: Rank(1), message: speech() },
                        Way::Time => Output::WakeAt(now + 1),
                    });
                }
                Input::Message { .. } => self.heard = true,
                _ => {}
            }
            if let (Some(worker), true) = (self.wants, self.heard) {
                self.wants = None;
                out.push(Output::Run { worker, range: 0..1, copy: false });
            }
        }
    }

    fn speech() -> Message {
        Message::Queue(QueueMessage::Dismiss)
    }

    fn meeting(way: Way) -> Arc<Meeting> {
        let machine = Box::new(Asks { way, wants: None, heard: false });
        Arc::new(Meeting::new(Arc::new(Crew::new(2)), PoolCore::new(machine, 1)))
    }

    /// A lost wake-up is a park that never ends: loom reports it as a deadlock.
    #[test]
    fn loom_a_workers_wish_reaches_the_monitor_and_its_answer_the_worker() {
        loom::model(|| {
            let meeting = meeting(Way::Message);
            let its = meeting.clone();
            let worker = thread::spawn(move || {
                its.occupy_as(0);
                its.with(|inner, todo| inner.core.wants(0, 0, todo));
                its.wait_for_order(0).expect("nobody stops the run")
            });
            meeting.occupy_as_monitor();
            while meeting.lock().outbound.is_empty() {
                meeting.rest(None, false, None, || false);
            }
            meeting.with(|inner, todo| inner.core.hear(Rank(1), speech(), 1, todo));
            let (_, order) = worker.join().expect("the worker does not panic");
            assert_eq!(order, Order::Run { range: 0..1, apart: false });
        });
    }

    #[test]
    fn loom_a_new_time_to_wait_for_wakes_the_monitor() {
        loom::model(|| {
            let meeting = meeting(Way::Time);
            let its = meeting.clone();
            let worker = thread::spawn(move || its.with(|inner, todo| inner.core.wants(0, 0, todo)));
            meeting.occupy_as_monitor();
            while meeting.lock().core.wake_at_ns().is_none() {
                meeting.rest(None, false, None, || false);
            }
            worker.join().expect("the worker does not panic");
        });
    }

    #[test]
    fn loom_a_stop_is_seen_by_whoever_sleeps() {
        loom::model(|| {
            let meeting = meeting(Way::Message);
            let its = meeting.clone();
            let worker = thread::spawn(move || {
                its.occupy_as(0);
                its.wait_for_order(0)
            });
            meeting.crew.stop();
            assert_eq!(worker.join().expect("the worker does not panic"), None);
        });
    }
}
