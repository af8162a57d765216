//! The control plane of one rank: routes each input to its owner and collects what is to be done.
//!
//! Here: the effects of handlers, packets, idleness. In [`syncs`]: every step of a sync and its migrations.
//!
//! Methods append [`Action`]s; whoever drives the core carries them out in order. Packets of a rank to itself are
//! handled at once and never reach a transport.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use lb_strategies::Strategy;
use lb_strategies::balancer::RankPlace;
use litemap::LiteMap;

use super::action::Action;
use super::collectives::broadcast::{Broadcasts, duplicate};
use super::collectives::population::{MemberReport, Membership};
use super::collectives::reduction::{
    FinishedReduction, Partial, ReductionSpec, Reductions, ResultTarget, Values, scan,
};
use super::collectives::section::{
    SectionContribution, SectionOutput, SectionPartial, SectionResult, Sections,
};
use super::collectives::tree::{Convergecast, Tree};
use super::flow::broadcast_acks::BroadcastAcks;
use super::flow::receivers::Receivers;
use super::flow::{Destination, FlowControl, SendOutcome, StallDetector};
use super::lifecycle::erased::ErasedArray;
use super::lifecycle::handler::ChunkRecord;
use super::lifecycle::seeds::Seeds;
use super::lifecycle::signature::{ArraySignature, difference};
use super::packet::{ChunkBody, ChunkTransfer, Origin, Packet, StallExplanation};
use super::routing::envelope::{Delivery, Envelope, NODE_BYTES, Payload};
use super::routing::in_flight::{CountsByRank, Epoch, InFlight};
use super::routing::location::Location;
use super::sync::coordinator::Coordinator;
use super::sync::migration::Migrations;
use super::sync::migration_bytes::MigrationBytes;
use super::sync::report_aggregation::ReportAggregation;
use super::sync::sync_arrivals::Syncs;
use super::sync::sync_log::SyncLog;
use super::termination::quiescence::{Quiescence, SearchStep, Traffic};
use super::termination::undelivered::{Addressees, UndeliveredReport};
use crate::error::Error;
use crate::ids::{ArrayId, CellId, ChunkId, ROOT, Rank, Sender, SyncId};
use crate::text::counted;

mod cut;
#[cfg(test)]
mod drive;
mod flow;
#[cfg(test)]
mod idlers;
#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod scale;
mod seeds;
mod syncs;

/// The actions one input leads to.
pub(crate) type Actions = VecDeque<Action>;

/// One rank's control plane.
pub(crate) struct RankCore {
    tree: Tree,
    arrays: Arc<[Arc<dyn ErasedArray>]>,
    pub(crate) location: Location,
    in_flight: InFlight,
    reductions: Reductions,
    sections: Sections,
    pub(crate) seeds: Seeds,
    broadcasts: Broadcasts,
    syncs: Syncs,
    report_aggregation: ReportAggregation,
    migrations: Migrations,
    flow: FlowControl,
    broadcast_acks: BroadcastAcks,
    receivers: Receivers,
    /// Bytes of messages that came by routes which this rank has not heard of.
    early_bytes: u64,
    /// Rank 0 only.
    root: Option<RootState>,
    traffic: Traffic,
    search: QuiescenceSearch,
    convergecasts: Convergecasts,
    /// True if `at_sync` waits for a decision.
    blocking: bool,
    undelivered: DeliveryCounts,
    /// Of the arrays that were set up.
    /// The arrays as this rank has set them up.
    signatures: Vec<ArraySignature>,
}

/// The counts that tell messages that are lost from those under way, see [`undelivered`](super::termination::undelivered).
#[derive(Default)]
struct DeliveryCounts {
    unread: Addressees,
    migrations: u64,
    inserted: BTreeMap<Rank, u64>,
    admitted: u64,
    /// Chunks that removed themselves on this rank, as many as are remembered: messages to them that come later wait here.
    removed: BTreeSet<ChunkId>,
}

/// Chunks that were removed, of which a rank remembers so many: only to call them by the right word.
const REMOVED_MAX: usize = 4096;

struct RootState {
    coordinator: Coordinator,
    quiescence: Quiescence,
    stall_detector: StallDetector,
    /// Messages to send when nothing else is left to do.
    at_quiescence: Vec<Envelope>,
}

/// This rank's part of the search for quiescence.
#[derive(Default)]
struct QuiescenceSearch {
    /// Messages that wait on this rank until they are due.
    delayed: u64,
    /// It is to answer as soon as it is idle.
    probed: bool,
}

/// The words of this rank and those below it that go up the tree together.
#[derive(Default)]
struct Convergecasts {
    sent: Convergecast<CountsByRank>,
    flushed: Convergecast<MigrationBytes>,
    traffic: Convergecast<Traffic>,
    waiting: Convergecast<StallExplanation>,
}

impl RankCore {
    pub(crate) fn new(
        tree: Tree,
        places: &[RankPlace],
        arrays: Arc<[Arc<dyn ErasedArray>]>,
        strategy: Arc<dyn Strategy>,
        keeps_reports: bool,
        flow: FlowControl,
    ) -> RankCore {
        let Tree { rank, ranks, .. } = tree;
        let populations: Vec<u64> = arrays.iter().map(|array| array.population()).collect();
        let blocking = strategy.terms().moves;
        let root = (rank == ROOT).then(|| {
            let leaders: Vec<Option<ArrayId>> = arrays.iter().map(|array| array.leader()).collect();
            let numbered = (0..).map(ArrayId).zip(&leaders).filter(|_| leaders.iter().any(Option::is_some));
            let leaders = numbered.map(|(array, leader)| leader.unwrap_or(array)).collect();
            let syncing = arrays.iter().map(|array| array.syncs().then(|| array.population())).collect();
            RootState {
                coordinator: Coordinator::new(strategy, syncing, leaders, places, keeps_reports),
                quiescence: Quiescence::default(),
                stall_detector: StallDetector::default(),
                at_quiescence: Vec::new(),
            }
        });
        RankCore {
            tree,
            location: Location::new(rank, ranks, arrays.clone()),
            in_flight: InFlight::default(),
            reductions: Reductions::new(rank, &populations),
            sections: Sections::new(rank),
            seeds: Seeds::new(rank, ranks, arrays.iter().any(|array| array.has_seeds())),
            broadcasts: Broadcasts::new(arrays.len()),
            syncs: Syncs::default(),
            report_aggregation: ReportAggregation::new(&tree),
            migrations: Migrations::new(rank),
            flow,
            early_bytes: 0,
            broadcast_acks: BroadcastAcks::new(&tree),
            receivers: Receivers::new(&populations, ranks),
            root,
            traffic: Traffic::default(),
            search: QuiescenceSearch::default(),
            convergecasts: Convergecasts::default(),
            blocking,
            undelivered: DeliveryCounts::default(),
            signatures: arrays.iter().map(|array| array.signature(ranks)).collect(),
            arrays,
        }
    }

    /// The first sync that some chunks of this rank have come to and others have not.
    pub(crate) fn open_sync(&self) -> Option<SyncId> {
        self.syncs.open()
    }

    /// Rank 0: the record of syncs.
    pub(crate) fn sync_log(&mut self) -> Option<&mut SyncLog> {
        self.root.as_mut().map(|root| root.coordinator.log())
    }

    /// Chunks on this rank.
    pub(crate) fn chunks(&self) -> u64 {
        (0..self.arrays.len() as u32).map(ArrayId).map(|array| self.location.count(array)).sum()
    }

    /// All chunks of this rank are made: tells which arrays it has set up, and whether its chunks come to syncs.
    pub(crate) fn hello(&mut self, out: &mut Actions) {
        let hello = Packet::Hello { rank: self.tree.rank, arrays: self.signatures.clone() };
        self.send_up(hello, 0, out);
        self.report(0, out);
        (0..self.arrays.len() as u32).map(ArrayId).for_each(|array| self.update_receivers(array, out));
    }

    /// A rank has told which arrays it has set up: rank 0 refuses others than its own.
    fn check_setup(&mut self, rank: Rank, arrays: Vec<ArraySignature>, now_ns: u64, out: &mut Actions) {
        let Some(what) = difference(&arrays, &self.signatures) else { return };
        match self.root {
            Some(_) => self.fail(Error::SetupDiffers { rank, what }, out),
            None => self.send_up(Packet::Hello { rank, arrays }, now_ns, out),
        }
    }

    /// There may be news of the chunks of an array on this rank.
    pub(super) fn update_receivers(&mut self, array: ArrayId, out: &mut Actions) {
        self.receivers_grew(array, self.location.count(array), out);
    }

    /// This rank or one below it has so many chunks of an array.
    fn receivers_grew(&mut self, array: ArrayId, chunks: u64, out: &mut Actions) {
        if self.receivers.grow(array, chunks) {
            match self.root {
                None => self.send_up(Packet::ReceiversGrew { array, chunks }, 0, out),
                Some(_) => self.broadcast_down(ROOT, Packet::MaxReceivers { array, chunks }, 0, out),
            }
        }
    }

    fn send(&mut self, to: Rank, mut packet: Packet, now_ns: u64, out: &mut Actions) {
        let stays = to == self.tree.rank;
        if let Some(epoch) = packet.epoch_mut() {
            *epoch = if stays { self.in_flight.epoch() } else { self.in_flight.count_sent(to) };
        }
        if stays {
            return self.handle(to, packet, now_ns, out);
        }
        self.traffic.sent += u64::from(packet.is_counted());
        out.push_back(Action::Send(to, packet));
    }

    /// To the parent; rank 0 hears it itself.
    fn send_up(&mut self, packet: Packet, now_ns: u64, out: &mut Actions) {
        self.send(self.tree.parent().unwrap_or(ROOT), packet, now_ns, out);
    }

    /// A packet of rank 0 to all ranks: on to those below, who may be waiting, and then for this one.
    fn broadcast_down(&mut self, from: Rank, packet: Packet, now_ns: u64, out: &mut Actions) {
        for child in self.tree.children() {
            let packet = packet.copy_to_child().expect("it is for all");
            self.send(child, packet, now_ns, out);
        }
        self.handle(from, packet, now_ns, out);
    }

    /// Ends the run on all ranks. Says so to each of them: none may be relied on any more to pass it on.
    pub(crate) fn fail(&mut self, error: Error, out: &mut Actions) {
        let Tree { rank: me, ranks, .. } = self.tree;
        for rank in (0..ranks).map(Rank).filter(|&rank| rank != me) {
            out.push_back(Action::Send(rank, Packet::Abort(Box::new(error.clone()))));
        }
        out.push_back(Action::Stop(Err(Box::new(error))));
    }

    /// A message from another rank: the cell of its chunk, if that is here or has not left yet; and whether this rank is
    /// drained when it is in the mailbox.
    #[inline]
    pub(crate) fn message_received(&mut self, to: ChunkId, epoch: Epoch) -> (Option<CellId>, bool) {
        self.traffic.received += 1;
        (self.cell_of(to), self.in_flight.count_received(epoch))
    }

    #[inline(always)]
    fn cell_of(&self, to: ChunkId) -> Option<CellId> {
        // A sender that did not know the new routes yet: the outgoing_chunk is still here and takes it along.
        self.location.cell(to).or_else(|| self.migrations.outgoing_cell(to))
    }

    /// Returns who blocks the sender.
    pub(crate) fn multicast(
        &mut self,
        from: ChunkId,
        array: ArrayId,
        keys: &[u64],
        message: &Arc<[u8]>,
        out: &mut Actions,
    ) -> Vec<Destination> {
        let mut blocked_by = Vec::new();
        for (rank, keys) in self.by_rank(array, keys) {
            let bytes = message.len() as u64 + keys.len() as u64 * NODE_BYTES;
            let (message, epoch) = (message.clone(), Epoch::default());
            self.send(rank, Packet::Multicast { from, array, keys, message, epoch }, 0, out);
            if rank == self.tree.rank {
                blocked_by.push(Destination::Rank(rank));
                continue;
            }
            let SendOutcome { ack_request_due, blocks } = self.flow.count_sent(rank, bytes);
            blocked_by.extend(blocks.then_some(Destination::Rank(rank)));
            if ack_request_due {
                self.request_ack(rank, out);
            }
        }
        blocked_by
    }

    /// Chunks by the rank that they are on.
    fn by_rank(&self, array: ArrayId, keys: &[u64]) -> LiteMap<Rank, Vec<u64>> {
        let mut by_rank = LiteMap::<Rank, Vec<u64>>::new();
        for &key in keys {
            by_rank.entry(self.location.rank_of(ChunkId { array, key })).or_default().push(key);
        }
        by_rank
    }

    /// Returns who blocks the sender.
    pub(crate) fn broadcast(
        &mut self,
        array: ArrayId,
        delivery: Delivery,
        out: &mut Actions,
    ) -> Option<Destination> {
        // A rank holds a node for each chunk there that hears it.
        let nodes = self.receivers.max(array) * NODE_BYTES;
        let SendOutcome { ack_request_due, blocks } =
            self.flow.count_broadcast(delivery.payload.bytes() + nodes);
        let ack_request = if ack_request_due { self.flow.take_ack_request(Destination::AllRanks) } else { 0 };
        self.request_broadcast(array, delivery, ack_request, out);
        blocks.then_some(Destination::AllRanks)
    }

    fn request_broadcast(&mut self, array: ArrayId, delivery: Delivery, ack_request: u64, out: &mut Actions) {
        let (delivery, epoch) = (Box::new(delivery), Epoch::default());
        self.send(ROOT, Packet::BroadcastRequest { array, delivery, ack_request, epoch }, 0, out);
    }

    pub(crate) fn contribute(
        &mut self,
        chunk: ChunkId,
        report: MemberReport,
        spec: ReductionSpec,
        values: Values,
        out: &mut Actions,
    ) {
        let array = chunk.array;
        let local = self.location.count(array);
        let values = if spec.target == ResultTarget::Scan { values.scanned(chunk.key) } else { values };
        let partial = Partial::contribution(report, spec, values);
        let added = self.reductions.contribute(array, report.sequence, partial, local);
        let added = added.map_err(|why| format!("{why}; seen when {} contributed", self.describe(chunk)));
        self.advance_reductions(array, report.sequence, added, out);
    }

    /// A chunk contributes nothing to a reduction.
    pub(crate) fn abstain(&mut self, chunk: ChunkId, report: MemberReport, out: &mut Actions) {
        let (array, local) = (chunk.array, self.location.count(chunk.array));
        let added = self.reductions.contribute(array, report.sequence, Partial::empty(report), local);
        self.advance_reductions(array, report.sequence, added, out);
    }

    /// A chunk contributes to no reduction any more.
    pub(crate) fn leave_reductions(&mut self, chunk: ChunkId, record: &mut ChunkRecord, out: &mut Actions) {
        if record.reductions.has_left() {
            return;
        }
        let report = record.reductions.leave();
        let (array, sequence, local) = (chunk.array, report.sequence, self.location.count(chunk.array));
        let added = self.reductions.leave(array, sequence, Partial::empty(report), local);
        self.advance_reductions(array, sequence, added, out);
    }

    /// A chunk's contribution cannot be: the run ends with the reason.
    pub(crate) fn refuse_contribution(&mut self, chunk: ChunkId, why: &str, out: &mut Actions) {
        let why = format!("{} {why}", self.describe(chunk));
        self.fail_reduction(chunk.array, why, out);
    }

    /// A part of a reduction was `added`, and is complete as far as this rank goes, or not: it moves on.
    fn advance_reductions(
        &mut self,
        array: ArrayId,
        sequence: u64,
        added: Result<bool, String>,
        out: &mut Actions,
    ) {
        if let Some((array, sequence, partial)) = self.reductions.take_uncombined() {
            let partial = Box::new(partial);
            out.push_back(Action::Combine(Packet::Partial { array, sequence, partial }));
        }
        match added {
            Ok(true) if self.tree.rank != ROOT => {
                for (sequence, partial) in self.reductions.complete(array, sequence) {
                    self.pass_on(array, sequence, partial, out);
                }
            }
            Ok(_) => {}
            Err(why) => self.fail_reduction(array, why, out),
        }
        self.finish_reductions(array, out);
    }

    /// Takes back a part of a reduction in which values were to be combined: as if from another rank.
    pub(crate) fn combined(
        &mut self,
        packet: Packet,
        combined: Result<(), (ArrayId, String)>,
        now_ns: u64,
        out: &mut Actions,
    ) {
        match combined {
            Ok(()) => self.handle(self.tree.rank, packet, now_ns, out),
            Err((array, why)) => self.fail_reduction(array, why, out),
        }
    }

    /// A chunk contributes to a reduction over a section.
    pub(crate) fn contribute_in(
        &mut self,
        chunk: ChunkId,
        mut contribution: SectionContribution,
        out: &mut Actions,
    ) {
        let array = chunk.array;
        if contribution.spec.target == ResultTarget::Scan {
            contribution.values = contribution.values.scanned(chunk.key);
        }
        let part = SectionPartial::new(array, contribution);
        let (first, location) = (part.keys[0], &self.location);
        let here = |key: &&u64| location.cell(ChunkId { array, key: **key }).is_some();
        let root = || self.arrays[array.index()].home(first, self.tree.ranks);
        let added = self.sections.contribute(part, root, |keys| keys.iter().filter(here).count());
        let added = added.map_err(|why| format!("{why}; seen when {} contributed", self.describe(chunk)));
        self.advance_section(array, added, out);
    }

    /// A part of a reduction over a section was added: carries out what follows.
    fn advance_section(&mut self, array: ArrayId, added: Result<SectionOutput, String>, out: &mut Actions) {
        let SectionOutput { combine, pass_on, finished } = match added {
            Ok(advance) => advance,
            Err(why) => return self.fail_reduction(array, why, out),
        };
        out.extend(combine.map(|part| Action::Combine(Packet::SectionPartial(Box::new(part)))));
        if let Some((root, parts)) = pass_on {
            for part in parts {
                self.send(root, Packet::SectionPartial(Box::new(part)), 0, out);
            }
        }
        for SectionResult { keys, spec, values } in finished {
            self.send_result(array, Contributors::Section(&keys), spec, values, out);
        }
    }

    fn fail_reduction(&mut self, array: ArrayId, why: String, out: &mut Actions) {
        let array = array_text(&self.arrays, array);
        self.fail(Error::Reduction { rank: self.tree.rank, array, why }, out);
    }

    /// A chunk was inserted without a parent by one of this rank's handlers: rank 0 admits it to the counts of its array.
    pub(crate) fn insert_root(&mut self, transfer: ChunkTransfer, out: &mut Actions) {
        let origin = Some(Origin { rank: self.tree.rank, admitted: false });
        self.send(ROOT, Packet::TransferChunk(Box::new(ChunkTransfer { origin, ..transfer })), 0, out);
    }

    /// Rank 0 admits a chunk without a parent: it joins the first reduction and the first sync that are not complete.
    fn admit_rootless(&mut self, mut transfer: Box<ChunkTransfer>, origin: Rank, out: &mut Actions) {
        transfer.origin = Some(Origin { rank: origin, admitted: true });
        let array = transfer.chunk.array;
        let root = self.root.as_mut().expect("rank 0 admits chunks without a parent");
        let ChunkBody::Live(slot) = &mut transfer.body else { unreachable!("it was decoded when it came") };
        let record = slot.record();
        record.reductions = Membership::admitted(self.reductions.admit(array));
        record.first_reduction = record.reductions.next;
        record.syncs = Membership::admitted(root.coordinator.admit(array).0);
        self.insert(transfer, out);
    }

    /// A chunk was inserted by one of this rank's handlers.
    pub(crate) fn insert(&mut self, transfer: Box<ChunkTransfer>, out: &mut Actions) {
        let to = self.location.rank_of(transfer.chunk);
        *self.undelivered.inserted.entry(to).or_default() += 1;
        self.send(to, Packet::TransferChunk(transfer), 0, out);
    }

    /// A chunk of this rank was removed: it reports its leave to everything it would have been waited for.
    pub(crate) fn remove(&mut self, chunk: ChunkId, record: &mut ChunkRecord, out: &mut Actions) {
        out.extend(self.location.cell(chunk).map(Action::Close));
        self.location.departed(chunk);
        if self.undelivered.removed.len() < REMOVED_MAX {
            self.undelivered.removed.insert(chunk);
        }
        self.leave_reductions(chunk, record, out);
        if self.arrays[chunk.array.index()].syncs() {
            self.syncs.removed(chunk.array, record.syncs.leave());
            self.sample_complete(out);
        }
    }

    /// A chunk that was removed has not read messages of these kinds.
    pub(crate) fn unread(&mut self, chunk: ChunkId, kinds: Vec<Cow<'static, str>>) {
        kinds.into_iter().for_each(|kind| self.undelivered.unread.add(chunk, kind));
    }

    /// Takes the messages that wait for chunks which are not here, and are not coming as far as this rank knows.
    pub(crate) fn take_waiting(&mut self) -> BTreeMap<ChunkId, Vec<Delivery>> {
        let mut waiting = self.location.take_pending();
        waiting.retain(|&chunk, _| !self.migrations.expects(chunk));
        waiting
    }

    /// The knowledge of this rank about messages that reached no chunk; `waiting` is what
    /// [`take_waiting`](Self::take_waiting) took.
    pub(crate) fn undelivered_report(&self, waiting: &Addressees) -> UndeliveredReport {
        let DeliveryCounts { unread, migrations, inserted, admitted, removed } = &self.undelivered;
        let describe = |chunk| self.describe(chunk);
        UndeliveredReport {
            rank: self.tree.rank,
            unread: unread.described(|_| true, describe),
            waiting: waiting.described(|chunk| removed.contains(&chunk), describe),
            migrations: *migrations,
            inserted: inserted.clone(),
            admitted: *admitted,
        }
    }

    /// A handler of this rank sends a message that is to wait until nothing else is left to do.
    pub(crate) fn send_at_quiescence(&mut self, envelope: Box<Envelope>, out: &mut Actions) {
        self.send(ROOT, Packet::AtQuiescence(envelope), 0, out);
    }

    /// True if the search for quiescence waits for this rank: for its answer, or for rank 0 to begin, because a message waits
    /// for quiescence.
    pub(crate) fn is_searched(&self) -> bool {
        let suspects = |root: &RootState| !root.at_quiescence.is_empty() && self.may_suspect();
        let answers = self.search.probed && self.search.delayed == 0 && !self.is_deciding();
        answers || self.root.as_ref().is_some_and(suspects)
    }

    /// The number of the wave by which rank 0 asks whether anybody has work, while it waits for nothing but others.
    pub(crate) fn open_wave(&self) -> Option<u64> {
        let waits_itself = self.is_deciding() || self.search.delayed > 0;
        self.root.as_ref()?.quiescence.open_wave().filter(|_| !waits_itself)
    }

    /// True of rank 0 while it does not ask whether anybody has work.
    pub(crate) fn may_suspect(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.quiescence.open_wave().is_none())
    }

    /// A handler of this rank sends a message that waits here until it is due. Until then it is under way.
    pub(crate) fn delay_message(&mut self) {
        self.search.delayed += 1;
    }

    /// A message that has waited is about to be sent. True if it is the last one, for which a search for quiescence waits.
    pub(crate) fn timer_expired(&mut self) -> bool {
        self.search.delayed -= 1;
        self.search.delayed == 0 && self.search.probed
    }

    pub(crate) fn exit(&mut self, out: &mut Actions) {
        self.handle(self.tree.rank, Packet::Exit, 0, out);
    }

    /// A packet from another rank.
    pub(crate) fn receive(&mut self, from: Rank, mut packet: Packet, now_ns: u64, out: &mut Actions) {
        self.traffic.received += u64::from(packet.is_counted());
        let drained = packet.epoch_mut().is_some_and(|&mut epoch| self.in_flight.count_received(epoch));
        match packet.is_tree_broadcast() {
            true => self.broadcast_down(from, packet, now_ns, out),
            false => self.handle(from, packet, now_ns, out),
        }
        if drained {
            self.drained(now_ns, out);
        }
    }

    fn handle(&mut self, from: Rank, packet: Packet, now_ns: u64, out: &mut Actions) {
        match packet {
            Packet::Message(envelope) => self.enqueue(envelope.to, envelope.delivery, out),
            Packet::AtQuiescence(envelope) => {
                let root = self.root.as_mut().expect("what waits for quiescence waits on rank 0");
                root.at_quiescence.push(*envelope);
            }
            Packet::Multicast { from, array, keys, message, epoch } => {
                let (from, payload) = (Sender::new(from, 0), Payload::Encoded(message));
                let delivery = Delivery { from, bytes: NODE_BYTES, payload };
                let mut here = Vec::with_capacity(keys.len());
                for to in keys.into_iter().map(|key| ChunkId { array, key }) {
                    match self.cell_of(to) {
                        Some(cell) => here.push((to, cell)),
                        None => self.add_pending_remote(epoch, to, duplicate(&delivery).unshared()),
                    }
                }
                out.push_back(Action::EnqueueToAll { to: here, delivery });
            }
            Packet::BroadcastRequest { array, delivery, ack_request, .. } => {
                self.sequence_broadcast(from, array, delivery, ack_request, out);
            }
            Packet::Broadcast { array, number, delivery, ack_requested } => {
                self.apply_broadcast(array, number, *delivery, out);
                if self.location.count(array) > 0 || self.broadcasts.are_logged() {
                    self.broadcast_acks.receive();
                }
                if ack_requested {
                    self.broadcast_acks.requested();
                    self.forward_broadcast_acks(out);
                    out.push_back(Action::CheckLowWatermark);
                }
            }
            Packet::BroadcastAck { more } => {
                self.broadcast_acks.child_acked(from, more);
                self.forward_broadcast_acks(out);
            }
            Packet::ReceiversGrew { array, chunks } => self.receivers_grew(array, chunks, out),
            Packet::MaxReceivers { array, chunks } => _ = self.receivers.grow(array, chunks),
            Packet::BroadcastAckedByAll { bytes } => self.acked(Destination::AllRanks, bytes, out),
            Packet::Partial { array, sequence, partial } => {
                let local = self.location.count(array);
                let added = self.reductions.receive(array, sequence, *partial, local);
                self.advance_reductions(array, sequence, added, out);
            }
            Packet::SectionPartial(part) => {
                let (array, first) = (part.array, part.keys[0]);
                let root = || self.arrays[array.index()].home(first, self.tree.ranks);
                let added = self.sections.receive(*part, root);
                self.advance_section(array, added, out);
            }
            Packet::ReductionResult { rank, to, tag, values } => match self.tree.child_towards(rank) {
                Some(child) => {
                    self.send(child, Packet::ReductionResult { rank, to, tag, values }, now_ns, out);
                }
                None => self.enqueue(to, result(tag, values), out),
            },
            Packet::SectionResult { array, keys, tag, values, .. } => {
                for key in keys {
                    self.enqueue(ChunkId { array, key }, result(tag, values.clone()), out);
                }
            }
            Packet::TransferChunk(transfer) => self.receive_chunk(from, transfer, now_ns, out),
            Packet::SeedRequest => self.seeds_requested(from, out),
            Packet::Seeds(seeds) => self.seeds_received(from, seeds, out),
            Packet::AggregatedReports(collected, next) => {
                self.report_aggregation.child_next(from, next);
                self.reports_collected(*collected, now_ns, out);
            }
            Packet::NextSyncChanged(next) => {
                self.report_aggregation.child_next(from, next);
                self.report(now_ns, out);
            }
            Packet::SyncDecision { sync, moves } => self.apply_decision(sync, &moves, now_ns, out),
            Packet::SentCounts(counts) => self.sent(counts, now_ns, out),
            Packet::ExpectedCounts(counts) => self.expect(counts, now_ns, out),
            Packet::Flushed(migration_bytes) => self.flushed(&migration_bytes, now_ns, out),
            Packet::CompleteMigration => self.complete_migration(out),
            Packet::Hello { rank, arrays } => self.check_setup(rank, arrays, now_ns, out),
            Packet::AckRequest { bytes } => {
                self.flow.defer_ack(from, bytes);
                out.push_back(Action::CheckLowWatermark);
            }
            Packet::Ack { bytes } => self.acked(Destination::Rank(from), bytes, out),
            Packet::DeferredAckMoved { first_receiver, bytes } => {
                self.bytes_moved(first_receiver, from, bytes, out);
            }
            Packet::Stalled { stall_number, stall_report } => {
                self.rank_stalled(from, stall_number, stall_report, out);
            }
            Packet::StallEnded { stall_number } => {
                let root = self.root.as_mut().expect("rank 0 hears who goes on");
                root.stall_detector.end_stall(from, stall_number);
            }
            Packet::Deadlocked { stall_number } => self.resolve_stall(stall_number, out),
            Packet::Probe => self.search.probed = true,
            Packet::ProbeReply(traffic) => self.probe_replied(traffic, now_ns, out),
            Packet::Explain { open } => out.push_back(Action::Explain { open }),
            Packet::StallExplanation(waiting) => self.explanation_received(waiting, out),
            Packet::Exit => {
                // Whoever it comes from has it, and so have those on that side.
                for neighbour in self.tree.neighbours().filter(|&neighbour| neighbour != from) {
                    self.send(neighbour, Packet::Exit, now_ns, out);
                }
                out.push_back(Action::Stop(Ok(())));
            }
            Packet::Abort(error) => out.push_back(Action::Stop(Err(error))),
        }
    }

    /// A message that has reached the rank it was routed to.
    fn enqueue(&mut self, to: ChunkId, delivery: Delivery, out: &mut Actions) {
        match self.cell_of(to) {
            Some(cell) => out.push_back(Action::Enqueue { to, cell, delivery }),
            None => self.add_pending(to, delivery),
        }
    }

    /// Keeps a message for a chunk that is not here. It waits if the chunk is on its way: what is for one that there is not
    /// may wait for ever, and would be waited for.
    pub(crate) fn add_pending(&mut self, to: ChunkId, delivery: Delivery) {
        if self.migrations.expects(to) {
            self.flow.add_incoming(delivery.bytes);
        }
        self.location.add_pending(to, delivery);
    }

    /// The same of a message from another rank. Who knows new routes before this rank may send by them.
    pub(crate) fn add_pending_remote(&mut self, epoch: Epoch, to: ChunkId, delivery: Delivery) {
        if self.migrations.are_settled() && epoch != self.in_flight.epoch() {
            self.early_bytes += delivery.bytes;
            self.flow.add_incoming(delivery.bytes);
        }
        self.add_pending(to, delivery);
    }

    /// Rank 0 numbers a broadcast of a rank and tells it to all.
    fn sequence_broadcast(
        &mut self,
        from: Rank,
        array: ArrayId,
        delivery: Box<Delivery>,
        ack_request: u64,
        out: &mut Actions,
    ) {
        let (number, ack_requested) = (self.broadcasts.number(array), ack_request > 0);
        if ack_requested {
            self.broadcast_acks.sent(from, ack_request);
        }
        self.broadcast_down(ROOT, Packet::Broadcast { array, number, delivery, ack_requested }, 0, out);
        if ack_requested {
            // Who waits for it may have said so before.
            self.resolve_deadlocks(out);
        }
    }

    fn apply_broadcast(&mut self, array: ArrayId, number: u64, mut delivery: Delivery, out: &mut Actions) {
        if self.broadcasts.are_logged() {
            // Those who come to hear it have one between them, and with those who are here.
            delivery = delivery.shared(|bytes| self.flow.track(bytes));
        }
        self.broadcasts.apply(array, number, &delivery);
        out.push_back(Action::EnqueueToAll { to: self.location.residents(array), delivery });
    }

    /// Passes a partial result to the parent.
    fn pass_on(&mut self, array: ArrayId, sequence: u64, partial: Partial, out: &mut Actions) {
        self.send_up(Packet::Partial { array, sequence, partial: Box::new(partial) }, 0, out);
    }

    fn finish_reductions(&mut self, array: ArrayId, out: &mut Actions) {
        if self.tree.rank != ROOT {
            return;
        }
        while let Some(FinishedReduction { array, sequence, spec, values }) = self.reductions.finish(array) {
            self.send_result(array, Contributors::All(sequence), spec, values, out);
        }
    }

    /// Tells the result of a reduction.
    fn send_result(
        &mut self,
        array: ArrayId,
        over: Contributors<'_>,
        spec: ReductionSpec,
        values: Arc<Values>,
        out: &mut Actions,
    ) {
        let ReductionSpec { tag, reducer, target } = spec;
        match (target, over) {
            (ResultTarget::All, Contributors::All(number)) => {
                let payload = Payload::Reduced { tag, values, number: Some(number) };
                self.request_broadcast(array, Delivery::by_runtime(payload), 0, out);
            }
            (ResultTarget::All, Contributors::Section(section)) => {
                for (rank, keys) in self.by_rank(array, section) {
                    let (values, epoch) = (values.clone(), Epoch::default());
                    self.send(rank, Packet::SectionResult { array, keys, tag, values, epoch }, 0, out);
                }
            }
            (ResultTarget::AllOf(array), _) => self.request_broadcast(array, result(tag, values), 0, out),
            (ResultTarget::Chunk(key), _) => self.send_result_to(ChunkId { array, key }, tag, values, out),
            (ResultTarget::ChunkOf(to), _) => self.send_result_to(to, tag, values, out),
            (ResultTarget::Scan, _) => match scan(reducer, &values) {
                Ok(results) => {
                    for (key, values) in results {
                        self.send_result_to(ChunkId { array, key }, tag, Arc::new(values), out);
                    }
                }
                Err(why) => self.fail_reduction(array, why, out),
            },
            (ResultTarget::Exit, _) => {
                out.push_back(Action::SetExitValue(values));
                self.exit(out);
            }
        }
    }

    fn send_result_to(&mut self, to: ChunkId, tag: u32, values: Arc<Values>, out: &mut Actions) {
        let rank = self.location.rank_of(to);
        match self.root {
            // Behind the results that all chunks are told, and before those that come later.
            Some(_) => self.handle(ROOT, Packet::ReductionResult { rank, to, tag, values }, 0, out),
            None => self.send_message(to, result(tag, values), out),
        }
    }

    /// Sends a message to the rank that its chunk is on.
    fn send_message(&mut self, to: ChunkId, delivery: Delivery, out: &mut Actions) {
        let envelope = Envelope { to, delivery, epoch: Epoch::default() };
        self.send(self.location.rank_of(to), Packet::Message(envelope), 0, out);
    }

    /// Passes on partial results at once: this rank has nothing to do, or has not looked for long.
    pub(crate) fn flush_partials(&mut self, out: &mut Actions) {
        for (root, part) in self.sections.take_all() {
            self.send(root, Packet::SectionPartial(Box::new(part)), 0, out);
        }
        if self.tree.rank != ROOT {
            for (array, sequence, partial) in self.reductions.take_all() {
                self.pass_on(array, sequence, partial, out);
            }
        }
    }

    /// This rank has nothing to do.
    pub(crate) fn idle(&mut self, now_ns: u64, out: &mut Actions) {
        self.flush_partials(out);
        self.request_seeds(out);
        // Answer only with empty hands: a packet just sent would make the answer stale before it leaves.
        let works = self.flow.has_parked() || self.is_deciding() || self.seeds.waiting() > 0;
        let rests = self.search.delayed == 0 && !works;
        if out.is_empty() && rests && std::mem::take(&mut self.search.probed) {
            self.probe_replied(self.traffic, now_ns, out);
        }
    }

    /// This rank or a child answers the search for quiescence.
    fn probe_replied(&mut self, traffic: Traffic, now_ns: u64, out: &mut Actions) {
        let Some(total) = self.convergecasts.traffic.add(&self.tree, |sum| *sum += traffic) else { return };
        match &mut self.root {
            None => self.send_up(Packet::ProbeReply(total), now_ns, out),
            Some(root) => {
                let step = root.quiescence.wave_answered(total);
                self.search(step, out);
            }
        }
    }

    /// This rank has had nothing to do for a long time: is anybody still at work?
    pub(crate) fn suspect(&mut self, out: &mut Actions) {
        if let Some(root) = &mut self.root {
            let step = root.quiescence.suspect();
            self.search(step, out);
        }
    }

    fn search(&mut self, step: SearchStep, out: &mut Actions) {
        match step {
            SearchStep::Wait => {}
            SearchStep::Wave => self.broadcast_down(ROOT, Packet::Probe, 0, out),
            SearchStep::Quiescent => {
                let root = self.root.as_mut().expect("rank 0 searches");
                let waiting = std::mem::take(&mut root.at_quiescence);
                if waiting.is_empty() {
                    let open = self.reductions.unfinished();
                    return self.broadcast_down(ROOT, Packet::Explain { open }, 0, out);
                }
                root.quiescence.reset();
                for Envelope { to, delivery, .. } in waiting {
                    self.send_message(to, delivery, out);
                }
            }
        }
    }

    /// This rank or a child has said what waits there.
    fn explanation_received(&mut self, waiting: StallExplanation, out: &mut Actions) {
        let joined = self.convergecasts.waiting.add(&self.tree, |all| {
            all.lines.extend(waiting.lines);
            all.reported.extend(waiting.reported);
        });
        let Some(StallExplanation { lines, reported }) = joined else { return };
        let Some(root) = &mut self.root else {
            return self.send_up(Packet::StallExplanation(StallExplanation { lines, reported }), 0, out);
        };
        root.coordinator.add_reports(reported);
        let arrays = &self.arrays;
        let mut waiting = root.coordinator.explain(|array| array_text(arrays, array));
        waiting.extend(lines);
        self.fail(Error::Stalled { waiting }, out);
    }

    /// Answers [`Action::Explain`] with what the chunks wait for; adds what the rank itself knows.
    pub(crate) fn explained(&mut self, mut lines: Vec<String>, out: &mut Actions) {
        let text = |chunk: ChunkId| self.describe(chunk);
        for (chunk, waiting) in self.location.pending() {
            let is_not =
                if self.undelivered.removed.contains(&chunk) { "no longer exists" } else { "does not exist" };
            let wait = counted(waiting.len(), "message waits", "messages wait");
            let mut line = format!("{} {is_not}; {wait} for it", text(chunk));
            let insertion = waiting.iter().find(|delivery| delivery.payload.is_insertion());
            if let Some(Delivery { payload, .. }) = insertion {
                line += &format!(", such as the {}", self.arrays[chunk.array.index()].kind(payload));
            }
            lines.push(line);
        }
        let name = |array| array_text(&self.arrays, array);
        lines.extend(self.sections.explain(name, |array, key| text(ChunkId { array, key })));
        let unread = self.undelivered.unread.described(|_| true, text);
        lines.extend((unread.messages > 0).then(|| unread.to_string()));
        if self.root.is_some() {
            let empty = (0..).map(ArrayId).zip(&*self.arrays).filter(|(_, array)| array.population() == 0);
            lines.extend(empty.map(|(array, _)| format!("{} was set up without chunks", name(array))));
            lines.extend(self.reductions.explain(name));
        }
        let reported = self.syncs.reported().into_iter().chain(self.report_aggregation.tallies()).collect();
        self.explanation_received(StallExplanation { lines, reported }, out);
    }

    /// A chunk's name for people.
    pub(crate) fn describe(&self, chunk: ChunkId) -> String {
        self.arrays[chunk.array.index()].describe(chunk)
    }
}

/// The chunks of an array that have contributed to a reduction.
#[derive(Clone, Copy)]
enum Contributors<'k> {
    /// All that take part in the one of this number.
    All(u64),
    /// Those of a section.
    Section(&'k [u64]),
}

/// The delivery of a reduction's result, to chunks that are known to wait for it.
fn result(tag: u32, values: Arc<Values>) -> Delivery {
    Delivery::by_runtime(Payload::Reduced { tag, values, number: None })
}

/// An array's name for people.
pub(crate) fn array_text(arrays: &[Arc<dyn ErasedArray>], array: ArrayId) -> String {
    format!("array {array} `{}`", arrays[array.index()].name())
}
