//! Runs the machine of one rank. The machine's outputs become [`Order`]s to workers and [`Action`]s for the caller.
//!
//! ```text
//! worker wants ---+                        +--> an order for a worker, until the worker takes it
//! message --------+--> Driver -- machine --+--> actions: send a message, wake a worker, call back at a time
//! time -----------+                        +--> closed
//! ```
//!
//! The runtime and the cluster in virtual time use it, and carry out the actions. A machine that breaks its
//! [promises](super::machine) causes a panic.

use std::ops::Range;

use super::machine::{Input, Machine, Nanos, Output};
use super::message::{Message, Unreadable};
use crate::rank::{Rank, WorkerId};

/// An order to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Execute these iterations.
    Run {
        /// Their indices.
        range: Range<u64>,
        /// True if the result must be kept apart until the worker learns whether it counts.
        apart: bool,
    },
    /// Hand in the accumulated value, and leave.
    Leave,
}

/// An action for the caller of the driver. Actions must be carried out at once, in order.
#[derive(Debug)]
pub enum Action {
    /// Send a message to the machine of another rank.
    Send {
        /// The receiver.
        to: Rank,
        /// The message.
        message: Message,
    },
    /// Wake this worker, which has an order and may be asleep.
    Call {
        /// Its number on this rank.
        worker: WorkerId,
    },
    /// Call [`Driver::pass_time`] at this time.
    WakeAt(Nanos),
}

/// The machine of one rank, and its outputs so far.
///
/// ```
/// use lb_strategies::pool::{Driver, Action, Order, Pool};
/// use lb_strategies::{POOLS, Rank, WorkerId};
/// let policy = POOLS.parse("static")?;
/// let mut driver = Driver::new(policy.rank(&Pool::new(5, vec![1]), Rank(0)), 1);
/// let mut actions = Vec::new();
/// driver.begin(0, &mut actions);
/// driver.wants(WorkerId(0), 0, &mut actions);
/// assert!(matches!(actions[..], [Action::Call { worker: WorkerId(0) }]));
/// assert!(matches!(driver.take_order(WorkerId(0)), Some((None, Order::Run { .. }))));
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct Driver {
    machine: Machine,
    /// Empty; kept to reuse its memory.
    outputs: Vec<Output<Message>>,
    states: Vec<WorkerState>,
    wake_at: Option<Nanos>,
    closed: bool,
    cancelled: bool,
    messages: u64,
}

/// The state of a worker: its next order, and the fate of its result.
#[derive(Debug, Default)]
struct WorkerState {
    order: Option<Order>,
    /// True if the result that the worker kept apart counts; none if this is not decided.
    counts: Option<bool>,
    released: bool,
}

impl WorkerState {
    fn dismiss(&mut self) {
        self.order = Some(Order::Leave);
        // A result that is kept apart and not decided on may also be another worker's, so it does not count.
        self.counts = self.counts.or(Some(false));
    }
}

impl Driver {
    /// The driver of a rank with this number of workers.
    pub fn new(machine: Machine, workers: u32) -> Self {
        Self {
            machine,
            outputs: Vec::new(),
            states: (0..workers).map(|_| WorkerState::default()).collect(),
            wake_at: None,
            closed: false,
            cancelled: false,
            messages: 0,
        }
    }

    /// Starts the machine.
    pub fn begin(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.feed(now, Input::Begin, actions);
    }

    /// Notes that a worker has nothing to do.
    pub fn wants(&mut self, worker: WorkerId, now: Nanos, actions: &mut Vec<Action>) {
        if self.cancelled {
            self.states[worker.index()].dismiss();
            return;
        }
        self.feed(now, Input::Wants { worker }, actions);
    }

    /// Passes a message of another rank's machine to the machine.
    ///
    /// # Errors
    /// The machine cannot read the message.
    pub fn hear(
        &mut self,
        from: Rank,
        message: Message,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) -> Result<(), Unreadable> {
        self.step(now, Input::Message { from, message }, actions)
    }

    /// Passes the time to the machine if its timer is due. Returns true if it was.
    pub fn pass_time(&mut self, now: Nanos, actions: &mut Vec<Action>) -> bool {
        let due = self.wake_at.is_some_and(|at| at <= now);
        if due {
            self.wake_at = None;
            self.feed(now, Input::Timer, actions);
        }
        due
    }

    /// Notes whether the rank may have work from now on.
    pub fn resize(&mut self, active: bool, now: Nanos, actions: &mut Vec<Action>) {
        self.feed(now, Input::Resize { active }, actions);
    }

    /// The time at which [`pass_time`](Self::pass_time) must be called.
    pub fn wake_at(&self) -> Option<Nanos> {
        self.wake_at
    }

    /// Takes the order of a worker, and whether the result that the worker kept apart counts.
    pub fn take_order(&mut self, worker: WorkerId) -> Option<(Option<bool>, Order)> {
        let state = &mut self.states[worker.index()];
        let order = state.order.take()?;
        Some((state.counts.take(), order))
    }

    /// True if [`take_order`](Self::take_order) would return an order.
    pub fn has_order(&self, worker: WorkerId) -> bool {
        self.states[worker.index()].order.is_some()
    }

    /// Ends the pool: workers that want an order leave, and the machine gets no more inputs.
    pub fn cancel(&mut self, actions: &mut Vec<Action>) {
        if std::mem::replace(&mut self.cancelled, true) {
            return;
        }
        self.wake_at = None;
        for (worker, state) in (0..).map(WorkerId).zip(&mut self.states) {
            // A waiting worker leaves now. A running worker leaves when it wants an order. A released worker has left.
            if state.order.is_none() && !state.released {
                state.dismiss();
                actions.push(Action::Call { worker });
            }
        }
    }

    /// True if the pool was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// True if the machine has closed, or the pool was cancelled.
    pub fn is_over(&self) -> bool {
        self.closed || self.cancelled
    }

    /// Number of messages that the machine has sent.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The decision of the machine, in one line.
    pub fn said(&self) -> Option<String> {
        self.machine.said()
    }

    fn feed(&mut self, now: Nanos, input: Input<Message>, actions: &mut Vec<Action>) {
        self.step(now, input, actions).expect("only a message can be unreadable");
    }

    fn step(
        &mut self,
        now: Nanos,
        input: Input<Message>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Unreadable> {
        if self.cancelled {
            return Ok(());
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        self.machine.step(now, input, &mut outputs)?;
        for output in outputs.drain(..) {
            self.apply_output(output, actions);
        }
        self.outputs = outputs;
        Ok(())
    }

    fn apply_output(&mut self, output: Output<Message>, actions: &mut Vec<Action>) {
        match output {
            Output::Run { worker, range, copy } => {
                assert!(range.start < range.end, "a policy gives a worker something to run");
                self.order(worker, Order::Run { range, apart: copy }, actions);
            }
            Output::Release { worker } => {
                self.order(worker, Order::Leave, actions);
                self.states[worker.index()].released = true;
            }
            Output::Commit { worker } => self.states[worker.index()].counts = Some(true),
            Output::Discard { worker } => self.states[worker.index()].counts = Some(false),
            Output::Send { to, message } => {
                self.messages += 1;
                actions.push(Action::Send { to, message });
            }
            Output::WakeAt(at) => {
                self.wake_at = Some(at);
                actions.push(Action::WakeAt(at));
            }
            Output::Closed => {
                assert!(!std::mem::replace(&mut self.closed, true), "a policy closes a rank once");
            }
        }
    }

    fn order(&mut self, worker: WorkerId, order: Order, actions: &mut Vec<Action>) {
        let state = &mut self.states[worker.index()];
        assert!(!state.released, "a policy gives a worker nothing after its release");
        let before = state.order.replace(order);
        assert!(before.is_none(), "a policy gives a worker one order at a time");
        actions.push(Action::Call { worker });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::machine::PoolRank;

    /// Returns prepared outputs.
    struct Scripted(Vec<Output<()>>);

    impl PoolRank for Scripted {
        type Message = ();

        fn step(&mut self, _now: Nanos, _input: Input<()>, out: &mut Vec<Output<()>>) {
            out.append(&mut self.0);
        }
    }

    fn says(outputs: Vec<Output<()>>) -> Driver {
        let mut driver = Driver::new(Machine::new(Scripted(outputs)), 1);
        driver.begin(0, &mut Vec::new());
        driver
    }

    #[test]
    fn a_cancelled_pool_gives_out_nothing_more() {
        let mut driver =
            says(vec![Output::Run { worker: WorkerId(0), range: 0..3, copy: true }, Output::WakeAt(9)]);
        assert!(matches!(driver.take_order(WorkerId(0)), Some((None, Order::Run { .. }))));
        let mut actions = Vec::new();
        driver.cancel(&mut actions);
        driver.cancel(&mut actions);
        assert!(matches!(actions[..], [Action::Call { worker: WorkerId(0) }]) && driver.wake_at().is_none());
        // The worker was running. It is also dismissed when it comes back.
        driver.wants(WorkerId(0), 2, &mut Vec::new());
        assert_eq!(driver.take_order(WorkerId(0)), Some((Some(false), Order::Leave)));
        assert!(driver.is_over());
    }

    #[test]
    fn a_released_worker_is_not_called_again() {
        let mut driver = says(vec![Output::Release { worker: WorkerId(0) }]);
        assert_eq!(driver.take_order(WorkerId(0)), Some((None, Order::Leave)));
        let mut actions = Vec::new();
        driver.cancel(&mut actions);
        assert!(actions.is_empty() && !driver.has_order(WorkerId(0)));
    }

    #[test]
    fn a_worker_is_told_what_becomes_of_what_it_kept_apart_with_its_next_order() {
        let run = Output::Run { worker: WorkerId(0), range: 3..5, copy: true };
        let mut driver = says(vec![Output::Discard { worker: WorkerId(0) }, run]);
        assert!(driver.has_order(WorkerId(0)));
        assert_eq!(
            driver.take_order(WorkerId(0)),
            Some((Some(false), Order::Run { range: 3..5, apart: true }))
        );
        assert_eq!(driver.take_order(WorkerId(0)), None);
    }

    #[test]
    #[should_panic(expected = "one order at a time")]
    fn two_orders_at_once_are_refused() {
        says(vec![
            Output::Run { worker: WorkerId(0), range: 0..1, copy: false },
            Output::Run { worker: WorkerId(0), range: 1..2, copy: false },
        ]);
    }

    #[test]
    #[should_panic(expected = "nothing after its release")]
    fn an_order_after_a_release_is_refused() {
        says(vec![
            Output::Release { worker: WorkerId(0) },
            Output::Run { worker: WorkerId(0), range: 0..1, copy: false },
        ]);
    }

    #[test]
    #[should_panic(expected = "something to run")]
    fn an_order_to_run_nothing_is_refused() {
        says(vec![Output::Run { worker: WorkerId(0), range: 4..4, copy: false }]);
    }
}
