//! Drives the machine of one rank: keeps its orders for workers, and turns its other outputs into actions.
//!
//! ```text
//! worker wants ---+                        +--> an order for a worker, until it takes it
//! message --------+--> Driver -- machine --+--> actions: messages, workers to call, a time to come back
//! time -----------+                        +--> closed
//! ```
//!
//! The runtime and the cluster in virtual time both use it, and carry out the actions. A machine that breaks its
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
        /// True if the result is to be kept apart until the worker is told whether it counts.
        apart: bool,
    },
    /// Hand in the accumulated value, and leave.
    Leave,
}

/// An action that a driver asks for. Actions are carried out at once, in their order.
#[derive(Debug)]
pub enum Action {
    /// Tell another rank's machine.
    Send {
        /// The receiver.
        to: Rank,
        /// The message.
        message: Message,
    },
    /// This worker, which may be asleep, has an order.
    Call {
        /// Its number on this rank.
        worker: WorkerId,
    },
    /// [`Driver::pass_time`] then.
    WakeAt(Nanos),
}

/// One rank's machine, and its outputs so far.
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
    /// Empty; kept for its memory.
    outputs: Vec<Output<Message>>,
    states: Vec<WorkerState>,
    wake_at: Option<Nanos>,
    closed: bool,
    cancelled: bool,
    messages: u64,
}

/// The state of a worker: what it will be told.
#[derive(Debug, Default)]
struct WorkerState {
    order: Option<Order>,
    /// Tells whether the result it kept apart counts.
    counts: Option<bool>,
    released: bool,
}

impl WorkerState {
    fn dismiss(&mut self) {
        self.order = Some(Order::Leave);
        // A result kept apart and not decided on may be another worker's too: it is not counted.
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

    /// The pool begins.
    pub fn begin(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.feed(now, Input::Begin, actions);
    }

    /// A worker has nothing to do.
    pub fn wants(&mut self, worker: WorkerId, now: Nanos, actions: &mut Vec<Action>) {
        if self.cancelled {
            self.states[worker.index()].dismiss();
            return;
        }
        self.feed(now, Input::Wants { worker }, actions);
    }

    /// A message of another rank's machine has come.
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

    /// Passes the time to the machine if its timer is due. Returns whether it was.
    pub fn pass_time(&mut self, now: Nanos, actions: &mut Vec<Action>) -> bool {
        let due = self.wake_at.is_some_and(|at| at <= now);
        if due {
            self.wake_at = None;
            self.feed(now, Input::Timer, actions);
        }
        due
    }

    /// The rank has work from now on, or no longer.
    pub fn resize(&mut self, active: bool, now: Nanos, actions: &mut Vec<Action>) {
        self.feed(now, Input::Resize { active }, actions);
    }

    /// The time at which the machine wants [`pass_time`](Self::pass_time).
    pub fn wake_at(&self) -> Option<Nanos> {
        self.wake_at
    }

    /// Takes the order of a worker, and whether its result that was kept apart counts.
    pub fn take_order(&mut self, worker: WorkerId) -> Option<(Option<bool>, Order)> {
        let state = &mut self.states[worker.index()];
        let order = state.order.take()?;
        Some((state.counts.take(), order))
    }

    /// Tells whether [`take_order`](Self::take_order) would return something.
    pub fn has_order(&self, worker: WorkerId) -> bool {
        self.states[worker.index()].order.is_some()
    }

    /// From now on workers that want an order leave, and the machine is not asked.
    pub fn cancel(&mut self, actions: &mut Vec<Action>) {
        if std::mem::replace(&mut self.cancelled, true) {
            return;
        }
        self.wake_at = None;
        for (worker, state) in (0..).map(WorkerId).zip(&mut self.states) {
            // A waiting worker leaves now. A running worker asks again. A released worker asks no more.
            if state.order.is_none() && !state.released {
                state.dismiss();
                actions.push(Action::Call { worker });
            }
        }
    }

    /// Tells whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Tells whether the machine is through: `Closed`, or cancelled.
    pub fn is_over(&self) -> bool {
        self.closed || self.cancelled
    }

    /// Messages that the machine has sent.
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

    /// Returns these outputs.
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
        // It was running, and may also be told so when it comes back.
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
