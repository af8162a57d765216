//! A sync as one rank goes through it: hands each input to its owner, [`collect`](crate::arrays::core::collect),
//! [`coordinator`](crate::arrays::core::coordinator) or [`balance`](crate::arrays::core::balance), and does what that says.

use lb_strategies::balancer::{Balancer, Decision};

use super::{Actions, RankCore};
use crate::arrays::core::action::Action;
use crate::arrays::core::ascent::{Collected, Upwards};
use crate::arrays::core::balance::{Leaver, Move, Step};
use crate::arrays::core::collect::{Arrival, MeasuredChunk, MeasuredRank, Reports};
use crate::arrays::core::envelope::{Delivery, Payload};
use crate::arrays::core::freight::Freight;
use crate::arrays::core::packet::{Founder, Journey, Packet, Traveller};
use crate::error::Error;
use crate::ids::{CellId, ChunkId, ROOT, Rank, SyncId};
use crate::measure::records::Sample;

#[cfg(test)]
mod tests;

impl RankCore {
    /// A chunk of this rank was made at the start of the run.
    pub(crate) fn created(&mut self, chunk: ChunkId, cell: CellId) {
        self.location.arrived(chunk, cell);
        self.joined(chunk, SyncId(0));
    }

    pub(super) fn joined(&mut self, chunk: ChunkId, next_sync: SyncId) {
        if self.arrays[chunk.array.index()].syncs() {
            self.syncs.joined(next_sync);
        }
    }

    /// A chunk has come to a sync. True if a decision will be made, false if it resumes at once.
    pub(crate) fn at_sync(&mut self, arrival: Arrival, out: &mut Actions) -> bool {
        self.syncs.arrive(arrival, self.blocking);
        self.sample_complete(out);
        self.blocking
    }

    pub(super) fn sample_complete(&mut self, out: &mut Actions) {
        out.extend(self.syncs.complete().into_iter().map(Action::Sample));
    }

    /// Answers [`Action::Sample`]: sends what arrived. `loads` are the chunks' CPU times since their last sync, in order.
    pub(crate) fn sampled(
        &mut self,
        reports: Reports,
        sample: Sample,
        loads: &[u64],
        now_ns: u64,
        out: &mut Actions,
    ) {
        let Reports { sync, tallies, arrivals } = reports;
        self.syncs.sampled(sync);
        let standing = arrivals.iter().filter(|arrival| self.blocking && arrival.stands);
        let waited = standing.count() as u64;
        let measured = |(arrival, &cpu_ns): (Arrival, &u64)| MeasuredChunk {
            chunk: arrival.chunk,
            load_ns: arrival.declared.unwrap_or(cpu_ns),
            declared: arrival.declared.is_some(),
            bytes: arrival.bytes,
            migratable: arrival.migratable,
            wish: arrival.wish,
        };
        let chunks = arrivals.into_iter().zip(loads).map(measured).collect();
        let ranks = vec![MeasuredRank { rank: self.tree.rank, sample, chunks }];
        let collected = Collected { sync, tallies, ranks, waited, first_ns: now_ns, last_ns: now_ns };
        self.collected(collected, now_ns, out);
    }

    /// This rank, or ranks below it, report to a sync.
    pub(super) fn collected(&mut self, collected: Collected, now_ns: u64, out: &mut Actions) {
        let Some(root) = &mut self.root else {
            self.ascent.add(collected);
            return self.report(now_ns, out);
        };
        let problem = root.coordinator.collect(collected);
        out.extend(problem.map(|problem| Action::Decide(Box::new(problem))));
    }

    /// Passes on the reports to syncs to which nobody here and below has yet to come.
    pub(super) fn report(&mut self, now_ns: u64, out: &mut Actions) {
        if self.root.is_some() {
            return;
        }
        let Upwards { reports, next } = self.ascent.pass_on(self.syncs.next());
        let Some(next) = next else { return };
        if reports.is_empty() {
            self.send_up(Packet::Due(next), now_ns, out);
        }
        for collected in reports {
            self.send_up(Packet::Collected(Box::new(collected), next), now_ns, out);
        }
    }

    /// True while a sync is being decided: then this rank is not idle, whatever its workers say.
    pub(super) fn is_deciding(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.coordinator.is_deciding())
    }

    /// Answers [`Action::Decide`].
    pub(crate) fn decided(&mut self, balancer: Balancer, decision: Decision, now_ns: u64, out: &mut Actions) {
        let root = self.root.as_mut().expect("only rank 0 is asked to decide");
        let (sync, moves) = root.coordinator.decided(balancer, decision, now_ns);
        if self.blocking {
            self.spread(ROOT, Packet::Moves { sync, moves: moves.into() }, now_ns, out);
        }
        // The next sync may have become complete meanwhile.
        let root = self.root.as_mut().expect("only rank 0 is asked to decide");
        out.extend(root.coordinator.problem().map(|problem| Action::Decide(Box::new(problem))));
    }

    pub(super) fn moves(&mut self, sync: SyncId, moves: &[Move], now_ns: u64, out: &mut Actions) {
        self.pressure.sync_ended();
        let steps = self.migrations.begin(sync, moves, |chunk| self.location.cell(chunk));
        for (chunk, cell) in self.syncs.decided(sync) {
            if self.migrations.leaver(chunk).is_none() {
                let delivery = Delivery::by_runtime(Payload::Resume);
                out.push_back(Action::Deliver { to: chunk, cell, delivery });
            }
        }
        if moves.is_empty() {
            return;
        }
        self.fates.migrations += 1;
        self.broadcasts.start_log();
        for elsewhere in moves.iter().filter(|elsewhere| elsewhere.from != self.tree.rank) {
            self.location.moved(elsewhere.chunk, elsewhere.to);
        }
        // Who knew the new routes before this rank may have sent by them.
        self.pressure.holds_less(std::mem::take(&mut self.early_bytes));
        let expected = moves.iter().filter(|expected| expected.to == self.tree.rank);
        self.pressure.holds_more(expected.map(|expected| self.location.stashed_bytes(expected.chunk)).sum());
        self.migrate(steps, now_ns, out);
    }

    /// Answers [`Action::Hold`], once a leaver: no handler of it runs any more.
    pub(crate) fn held(&mut self, now_ns: u64, out: &mut Actions) {
        let journey = |array| Journey { broadcasts: self.broadcasts.next(array), pressed: false };
        let steps = self.migrations.held(journey);
        self.migrate(steps, now_ns, out);
    }

    /// The last message under the old routes has come, and lies where its chunk finds it.
    pub(crate) fn drained(&mut self, now_ns: u64, out: &mut Actions) {
        let steps = self.migrations.drained();
        self.migrate(steps, now_ns, out);
    }

    /// This rank or a child has flushed, with those below it: what has moved to them.
    pub(super) fn flushed(&mut self, freight: &Freight, now_ns: u64, out: &mut Actions) {
        let join = |sum: &mut Freight| sum.add(freight);
        let Some(freight) = self.told.flushed.hear(&self.tree, join) else { return };
        match &mut self.root {
            None => self.send_up(Packet::Flushed(freight), now_ns, out),
            Some(root) => {
                root.coordinator.flushed(&freight, now_ns);
                self.spread(ROOT, Packet::Land, now_ns, out);
            }
        }
    }

    fn migrate(&mut self, steps: impl IntoIterator<Item = Step>, now_ns: u64, out: &mut Actions) {
        for step in steps {
            match step {
                Step::Hold(cells) => {
                    out.push_back(Action::Hold(cells.clone()));
                    cells.into_iter().for_each(|cell| self.leave_pressed(cell, out));
                }
                Step::Switch { sync, leavers } => self.switch_routes(sync, &leavers, now_ns, out),
                Step::Release { leaver: Leaver { chunk, cell, to }, journey } => {
                    let journey = Journey { pressed: self.pressure.left(cell), ..journey };
                    out.push_back(Action::Release { chunk, cell, to, journey });
                }
                Step::Flushed(freight) => self.flushed(&freight, now_ns, out),
            }
        }
    }

    fn switch_routes(&mut self, sync: SyncId, leavers: &[Leaver], now_ns: u64, out: &mut Actions) {
        for &Leaver { chunk, cell, to } in leavers {
            self.location.departed(chunk);
            self.location.moved(chunk, to);
            self.syncs.left(sync.next());
            out.push_back(Action::Close(cell));
        }
        // Those who stay may all have come to the next sync before the last leaver stopped.
        self.sample_complete(out);
        self.report(now_ns, out);
        self.cut(now_ns, out);
    }

    /// A released chunk goes to its new rank; `makes_room` where this one is full, and will not be without its mail.
    pub(crate) fn released(
        &mut self,
        mut traveller: Box<Traveller>,
        to: Rank,
        makes_room: bool,
        now_ns: u64,
        out: &mut Actions,
    ) {
        if makes_room {
            traveller.owed = self.pressure.hand_over(to, traveller.mail_bytes());
        }
        self.send(to, Packet::Arrive(traveller), now_ns, out);
    }

    pub(super) fn arrive(
        &mut self,
        from: Rank,
        mut traveller: Box<Traveller>,
        now_ns: u64,
        out: &mut Actions,
    ) {
        match traveller.founder {
            Some(Founder { rank, admitted: false }) => return self.found(traveller, rank, out),
            Some(Founder { rank, admitted: true }) => return self.arrive_new(rank, traveller, out),
            None if traveller.journey.is_none() => return self.arrive_new(from, traveller, out),
            None => {}
        }
        self.pressure.holds_more(traveller.mail_bytes());
        self.take_over(from, std::mem::take(&mut traveller.owed), out);
        let steps = self.migrations.arrive(*traveller);
        self.migrate(steps, now_ns, out);
    }

    /// A chunk has come that was inserted by a handler of rank `by`.
    fn arrive_new(&mut self, by: Rank, traveller: Box<Traveller>, out: &mut Actions) {
        let chunk = traveller.chunk;
        let holder = self.location.rank_of(chunk);
        let comes = self.migrations.expects(chunk);
        // Rank `by` may know of a move to this rank that this one has not heard of yet.
        if holder != self.tree.rank || comes || self.cell_of(chunk).is_some() {
            let chunk = self.describe(chunk);
            return self.fail(Error::IndexInUse { chunk, rank: holder, by }, out);
        }
        self.fates.admitted += 1;
        if self.arrays[chunk.array.index()].syncs() {
            self.begin_phase(out);
        }
        out.push_back(Action::Admit(traveller));
    }

    /// Answers [`Action::Admit`]: the chunk has a cell with its mail in it, of so many bytes. Returns what else waits for it, in
    /// order.
    pub(crate) fn admit(
        &mut self,
        chunk: ChunkId,
        cell: CellId,
        journey: Option<Journey>,
        next_sync: SyncId,
        mail_bytes: u64,
        out: &mut Actions,
    ) -> Vec<Delivery> {
        self.joined(chunk, next_sync);
        let payload = if journey.is_some() { Payload::Resume } else { Payload::Start };
        let mut mail = vec![Delivery::by_runtime(payload)];
        if let Some(Journey { broadcasts, .. }) = journey {
            mail.extend(self.broadcasts.missed(chunk.array, broadcasts));
            self.pressure.holds_less(mail_bytes + self.location.stashed_bytes(chunk));
        }
        mail.extend(self.location.arrived(chunk, cell));
        self.gathers(chunk.array, out);
        mail
    }

    pub(super) fn land(&mut self, out: &mut Actions) {
        let travellers = self.migrations.land();
        if !travellers.is_empty() {
            self.begin_phase(out);
        }
        out.extend(travellers.into_iter().map(|traveller| Action::Admit(Box::new(traveller))));
        out.push_back(Action::Landed);
    }

    /// Chunks are about to be admitted. A rank that had none was not measured: the time without them is no phase of theirs.
    pub(super) fn begin_phase(&self, out: &mut Actions) {
        out.extend(self.syncs.nobody_due().then_some(Action::BeginPhase));
    }

    /// Answers [`Action::Landed`]: all arrivals are admitted, their log has served.
    pub(crate) fn landed(&mut self, out: &mut Actions) {
        self.broadcasts.end_log();
        out.push_back(Action::AskRoom);
    }
}
