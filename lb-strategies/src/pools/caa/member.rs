//! Runs the workers of one rank under `caa`: equal shares first, then new shares, or tasks on request from rank 0
//! (`Serve`).
//!
//! ```text
//!            Stop, or all have finished       all at rest            Serve
//!  Shares -----------------------------> Stopping ----> Resting ----------------> Asking
//!     ^                                                    |
//!     `----------------------------------------------------'  Shares
//! ```

use std::ops::Range;

use super::decide::TaskStats;
use super::{CaaMessage, Until, WorkerReport};
use crate::pools::central::{Outbox, QueueMessage, Workers};
use crate::pools::equal::shares;
use crate::pools::machine::{Nanos, Output};
use crate::pools::policy::Pool;
use crate::pools::steps::Pace;
use crate::rank::{Rank, WorkerId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Workers execute their shares.
    Shares(Until),
    /// Workers finish their present tasks.
    Stopping,
    /// The rank has reported.
    Resting,
    /// Workers request tasks from the master.
    Asking,
}

/// The workers of one rank.
pub(super) struct Member {
    workers: Workers,
    /// Clock speed of the rank's vCPUs.
    clock: f64,
    /// By worker, for this round.
    tallies: Vec<TaskStats>,
    phase: Phase,
}

impl Member {
    /// Workers with their equal shares of phase 1.
    pub(super) fn new(pool: &Pool, rank: Rank, pace: Pace, chunk: Nanos) -> Self {
        let mut workers = Workers::new(pool, rank, pace, chunk);
        for (worker, share) in (0..).map(WorkerId).zip(shares(pool, rank)) {
            workers.give(worker, share);
        }
        let tallies = vec![TaskStats::default(); workers.workers() as usize];
        let clock = pool.clock_speeds[rank.index()];
        Self { workers, clock, tallies, phase: Phase::Shares(Until::FirstFinished) }
    }

    pub(super) fn wants(
        &mut self,
        now: Nanos,
        worker: WorkerId,
        outbox: &mut Outbox<CaaMessage>,
        out: &mut Vec<Output<CaaMessage>>,
    ) {
        if let Some((count, took)) = self.workers.finish_step(now, worker, out) {
            self.tallies[worker.index()].add(count, took);
        }
        if self.workers.is_waiting(worker) {
            self.advance(now, worker, outbox, out);
        }
    }

    pub(super) fn receive(
        &mut self,
        now: Nanos,
        message: CaaMessage,
        outbox: &mut Outbox<CaaMessage>,
        out: &mut Vec<Output<CaaMessage>>,
    ) {
        match message {
            CaaMessage::Stop => {
                if matches!(self.phase, Phase::Shares(_)) {
                    self.stop(outbox);
                }
            }
            CaaMessage::Shares { shares, until } => {
                self.share(now, shares, until, outbox, out);
            }
            CaaMessage::Serve => {
                self.phase = Phase::Asking;
                for worker in self.workers.all() {
                    if self.workers.is_waiting(worker) {
                        self.advance(now, worker, outbox, out);
                    }
                }
            }
            CaaMessage::Queue(QueueMessage::Grant { worker, range }) => {
                self.workers.give(worker, range);
                self.workers.run(now, worker, out);
            }
            CaaMessage::Queue(QueueMessage::Dismiss) => self.workers.dismiss(out),
            _ => {}
        }
    }

    /// Does what the phase prescribes for a waiting worker.
    fn advance(
        &mut self,
        now: Nanos,
        worker: WorkerId,
        outbox: &mut Outbox<CaaMessage>,
        out: &mut Vec<Output<CaaMessage>>,
    ) {
        match self.phase {
            Phase::Shares(until) => {
                if self.workers.run(now, worker, out) {
                    return;
                }
                match until {
                    Until::FirstFinished => outbox.push_back((Rank(0), CaaMessage::First)),
                    Until::AllFinished => self.stop_if_through(outbox),
                }
            }
            Phase::Stopping => self.report_if_at_rest(outbox),
            Phase::Resting => {}
            Phase::Asking => {
                // A grant may be longer than a step.
                if !self.workers.run(now, worker, out) {
                    outbox.push_back((Rank(0), CaaMessage::Queue(self.workers.ask(worker))));
                }
            }
        }
    }

    fn share(
        &mut self,
        now: Nanos,
        shares: Vec<(WorkerId, Range<u64>)>,
        until: Until,
        outbox: &mut Outbox<CaaMessage>,
        out: &mut Vec<Output<CaaMessage>>,
    ) {
        self.phase = Phase::Shares(until);
        self.tallies.fill(TaskStats::default());
        for (worker, range) in shares {
            self.workers.give(worker, range);
        }
        for worker in self.workers.all() {
            if self.workers.is_waiting(worker) {
                self.workers.run(now, worker, out);
            }
        }
        if until == Until::AllFinished {
            self.stop_if_through(outbox);
        }
    }

    /// Stops if all workers are at rest. In a round that ends with the last worker, only workers that have come have
    /// shares. So if all are at rest, all have finished.
    fn stop_if_through(&mut self, outbox: &mut Outbox<CaaMessage>) {
        if self.workers.is_at_rest() {
            self.stop(outbox);
        }
    }

    fn stop(&mut self, outbox: &mut Outbox<CaaMessage>) {
        self.phase = Phase::Stopping;
        self.report_if_at_rest(outbox);
    }

    fn report_if_at_rest(&mut self, outbox: &mut Outbox<CaaMessage>) {
        if !self.workers.is_at_rest() {
            return;
        }
        self.phase = Phase::Resting;
        let report = |(worker, &tally)| {
            let there = self.workers.is_there(worker);
            WorkerReport { there, clock: self.clock, tally }
        };
        let workers = self.workers.all().zip(&self.tallies).map(report).collect();
        let left = self.workers.take_rest().ranges().collect();
        outbox.push_back((Rank(0), CaaMessage::Report { workers, left }));
    }
}
