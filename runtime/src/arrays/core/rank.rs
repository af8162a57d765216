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
use super::ascent::Ascent;
use super::audience::Audience;
use super::balance::Migrations;
use super::broadcast::{Broadcasts, again};
use super::census::{Membership, Report};
use super::collect::Syncs;
use super::coordinator::Coordinator;
use super::crossings::{Counts, Crossings, Epoch};
use super::envelope::{Delivery, Envelope, LETTER_BYTES, Payload};
use super::erased::ErasedArray;
use super::freight::Freight;
use super::handler::Passport;
use super::location::Location;
use super::outline::{Outline, difference};
use super::packet::{Cargo, Founder, Packet, Traveller, Waiting};
use super::pressure::{Presser, Pressure, Sent, Standstill};
use super::quiescence::{Quiescence, Step, Traffic};
use super::reduction::{Agreement, Finished, Goal, Partial, Reductions, Values, scan};
use super::section::{Advance, SectionContribution, SectionPart, SectionResult, Sections};
use super::seeds::Seeds;
use super::sync_log::SyncLog;
use super::tree::{Convergecast, Tree};
use super::undelivered::{Addressees, Leftover};
use super::uptake::Uptake;
use crate::error::Error;
use crate::ids::{ArrayId, CellId, ChunkId, ROOT, Rank, Sender, SyncId};
use crate::text::counted;

mod cut;
#[cfg(test)]
mod drive;
#[cfg(test)]
mod idlers;
#[cfg(test)]
mod orders;
mod pressure;
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
    crossings: Crossings,
    reductions: Reductions,
    sections: Sections,
    pub(crate) seeds: Seeds,
    broadcasts: Broadcasts,
    syncs: Syncs,
    ascent: Ascent,
    migrations: Migrations,
    pressure: Pressure,
    uptake: Uptake,
    audience: Audience,
    /// Bytes of messages that came by routes which this rank has not heard of.
    early_bytes: u64,
    /// Rank 0 only.
    root: Option<Root>,
    traffic: Traffic,
    search: Search,
    told: Converging,
    /// True if `at_sync` waits for a decision.
    blocking: bool,
    fates: Fates,
    /// Of the arrays that were set up.
    /// The arrays as this rank has set them up.
    outlines: Vec<Outline>,
}

/// The counts that tell messages that are lost from those under way, see [`undelivered`](super::undelivered).
#[derive(Default)]
struct Fates {
    unread: Addressees,
    migrations: u64,
    inserted: BTreeMap<Rank, u64>,
    admitted: u64,
    /// Chunks that removed themselves on this rank, as many as are remembered: messages to them that come later wait here.
    removed: BTreeSet<ChunkId>,
}

/// Chunks that were removed, of which a rank remembers so many: only to call them by the right word.
const REMOVED_MAX: usize = 4096;

struct Root {
    coordinator: Coordinator,
    quiescence: Quiescence,
    standstill: Standstill,
    /// Messages to send when nothing else is left to do.
    at_quiescence: Vec<Envelope>,
}

/// This rank's part of the search for quiescence.
#[derive(Default)]
struct Search {
    /// Messages that wait on this rank until they are due.
    postponed: u64,
    /// It is to answer as soon as it is idle.
    asked: bool,
}

/// The words of this rank and those below it that go up the tree together.
#[derive(Default)]
struct Converging {
    sent: Convergecast<Counts>,
    flushed: Convergecast<Freight>,
    traffic: Convergecast<Traffic>,
    waiting: Convergecast<Waiting>,
}

impl RankCore {
    pub(crate) fn new(
        tree: Tree,
        places: &[RankPlace],
        arrays: Arc<[Arc<dyn ErasedArray>]>,
        strategy: Arc<dyn Strategy>,
        keeps_reports: bool,
        pressure: Pressure,
    ) -> RankCore {
        let Tree { rank, ranks, .. } = tree;
        let populations: Vec<u64> = arrays.iter().map(|array| array.population()).collect();
        let blocking = strategy.terms().moves;
        let root = (rank == ROOT).then(|| {
            let leaders: Vec<Option<ArrayId>> = arrays.iter().map(|array| array.leader()).collect();
            let numbered = (0..).map(ArrayId).zip(&leaders).filter(|_| leaders.iter().any(Option::is_some));
            let leaders = numbered.map(|(array, leader)| leader.unwrap_or(array)).collect();
            let syncing = arrays.iter().map(|array| array.syncs().then(|| array.population())).collect();
            Root {
                coordinator: Coordinator::new(strategy, syncing, leaders, places, keeps_reports),
                quiescence: Quiescence::default(),
                standstill: Standstill::default(),
                at_quiescence: Vec::new(),
            }
        });
        RankCore {
            tree,
            location: Location::new(rank, ranks, arrays.clone()),
            crossings: Crossings::default(),
            reductions: Reductions::new(rank, &populations),
            sections: Sections::new(rank),
            seeds: Seeds::new(rank, ranks, arrays.iter().any(|array| array.has_seeds())),
            broadcasts: Broadcasts::new(arrays.len()),
            syncs: Syncs::default(),
            ascent: Ascent::new(&tree),
            migrations: Migrations::new(rank),
            pressure,
            early_bytes: 0,
            uptake: Uptake::new(&tree),
            audience: Audience::new(&populations, ranks),
            root,
            traffic: Traffic::default(),
            search: Search::default(),
            told: Converging::default(),
            blocking,
            fates: Fates::default(),
            outlines: arrays.iter().map(|array| array.outline(ranks)).collect(),
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
        let hello = Packet::Hello { rank: self.tree.rank, arrays: self.outlines.clone() };
        self.send_up(hello, 0, out);
        self.report(0, out);
        (0..self.arrays.len() as u32).map(ArrayId).for_each(|array| self.gathers(array, out));
    }

    /// A rank has told which arrays it has set up: rank 0 refuses others than its own.
    fn compare(&mut self, rank: Rank, arrays: Vec<Outline>, now_ns: u64, out: &mut Actions) {
        let Some(what) = difference(&arrays, &self.outlines) else { return };
        match self.root {
            Some(_) => self.fail(Error::SetupDiffers { rank, what }, out),
            None => self.send_up(Packet::Hello { rank, arrays }, now_ns, out),
        }
    }

    /// There may be news of the chunks of an array on this rank.
    pub(super) fn gathers(&mut self, array: ArrayId, out: &mut Actions) {
        self.more_hear(array, self.location.count(array), out);
    }

    /// This rank or one below it has so many chunks of an array.
    fn more_hear(&mut self, array: ArrayId, chunks: u64, out: &mut Actions) {
        if self.audience.grows(array, chunks) {
            match self.root {
                None => self.send_up(Packet::MoreHear { array, chunks }, 0, out),
                Some(_) => self.spread(ROOT, Packet::MostHear { array, chunks }, 0, out),
            }
        }
    }

    fn send(&mut self, to: Rank, mut packet: Packet, now_ns: u64, out: &mut Actions) {
        let stays = to == self.tree.rank;
        if let Some(epoch) = packet.epoch_mut() {
            *epoch = if stays { self.crossings.epoch() } else { self.crossings.leave(to) };
        }
        if stays {
            return self.handle(to, packet, now_ns, out);
        }
        self.traffic.sent += u64::from(packet.counts());
        out.push_back(Action::Send(to, packet));
    }

    /// To the parent; rank 0 hears it itself.
    fn send_up(&mut self, packet: Packet, now_ns: u64, out: &mut Actions) {
        self.send(self.tree.parent().unwrap_or(ROOT), packet, now_ns, out);
    }

    /// A packet of rank 0 to all ranks: on to those below, who may be waiting, and then for this one.
    fn spread(&mut self, from: Rank, packet: Packet, now_ns: u64, out: &mut Actions) {
        for child in self.tree.children() {
            let packet = packet.to_all().expect("it is for all");
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
        (self.cell_of(to), self.crossings.come(epoch))
    }

    #[inline(always)]
    fn cell_of(&self, to: ChunkId) -> Option<CellId> {
        // A sender that did not know the new routes yet: the leaver is still here and takes it along.
        self.location.cell(to).or_else(|| self.migrations.leaver(to))
    }

    /// Returns who presses the sender.
    pub(crate) fn multicast(
        &mut self,
        from: ChunkId,
        array: ArrayId,
        keys: &[u64],
        message: &Arc<[u8]>,
        out: &mut Actions,
    ) -> Vec<Presser> {
        let mut pressed_by = Vec::new();
        for (rank, keys) in self.by_rank(array, keys) {
            let bytes = message.len() as u64 + keys.len() as u64 * LETTER_BYTES;
            let (message, epoch) = (message.clone(), Epoch::default());
            self.send(rank, Packet::Multicast { from, array, keys, message, epoch }, 0, out);
            if rank == self.tree.rank {
                pressed_by.push(Presser::Rank(rank));
                continue;
            }
            let Sent { marks, presses } = self.pressure.sent(rank, bytes);
            pressed_by.extend(presses.then_some(Presser::Rank(rank)));
            if marks {
                self.mark(rank, out);
            }
        }
        pressed_by
    }

    /// Chunks by the rank that they are on.
    fn by_rank(&self, array: ArrayId, keys: &[u64]) -> LiteMap<Rank, Vec<u64>> {
        let mut by_rank = LiteMap::<Rank, Vec<u64>>::new();
        for &key in keys {
            by_rank.entry(self.location.rank_of(ChunkId { array, key })).or_default().push(key);
        }
        by_rank
    }

    /// Returns who presses the sender.
    pub(crate) fn broadcast(
        &mut self,
        array: ArrayId,
        delivery: Delivery,
        out: &mut Actions,
    ) -> Option<Presser> {
        // A rank holds a letter for each chunk there that hears it.
        let letters = self.audience.most(array) * LETTER_BYTES;
        let Sent { marks, presses } = self.pressure.broadcast(delivery.payload.bytes() + letters);
        let mark = if marks { self.pressure.mark(Presser::Broadcasts) } else { 0 };
        self.announce(array, delivery, mark, out);
        presses.then_some(Presser::Broadcasts)
    }

    fn announce(&mut self, array: ArrayId, delivery: Delivery, mark: u64, out: &mut Actions) {
        let (delivery, epoch) = (Box::new(delivery), Epoch::default());
        self.send(ROOT, Packet::Announce { array, delivery, mark, epoch }, 0, out);
    }

    pub(crate) fn contribute(
        &mut self,
        chunk: ChunkId,
        report: Report,
        agreement: Agreement,
        values: Values,
        out: &mut Actions,
    ) {
        let array = chunk.array;
        let local = self.location.count(array);
        let values = if agreement.goal == Goal::Scan { values.scanned(chunk.key) } else { values };
        let partial = Partial::contribution(report, agreement, values);
        let added = self.reductions.contribute(array, report.sequence, partial, local);
        let added = added.map_err(|why| format!("{why}; seen when {} contributed", self.describe(chunk)));
        self.advance_reductions(array, report.sequence, added, out);
    }

    /// A chunk contributes nothing to a reduction.
    pub(crate) fn abstain(&mut self, chunk: ChunkId, report: Report, out: &mut Actions) {
        let (array, local) = (chunk.array, self.location.count(chunk.array));
        let added = self.reductions.contribute(array, report.sequence, Partial::empty(report), local);
        self.advance_reductions(array, report.sequence, added, out);
    }

    /// A chunk contributes to no reduction any more.
    pub(crate) fn leave_reductions(&mut self, chunk: ChunkId, passport: &mut Passport, out: &mut Actions) {
        if passport.reductions.has_left() {
            return;
        }
        let report = passport.reductions.leave();
        let (array, sequence, local) = (chunk.array, report.sequence, self.location.count(chunk.array));
        let added = self.reductions.leave(array, sequence, Partial::empty(report), local);
        self.advance_reductions(array, sequence, added, out);
    }

    /// A chunk's contribution cannot be: the run ends with the reason.
    pub(crate) fn refuse_contribution(&mut self, chunk: ChunkId, why: &str, out: &mut Actions) {
        let why = format!("{} {why}", self.describe(chunk));
        self.refuse(chunk.array, why, out);
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
            Err(why) => self.refuse(array, why, out),
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
            Err((array, why)) => self.refuse(array, why, out),
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
        if contribution.agreement.goal == Goal::Scan {
            contribution.values = contribution.values.scanned(chunk.key);
        }
        let part = SectionPart::new(array, contribution);
        let (first, location) = (part.keys[0], &self.location);
        let here = |key: &&u64| location.cell(ChunkId { array, key: **key }).is_some();
        let root = || self.arrays[array.index()].home(first, self.tree.ranks);
        let added = self.sections.contribute(part, root, |keys| keys.iter().filter(here).count());
        let added = added.map_err(|why| format!("{why}; seen when {} contributed", self.describe(chunk)));
        self.advance_section(array, added, out);
    }

    /// A part of a reduction over a section was added: carries out what follows.
    fn advance_section(&mut self, array: ArrayId, added: Result<Advance, String>, out: &mut Actions) {
        let Advance { combine, pass_on, finished } = match added {
            Ok(advance) => advance,
            Err(why) => return self.refuse(array, why, out),
        };
        out.extend(combine.map(|part| Action::Combine(Packet::SectionPart(Box::new(part)))));
        if let Some((root, parts)) = pass_on {
            for part in parts {
                self.send(root, Packet::SectionPart(Box::new(part)), 0, out);
            }
        }
        for SectionResult { keys, agreement, values } in finished {
            self.tell(array, Over::Section(&keys), agreement, values, out);
        }
    }

    fn refuse(&mut self, array: ArrayId, why: String, out: &mut Actions) {
        let array = array_text(&self.arrays, array);
        self.fail(Error::Reduction { rank: self.tree.rank, array, why }, out);
    }

    /// A chunk was inserted without a parent by one of this rank's handlers: rank 0 admits it to the counts of its array.
    pub(crate) fn insert_root(&mut self, traveller: Traveller, out: &mut Actions) {
        let founder = Some(Founder { rank: self.tree.rank, admitted: false });
        self.send(ROOT, Packet::Arrive(Box::new(Traveller { founder, ..traveller })), 0, out);
    }

    /// Rank 0 admits a chunk without a parent: it joins the first reduction and the first sync that are not complete.
    fn found(&mut self, mut traveller: Box<Traveller>, founder: Rank, out: &mut Actions) {
        traveller.founder = Some(Founder { rank: founder, admitted: true });
        let array = traveller.chunk.array;
        let root = self.root.as_mut().expect("rank 0 admits chunks without a parent");
        let Cargo::Live(slot) = &mut traveller.cargo else { unreachable!("it was decoded when it came") };
        let passport = slot.passport();
        passport.reductions = Membership::admitted(self.reductions.admit(array));
        passport.joined = passport.reductions.next;
        passport.syncs = Membership::admitted(root.coordinator.admit(array).0);
        self.insert(traveller, out);
    }

    /// A chunk was inserted by one of this rank's handlers.
    pub(crate) fn insert(&mut self, traveller: Box<Traveller>, out: &mut Actions) {
        let to = self.location.rank_of(traveller.chunk);
        *self.fates.inserted.entry(to).or_default() += 1;
        self.send(to, Packet::Arrive(traveller), 0, out);
    }

    /// A chunk of this rank was removed: it reports its leave to everything it would have been waited for.
    pub(crate) fn remove(&mut self, chunk: ChunkId, passport: &mut Passport, out: &mut Actions) {
        out.extend(self.location.cell(chunk).map(Action::Close));
        self.location.departed(chunk);
        if self.fates.removed.len() < REMOVED_MAX {
            self.fates.removed.insert(chunk);
        }
        self.leave_reductions(chunk, passport, out);
        if self.arrays[chunk.array.index()].syncs() {
            self.syncs.removed(chunk.array, passport.syncs.leave());
            self.sample_complete(out);
        }
    }

    /// A chunk that was removed has not read messages of these kinds.
    pub(crate) fn unread(&mut self, chunk: ChunkId, kinds: Vec<Cow<'static, str>>) {
        kinds.into_iter().for_each(|kind| self.fates.unread.add(chunk, kind));
    }

    /// Takes the messages that wait for chunks which are not here, and are not coming as far as this rank knows.
    pub(crate) fn take_waiting(&mut self) -> BTreeMap<ChunkId, Vec<Delivery>> {
        let mut waiting = self.location.take_stash();
        waiting.retain(|&chunk, _| !self.migrations.expects(chunk));
        waiting
    }

    /// The knowledge of this rank about messages that reached no chunk; `waiting` is what
    /// [`take_waiting`](Self::take_waiting) took.
    pub(crate) fn leftover(&self, waiting: &Addressees) -> Leftover {
        let Fates { unread, migrations, inserted, admitted, removed } = &self.fates;
        let describe = |chunk| self.describe(chunk);
        Leftover {
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
        let suspects = |root: &Root| !root.at_quiescence.is_empty() && self.may_suspect();
        let answers = self.search.asked && self.search.postponed == 0 && !self.is_deciding();
        answers || self.root.as_ref().is_some_and(suspects)
    }

    /// The number of the wave by which rank 0 asks whether anybody has work, while it waits for nothing but others.
    pub(crate) fn open_wave(&self) -> Option<u64> {
        let waits_itself = self.is_deciding() || self.search.postponed > 0;
        self.root.as_ref()?.quiescence.open_wave().filter(|_| !waits_itself)
    }

    /// True of rank 0 while it does not ask whether anybody has work.
    pub(crate) fn may_suspect(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.quiescence.open_wave().is_none())
    }

    /// A handler of this rank sends a message that waits here until it is due. Until then it is under way.
    pub(crate) fn postpone(&mut self) {
        self.search.postponed += 1;
    }

    /// A message that has waited is about to be sent. True if it is the last one, for which a search for quiescence waits.
    pub(crate) fn falls_due(&mut self) -> bool {
        self.search.postponed -= 1;
        self.search.postponed == 0 && self.search.asked
    }

    pub(crate) fn exit(&mut self, out: &mut Actions) {
        self.handle(self.tree.rank, Packet::Exit, 0, out);
    }

    /// A packet from another rank.
    pub(crate) fn receive(&mut self, from: Rank, mut packet: Packet, now_ns: u64, out: &mut Actions) {
        self.traffic.received += u64::from(packet.counts());
        let drained = packet.epoch_mut().is_some_and(|&mut epoch| self.crossings.come(epoch));
        match packet.is_to_all() {
            true => self.spread(from, packet, now_ns, out),
            false => self.handle(from, packet, now_ns, out),
        }
        if drained {
            self.drained(now_ns, out);
        }
    }

    fn handle(&mut self, from: Rank, packet: Packet, now_ns: u64, out: &mut Actions) {
        match packet {
            Packet::Message(envelope) => self.deliver(envelope.to, envelope.delivery, out),
            Packet::AtQuiescence(envelope) => {
                let root = self.root.as_mut().expect("what waits for quiescence waits on rank 0");
                root.at_quiescence.push(*envelope);
            }
            Packet::Multicast { from, array, keys, message, epoch } => {
                let (from, payload) = (Sender::new(from, 0), Payload::Encoded(message));
                let delivery = Delivery { from, bytes: LETTER_BYTES, payload };
                let mut here = Vec::with_capacity(keys.len());
                for to in keys.into_iter().map(|key| ChunkId { array, key }) {
                    match self.cell_of(to) {
                        Some(cell) => here.push((to, cell)),
                        None => self.stash_of(epoch, to, again(&delivery).alone()),
                    }
                }
                out.push_back(Action::DeliverToAll { to: here, delivery });
            }
            Packet::Announce { array, delivery, mark, .. } => self.number(from, array, delivery, mark, out),
            Packet::Broadcast { array, number, delivery, marked } => {
                self.apply(array, number, *delivery, out);
                if self.location.count(array) > 0 || self.broadcasts.are_logged() {
                    self.uptake.hear();
                }
                if marked {
                    self.uptake.come();
                    self.took_in(out);
                    out.push_back(Action::AskRoom);
                }
            }
            Packet::TookIn { more } => {
                self.uptake.below(from, more);
                self.took_in(out);
            }
            Packet::MoreHear { array, chunks } => self.more_hear(array, chunks, out),
            Packet::MostHear { array, chunks } => _ = self.audience.grows(array, chunks),
            Packet::AllTookIn { bytes } => self.room(Presser::Broadcasts, bytes, out),
            Packet::Partial { array, sequence, partial } => {
                let local = self.location.count(array);
                let added = self.reductions.receive(array, sequence, *partial, local);
                self.advance_reductions(array, sequence, added, out);
            }
            Packet::SectionPart(part) => {
                let (array, first) = (part.array, part.keys[0]);
                let root = || self.arrays[array.index()].home(first, self.tree.ranks);
                let added = self.sections.receive(*part, root);
                self.advance_section(array, added, out);
            }
            Packet::Told { rank, to, tag, values } => match self.tree.child_towards(rank) {
                Some(child) => self.send(child, Packet::Told { rank, to, tag, values }, now_ns, out),
                None => self.deliver(to, result(tag, values), out),
            },
            Packet::SectionResult { array, keys, tag, values, .. } => {
                for key in keys {
                    self.deliver(ChunkId { array, key }, result(tag, values.clone()), out);
                }
            }
            Packet::Arrive(traveller) => self.arrive(from, traveller, now_ns, out),
            Packet::WantsSeeds => self.wants_seeds(from, out),
            Packet::Seeds(seeds) => self.seeds_come(from, seeds, out),
            Packet::Collected(collected, next) => {
                self.ascent.below(from, next);
                self.collected(*collected, now_ns, out);
            }
            Packet::Due(next) => {
                self.ascent.below(from, next);
                self.report(now_ns, out);
            }
            Packet::Moves { sync, moves } => self.moves(sync, &moves, now_ns, out),
            Packet::Sent(counts) => self.sent(counts, now_ns, out),
            Packet::Expect(counts) => self.expect(counts, now_ns, out),
            Packet::Flushed(freight) => self.flushed(&freight, now_ns, out),
            Packet::Land => self.land(out),
            Packet::Hello { rank, arrays } => self.compare(rank, arrays, now_ns, out),
            Packet::Mark { bytes } => {
                self.pressure.owe(from, bytes);
                out.push_back(Action::AskRoom);
            }
            Packet::Room { bytes } => self.room(Presser::Rank(from), bytes, out),
            Packet::CameHere { by_way_of, bytes } => self.came(by_way_of, from, bytes, out),
            Packet::StandsStill { spell, standing } => self.stands_still(from, spell, standing, out),
            Packet::GoesOn { spell } => {
                let root = self.root.as_mut().expect("rank 0 hears who goes on");
                root.standstill.goes_on(from, spell);
            }
            Packet::Stuck { spell } => self.relieve(spell, out),
            Packet::Probe => self.search.asked = true,
            Packet::Answer(traffic) => self.answer(traffic, now_ns, out),
            Packet::Explain { open } => out.push_back(Action::Explain { open }),
            Packet::Waiting(waiting) => self.waiting(waiting, out),
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
    fn deliver(&mut self, to: ChunkId, delivery: Delivery, out: &mut Actions) {
        match self.cell_of(to) {
            Some(cell) => out.push_back(Action::Deliver { to, cell, delivery }),
            None => self.stash(to, delivery),
        }
    }

    /// Keeps a message for a chunk that is not here. It waits if the chunk is on its way: what is for one that there is not
    /// may wait for ever, and would be waited for.
    pub(crate) fn stash(&mut self, to: ChunkId, delivery: Delivery) {
        if self.migrations.expects(to) {
            self.pressure.holds_more(delivery.bytes);
        }
        self.location.stash(to, delivery);
    }

    /// The same of a message from another rank. Who knows new routes before this rank may send by them.
    pub(crate) fn stash_of(&mut self, epoch: Epoch, to: ChunkId, delivery: Delivery) {
        if self.migrations.are_settled() && epoch != self.crossings.epoch() {
            self.early_bytes += delivery.bytes;
            self.pressure.holds_more(delivery.bytes);
        }
        self.stash(to, delivery);
    }

    /// Rank 0 numbers a broadcast of a rank and tells it to all.
    fn number(&mut self, from: Rank, array: ArrayId, delivery: Box<Delivery>, mark: u64, out: &mut Actions) {
        let (number, marked) = (self.broadcasts.number(array), mark > 0);
        if marked {
            self.uptake.made(from, mark);
        }
        self.spread(ROOT, Packet::Broadcast { array, number, delivery, marked }, 0, out);
        if marked {
            // Who waits for it may have said so before.
            self.relieve_stuck(out);
        }
    }

    fn apply(&mut self, array: ArrayId, number: u64, mut delivery: Delivery, out: &mut Actions) {
        if self.broadcasts.are_logged() {
            // Those who come to hear it have one between them, and with those who are here.
            delivery = delivery.shared(|bytes| self.pressure.hold(bytes));
        }
        self.broadcasts.apply(array, number, &delivery);
        out.push_back(Action::DeliverToAll { to: self.location.residents(array), delivery });
    }

    /// Passes a partial result to the parent.
    fn pass_on(&mut self, array: ArrayId, sequence: u64, partial: Partial, out: &mut Actions) {
        self.send_up(Packet::Partial { array, sequence, partial: Box::new(partial) }, 0, out);
    }

    fn finish_reductions(&mut self, array: ArrayId, out: &mut Actions) {
        if self.tree.rank != ROOT {
            return;
        }
        while let Some(Finished { array, sequence, agreement, values }) = self.reductions.finish(array) {
            self.tell(array, Over::All(sequence), agreement, values, out);
        }
    }

    /// Tells the result of a reduction.
    fn tell(
        &mut self,
        array: ArrayId,
        over: Over<'_>,
        agreement: Agreement,
        values: Arc<Values>,
        out: &mut Actions,
    ) {
        let Agreement { tag, reducer, goal } = agreement;
        match (goal, over) {
            (Goal::All, Over::All(number)) => {
                let payload = Payload::Reduced { tag, values, number: Some(number) };
                self.announce(array, Delivery::by_runtime(payload), 0, out);
            }
            (Goal::All, Over::Section(section)) => {
                for (rank, keys) in self.by_rank(array, section) {
                    let (values, epoch) = (values.clone(), Epoch::default());
                    self.send(rank, Packet::SectionResult { array, keys, tag, values, epoch }, 0, out);
                }
            }
            (Goal::AllOf(array), _) => self.announce(array, result(tag, values), 0, out),
            (Goal::Chunk(key), _) => self.tell_one(ChunkId { array, key }, tag, values, out),
            (Goal::ChunkOf(to), _) => self.tell_one(to, tag, values, out),
            (Goal::Scan, _) => match scan(reducer, &values) {
                Ok(results) => {
                    for (key, values) in results {
                        self.tell_one(ChunkId { array, key }, tag, Arc::new(values), out);
                    }
                }
                Err(why) => self.refuse(array, why, out),
            },
            (Goal::Exit, _) => {
                out.push_back(Action::Yield(values));
                self.exit(out);
            }
        }
    }

    fn tell_one(&mut self, to: ChunkId, tag: u32, values: Arc<Values>, out: &mut Actions) {
        let rank = self.location.rank_of(to);
        match self.root {
            // Behind the results that all chunks are told, and before those that come later.
            Some(_) => self.handle(ROOT, Packet::Told { rank, to, tag, values }, 0, out),
            None => self.send_message(to, result(tag, values), out),
        }
    }

    /// Sends a message to the rank that its chunk is on.
    fn send_message(&mut self, to: ChunkId, delivery: Delivery, out: &mut Actions) {
        let envelope = Envelope { to, delivery, epoch: Epoch::default() };
        self.send(self.location.rank_of(to), Packet::Message(envelope), 0, out);
    }

    /// Passes on partial results at once: this rank has nothing to do, or has not looked for long.
    pub(crate) fn hurry(&mut self, out: &mut Actions) {
        for (root, part) in self.sections.take_all() {
            self.send(root, Packet::SectionPart(Box::new(part)), 0, out);
        }
        if self.tree.rank != ROOT {
            for (array, sequence, partial) in self.reductions.take_all() {
                self.pass_on(array, sequence, partial, out);
            }
        }
    }

    /// This rank has nothing to do.
    pub(crate) fn idle(&mut self, now_ns: u64, out: &mut Actions) {
        self.hurry(out);
        self.ask_for_seeds(out);
        // Answer only with empty hands: a packet just sent would make the answer stale before it leaves.
        let works = self.pressure.has_parked() || self.is_deciding() || self.seeds.waiting() > 0;
        let rests = self.search.postponed == 0 && !works;
        if out.is_empty() && rests && std::mem::take(&mut self.search.asked) {
            self.answer(self.traffic, now_ns, out);
        }
    }

    /// This rank or a child answers the search for quiescence.
    fn answer(&mut self, traffic: Traffic, now_ns: u64, out: &mut Actions) {
        let Some(total) = self.told.traffic.hear(&self.tree, |sum| *sum += traffic) else { return };
        match &mut self.root {
            None => self.send_up(Packet::Answer(total), now_ns, out),
            Some(root) => {
                let step = root.quiescence.answer(total);
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

    fn search(&mut self, step: Step, out: &mut Actions) {
        match step {
            Step::Wait => {}
            Step::Wave => self.spread(ROOT, Packet::Probe, 0, out),
            Step::Quiescent => {
                let root = self.root.as_mut().expect("rank 0 searches");
                let waiting = std::mem::take(&mut root.at_quiescence);
                if waiting.is_empty() {
                    let open = self.reductions.unfinished();
                    return self.spread(ROOT, Packet::Explain { open }, 0, out);
                }
                root.quiescence.go_on();
                for Envelope { to, delivery, .. } in waiting {
                    self.send_message(to, delivery, out);
                }
            }
        }
    }

    /// This rank or a child has said what waits there.
    fn waiting(&mut self, waiting: Waiting, out: &mut Actions) {
        let joined = self.told.waiting.hear(&self.tree, |all| {
            all.lines.extend(waiting.lines);
            all.reported.extend(waiting.reported);
        });
        let Some(Waiting { lines, reported }) = joined else { return };
        let Some(root) = &mut self.root else {
            return self.send_up(Packet::Waiting(Waiting { lines, reported }), 0, out);
        };
        root.coordinator.hear(reported);
        let arrays = &self.arrays;
        let mut waiting = root.coordinator.explain(|array| array_text(arrays, array));
        waiting.extend(lines);
        self.fail(Error::Stalled { waiting }, out);
    }

    /// Answers [`Action::Explain`] with what the chunks wait for; adds what the rank itself knows.
    pub(crate) fn explained(&mut self, mut lines: Vec<String>, out: &mut Actions) {
        let text = |chunk: ChunkId| self.describe(chunk);
        for (chunk, waiting) in self.location.stashed() {
            let is_not =
                if self.fates.removed.contains(&chunk) { "no longer exists" } else { "does not exist" };
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
        let unread = self.fates.unread.described(|_| true, text);
        lines.extend((unread.messages > 0).then(|| unread.to_string()));
        if self.root.is_some() {
            let empty = (0..).map(ArrayId).zip(&*self.arrays).filter(|(_, array)| array.population() == 0);
            lines.extend(empty.map(|(array, _)| format!("{} was set up without chunks", name(array))));
            lines.extend(self.reductions.explain(name));
        }
        let reported = self.syncs.reported().into_iter().chain(self.ascent.tallies()).collect();
        self.waiting(Waiting { lines, reported }, out);
    }

    /// A chunk's name for people.
    pub(crate) fn describe(&self, chunk: ChunkId) -> String {
        self.arrays[chunk.array.index()].describe(chunk)
    }
}

/// The chunks of an array that have contributed to a reduction.
#[derive(Clone, Copy)]
enum Over<'k> {
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
