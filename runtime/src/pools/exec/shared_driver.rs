//! The shared_driver of a rank's workers with its monitor: one lock, and the place where each sleeps.
//!
//! # Rules
//! 1. What anybody waits for is in [`Inner`], and changes only under its lock, in [`SharedDriver::with`].
//! 2. Who has changed it wakes those whom it concerns, after the lock: workers that have an order now, and the monitor when
//!    there is something to send, another time to wait for, or nothing left to do.
//! 3. Who goes to sleep looks once more, under the lock, when it has said that it sleeps (see [`sleep`](crate::threads::sleep)).
//!    So nothing is missed, whichever comes first; loom tries both.

use std::sync::Arc;
use std::sync::PoisonError;

use lb_strategies::pool::{Action, Driver, Machine};

use crate::ids::{Rank, WorkerId};
use crate::pools::core::packet::{IterationChecksum, PoolPacket};
use crate::pools::core::work::Accumulated;
use crate::pools::report::PoolWorker;
use crate::threads::sleep::Sleeper;
use crate::threads::sync::{Mutex, MutexGuard};
use crate::threads::team::Team;

/// The bed of the monitor; workers' follow.
const COMM_THREAD: usize = 0;

pub(super) struct SharedDriver {
    pub(super) team: Arc<Team>,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) driver: Driver,
    /// Workers that have handed in nothing yet.
    working: u32,
    /// For the transport, which only the monitor may call.
    pub(super) outbound: Vec<(Rank, PoolPacket)>,
    /// Parts that workers have handed in.
    pub(super) parts: Vec<(Accumulated, IterationChecksum, PoolWorker)>,
}

impl Inner {
    /// A worker was released, and hands in what it has.
    pub(super) fn hand_in(&mut self, accumulated: Accumulated, tally: IterationChecksum, record: PoolWorker) {
        self.parts.push((accumulated, tally, record));
        self.working -= 1;
    }

    /// Tells whether nothing will be executed here any more, and the machine wants nothing.
    pub(super) fn is_through(&self) -> bool {
        self.working == 0 && self.driver.is_over()
    }

    /// Leaves messages to the monitor; says which workers to call, and whether there are messages.
    fn dispatch(&mut self, actions: Vec<Action>) -> (Vec<WorkerId>, bool) {
        let (mut called, left) = (Vec::new(), self.outbound.len());
        for action in actions {
            match action {
                Action::Send { to, message } => self.outbound.push((to, PoolPacket::Machine(message))),
                Action::Call { worker } => called.push(worker),
                // It is asked for that.
                Action::WakeAt(_) => {}
            }
        }
        (called, self.outbound.len() > left)
    }
}

impl SharedDriver {
    pub(super) fn new(team: Arc<Team>, machine: Machine, workers: u32) -> SharedDriver {
        let driver = Driver::new(machine, workers);
        let inner = Inner { driver, working: workers, outbound: Vec::new(), parts: Vec::new() };
        SharedDriver { team, inner: Mutex::new(inner) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what all share, and wakes whom that concerns.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Inner, &mut Vec<Action>) -> T) -> T {
        let mut actions = Vec::new();
        let (answer, called, concerns_monitor) = {
            let mut inner = self.lock();
            let wake_at_ns = inner.driver.wake_at();
            let answer = change(&mut inner, &mut actions);
            let (called, messages) = inner.dispatch(actions);
            let news = messages || inner.driver.wake_at() != wake_at_ns;
            (answer, called, news || inner.is_through())
        };
        for worker in called {
            self.worker(worker).wake();
        }
        if concerns_monitor {
            self.comm_thread().wake();
        }
        answer
    }

    /// The place where the monitor sleeps.
    pub(super) fn comm_thread(&self) -> &Sleeper {
        &self.team.sleepers[COMM_THREAD]
    }

    /// The place where a worker sleeps.
    pub(super) fn worker(&self, worker: WorkerId) -> &Sleeper {
        &self.team.sleepers[COMM_THREAD + 1 + worker.index()]
    }

    /// Tells whether there is something for a monitor that sleeps: something to send, the time that the driver waits
    /// for is not `wake_at_ns` any more, or nothing is left to do, and it `expects` that.
    pub(super) fn has_work_for_comm(&self, wake_at_ns: Option<u64>, expects_end: bool) -> bool {
        let inner = self.lock();
        self.team.stopped()
            || !inner.outbound.is_empty()
            || inner.driver.wake_at() != wake_at_ns
            || (expects_end && inner.is_through())
    }

    /// Tells whether there is something for a worker that sleeps: an order, if it `expects` one, or the end.
    pub(super) fn has_work_for_worker(&self, worker: WorkerId, expects_order: bool) -> bool {
        self.team.stopped() || (expects_order && self.lock().driver.has_order(worker))
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use lb_strategies::pool::{Input, Message, Order, Output, PoolRank};
    use loom::thread;

    const WORKER: WorkerId = WorkerId(0);

    /// The request of the machine when a worker wants something.
    enum Way {
        Message,
        Time,
    }

    /// Answers whoever wants something when the other rank has spoken.
    struct Asks {
        way: Way,
        wants: Option<WorkerId>,
        heard: bool,
    }

    impl PoolRank for Asks {
        type Message = ();

        fn step(&mut self, now: u64, input: Input<()>, out: &mut Vec<Output<()>>) {
            match input {
                Input::Wants { worker } => {
                    self.wants = Some(worker);
                    out.push(match self.way {
                        Way::Message => Output::Send { to: Rank(1), message: () },
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

    fn shared_driver(way: Way) -> Arc<SharedDriver> {
        let machine = Machine::new(Asks { way, wants: None, heard: false });
        Arc::new(SharedDriver::new(Arc::new(Team::new(2)), machine, 1))
    }

    /// As the worker's steps do it, on a thread.
    fn order_for_the_worker(shared_driver: &SharedDriver) -> Option<Order> {
        shared_driver.worker(WORKER).bind_to_thread();
        while !shared_driver.team.stopped() {
            let answer = shared_driver.lock().driver.take_order(WORKER);
            if let Some((_, order)) = answer {
                return Some(order);
            }
            shared_driver.worker(WORKER).park(None, || shared_driver.has_work_for_worker(WORKER, true));
        }
        None
    }

    /// A lost wake-up is a park that never ends: loom reports it as a deadlock.
    #[test]
    fn loom_a_workers_wish_reaches_the_monitor_and_its_answer_the_worker() {
        loom::model(|| {
            let shared_driver = shared_driver(Way::Message);
            let its = shared_driver.clone();
            let worker = thread::spawn(move || {
                its.with(|inner, actions| inner.driver.wants(WORKER, 0, actions));
                order_for_the_worker(&its)
            });
            shared_driver.comm_thread().bind_to_thread();
            while shared_driver.lock().outbound.is_empty() {
                shared_driver.comm_thread().park(None, || shared_driver.has_work_for_comm(None, false));
            }
            let heard =
                |inner: &mut Inner, actions: &mut _| inner.driver.hear(Rank(1), Message::new(()), 1, actions);
            shared_driver.with(heard).expect("the machine reads it");
            let order = worker.join().expect("the worker does not panic");
            assert_eq!(order, Some(Order::Run { range: 0..1, apart: false }));
        });
    }

    #[test]
    fn loom_a_new_time_to_wait_for_wakes_the_monitor() {
        loom::model(|| {
            let shared_driver = shared_driver(Way::Time);
            let its = shared_driver.clone();
            let worker =
                thread::spawn(move || its.with(|inner, actions| inner.driver.wants(WORKER, 0, actions)));
            shared_driver.comm_thread().bind_to_thread();
            while shared_driver.lock().driver.wake_at().is_none() {
                shared_driver.comm_thread().park(None, || shared_driver.has_work_for_comm(None, false));
            }
            worker.join().expect("the worker does not panic");
        });
    }

    #[test]
    fn loom_a_stop_is_seen_by_a_sleeper() {
        loom::model(|| {
            let shared_driver = shared_driver(Way::Message);
            let its = shared_driver.clone();
            let worker = thread::spawn(move || order_for_the_worker(&its));
            shared_driver.team.stop();
            assert_eq!(worker.join().expect("the worker does not panic"), None);
        });
    }
}
