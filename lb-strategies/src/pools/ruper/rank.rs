//! The machine of one rank. It combines the task (the quotas of the rank's workers), the monitor (the exchange with
//! rank 0), the indices that the rank holds, and the workers.
//!
//! Every input goes through the same steps. The monitor handles it, due rebalances and reports are made, waiting
//! workers get indices, and the rank claims more indices from rank 0. A command of the monitor may require an earlier
//! step again, so the steps repeat until there is no command. The repetition ends, because at least `spacing` passes
//! between two rebalances, and between two requests to finish.

mod serve;

use super::command::{Command, TaskView};
use super::local_workers::{LocalWorker, LocalWorkerState};
use super::message::{Output, RuperMessage};
use super::parameters::{Counts, Settings};
use super::rank_monitor::RankMonitor;
use super::root_monitor::RootMonitor;
use super::supply::Supply;
use super::task::{Report, Task, Urgency};
use crate::pools::machine::{Input, Nanos, PoolRank};
use crate::pools::policy::Pool;
use crate::rank::{Rank, WorkerId};

/// The connection of the rank to other ranks.
enum Link {
    /// There are no other ranks.
    Alone { iterations: u64 },
    /// The rank is rank 0.
    Root(RootMonitor),
    /// The rank exchanges messages with rank 0.
    Peer(RankMonitor),
}

/// The outputs that must not be repeated.
#[derive(Default)]
struct Emitted {
    /// The last `WakeAt`.
    wake: Option<Nanos>,
    closed: bool,
}

/// The machine of one rank.
pub(super) struct RuperRank {
    settings: Settings,
    /// None until the rank has its quota.
    task: Option<Task>,
    link: Link,
    supply: Supply,
    own_workers: Vec<LocalWorker>,
    said: Emitted,
}

impl RuperRank {
    pub(super) fn new(settings: &Settings, pool: &Pool, rank: Rank) -> Self {
        let link = match rank {
            _ if pool.ranks() == 1 => Link::Alone { iterations: pool.iterations },
            Rank(0) => Link::Root(RootMonitor::new(settings, pool)),
            _ => Link::Peer(RankMonitor::new(settings)),
        };
        let supply = match (settings.counts, &link) {
            // Every rank numbers its own iterations, with enough numbers for excess iterations.
            (Counts::Fungible, _) => {
                let room = u64::MAX / u64::from(pool.ranks());
                let first = u64::from(rank.0) * room;
                Supply::complete(first..first + room)
            }
            (Counts::Indexed, Link::Alone { iterations }) => Supply::complete(0..*iterations),
            (Counts::Indexed, _) => Supply::claiming(),
        };
        let own_workers =
            (0..pool.workers_of(rank)).map(|_| LocalWorker::new(settings, pool.cost_hint)).collect();
        Self { settings: settings.clone(), task: None, link, supply, own_workers, said: Emitted::default() }
    }

    fn receive(&mut self, now: Nanos, input: Input<RuperMessage>, commands: &mut Vec<Command>) {
        let view = self.view(now);
        match (input, &mut self.link) {
            (Input::Begin, Link::Alone { iterations }) => {
                commands.extend([Command::SetTotal(*iterations), Command::BalanceOver]);
            }
            (Input::Begin, Link::Root(root)) => root.boot(now, commands),
            (Input::Begin, Link::Peer(monitor)) => monitor.boot(commands),
            (Input::Wants { worker }, _) => self.own_workers[worker.index()].wants(now),
            (Input::Message { from, message }, Link::Root(root)) => {
                root.receive(now, from, message, view, commands);
            }
            (Input::Message { message, .. }, Link::Peer(monitor)) => {
                monitor.receive(now, message, view, commands);
            }
            (Input::Timer | Input::Message { .. } | Input::Resize { .. }, _) => {}
        }
    }

    fn view(&self, now: Nanos) -> TaskView {
        self.task.as_ref().map_or(TaskView::default(), |task| TaskView {
            predicted: task.predicted(now),
            registered: task.registered(),
            any_parked: task.any_parked(),
        })
    }

    fn carry_out(&mut self, now: Nanos, command: Command, out: &mut Vec<Output>) {
        match (command, &mut self.task) {
            (Command::Send { to, message }, _) => {
                out.push(Output::Send { to, message });
            }
            (Command::SetTotal(total), Some(task)) => task.set_total(total),
            (Command::SetTotal(total), none) => {
                *none = Some(Task::new(&self.settings, total, self.own_workers.len()));
            }
            (Command::Grant(ranges), _) => self.supply.receive(now, ranges),
            (Command::Rebalance(urgency), Some(task)) => task.rebalance(now, urgency),
            (Command::BalanceOver, Some(task)) => {
                task.balance_over();
                self.supply.close();
            }
            (Command::Rebalance(_) | Command::BalanceOver, None) => {}
        }
    }

    /// Does the due work of the task: the rebalance, and the reports of workers that run too long to report themselves.
    fn make_due(&mut self, now: Nanos) {
        let Some(task) = &mut self.task else { return };
        if task.rebalance_at() <= now {
            task.rebalance(now, Urgency::Usual);
        }
        for (worker, own) in (0..).map(WorkerId).zip(&self.own_workers) {
            let overdue = own.overdue_at(task.report_at(worker), &self.settings);
            if overdue.is_some_and(|at| at <= now) {
                let reported = task.report(now, worker, own.done, Report::Periodic);
                reported.expect("a worker that runs is started and not finished");
            }
        }
    }

    /// Does the due work of the monitor. If the task wants to finish, the monitor sends the request.
    fn monitor(&mut self, now: Nanos, commands: &mut Vec<Command>) {
        let raised = self.task.as_mut().is_some_and(Task::take_finish_raised);
        let finish_at = self.finish_at(now);
        let view = self.view(now);
        match &mut self.link {
            Link::Alone { .. } => {}
            Link::Root(root) => {
                if raised {
                    root.finish_raised(finish_at);
                }
                root.tick(now, view, commands);
            }
            Link::Peer(monitor) => {
                if raised {
                    monitor.finish_raised(finish_at);
                }
                monitor.tick(now, view, commands);
            }
        }
    }

    /// The time at which the request to finish is sent. While workers run, it is `spacing` from now, because workers
    /// with quotas of the same age finish together. The answer should not come when the first has just reported and the
    /// others have only older reports. If no worker runs, it is now.
    fn finish_at(&self, now: Nanos) -> Nanos {
        let runs = self.own_workers.iter().any(|own| matches!(own.doing, LocalWorkerState::Running { .. }));
        if runs { now.saturating_add(self.settings.spacing) } else { now }
    }

    fn wake_at(&self) -> Nanos {
        let monitor = match &self.link {
            Link::Alone { .. } => Nanos::MAX,
            Link::Root(root) => root.wake_at(),
            Link::Peer(monitor) => monitor.wake_at(),
        };
        let Some(task) = &self.task else { return monitor };
        let overdue =
            |(worker, own): (WorkerId, &LocalWorker)| own.overdue_at(task.report_at(worker), &self.settings);
        let reports =
            (0..).map(WorkerId).zip(&self.own_workers).filter_map(overdue).min().unwrap_or(Nanos::MAX);
        monitor.min(task.rebalance_at()).min(reports)
    }

    /// Requests the next wake-up if its time has changed. Closes the rank if it has finished.
    fn conclude(&mut self, now: Nanos, out: &mut Vec<Output>) {
        let released = self.own_workers.iter().all(|own| own.doing == LocalWorkerState::Released);
        let linked = match &self.link {
            Link::Alone { .. } => false,
            Link::Root(root) => !root.is_closed(),
            Link::Peer(monitor) => !monitor.is_closed(),
        };
        if released && !linked {
            self.said.closed = true;
            out.push(Output::Closed);
            return;
        }
        let wake = self.wake_at();
        let again = self.said.wake.is_none_or(|last| last != wake || last <= now);
        if again && wake < Nanos::MAX {
            self.said.wake = Some(wake);
            out.push(Output::WakeAt(wake));
        }
    }
}

impl PoolRank for RuperRank {
    type Message = RuperMessage;

    fn step(&mut self, now: Nanos, input: Input<RuperMessage>, out: &mut Vec<Output>) {
        if self.said.closed {
            return;
        }
        let mut commands = Vec::new();
        self.receive(now, input, &mut commands);
        loop {
            for command in std::mem::take(&mut commands) {
                self.carry_out(now, command, out);
            }
            self.make_due(now);
            self.serve(now, out);
            self.monitor(now, &mut commands);
            self.claim(now, &mut commands);
            if commands.is_empty() {
                break;
            }
        }
        self.conclude(now, out);
    }
}
