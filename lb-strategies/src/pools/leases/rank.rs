//! The rank side of `leases`: gives pieces to the workers of a rank, and asks the root for the next lease in time.
//!
//! | stage | a worker that wants work | leaves when |
//! |---|---|---|
//! | Working | gets a piece, or waits | `Stop` comes |
//! | Stopped | is released | never; the rank is closed when all workers are released |
//!
//! 1. While Working, an active rank with a worker that has come has iterations not begun, or a `Want` at the root.
//! 2. A rank sends `Want` when its iterations last for at most two round trips and a piece, so the lease comes in time.
//! 3. Iterations that a rank gives up were not begun, and the rank does not hold them any more.
//! 4. A rank that becomes inactive gives back all iterations not begun, and those of a lease in flight. It requests
//!    none, and does not copy its late pieces itself. When its last worker has finished, it reports the executed
//!    iterations.
//! 5. A report has the iterations executed since the last one. Any iteration a rank got is reported, given up or held.

mod replication;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use replication::verdict;

use super::message::{LeaseStatus, Order, Output, Report, ReportKind, list};
use super::range_pool::RangePool;
use super::root_link::{RootLink, seconds};
use super::tail_replication::{Role, TailReplication};
use crate::pools::machine::{Nanos, SECOND};
use crate::rank::{Rank, WorkerId};

/// A rank checks its own progress after this many pieces or round trips, whichever takes longer.
const CHECK_PIECES: u64 = 3;
const CHECK_TRIPS: u64 = 5;

#[derive(Debug, PartialEq)]
enum Stage {
    Working,
    Stopped,
}

/// The machine of one rank, without the root.
#[derive(Debug)]
pub(super) struct LeaseRank {
    me: Rank,
    pool: RangePool,
    root_link: RootLink,
    waiting: BinaryHeap<Reverse<WorkerId>>,
    /// Workers that are not released.
    workers: u32,
    stage: Stage,
    /// False while the rank must not have work.
    active: bool,
    progress_timer: ProgressTimer,
    tail: TailReplication,
    copies: Replication,
}

/// Whether pieces may be executed twice (tail replication).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Replication {
    Never,
    /// Later: the root still has free iterations.
    NotYet,
    /// Now: the root has nothing left.
    Now,
}

/// The time at which to check whether the rank still runs as it reported.
#[derive(Debug)]
struct ProgressTimer {
    /// True if there is no other rank.
    alone: bool,
    chunk: Nanos,
    next: Option<Nanos>,
}

impl LeaseRank {
    pub(super) fn new(
        me: Rank,
        pool: RangePool,
        workers: u32,
        chunk: Nanos,
        alone: bool,
        copies: Replication,
    ) -> Self {
        Self {
            me,
            pool,
            root_link: RootLink::default(),
            waiting: BinaryHeap::new(),
            workers,
            stage: Stage::Working,
            active: true,
            progress_timer: ProgressTimer { alone, chunk, next: None },
            tail: TailReplication::default(),
            copies,
        }
    }

    /// Handles a worker that has come, or has executed its piece.
    pub(super) fn wants(&mut self, now: Nanos, worker: WorkerId, out: &mut Vec<Output>) {
        let range = self.pool.finish(now, worker);
        match (range, self.tail.finish(worker)) {
            (Some(range), None) => self.root_link.done(range),
            (Some(range), Some(Role::Own(piece))) => {
                let counts = self.tail.settle(piece).is_some();
                if counts {
                    self.root_link.done(range);
                }
                out.push(verdict(worker, counts));
            }
            (Some(_), Some(Role::Foreign(owner, piece))) if self.stage == Stage::Working => {
                self.tail.ask(owner, piece, worker);
                self.report(now, ReportKind::Copied { owner, piece });
                return self.advance(now, out);
            }
            (Some(_), Some(Role::Foreign(..))) => out.push(Output::Discard { worker }),
            (None, _) => {}
        }
        self.waiting.push(Reverse(worker));
        self.advance(now, out);
    }

    /// Handles an order of the root.
    pub(super) fn receive(&mut self, now: Nanos, order: Order, out: &mut Vec<Output>) {
        if self.stage == Stage::Stopped {
            return;
        }
        match order {
            Order::Lease { ranges, queued, last } => {
                if self.copies != Replication::Never {
                    self.copies = if last { Replication::Now } else { Replication::NotYet };
                }
                let before = self.pool.len();
                ranges.into_iter().for_each(|range| self.pool.insert(range));
                self.root_link.leased(now, self.pool.len() - before, queued);
                if !self.active {
                    self.give_back(now);
                }
            }
            Order::Steal(thieves) => {
                let speed = self.pool.speed(now);
                let given = self.pool.split_off(thieves.part_of(self.pool.len(), speed));
                self.report(now, ReportKind::Stolen(list(&given)));
            }
            Order::Copy { owner, piece, range } => self.copy(now, owner, piece, range, out),
            Order::Settle { piece } => {
                let range = self.tail.settle(piece);
                self.report(now, ReportKind::Settled { piece, range });
            }
            Order::Verdict { owner, piece, counts } => {
                if let Some(worker) = self.tail.answered(owner, piece) {
                    out.push(verdict(worker, counts));
                    self.waiting.push(Reverse(worker));
                }
            }
            Order::Stop => {
                self.stop(out);
                self.report(now, ReportKind::Bye);
            }
        }
        self.advance(now, out);
    }

    /// Notes whether the rank may have work from now on.
    pub(super) fn resize(&mut self, now: Nanos, active: bool, out: &mut Vec<Output>) {
        if self.stage == Stage::Stopped {
            return;
        }
        if std::mem::replace(&mut self.active, active) && !active {
            self.give_back(now);
        }
        self.advance(now, out);
    }

    /// Gives everything back that was not begun (rule 4).
    fn give_back(&mut self, now: Nanos) {
        self.root_link.withdraw();
        let all = self.pool.split_off(self.pool.len());
        self.report(now, ReportKind::Returned(list(&all)));
    }

    /// Checks the progress if it is time. A timer that comes for another reason has no effect.
    pub(super) fn timer(&mut self, now: Nanos, out: &mut Vec<Output>) {
        if self.progress_timer.next.is_none_or(|next| now < next) || self.stage == Stage::Stopped {
            return;
        }
        self.progress_timer.next = None;
        let standing = self.standing(now);
        if self.root_link.is_surprise(now, &standing, self.progress_timer.chunk) {
            self.root_link.report(now, ReportKind::Progress, standing);
        }
        self.copy_late(now, out);
        self.check_progress(now, out);
    }

    /// Takes the reports for the root, in order.
    pub(super) fn reports(&mut self) -> Vec<Report> {
        self.root_link.take()
    }

    /// True if all workers are released.
    pub(super) fn is_closed(&self) -> bool {
        self.workers == 0
    }

    fn advance(&mut self, now: Nanos, out: &mut Vec<Output>) {
        if self.stage == Stage::Stopped {
            while let Some(Reverse(worker)) = self.waiting.pop() {
                self.workers -= 1;
                out.push(Output::Release { worker });
            }
            return;
        }
        while let Some(&Reverse(worker)) = self.waiting.peek() {
            let Some(range) = self.pool.claim(now, worker) else { break };
            self.waiting.pop();
            let copy = self.copies == Replication::Now;
            if copy {
                self.tail.begin(worker, range.clone());
            }
            out.push(Output::Run { worker, range, copy });
        }
        self.copy_late(now, out);
        self.report_if_due(now);
        self.check_progress(now, out);
    }

    fn report_if_due(&mut self, now: Nanos) {
        let standing = self.standing(now);
        if self.active && !self.root_link.is_asking() {
            if self.is_low(&standing) {
                self.root_link.report(now, ReportKind::Want, standing);
            }
        } else if self
            .root_link
            .is_news(&standing, self.pool.running().any(|worker| self.tail.matters(worker)))
        {
            self.root_link.report(now, ReportKind::Progress, standing);
        }
    }

    fn is_low(&self, standing: &LeaseStatus) -> bool {
        let ahead = seconds(2 * self.root_link.rtt() + self.progress_timer.chunk);
        standing.pool == 0 || standing.speed.is_some_and(|speed| standing.pool as f64 <= speed * ahead)
    }

    fn check_progress(&mut self, now: Nanos, out: &mut Vec<Output>) {
        let nobody_cares = self.progress_timer.alone && self.copies == Replication::Never;
        if nobody_cares || self.progress_timer.next.is_some() || !self.pool.is_running() {
            return;
        }
        let speed = self.pool.speed(now).map_or(f64::INFINITY, |speed| speed / f64::from(self.workers));
        let iteration = ((SECOND as f64 / speed) as Nanos).min(1000 * SECOND);
        let pieces = CHECK_PIECES * self.progress_timer.chunk.max(iteration);
        let next = now + pieces.max(CHECK_TRIPS * self.root_link.rtt());
        self.progress_timer.next = Some(next);
        out.push(Output::WakeAt(next));
    }

    fn report(&mut self, now: Nanos, occasion: ReportKind) {
        let standing = self.standing(now);
        self.root_link.report(now, occasion, standing);
    }

    fn standing(&self, now: Nanos) -> LeaseStatus {
        LeaseStatus {
            pool: self.pool.len(),
            speed: self.pool.speed(now),
            waiting: self.waiting.len() as u32,
            leases: self.root_link.leases(),
            rtt: self.root_link.rtt(),
            variation: self.pool.variation(),
            is_inactive: !self.active,
        }
    }
}
