//! Copies late pieces on a rank: starts copies, offers its own late pieces, and gives up copies that remain undecided.

use std::cmp::Reverse;
use std::ops::Range;

use super::{LeaseRank, Replication, Stage};
use crate::pools::leases::message::{Output, ReportKind};
use crate::pools::leases::tail_replication::Role;
use crate::pools::machine::Nanos;
use crate::rank::{Rank, WorkerId};

impl LeaseRank {
    pub(super) fn stop(&mut self, out: &mut Vec<Output>) {
        self.stage = Stage::Stopped;
        for worker in self.tail.give_up() {
            out.push(Output::Discard { worker });
            self.waiting.push(Reverse(worker));
        }
    }

    /// Copies late pieces, by a waiting worker or an offer to the root. A piece is late if it needs longer than two
    /// copies of it and two round trips.
    pub(super) fn copy_late(&mut self, now: Nanos, out: &mut Vec<Output>) {
        if self.copies != Replication::Now || !self.pool.is_empty() {
            return;
        }
        let is_late = |&(_, ref range, worker): &(u64, Range<u64>, WorkerId)| {
            let typical = self.pool.typical(range.end - range.start);
            typical.is_some_and(|copy| self.pool.rest(now, worker) > 2 * (copy + self.root_link.rtt()))
        };
        let late: Vec<_> = self.tail.without_copy().filter(is_late).collect();
        for (piece, range, _) in late {
            self.tail.mark_copied(piece);
            let worker = if self.active { self.waiting.pop() } else { None };
            if let Some(Reverse(worker)) = worker {
                self.run_copy(now, worker, Role::Own(piece), range, out);
            } else {
                self.report(now, ReportKind::Offer { piece, range });
            }
        }
    }

    /// Runs a copy that the root asks for. The piece may be this rank's own.
    pub(super) fn copy(
        &mut self,
        now: Nanos,
        owner: Rank,
        piece: u64,
        range: Range<u64>,
        out: &mut Vec<Output>,
    ) {
        let worker = self.waiting.pop().map(|Reverse(worker)| worker);
        self.root_link.waiting(self.waiting.len() as u32);
        let Some(worker) = worker else { return };
        let role = if owner == self.me { Role::Own(piece) } else { Role::Foreign(owner, piece) };
        self.run_copy(now, worker, role, range, out);
    }

    fn run_copy(
        &mut self,
        now: Nanos,
        worker: WorkerId,
        role: Role,
        range: Range<u64>,
        out: &mut Vec<Output>,
    ) {
        self.tail.copy(worker, role);
        self.pool.begin(now, worker, range.clone());
        out.push(Output::Run { worker, range, copy: true });
    }
}

/// The output on whether the result that a worker keeps apart counts.
pub(super) fn verdict(worker: WorkerId, counts: bool) -> Output {
    if counts { Output::Commit { worker } } else { Output::Discard { worker } }
}
