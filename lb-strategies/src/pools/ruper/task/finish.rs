//! Decides whether a worker that has reached its quota may leave (paper, §2.1 and §2.2).

use super::{Task, TaskError};
use crate::pools::machine::Nanos;
use crate::pools::ruper::parameters::seconds;
use crate::rank::WorkerId;

/// The answer to a worker that has reached its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The worker may leave.
    Release,
    /// The worker may not leave yet.
    Denied(Denial),
}

/// The reason why a worker may not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The worker has reported less than its quota.
    MoreWork,
    /// The end was far at the last rebalance, so another rebalance may give the worker more.
    Rebalance,
    /// The balance between ranks goes on, so the total may grow.
    BalancePending,
}

impl Task {
    /// Answers a worker that asks to leave after its final report. Reasons are checked in the order of [`Denial`].
    pub(crate) fn finish(&mut self, worker: WorkerId) -> Result<Finish, TaskError> {
        let index = self.working(worker)?;
        let worker = &mut self.workers[index];
        if worker.done < worker.assigned {
            return Ok(Finish::Denied(Denial::MoreWork));
        }
        if self.forecast.eta > seconds(self.settings.t_min) {
            return Ok(Finish::Denied(Denial::Rebalance));
        }
        if !self.across.over {
            self.across.finish_raised = true;
            return Ok(Finish::Denied(Denial::BalancePending));
        }
        worker.end();
        Ok(Finish::Release)
    }

    /// Notes that a worker waits for another quota or for its release.
    pub(crate) fn park(&mut self, now: Nanos, worker: WorkerId) {
        self.workers[worker.index()].park(now);
    }

    /// Lets a worker continue. Its next report is due after a whole interval.
    pub(crate) fn unpark(&mut self, now: Nanos, worker: WorkerId) {
        let index = worker.index();
        self.workers[index].unpark(now);
        self.reports[index].at = now.saturating_add(self.reports[index].interval);
    }
}
