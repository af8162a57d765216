//! The state machine that a policy makes for each rank of a pool, and the promises between it and its driver.
//!
//! Each rank has a [`PoolRank`], a state machine without clock, thread or socket. Its driver (the runtime, or a cluster
//! in virtual time) gives it events with their times as [`Input`]s, and carries out its [`Output`]s:
//!
//! ```text
//!  Begin, Wants, Message, Timer, Resize            Run, Commit, Discard, Send, WakeAt, Release, Closed
//! --------------------------------------> PoolRank ---------------------------------------------------->
//! ```
//!
//! The machine of rank 0 also has the central part of a policy, such as the root or the master. Each policy has its own
//! type of messages, which a [`Machine`] erases.
//!
//! # What a driver promises
//! 1. `Begin` comes first and once. `Wants` of a worker comes when the worker begins, and then once after each `Run`,
//!    when it has executed the whole range.
//! 2. Messages between two ranks arrive once and in order. If a rank is lost, the driver ends the pool with an error.
//! 3. `now` is a clock of this rank that never goes back. Times of different ranks are never compared.
//! 4. `Timer` comes at or soon after the time of the last `WakeAt`. A spurious `Timer` has no effect.
//! 5. `Resize` comes where the run shrinks or expands, only for policies that allow it: from now on this rank may have
//!    work, or may not.
//!
//! # What a machine promises
//! 1. Over all ranks, each index of `0..iterations` is run exactly once, for any speeds, delays and orders. Runs that a
//!    policy marks as *copies* ([`Output::Run`]) are exempt.
//! 2. `Wants` is answered, at once or later, by a `Run` with a range that is not empty, or by `Release`. After
//!    `Release`, the worker gets nothing more.
//! 3. `Closed` comes once, when all workers are released and no message is expected. Later inputs are ignored.
//! 4. A machine never fails or panics. It sends no outputs endlessly, because the driver must carry out each one, and
//!    a `WakeAt` in the past gives a `Timer` at once.

use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::{Message, Unreadable};
use crate::rank::{Rank, WorkerId};

/// Nanoseconds on the clock of one rank.
pub type Nanos = u64;

/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// The part of a policy that one rank runs.
///
/// ```
/// use lb_strategies::{Rank, WorkerId};
/// use lb_strategies::pool::{Input, Nanos, Output, PoolRank};
/// /// Runs what rank 0 says it may: the message is where a range begins.
/// struct Told;
///
/// impl PoolRank for Told {
///     type Message = u64;
///
///     fn step(&mut self, _now: Nanos, input: Input<u64>, out: &mut Vec<Output<u64>>) {
///         if let Input::Message { from: Rank(0), message: begin } = input {
///             out.push(Output::Run { worker: WorkerId(0), range: begin..begin + 10, copy: false });
///         }
///     }
/// }
/// ```
pub trait PoolRank: Send {
    /// The messages between machines of the policy; `()` if there are none. All machines of a policy have the same
    /// type. Messages are encoded only to leave a process, without names and types. So serde's `untagged`, `tag`,
    /// `flatten` and `skip_serializing_if` do not work.
    type Message: Serialize + DeserializeOwned + Send + 'static;

    /// Handles an event at `now`, and appends its outputs to `out`, in order.
    fn step(&mut self, now: Nanos, input: Input<Self::Message>, out: &mut Vec<Output<Self::Message>>);

    /// The decisions so far in one line for users, if the policy makes any.
    fn said(&self) -> Option<String> {
        None
    }
}

/// A [`PoolRank`] of any type. Its messages are [`Message`]s.
///
/// ```
/// use lb_strategies::{POOLS, Rank, pool::{Machine, Pool}};
/// let machine: Machine = POOLS.parse("static")?.rank(&Pool::new(100, vec![1, 1]), Rank(1));
/// # let _ = machine;
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct Machine(Box<dyn Erased>);

impl Machine {
    /// A machine without the type of its messages.
    pub fn new(rank: impl PoolRank + 'static) -> Self {
        Self(Box::new(Typed { rank, out: Vec::new() }))
    }

    /// See [`PoolRank::step`]. Fails, and does nothing, if the machine cannot read the message in the input.
    pub(crate) fn step(
        &mut self,
        now: Nanos,
        input: Input<Message>,
        out: &mut Vec<Output<Message>>,
    ) -> Result<(), Unreadable> {
        self.0.step(now, input, out)
    }

    /// See [`PoolRank::said`].
    pub(crate) fn said(&self) -> Option<String> {
        self.0.said()
    }
}

trait Erased: Send {
    fn step(
        &mut self,
        now: Nanos,
        input: Input<Message>,
        out: &mut Vec<Output<Message>>,
    ) -> Result<(), Unreadable>;

    fn said(&self) -> Option<String>;
}

struct Typed<R: PoolRank> {
    rank: R,
    /// Empty; kept to reuse its memory.
    out: Vec<Output<R::Message>>,
}

impl<R: PoolRank> Erased for Typed<R> {
    fn step(
        &mut self,
        now: Nanos,
        input: Input<Message>,
        out: &mut Vec<Output<Message>>,
    ) -> Result<(), Unreadable> {
        let input = match input {
            Input::Message { from, message } => Input::Message { from, message: message.read()? },
            Input::Begin => Input::Begin,
            Input::Wants { worker } => Input::Wants { worker },
            Input::Timer => Input::Timer,
            Input::Resize { active } => Input::Resize { active },
        };
        self.rank.step(now, input, &mut self.out);
        out.extend(self.out.drain(..).map(|output| output.map(Message::new)));
        Ok(())
    }

    fn said(&self) -> Option<String> {
        self.rank.said()
    }
}

/// An input of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<M> {
    /// The pool begins.
    Begin,
    /// This worker has nothing to do: it has just begun, or has executed the whole of its last range.
    Wants {
        /// Its number on this rank.
        worker: WorkerId,
    },
    /// A message of another rank's machine has come.
    Message {
        /// The sender.
        from: Rank,
        /// The message.
        message: M,
    },
    /// The time of the last `WakeAt` has come.
    Timer,
    /// The run shrinks or expands: whether this rank may have work from now on. Only policies that
    /// [resize](super::policy::PoolStrategy::resizes) get this input. Rank 0 may always have work.
    Resize {
        /// True if the rank may have work.
        active: bool,
    },
}

/// An output of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Output<M> {
    /// This worker executes these iterations, at least one.
    Run {
        /// Number of the worker on this rank.
        worker: WorkerId,
        /// Their indices.
        range: Range<u64>,
        /// True if others may execute the same: the worker keeps the result apart until `Commit` or `Discard`.
        copy: bool,
    },
    /// The result that this worker keeps apart counts.
    Commit {
        /// Number of the worker on this rank.
        worker: WorkerId,
    },
    /// The result that this worker keeps apart does not count, because another worker was first.
    Discard {
        /// Number of the worker on this rank.
        worker: WorkerId,
    },
    /// Send a message to the machine of another rank.
    Send {
        /// The receiver; never this rank.
        to: Rank,
        /// The message.
        message: M,
    },
    /// Give the machine a `Timer` at this time. This replaces the last `WakeAt`.
    WakeAt(Nanos),
    /// This worker gets nothing more.
    Release {
        /// Number of the worker on this rank.
        worker: WorkerId,
    },
    /// This rank has finished its part of the pool.
    Closed,
}

impl<M> Output<M> {
    /// The same output, with its message changed if it has one.
    fn map<N>(self, change: impl FnOnce(M) -> N) -> Output<N> {
        match self {
            Self::Send { to, message } => Output::Send { to, message: change(message) },
            Self::Run { worker, range, copy } => Output::Run { worker, range, copy },
            Self::Commit { worker } => Output::Commit { worker },
            Self::Discard { worker } => Output::Discard { worker },
            Self::WakeAt(at) => Output::WakeAt(at),
            Self::Release { worker } => Output::Release { worker },
            Self::Closed => Output::Closed,
        }
    }
}
