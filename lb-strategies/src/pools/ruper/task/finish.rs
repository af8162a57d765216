//! The answer to a worker that has reached its quota and asks to leave (paper, §2.1 and §2.2)

use super::{Task, TaskError};
use crate::pools::machine::Nanos;
use crate::pools::ruper::parameters::seconds;
use crate::rank::WorkerId;

/// The answer to a worker that has reached its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It may leave.
    Release,
    /// It may not yet.
    Denied(Denial),
}

/// The reason why a worker may not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// It has reported less than its quota.
    MoreWork,
    /// The end is far, as of the last rebalance: another one may give it more.
    Rebalance,
    /// The balance between ranks goes on: the total may grow.
    BalancePending,
}

impl Task {
    /// A worker that has made its final report asks to leave. The first reason that applies, applies.
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

    /// A worker waits for another quota, or for its release.
    pub(crate) fn park(&mut self, now: Nanos, worker: WorkerId) {
        self.workers[worker.index()].park(now);
    }

    /// A worker goes on; its next report is a whole interval away.
    pub(crate) fn unpark(&mut self, now: Nanos, worker: WorkerId) {
        let index = worker.index();
        self.workers[index].unpark(now);
        self.reports[index].at = now.saturating_add(self.reports[index].interval);
    }
}
