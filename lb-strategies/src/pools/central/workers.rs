//! Keeps the states of a rank's workers: away, waiting, running or released.
//!
//! ```text
//!             wants                run
//!  away ----------------> waiting ----> running        wants: waiting again
//!    \                      |
//!     \ wants, when         | dismiss
//!      \ dismissed          v
//!       `--------------> released
//! ```
//!
//! It decides nothing: the machine that has the workers assigns indices to them.

use std::ops::Range;

use super::QueueMessage;
use crate::pools::machine::{Nanos, Output};
use crate::pools::policy::Pool;
use crate::pools::range_set::RangeSet;
use crate::pools::steps::{Pace, Steps};
use crate::rank::{Rank, WorkerId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Away,
    Waiting,
    Running,
    Released,
}

/// The workers of one rank.
///
/// ```
/// use lb_strategies::{Rank, WorkerId, pool::{Output, Pool, central::Workers, steps::Pace}};
/// let mut workers = Workers::new(&Pool::new(9, vec![1]), Rank(0), Pace::Single, 100);
/// let mut out: Vec<Output<()>> = Vec::new();
/// workers.finish_step(0, WorkerId(0), &mut out);
/// assert!(workers.is_waiting(WorkerId(0)));
/// workers.dismiss(&mut out);
/// assert_eq!(out, [Output::Release { worker: WorkerId(0) }, Output::Closed]);
/// ```
#[derive(Clone, Debug)]
pub struct Workers {
    steps: Vec<Steps>,
    states: Vec<State>,
    dismissed: bool,
}

impl Workers {
    /// Workers that have not come yet, without indices.
    pub fn new(pool: &Pool, rank: Rank, pace: Pace, chunk: Nanos) -> Self {
        let workers = pool.workers_of(rank) as usize;
        let steps = vec![Steps::new(pace, chunk, pool.cost_hint); workers];
        Self { steps, states: vec![State::Away; workers], dismissed: false }
    }

    /// Number of workers, including those that have not come.
    pub fn workers(&self) -> u32 {
        self.steps.len() as u32
    }

    /// All workers in order, including those that have not come.
    pub fn all(&self) -> impl Iterator<Item = WorkerId> + use<> {
        (0..self.workers()).map(WorkerId)
    }

    /// Handles `Wants` of a worker, which may end a step. Returns the number of indices in this step, and its time.
    pub fn finish_step<M>(
        &mut self,
        now: Nanos,
        worker: WorkerId,
        out: &mut Vec<Output<M>>,
    ) -> Option<(u64, Nanos)> {
        let ran = self.steps[worker.index()].finish_step(now);
        self.states[worker.index()] = State::Waiting;
        if self.dismissed {
            self.release(worker, out);
        }
        ran
    }

    /// Gives a worker indices for its next steps.
    pub fn give(&mut self, worker: WorkerId, range: Range<u64>) {
        self.steps[worker.index()].give(range);
    }

    /// Starts the next step of a waiting worker. False if it has no indices.
    pub fn run<M>(&mut self, now: Nanos, worker: WorkerId, out: &mut Vec<Output<M>>) -> bool {
        debug_assert_eq!(self.states[worker.index()], State::Waiting, "only a waiting worker begins");
        let Some(range) = self.steps[worker.index()].next(now) else { return false };
        self.states[worker.index()] = State::Running;
        out.push(Output::Run { worker, range, copy: false });
        true
    }

    /// The request to the queue of a worker without indices.
    pub fn ask(&self, worker: WorkerId) -> QueueMessage {
        QueueMessage::Ask { worker, fitting: self.steps[worker.index()].fitting() }
    }

    /// True if the worker has come and has nothing to do.
    pub fn is_waiting(&self, worker: WorkerId) -> bool {
        self.states[worker.index()] == State::Waiting
    }

    /// True if the worker has come.
    pub fn is_there(&self, worker: WorkerId) -> bool {
        self.states[worker.index()] != State::Away
    }

    /// True if no worker runs a step.
    pub fn is_at_rest(&self) -> bool {
        self.states.iter().all(|&place| place != State::Running)
    }

    /// Takes the indices that the workers have not begun.
    pub fn take_rest(&mut self) -> RangeSet {
        let mut rest = RangeSet::default();
        for steps in &mut self.steps {
            rest.extend(&steps.take_rest());
        }
        rest
    }

    /// Releases all workers, because everything has run: waiting workers now, others when they come.
    pub fn dismiss<M>(&mut self, out: &mut Vec<Output<M>>) {
        self.dismissed = true;
        for worker in self.all() {
            if self.is_waiting(worker) {
                self.release(worker, out);
            }
        }
    }

    fn release<M>(&mut self, worker: WorkerId, out: &mut Vec<Output<M>>) {
        self.states[worker.index()] = State::Released;
        out.push(Output::Release { worker });
        if self.states.iter().all(|&place| place == State::Released) {
            out.push(Output::Closed);
        }
    }
}
