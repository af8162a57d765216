//! Balances the ranks on rank 0 (paper, Fig. 4 left, and `receiveReport`, which the paper names and does not print).
//!
//! | state of a rank | input | action of rank 0 | next |
//! |---|---|---|---|
//! | Absent | `Start` | sends `StartOk` with its share | Idle |
//! | Idle | its report is due | sends `ReportRequest` | Asked |
//! | Idle, Asked | `Report` | measures, balances; sends `Assign`, or `End` to all if the end is near | Idle |
//! | Idle, Asked | `Claim` | sends `Granted`, within its quota | as it was |
//! | Idle, Asked | the balance ends | sends `End` with all indices of its quota that it lacks | Told |
//! | Absent, after the end | `Start` | sends `End` | Told |
//! | Told | `Bye` | | Gone |
//!
//! Only the rank that has reported gets its new quota at once. The others get it when they report. Rank 0 reports to
//! itself. Rank 0 waits for no single rank, so a slow rank delays no other.

mod balance;

use super::command::{Command, TaskView};
use super::grants::Grants;
use super::guess_worker::GuessWorker;
use super::message::{Reason, RuperMessage};
use super::parameters::{Counts, Settings, seconds};
use super::task::Urgency;
use crate::pools::apportion::apportion;
use crate::pools::machine::Nanos;
use crate::pools::policy::Pool;
use crate::rank::Rank;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Absent,
    Idle,
    Asked,
    Told,
    Gone,
}

/// The state of a rank on rank 0.
#[derive(Clone, Debug)]
struct Peer {
    stage: Stage,
    guess: GuessWorker,
    /// Quota of the rank (paper: I_n of a guess worker).
    assigned: u64,
    /// Iterations that its workers had reported at its last report.
    confirmed: u64,
    /// Time between its reports.
    interval: Nanos,
    /// Time at which its next report is due.
    due: Nanos,
}

/// The phase of the balance between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No rank has reported yet: shares are as at the start.
    Fresh,
    Balancing,
    Over,
}

/// The monitor of rank 0.
#[derive(Clone, Debug)]
pub(crate) struct RootMonitor {
    settings: Settings,
    iterations: u64,
    peers: Vec<Peer>,
    /// The free indices; none if only the number of iterations matters.
    grants: Option<Grants>,
    phase: Phase,
    own: SelfReports,
}

/// The reports of rank 0 to itself.
#[derive(Clone, Debug, Default)]
struct SelfReports {
    reported: Nanos,
    began: Nanos,
    /// Time at which rank 0 reports at the latest, because its task wants to finish; none if it does not.
    finish: Option<Nanos>,
    /// Earliest time of the next report of rank 0 to finish.
    next: Nanos,
}

impl RootMonitor {
    /// At first, ranks share the iterations in proportion to their workers.
    pub(crate) fn new(settings: &Settings, pool: &Pool) -> Self {
        let workers: Vec<f64> = pool.workers.iter().map(|&workers| f64::from(workers)).collect();
        let shares = apportion(pool.iterations, &workers).expect("every rank has a worker");
        let peer = |assigned| Peer {
            stage: Stage::Absent,
            guess: GuessWorker::default(),
            assigned,
            confirmed: 0,
            interval: settings.mpi_interval,
            due: Nanos::MAX,
        };
        let indexed = settings.counts == Counts::Indexed;
        Self {
            settings: settings.clone(),
            iterations: pool.iterations,
            peers: shares.into_iter().map(peer).collect(),
            grants: indexed.then(|| Grants::new(pool.iterations, pool.workers.len())),
            phase: Phase::Fresh,
            own: SelfReports::default(),
        }
    }

    pub(crate) fn boot(&mut self, now: Nanos, out: &mut Vec<Command>) {
        self.own = SelfReports { reported: now, began: now, finish: None, next: 0 };
        self.peers[0].stage = Stage::Idle;
        self.peers[0].guess = GuessWorker::start(now);
        self.peers[0].due = now.saturating_add(self.settings.mpi_interval);
        out.push(Command::SetTotal(self.peers[0].assigned));
    }

    /// True if no message will come any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Over && self.peers[1..].iter().all(|peer| peer.stage == Stage::Gone)
    }

    /// Notes that the task of rank 0 wants to finish. Rank 0 reports at `at`, as [other ranks](super::rank_monitor) do.
    pub(crate) fn finish_raised(&mut self, at: Nanos) {
        let at = at.max(self.own.next).min(self.own.finish.unwrap_or(Nanos::MAX));
        self.own.finish = Some(at);
    }

    /// The time at which [`tick`](Self::tick) must be called: the earliest due time.
    pub(crate) fn wake_at(&self) -> Nanos {
        if self.phase == Phase::Over {
            return Nanos::MAX;
        }
        let idle = self.peers.iter().filter(|peer| peer.stage == Stage::Idle);
        let due = idle.map(|peer| peer.due).min().unwrap_or(Nanos::MAX);
        due.min(self.own.finish.unwrap_or(Nanos::MAX))
    }

    /// Asks the ranks whose reports are due for a report, and reports for rank 0 itself.
    pub(crate) fn tick(&mut self, now: Nanos, view: TaskView, out: &mut Vec<Command>) {
        if self.wake_at() > now {
            return;
        }
        for (rank, peer) in (0..).map(Rank).zip(&mut self.peers).skip(1) {
            if peer.stage == Stage::Idle && peer.due <= now {
                peer.stage = Stage::Asked;
                out.push(Command::Send { to: rank, message: RuperMessage::ReportRequest });
            }
        }
        if self.peers[0].due <= now || self.own.finish.is_some_and(|at| at <= now) {
            let elapsed = now.saturating_sub(self.own.reported);
            let reason =
                if self.peers[0].due <= now { Reason::Requested } else { Reason::Finish { sequence: 0 } };
            let next = now.saturating_add(self.settings.spacing);
            self.own = SelfReports { reported: now, finish: None, next, ..self.own };
            self.measure(now, Rank(0), reason, elapsed, view.predicted, view.registered);
            self.rebalance(view, out);
        }
    }

    pub(crate) fn receive(
        &mut self,
        now: Nanos,
        from: Rank,
        message: RuperMessage,
        view: TaskView,
        out: &mut Vec<Command>,
    ) {
        match (self.peers[from.0 as usize].stage, message) {
            (Stage::Absent, RuperMessage::Start) => self.start(now, from, out),
            (Stage::Idle | Stage::Asked, RuperMessage::Report { reason, predicted, registered, elapsed }) => {
                self.measure(now, from, reason, elapsed, predicted, registered);
                self.rebalance(view, out);
                let Peer { stage, assigned: quota, .. } = self.peers[from.0 as usize];
                if stage == Stage::Idle {
                    let message = RuperMessage::Assign { sequence: reason.sequence(), quota };
                    out.push(Command::Send { to: from, message });
                }
            }
            (Stage::Idle | Stage::Asked, RuperMessage::Claim { count }) => {
                let (ranges, quota) = self.claim(from, count);
                let message = RuperMessage::Granted { ranges, quota };
                out.push(Command::Send { to: from, message });
            }
            (Stage::Told, RuperMessage::Bye { registered }) => {
                let peer = &mut self.peers[from.0 as usize];
                peer.confirmed = registered;
                peer.stage = Stage::Gone;
            }
            _ => {}
        }
    }

    fn start(&mut self, now: Nanos, rank: Rank, out: &mut Vec<Command>) {
        let index = rank.0 as usize;
        if self.phase == Phase::Over {
            return self.tell(rank, out);
        }
        let predicted: u64 =
            self.peers.iter().map(|peer| peer.guess.predicted(now)).fold(0, u64::saturating_add);
        self.peers[index].stage = Stage::Idle;
        self.peers[index].guess = GuessWorker::start(now);
        self.peers[index].due = now.saturating_add(self.settings.mpi_interval);
        if self.phase == Phase::Balancing {
            let left = self.iterations.saturating_sub(predicted);
            self.peers[index].assigned = (left / self.peers.len() as u64).max(1);
            self.balance();
            out.push(Command::SetTotal(self.peers[0].assigned));
        }
        let quota = self.peers[index].assigned;
        out.push(Command::Send { to: rank, message: RuperMessage::StartOk { quota } });
    }

    /// Balances, and sets the quota of rank 0. If the end is near, ends the balance for all ranks.
    fn rebalance(&mut self, view: TaskView, out: &mut Vec<Command>) {
        let eta = self.balance();
        out.push(Command::SetTotal(self.peers[0].assigned));
        if eta <= seconds(self.settings.t_min_mpi) {
            return self.end(out);
        }
        if view.any_parked {
            out.push(Command::Rebalance(Urgency::Usual));
        }
    }

    /// Ends the balance: quotas are final, and all ranks get theirs in the same step.
    fn end(&mut self, out: &mut Vec<Command>) {
        self.phase = Phase::Over;
        for rank in (1..self.peers.len() as u32).map(Rank) {
            if matches!(self.peers[rank.0 as usize].stage, Stage::Idle | Stage::Asked) {
                self.tell(rank, out);
            }
        }
        let (ranges, _) = self.claim(Rank(0), u64::MAX);
        out.push(Command::Grant(ranges));
        out.push(Command::Rebalance(Urgency::Forced));
        out.push(Command::BalanceOver);
    }

    fn tell(&mut self, rank: Rank, out: &mut Vec<Command>) {
        let (ranges, _) = self.claim(rank, u64::MAX);
        let peer = &mut self.peers[rank.0 as usize];
        peer.stage = Stage::Told;
        let message = RuperMessage::End { quota: peer.assigned, ranges };
        out.push(Command::Send { to: rank, message });
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "sets of indices are lists of ranges, some of one")]
mod tests;
