//! The queue at rank 0 from which workers request iterations, for `master-worker`, `guided`, `factoring` and `caa`.
//!
//! ```text
//!  worker has no work       Ask -->   rank 0: Queue, SizeRule
//!  worker runs             <-- Grant
//!  everything has run      <-- Dismiss, once to each rank
//! ```
//!
//! At most one request per worker is in flight, and only when the worker has no iterations. So no prefetching hides the
//! cost of a central queue. Workers of rank 0 reach the queue without messages. A granted range is executed in steps of
//! `chunk` seconds to show progress, but no part of it is given back.
//!
//! [`queue`] grants the next indices and detects the end, [`size`] computes the size of a grant, and [`workers`] has
//! the states of the workers of a rank.

pub mod queue;
pub mod size;
pub mod workers;

use std::collections::VecDeque;

use super::steps::Pace;
use crate::pools::machine::{Input, Nanos, Output, PoolRank};
use crate::pools::policy::Pool;
use crate::rank::Rank;

pub use queue::{Master, Queue, QueueMessage};
pub use size::SizeRule;
pub use workers::Workers;

/// The messages of a machine in one step, with their receivers. Those to its own rank are handled within the step.
pub type Outbox<M> = VecDeque<(Rank, M)>;

/// One rank of a policy with a central queue.
///
/// ```
/// use lb_strategies::{Rank, WorkerId, pool::{Input, Output, Pool, PoolRank}};
/// use lb_strategies::pool::central::{CentralRank, Master, SizeRule};
/// let pool = Pool::new(10, vec![1]);
/// let mut machine = CentralRank::new(&pool, Rank(0), SizeRule::Fixed(4), Master::Works, 100);
/// let mut out = Vec::new();
/// machine.step(0, Input::Wants { worker: WorkerId(0) }, &mut out);
/// assert_eq!(out, [Output::Run { worker: WorkerId(0), range: 0..1, copy: false }], "the first step of 0..4");
/// ```
pub struct CentralRank {
    rank: Rank,
    workers: Workers,
    /// Only on rank 0.
    queue: Option<Queue>,
}

impl CentralRank {
    /// The machine of `rank`, whose workers run in steps of `chunk`.
    pub fn new(pool: &Pool, rank: Rank, rule: SizeRule, master: Master, chunk: Nanos) -> Self {
        let queue = (rank == Rank(0)).then(|| Queue::new(pool, rule, master));
        Self { rank, workers: Workers::new(pool, rank, Pace::Fitting, chunk), queue }
    }

    fn receive(
        &mut self,
        now: Nanos,
        from: Rank,
        message: QueueMessage,
        outbox: &mut Outbox<QueueMessage>,
        out: &mut Vec<Output<QueueMessage>>,
    ) {
        match message {
            QueueMessage::Ask { worker, fitting } => {
                if let Some(queue) = &mut self.queue {
                    queue.ask(from, worker, fitting, outbox);
                }
            }
            QueueMessage::Grant { worker, range } => {
                self.workers.give(worker, range);
                self.workers.run(now, worker, out);
            }
            QueueMessage::Dismiss => self.workers.dismiss(out),
        }
    }
}

impl PoolRank for CentralRank {
    type Message = QueueMessage;

    fn step(&mut self, now: Nanos, input: Input<QueueMessage>, out: &mut Vec<Output<QueueMessage>>) {
        let mut outbox = Outbox::new();
        match input {
            Input::Wants { worker } => {
                self.workers.finish_step(now, worker, out);
                if self.workers.is_waiting(worker) && !self.workers.run(now, worker, out) {
                    outbox.push_back((Rank(0), self.workers.ask(worker)));
                }
            }
            Input::Message { from, message } => self.receive(now, from, message, &mut outbox, out),
            Input::Begin | Input::Timer | Input::Resize { .. } => {}
        }
        while let Some((to, message)) = outbox.pop_front() {
            if to == self.rank {
                self.receive(now, to, message, &mut outbox, out);
            } else {
                out.push(Output::Send { to, message });
            }
        }
    }
}
