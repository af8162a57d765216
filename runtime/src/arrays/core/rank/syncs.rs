//! A sync as one rank goes through it: hands each input to its owner, [`collect`](crate::arrays::core::collect),
//! [`coordinator`](crate::arrays::core::coordinator) or [`balance`](crate::arrays::core::balance), and does what that says.

use std::sync::Arc;

use lb_strategies::{Assignment, Snapshot};

use super::{Actions, RankCore};
use crate::arrays::core::action::Action;
use crate::arrays::core::balance::{Leaver, Move, Step};
use crate::arrays::core::collect::{Arrival, Collected, MeasuredChunk, Reports};
use crate::arrays::core::envelope::{Delivery, Payload};
use crate::arrays::core::packet::{Journey, Packet, Traveller};
use crate::error::Error;
use crate::ids::{CellId, ChunkId, ROOT, Rank, SyncId};
use crate::measure::measured::Sample;

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
        let collected = Collected { sync, tallies, chunks, waited, sample, now_ns };
        self.send(ROOT, Packet::Collected(Box::new(collected)), now_ns, out);
    }

    /// Answers [`Action::Decide`].
    pub(crate) fn decided(
        &mut self,
        expected: &Snapshot,
        assignment: Assignment,
        decide_ns: u64,
        now_ns: u64,
        out: &mut Actions,
    ) {
        let root = self.root.as_mut().expect("only rank 0 is asked to decide");
        let decision = root.coordinator.decide(expected, assignment, decide_ns, now_ns);
        if self.blocking {
            let moves: Arc<[Move]> = decision.moves.into();
            self.send_all(|| Packet::Moves { sync: decision.sync, moves: moves.clone() }, now_ns, out);
        }
        // The next sync may have become complete meanwhile.
        let root = self.root.as_mut().expect("only rank 0 is asked to decide");
        out.extend(root.coordinator.snapshot().map(|expected| Action::Decide(Box::new(expected))));
    }

    pub(super) fn moves(&mut self, sync: SyncId, moves: &[Move], now_ns: u64, out: &mut Actions) {
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
        for elsewhere in moves.iter().filter(|elsewhere| elsewhere.from != self.rank) {
            self.location.moved(elsewhere.chunk, elsewhere.to);
        }
        self.migrate(steps, now_ns, out);
    }

    /// Answers [`Action::Hold`], once a leaver: no handler of it runs any more.
    pub(crate) fn held(&mut self, now_ns: u64, out: &mut Actions) {
        let journey = |array| Journey { broadcasts: self.broadcasts.next(array) };
        let steps = self.migrations.held(journey);
        self.migrate(steps, now_ns, out);
    }

    pub(super) fn marker(&mut self, sync: SyncId, now_ns: u64, out: &mut Actions) {
        let steps = self.migrations.marker(sync);
        self.migrate(steps, now_ns, out);
    }

    fn migrate(&mut self, steps: Vec<Step>, now_ns: u64, out: &mut Actions) {
        for step in steps {
            match step {
                Step::Hold(cells) => {
                    out.push_back(Action::Hold(cells.clone()));
                    cells.into_iter().for_each(|cell| self.forget_pressed(cell, out));
                }
                Step::Switch { sync, leavers } => self.switch_routes(sync, &leavers, now_ns, out),
                Step::Release { leaver: Leaver { chunk, cell, to }, journey } => {
                    self.forget_pressed(cell, out);
                    out.push_back(Action::Release { chunk, cell, to, journey });
                }
                Step::Flushed { sync, moved_bytes } => {
                    self.send(ROOT, Packet::Flushed { sync, moved_bytes }, now_ns, out);
                }
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
        for rank in self.others() {
            self.send(rank, Packet::Marker { sync }, now_ns, out);
        }
    }

    /// A released chunk goes to its new rank.
    pub(crate) fn released(&mut self, traveller: Box<Traveller>, to: Rank, now_ns: u64, out: &mut Actions) {
        self.send(to, Packet::Arrive(traveller), now_ns, out);
    }

    pub(super) fn arrive(&mut self, from: Rank, traveller: Box<Traveller>, now_ns: u64, out: &mut Actions) {
        if traveller.journey.is_none() {
            return self.arrive_new(from, traveller, out);
        }
        let steps = self.migrations.arrive(*traveller);
        self.migrate(steps, now_ns, out);
    }

    /// A chunk has come that was inserted by a handler of rank `by`.
    fn arrive_new(&mut self, by: Rank, traveller: Box<Traveller>, out: &mut Actions) {
        let chunk = traveller.chunk;
        let holder = self.location.rank_of(chunk);
        let comes = self.migrations.expects(chunk);
        // Rank `by` may know of a move to this rank that this one has not heard of yet.
        if holder != self.rank || comes || self.cell_of(chunk).is_some() {
            let chunk = self.describe(chunk);
            return self.fail(Error::IndexInUse { chunk, rank: holder, by }, out);
        }
        self.fates.admitted += 1;
        if self.arrays[chunk.array.index()].syncs() {
            self.begin_phase(out);
        }
        out.push_back(Action::Admit(traveller));
    }

    /// Answers [`Action::Admit`]: the chunk has a cell with its mail in it. Returns what else waits for it, in order.
    pub(crate) fn admit(
        &mut self,
        chunk: ChunkId,
        cell: CellId,
        journey: Option<Journey>,
        next_sync: SyncId,
    ) -> Vec<Delivery> {
        self.joined(chunk, next_sync);
        let payload = if journey.is_some() { Payload::Resume } else { Payload::Start };
        let mut mail = vec![Delivery::by_runtime(payload)];
        if let Some(Journey { broadcasts }) = journey {
            mail.extend(self.broadcasts.missed(chunk.array, broadcasts));
        }
        mail.extend(self.location.arrived(chunk, cell));
        mail
    }

    pub(super) fn land(&mut self, sync: SyncId, out: &mut Actions) {
        let travellers = self.migrations.land(sync);
        if !travellers.is_empty() {
            self.begin_phase(out);
        }
        out.extend(travellers.into_iter().map(|traveller| Action::Admit(Box::new(traveller))));
        out.push_back(Action::Landed);
    }

    /// Chunks are about to be admitted. A rank that had none was not measured: the time without them is no phase of theirs.
    fn begin_phase(&self, out: &mut Actions) {
        out.extend(self.syncs.nobody_due().then_some(Action::BeginPhase));
    }

    /// Answers [`Action::Landed`]: all arrivals are admitted, their log has served.
    pub(crate) fn landed(&mut self) {
        self.broadcasts.end_log();
    }
}
