//! The task of one rank: its workers, and the balance between them (paper, Table 1 right, Figs. 2 and 3 left).
//!
//! Each worker reports at its own times. Now and then, a rebalance gives each worker a new quota by the reports, and no
//! worker waits for it. A task causes no action itself. Its owner reads its state after each call: a worker's
//! [`quota`](Task::quota), its [next report](Task::report_at), the [next rebalance](Task::rebalance_at), and whether to
//! ask rank 0 to finish. A task has no indices, only the number that each worker has [taken](Task::took).

mod finish;
mod rebalance;

use super::interval::next_interval;
use super::parameters::{Counts, Settings};
use super::worker::{Measure, Stage, Worker};
use crate::pools::apportion;
use crate::pools::machine::Nanos;
use crate::rank::WorkerId;

pub(crate) use finish::{Denial, Finish};
pub(crate) use rebalance::Urgency;

use rebalance::{Forecast, Rebalances};

/// An error of the owner of a task. The task stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TaskError {
    /// The task has no such worker.
    #[error("no such worker")]
    WorkerOutOfRange,
    /// The worker has started before.
    #[error("the worker has already started")]
    AlreadyStarted,
    /// The worker has not started.
    #[error("the worker has not started")]
    NotStarted,
    /// The worker has finished.
    #[error("the worker has finished")]
    Finished,
    /// The count is less than the last one.
    #[error("the worker has already reported more iterations")]
    DecreasingCount,
}

/// Why a worker reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// Its report is due.
    Periodic,
    /// The worker has reached its quota.
    Final,
}

/// The workers of one process and the quotas of all.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    settings: Settings,
    /// Iterations of this process, which rank 0 may change (paper: I_n).
    total: u64,
    workers: Vec<Worker>,
    reports: Vec<Schedule>,
    forecast: Forecast,
    rebalances: Rebalances,
    across: RankBalance,
}

/// The time of a worker's next report, and the interval that led to it.
#[derive(Clone, Debug)]
struct Schedule {
    at: Nanos,
    interval: Nanos,
}

/// What the task needs of the balance between ranks.
#[derive(Clone, Debug)]
struct RankBalance {
    over: bool,
    finish_raised: bool,
}

impl Task {
    /// A task of `total` iterations, which the workers share equally until their speeds are measured.
    pub(crate) fn new(settings: &Settings, total: u64, workers: usize) -> Self {
        let quotas = apportion::equal(total, workers);
        let report = Schedule { at: Nanos::MAX, interval: settings.first_interval };
        Self {
            settings: settings.clone(),
            total,
            workers: quotas.into_iter().map(Worker::new).collect(),
            reports: vec![report; workers],
            forecast: Forecast { remaining: total, eta: f64::INFINITY },
            rebalances: Rebalances { last: None, next: Nanos::MAX, made: 0 },
            across: RankBalance { over: false, finish_raised: false },
        }
    }

    /// Iterations of this process.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The stage of a worker.
    pub(crate) fn stage(&self, worker: WorkerId) -> Stage {
        self.workers[worker.index()].stage
    }

    /// Iterations that a worker may execute in all.
    pub(crate) fn quota(&self, worker: WorkerId) -> u64 {
        self.workers[worker.index()].assigned
    }

    /// The time of a worker's next report.
    pub(crate) fn report_at(&self, worker: WorkerId) -> Nanos {
        self.reports[worker.index()].at
    }

    /// The time of the next rebalance.
    pub(crate) fn rebalance_at(&self) -> Nanos {
        self.rebalances.next
    }

    /// Number of rebalances so far. If it has grown, quotas may have changed.
    pub(crate) fn rebalances(&self) -> u64 {
        self.rebalances.made
    }

    /// Iterations that workers have reported.
    pub(crate) fn registered(&self) -> u64 {
        self.workers.iter().map(|worker| worker.done).fold(0, u64::saturating_add)
    }

    /// Iterations probably done by `now`.
    pub(crate) fn predicted(&self, now: Nanos) -> u64 {
        self.workers.iter().map(|worker| worker.predicted(now)).fold(0, u64::saturating_add)
    }

    /// True if a worker has no iterations left and may not leave.
    pub(crate) fn any_parked(&self) -> bool {
        self.workers.iter().any(|worker| worker.stage == Stage::Parked)
    }

    /// True once if the task wants the balance between ranks to end.
    pub(crate) fn take_finish_raised(&mut self) -> bool {
        std::mem::take(&mut self.across.finish_raised)
    }

    /// Starts a worker. After the first rebalance, the worker gets an equal part of the rest.
    pub(crate) fn start(&mut self, now: Nanos, worker: WorkerId) -> Result<(), TaskError> {
        let index = self.index(worker)?;
        self.workers[index].start(now)?;
        self.reports[index].at = now.saturating_add(self.settings.first_interval);
        if self.rebalances.last.is_some() {
            let left = self.total.saturating_sub(self.registered());
            self.workers[index].assigned = left / self.workers.len() as u64;
            self.assign();
        }
        self.rebalances.next = self.rebalances.next.min(now.saturating_add(self.settings.interval));
        Ok(())
    }

    /// Notes that a worker has taken iterations, which no rebalance takes back.
    pub(crate) fn took(&mut self, worker: WorkerId, iterations: u64) {
        if self.settings.counts == Counts::Indexed {
            self.workers[worker.index()].taken += iterations;
        }
    }

    /// Handles the report of a worker that has done `done` iterations since its start.
    pub(crate) fn report(
        &mut self,
        now: Nanos,
        worker: WorkerId,
        done: u64,
        report: Report,
    ) -> Result<(), TaskError> {
        let index = self.working(worker)?;
        let elapsed = now.saturating_sub(self.workers[index].reported());
        let measure = self.workers[index].measure(now, done, &self.settings)?;
        let schedule = &mut self.reports[index];
        if let (Measure::Recorded { ratio }, Report::Periodic) = (measure, report) {
            schedule.interval = next_interval(&self.settings, elapsed, ratio);
        }
        schedule.at = now.saturating_add(schedule.interval);
        Ok(())
    }

    /// Notes that the balance between ranks has ended: the total stays from now on.
    pub(crate) fn balance_over(&mut self) {
        self.across = RankBalance { over: true, finish_raised: false };
    }

    fn index(&self, worker: WorkerId) -> Result<usize, TaskError> {
        let index = worker.index();
        if index < self.workers.len() { Ok(index) } else { Err(TaskError::WorkerOutOfRange) }
    }

    /// The index of a worker that is started and not finished.
    fn working(&self, worker: WorkerId) -> Result<usize, TaskError> {
        let index = self.index(worker)?;
        match self.workers[index].stage {
            Stage::Absent => Err(TaskError::NotStarted),
            Stage::Finished => Err(TaskError::Finished),
            Stage::Running | Stage::Parked => Ok(index),
        }
    }
}

#[cfg(test)]
mod tests;
