//! Gives waiting workers indices within their quotas, or releases them.

use super::{Link, RuperRank};
use crate::pools::machine::Nanos;
use crate::pools::ruper::command::Command;
use crate::pools::ruper::local_workers::{LocalWorker, LocalWorkerState};
use crate::pools::ruper::message::{Output, RuperMessage};
use crate::pools::ruper::supply::Need;
use crate::pools::ruper::task::{Denial, Finish, Report, Task, Urgency};
use crate::pools::ruper::worker::Stage;
use crate::rank::{Rank, WorkerId};

impl RuperRank {
    /// Serves all waiting workers, and again after each rebalance, because quotas may have changed.
    pub(super) fn serve(&mut self, now: Nanos, out: &mut Vec<Output>) {
        loop {
            let before = self.task.as_ref().map(Task::rebalances);
            for worker in (0..self.own_workers.len() as u32).map(WorkerId) {
                if self.own_workers[worker.index()].doing == LocalWorkerState::Waiting {
                    self.serve_one(now, worker, out);
                }
            }
            if self.task.as_ref().map(Task::rebalances) == before {
                return;
            }
        }
    }

    fn serve_one(&mut self, now: Nanos, worker: WorkerId, out: &mut Vec<Output>) {
        let Some(task) = &mut self.task else { return };
        let own = &mut self.own_workers[worker.index()];
        if task.stage(worker) == Stage::Absent {
            task.start(now, worker).expect("it has not started");
        }
        if task.quota(worker) <= own.done {
            return self.may_it_leave(now, worker, out);
        }
        if task.stage(worker) == Stage::Parked {
            task.unpark(now, worker);
        }
        if task.report_at(worker) <= now {
            task.report(now, worker, own.done, Report::Periodic).expect("it is working");
        }
        let count = own.next(now, task.report_at(worker)).min(task.quota(worker) - own.done);
        if let Some(range) = self.supply.take(count) {
            let iterations = range.end - range.start;
            task.took(worker, iterations);
            own.doing = LocalWorkerState::Running { iterations, since: now };
            out.push(Output::Run { worker, range, copy: false });
        } else if self.supply.is_exhausted(task.total()) {
            // The quota is older than the total. A rebalance updates it.
            task.rebalance(now, Urgency::Usual);
        }
    }

    /// Handles a worker that has reached its quota (paper, §2.1 and §2.2).
    fn may_it_leave(&mut self, now: Nanos, worker: WorkerId, out: &mut Vec<Output>) {
        let Some(task) = &mut self.task else { return };
        let own = &mut self.own_workers[worker.index()];
        if task.stage(worker) == Stage::Running {
            task.report(now, worker, own.done, Report::Final).expect("it is working");
        }
        match task.finish(worker).expect("it is working") {
            Finish::Release => {
                own.doing = LocalWorkerState::Released;
                out.push(Output::Release { worker });
            }
            Finish::Denied(Denial::MoreWork) => {}
            Finish::Denied(Denial::Rebalance) => {
                task.park(now, worker);
                task.rebalance(now, Urgency::Usual);
            }
            Finish::Denied(Denial::BalancePending) => task.park(now, worker),
        }
    }

    /// Claims indices if there will soon be too few.
    pub(super) fn claim(&mut self, now: Nanos, commands: &mut Vec<Command>) {
        let Some(task) = &self.task else { return };
        let short = |(worker, own): &(WorkerId, &LocalWorker)| {
            own.doing == LocalWorkerState::Waiting && task.stage(*worker) == Stage::Running
        };
        let need = Need {
            total: task.total(),
            speed: self.own_workers.iter().filter_map(|own| own.sizer.speed()).sum(),
            hungry: (0..).map(WorkerId).zip(&self.own_workers).filter(short).count() as u64,
        };
        let Some(count) = self.supply.claim(now, need, &self.settings) else { return };
        if let Link::Root(root) = &mut self.link {
            let (ranges, quota) = root.claim(Rank(0), count);
            commands.extend(quota.map(Command::SetTotal));
            commands.push(Command::Grant(ranges));
        } else {
            commands.push(Command::Send { to: Rank(0), message: RuperMessage::Claim { count } });
        }
    }
}
