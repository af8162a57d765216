//! The policy's driver of a rank, which its workers and communication thread share: one lock, one sleeper per thread.
//!
//! # Rules
//! 1. Everything that a thread can wait for is in [`Inner`], which changes only under the lock, in
//!    [`SharedDriver::with`].
//! 2. A thread that has changed it releases the lock and then wakes the threads that the change concerns:
//!
//!    | wakes | if |
//!    |---|---|
//!    | a worker | it has an order now |
//!    | the communication thread | there is a packet to send, a different time to wait for, or the results of all workers |
//!
//! 3. A thread that goes to sleep announces that, and then checks once more under the lock (see
//!    [`sleep`](crate::threads::sleep)). So no wake-up is lost, whichever thread is first. Loom tests both orders.

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

/// The index of the communication thread's sleeper; the workers' sleepers follow.
const COMM_THREAD: usize = 0;

pub(super) struct SharedDriver {
    pub(super) team: Arc<Team>,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) driver: Driver,
    /// Number of workers that have not handed in their results.
    working: u32,
    /// Packets for the communication thread to send, which alone may call the transport.
    pub(super) outbound: Vec<(Rank, PoolPacket)>,
    /// Results that workers have handed in and the communication thread has not taken.
    pub(super) parts: Vec<(Accumulated, IterationChecksum, PoolWorker)>,
}

impl Inner {
    /// Adds the result of a released worker.
    pub(super) fn hand_in(
        &mut self,
        accumulated: Accumulated,
        checksum: IterationChecksum,
        record: PoolWorker,
    ) {
        self.parts.push((accumulated, checksum, record));
        self.working -= 1;
    }

    /// Tells whether all workers have handed in their results, the machine has ended, and nobody has taken the results.
    pub(super) fn has_part(&self) -> bool {
        self.working == 0 && self.driver.is_over() && !self.parts.is_empty()
    }

    /// Queues messages for the communication thread. Returns the workers to wake, and whether there are messages.
    fn dispatch(&mut self, actions: Vec<Action>) -> (Vec<WorkerId>, bool) {
        let (mut called, left) = (Vec::new(), self.outbound.len());
        for action in actions {
            match action {
                Action::Send { to, message } => self.outbound.push((to, PoolPacket::Machine(message))),
                Action::Call { worker } => called.push(worker),
                // The communication thread reads the time from the driver.
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

    /// Changes the shared state and wakes the threads that the change concerns.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Inner, &mut Vec<Action>) -> T) -> T {
        let mut actions = Vec::new();
        let (answer, called, wakes_comm_thread) = {
            let mut inner = self.lock();
            let wake_at_ns = inner.driver.wake_at();
            let answer = change(&mut inner, &mut actions);
            let (called, messages) = inner.dispatch(actions);
            let has_work = messages || inner.driver.wake_at() != wake_at_ns;
            (answer, called, has_work || inner.has_part())
        };
        for worker in called {
            self.worker(worker).wake();
        }
        if wakes_comm_thread {
            self.comm_thread().wake();
        }
        answer
    }

    /// The sleeper of the communication thread.
    pub(super) fn comm_thread(&self) -> &Sleeper {
        &self.team.sleepers[COMM_THREAD]
    }

    /// A function that wakes the communication thread from a thread that may outlive the run.
    pub(super) fn comm_waker(&self) -> impl Fn() + Send + Sync + 'static {
        let team = self.team.clone();
        move || {
            team.sleepers[COMM_THREAD].wake();
        }
    }

    /// The sleeper of a worker.
    pub(super) fn worker(&self, worker: WorkerId) -> &Sleeper {
        &self.team.sleepers[COMM_THREAD + 1 + worker.index()]
    }

    /// Tells whether a sleeping communication thread has work: a packet to send, a wake-up time other than
    /// `wake_at_ns`, results to take, or a stop.
    pub(super) fn has_work_for_comm(&self, wake_at_ns: Option<u64>) -> bool {
        let inner = self.lock();
        self.team.stopped()
            || !inner.outbound.is_empty()
            || inner.driver.wake_at() != wake_at_ns
            || inner.has_part()
    }

    /// Tells whether a sleeping worker has work: a stop or, if it `expects_order`, an order.
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

    /// What the machine does when a worker wants an order: it sends a message, or waits for a time.
    enum Way {
        Message,
        Time,
    }

    /// A machine that gives a worker an order after the other rank has sent a message.
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

    /// Waits for an order on a thread, in the steps of a worker.
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

    /// A lost wake-up would be a park that never ends, which loom reports as a deadlock.
    #[test]
    fn loom_a_request_wakes_the_communication_thread_and_its_order_the_worker() {
        loom::model(|| {
            let shared_driver = shared_driver(Way::Message);
            let for_worker = shared_driver.clone();
            let worker = thread::spawn(move || {
                for_worker.with(|inner, actions| inner.driver.wants(WORKER, 0, actions));
                order_for_the_worker(&for_worker)
            });
            shared_driver.comm_thread().bind_to_thread();
            while shared_driver.lock().outbound.is_empty() {
                shared_driver.comm_thread().park(None, || shared_driver.has_work_for_comm(None));
            }
            let heard =
                |inner: &mut Inner, actions: &mut _| inner.driver.hear(Rank(1), Message::new(()), 1, actions);
            shared_driver.with(heard).expect("the machine reads it");
            let order = worker.join().expect("the worker does not panic");
            assert_eq!(order, Some(Order::Run { range: 0..1, apart: false }));
        });
    }

    #[test]
    fn loom_a_new_time_to_wait_for_wakes_the_communication_thread() {
        loom::model(|| {
            let shared_driver = shared_driver(Way::Time);
            let for_worker = shared_driver.clone();
            let worker = thread::spawn(move || {
                for_worker.with(|inner, actions| inner.driver.wants(WORKER, 0, actions))
            });
            shared_driver.comm_thread().bind_to_thread();
            while shared_driver.lock().driver.wake_at().is_none() {
                shared_driver.comm_thread().park(None, || shared_driver.has_work_for_comm(None));
            }
            worker.join().expect("the worker does not panic");
        });
    }

    #[test]
    fn loom_a_stop_is_seen_by_a_sleeper() {
        loom::model(|| {
            let shared_driver = shared_driver(Way::Message);
            let for_worker = shared_driver.clone();
            let worker = thread::spawn(move || order_for_the_worker(&for_worker));
            shared_driver.team.stop();
            assert_eq!(worker.join().expect("the worker does not panic"), None);
        });
    }
}
