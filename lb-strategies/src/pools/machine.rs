//! The machine that a policy makes for each rank of a pool.
//!
//! Every rank has one, a [`PoolRank`]: a state machine without clock, thread or socket. Its driver (the runtime, or a
//! cluster in virtual time) gives it events with their times, as [`Input`]s, and carries out its [`Output`]s:
//!
//! ```text
//!  Begin, Wants, Message, Timer, Resize            Run, Send, WakeAt, Release, Closed
//! --------------------------------------> PoolRank ---------------------------------->
//! ```
//!
//! The machine of rank 0 also holds the single parts of a pool: the root pool, the monitor, the master. Each policy has
//! its own type of messages; a [`Machine`] erases it.
//!
//! # What a driver promises
//! 1. `Begin` comes first and once. A worker says `Wants` when it begins, and then once after each `Run`, when it has
//!    executed the whole range; never otherwise.
//! 2. Messages between two ranks arrive once and in order. If a rank is lost, the driver ends the pool with an error.
//! 3. `now` is a clock of that rank that never goes back. Times of different ranks are never compared.
//! 4. `Timer` comes at or soon after the instant of the last `WakeAt`. A spurious one does no harm.
//!
//! # What a machine promises
//! 1. Over all ranks each index of `0..iterations` is run exactly once, for any speeds, delays and orders. Exempt are
//!    runs that a policy marks as *copies* ([`Output::Run`]).
//! 2. A worker that `Wants` is answered, at once or later, by a `Run` with a range that is not empty, or by `Release`.
//!    After `Release` it does nothing more.
//! 3. `Closed` comes once, when all its workers are released and it expects no message. It ignores later inputs.
//! 4. It never fails, panics or spins: an `Output` costs the driver something, a `WakeAt` in the past is one `Timer`.

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
    /// The messages between machines of the policy; `()` if there are none. All machines of a policy have the same. It
    /// is encoded only to leave a process, without names and types: serde's `untagged`, `tag`, `flatten` and
    /// `skip_serializing_if` do not work with it.
    type Message: Serialize + DeserializeOwned + Send + 'static;

    /// Takes an event at `now`, and adds its outputs to `out`, in order.
    fn step(&mut self, now: Nanos, input: Input<Self::Message>, out: &mut Vec<Output<Self::Message>>);

    /// The decision so far, in one line for a person, if it decides anything.
    fn said(&self) -> Option<String> {
        None
    }
}

/// A [`PoolRank`] of any type, whose messages have become [`Message`]s.
///
/// ```
/// use lb_strategies::{POOLS, Rank, pool::{Machine, Pool}};
/// let machine: Machine = POOLS.parse("static")?.rank(&Pool::new(100, vec![1, 1]), Rank(1));
/// # let _ = machine;
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct Machine(Box<dyn Erased>);

impl Machine {
    /// Erases the type of a machine.
    pub fn new(rank: impl PoolRank + 'static) -> Self {
        Self(Box::new(Typed { rank, out: Vec::new() }))
    }

    /// As [`PoolRank::step`]. Fails where the input is a message that the machine cannot read, and then does nothing.
    pub(crate) fn step(
        &mut self,
        now: Nanos,
        input: Input<Message>,
        out: &mut Vec<Output<Message>>,
    ) -> Result<(), Unreadable> {
        self.0.step(now, input, out)
    }

    /// As [`PoolRank::said`].
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
    /// Empty; kept for its memory.
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
    /// The instant of the last `WakeAt` has come.
    Timer,
    /// The run is shrunk or expanded: this rank has work from now on, or no longer. Only policies that
    /// [resize](super::policy::PoolStrategy::resizes) are told; rank 0 always has work.
    Resize {
        /// True if it has work.
        active: bool,
    },
}

/// An output of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Output<M> {
    /// This worker executes these iterations. They are never none.
    Run {
        /// Its number on this rank.
        worker: WorkerId,
        /// Their indices.
        range: Range<u64>,
        /// Others may be executing the same: keep the result apart until `Commit` or `Discard` for this worker.
        copy: bool,
    },
    /// The result this worker keeps apart counts.
    Commit {
        /// Its number on this rank.
        worker: WorkerId,
    },
    /// The result this worker keeps apart does not count: another worker was first.
    Discard {
        /// Its number on this rank.
        worker: WorkerId,
    },
    /// Tell another rank's machine.
    Send {
        /// The receiver; never this rank.
        to: Rank,
        /// The message.
        message: M,
    },
    /// Give it a `Timer` then. Replaces the last.
    WakeAt(Nanos),
    /// This worker gets nothing more.
    Release {
        /// Its number on this rank.
        worker: WorkerId,
    },
    /// This rank's part is over.
    Closed,
}

impl<M> Output<M> {
    /// The same with another message, if it has one.
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
