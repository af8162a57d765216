//! A worker: finds a ready chunk, runs its handlers, carries out what they wished.
//!
//! One turn of a worker is the program in small:
//!
//! ```text
//! find a token -> begin -> for each message: deliver, flush, lap -> finish -> poll
//! ```
//!
//! `flush` is hop 2 of the way from `send` to `receive`; the others are [`Ctx::send`](crate::Ctx::send) (1),
//! [`Transport`] send and poll (3), [`Mailbox::push`](super::mailbox::Mailbox::push) (4) and
//! [`Slot::deliver`](crate::arrays::api::slot::Slot) (5).

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use super::mailbox::{Begun, By, Finished, Pushed};
use super::patience::Patience;
use super::ready::Ready;
use super::shared::RankShared;
use crate::arrays::core::collect::Arrival;
use crate::arrays::core::envelope::{Delivery, Envelope, Payload};
use crate::arrays::core::erased::ErasedSlot;
use crate::arrays::core::handler::{Handler, Outlet, Wish};
use crate::arrays::core::location::Route;
use crate::arrays::core::packet::{Cargo, Packet, Traveller};
use crate::arrays::core::rank::Actions;
use crate::error::Error;
use crate::ids::{CellId, ChunkId, RUNTIME, Rank, Sender};
use crate::measure::meter::Meter;
use crate::measure::sample::Observed;
use crate::measure::speed::Speed;
use crate::trace::UserEvent;
use crate::trace::at_work::AtWork;
use crate::trace::recorder::Recorder;
use crate::trace::{NameId, Part};
use crate::transport::Transport;
use crate::wire::codec::Codec;

/// Buffers of mailboxes kept for reuse.
const SPARES_MAX: usize = 256;

/// How long a chunk runs before its worker looks at the transport in between, ns; and how many handlers where no time is
/// measured.
const RUN_NS_MAX: u64 = 50_000;
const RUN_HANDLERS_MAX: u64 = 8;

/// One thread of a rank.
pub(crate) struct Worker<'r> {
    pub(crate) shared: &'r RankShared,
    pub(crate) id: u32,
    pub(crate) ready: Ready,
    /// Worker 0 of a rank that is not alone.
    pub(crate) transport: Option<Box<dyn Transport<Packet> + 'r>>,
    pub(crate) meter: Option<Meter>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) speed: Option<Speed>,
    pub(crate) patience: Patience,
    pub(crate) in_hand: InHand,
    /// The same, as others may see it.
    pub(crate) at_work: &'r AtWork,
    pub(crate) actions: Actions,
    pub(crate) spares: Vec<VecDeque<Delivery>>,
    /// Simulation: reorders what a mailbox holds, as far as the promised order allows, and says how much to handle.
    pub(crate) mixer: Option<Mixer>,
    /// Deliveries handled.
    pub(crate) handled: u64,
    /// Load declared by handlers, ns of ticks.
    pub(crate) charged_ns: u64,
    /// The end of the lap before it last looked at its transport, ns.
    pub(crate) looked_ns: u64,
    /// Time asleep since it last found work, ns.
    pub(crate) rested_ns: u64,
    /// Packets that the transport gets as soon as the core is free.
    pub(crate) leaving: VecDeque<(Rank, Packet)>,
    /// What could not be sent.
    pub(crate) failed: Option<Error>,
    outbox: Vec<Wish>,
    /// Messages are recorded, or forced through the encoder, when they are sent.
    looks_at_sends: bool,
    /// Cells of chunks of this rank, as far as this worker knows; a refused push corrects it. Unused by a lone worker.
    known: FxHashMap<ChunkId, CellId>,
}

/// See [`Worker::mixer`].
pub(crate) type Mixer = Box<dyn FnMut(&mut VecDeque<Delivery>) -> usize>;

/// What a worker is doing, for the error that names it and for the record.
#[derive(Clone, Copy)]
pub(crate) struct InHand {
    pub(crate) chunk: ChunkId,
    pub(crate) kind: &'static str,
    /// Its number, where a record is kept.
    name: NameId,
    pub(crate) phase: u64,
    /// Who sent the message.
    pub(crate) from: Sender,
    /// A handler is running that has not been recorded.
    pub(crate) running: bool,
}

impl InHand {
    /// No chunk, but this.
    pub(crate) fn nothing(but: &'static str) -> InHand {
        InHand::hook(RUNTIME, but, 0)
    }

    /// A hook of a chunk, which is no handler.
    pub(crate) fn hook(chunk: ChunkId, kind: &'static str, phase: u64) -> InHand {
        InHand { chunk, kind, name: NameId(0), phase, from: Sender::RUNTIME, running: false }
    }
}

/// Whether a chunk is still there after its wishes were carried out.
#[derive(PartialEq)]
enum Chunk {
    Stays,
    Removed,
}

impl<'r> Worker<'r> {
    pub(crate) fn new(
        shared: &'r RankShared,
        id: u32,
        ready: Ready,
        transport: Option<Box<dyn Transport<Packet> + 'r>>,
    ) -> Worker<'r> {
        let now_ns = shared.clock.now_ns();
        let recorder = Recorder::new(&shared.recording, id, now_ns);
        let looks_at_sends = shared.wire || recorder.as_ref().is_some_and(Recorder::keeps_events);
        Worker {
            shared,
            id,
            ready,
            transport,
            meter: (shared.measure || recorder.is_some()).then(|| Meter::new(now_ns)),
            recorder,
            speed: None,
            patience: Patience::new(),
            in_hand: InHand::nothing("nothing"),
            at_work: &shared.recording.at_work[id as usize],
            actions: Actions::new(),
            spares: Vec::new(),
            mixer: None,
            handled: 0,
            charged_ns: 0,
            looked_ns: 0,
            rested_ns: 0,
            leaving: VecDeque::new(),
            failed: None,
            outbox: Vec::new(),
            looks_at_sends,
            known: FxHashMap::default(),
        }
    }

    /// Looks for a ready chunk and runs it. False if there is none.
    #[inline]
    pub(crate) fn step(&mut self) -> bool {
        let Some(cell) = self.ready.find(self.id, &self.shared.queues) else { return false };
        self.run(cell);
        true
    }

    /// Runs the chunk whose token this is, for the mail it has now.
    fn run(&mut self, id: CellId) {
        let shared = self.shared;
        let cell = shared.cells.get(id);
        let (chunk, mut slot, mut mail) = match cell.mailbox.begin() {
            Begun::Run(chunk, slot, mail) => (chunk, slot, mail),
            Begun::Held => return self.with_core(|core, now_ns, out| core.held(now_ns, out)),
        };
        if !shared.lone() {
            cell.last_worker.store(self.id, Ordering::Relaxed);
        }
        self.in_hand.chunk = chunk;
        self.at_work.turns_to(chunk);
        let mut outbox = std::mem::take(&mut self.outbox);
        let left = self.mixer.as_mut().map_or(usize::MAX, |mix| mix(&mut mail));
        let fate = self.handle(chunk, &mut *slot, &mut mail, left, &mut outbox, id);
        self.outbox = outbox;
        if fate == Chunk::Removed {
            return self.vacate(chunk, id, slot, mail);
        }
        match cell.mailbox.finish(slot, &mut mail) {
            Finished::Idle => {}
            Finished::Token => self.put(id),
            Finished::Held => self.with_core(|core, now_ns, out| core.held(now_ns, out)),
        }
        if self.spares.len() < SPARES_MAX && mail.capacity() > 0 {
            self.spares.push(mail);
        }
    }

    /// Handles up to `left` messages. Each is a function (state, message) -> (state, outbox), flushed before the next.
    #[inline]
    fn handle(
        &mut self,
        chunk: ChunkId,
        slot: &mut dyn ErasedSlot,
        mail: &mut VecDeque<Delivery>,
        mut left: usize,
        outbox: &mut Vec<Wish>,
        cell: CellId,
    ) -> Chunk {
        let facts = &self.shared.facts;
        while left > 0
            && let Some(delivery) = mail.front_mut()
        {
            left -= 1;
            self.handled += 1;
            self.at_work.begins(self.handled);
            let delivered = slot.deliver(delivery, Handler { chunk, outbox, facts, outlet: self });
            mail.pop_front();
            if let Err(why) = delivered {
                let what = format!("a message to {}", self.describe(chunk));
                self.fail(Error::Wire { rank: facts.rank.0, what, why: why.to_string() });
                return Chunk::Stays;
            }
            let fate = if outbox.is_empty() {
                Chunk::Stays
            } else {
                self.carry_out_wishes(chunk, slot, outbox, cell)
            };
            self.lap(cell);
            if fate == Chunk::Removed {
                return fate;
            }
            if self.transport.is_some() && !mail.is_empty() && self.has_run_long() {
                self.look_around(chunk);
                if self.shared.crew.stopped() {
                    return Chunk::Stays;
                }
            }
        }
        Chunk::Stays
    }

    /// Whether it is time to look at the transport, though the chunk that runs has more mail: by the clock where handlers
    /// are measured, else every so many handlers.
    #[inline]
    fn has_run_long(&self) -> bool {
        match &self.meter {
            Some(meter) => meter.last_ns() >= self.looked_ns + RUN_NS_MAX,
            None => self.handled.is_multiple_of(RUN_HANDLERS_MAX),
        }
    }

    /// Sends and receives in the middle of a run.
    #[cold]
    fn look_around(&mut self, chunk: ChunkId) {
        self.progress();
        self.in_hand.chunk = chunk;
        self.at_work.turns_to(chunk);
    }

    /// Hop 2, the flush: carries out the wishes of a handler that has returned, in order.
    fn carry_out_wishes(
        &mut self,
        chunk: ChunkId,
        slot: &mut dyn ErasedSlot,
        outbox: &mut Vec<Wish>,
        cell: CellId,
    ) -> Chunk {
        let mut fate = Chunk::Stays;
        if let [Wish::Send { .. }] = outbox[..]
            && let Some(Wish::Send { to, mut delivery }) = outbox.pop()
        {
            self.send(to, &mut delivery);
            return Chunk::Stays;
        }
        for wish in outbox.drain(..) {
            match wish {
                Wish::Send { to, mut delivery } => self.send(to, &mut delivery),
                Wish::Broadcast { .. } | Wish::Multicast { .. } => self.spread(chunk, wish),
                Wish::Contribute { terms, values } => {
                    let report = slot.passport().reductions.report();
                    if let Some(recorder) = &mut self.recorder {
                        recorder.contributed(chunk, report.sequence);
                    }
                    self.with_core(|core, _, out| core.contribute(chunk, report, terms, values, out));
                }
                Wish::Insert { key, slot: mut child } => {
                    let passport = slot.passport();
                    child.passport().reductions = passport.reductions.child();
                    child.passport().syncs = passport.syncs.child();
                    let chunk = ChunkId { array: chunk.array, key };
                    let cargo = Cargo::Live(child);
                    let traveller =
                        Box::new(Traveller { chunk, cargo, mail: Vec::new(), bytes: 0, journey: None });
                    self.with_core(|core, _, out| core.insert(traveller, out));
                }
                Wish::AtSync { bytes } => self.at_sync(chunk, slot, cell, bytes),
                Wish::Remove => {
                    let passport = slot.passport();
                    self.with_core(|core, _, out| core.remove(chunk, passport, out));
                    fate = Chunk::Removed;
                }
                Wish::Exit => self.with_core(|core, _, out| core.exit(out)),
            }
        }
        fate
    }

    #[inline]
    fn send(&mut self, to: ChunkId, delivery: &mut Option<Delivery>) {
        tracing::trace!(hop = 2, "Worker::flush");
        if self.looks_at_sends && !self.look_at_send(to, delivery) {
            return;
        }
        if !self.shared.lone()
            && let Some(&cell) = self.known.get(&to)
        {
            if self.push(cell, to, delivery, By::Chunk) {
                return;
            }
            self.known.remove(&to);
        }
        loop {
            let mut core = self.shared.core.lock();
            match core.rank.location.route(to) {
                Route::Here(cell) => {
                    drop(core);
                    // A refusal means that the routes changed between the look and the push: look again.
                    if self.push(cell, to, delivery, By::Chunk) {
                        if !self.shared.lone() {
                            self.known.insert(to, cell);
                        }
                        return;
                    }
                }
                Route::There(rank) => {
                    let delivery = delivery.take().expect("no mailbox has taken it");
                    core.rank.message_sent();
                    if self.transport.is_some() && core.outbound.is_empty() {
                        drop(core);
                        tracing::trace!(hop = 3, "Transport::send");
                        self.hand_over(rank, Packet::Message(Envelope { to, delivery }));
                        return self.fail_if_failed();
                    }
                    self.transmit(&mut core, rank, Packet::Message(Envelope { to, delivery }));
                    drop(core);
                    self.hand_over_all();
                    return self.fail_if_failed();
                }
                Route::Stash => {
                    let delivery = delivery.take().expect("no mailbox has taken it");
                    return core.rank.location.stash(to, delivery);
                }
            }
        }
    }

    /// Hop 4, and the token on its way if the push made one. False if the mailbox refused.
    #[inline]
    pub(crate) fn push(
        &mut self,
        cell: CellId,
        to: ChunkId,
        delivery: &mut Option<Delivery>,
        by: By,
    ) -> bool {
        match self.shared.cells.get(cell).mailbox.push(to, delivery, by, &mut self.spares) {
            Pushed::Queued => true,
            Pushed::Token => {
                self.put(cell);
                true
            }
            Pushed::Refused => false,
        }
    }

    /// Puts a token on a queue: that of the worker that ran the chunk last.
    #[inline]
    pub(crate) fn put(&mut self, token: CellId) {
        if self.shared.lone() {
            return self.ready.push(token);
        }
        let last = self.shared.cells.get(token).last_worker.load(Ordering::Relaxed);
        let crew = &self.shared.crew;
        if last == self.id {
            let busy = !self.ready.is_empty();
            self.ready.push(token);
            if busy {
                crew.wake_one(self.id);
            }
        } else {
            self.shared.queues.inboxes[last as usize].push(token);
            if !crew.sleepers[last as usize].wake() {
                crew.wake_one(self.id);
            }
        }
    }

    fn spread(&mut self, from: ChunkId, wish: Wish) {
        self.with_core(|core, _, out| match wish {
            Wish::Broadcast { array, message } => {
                let from = Sender::new(from, 0);
                core.broadcast(array, Delivery { from, payload: Payload::Encoded(message) }, out);
            }
            Wish::Multicast { array, keys, message } => core.multicast(from, array, &keys, &message, out),
            _ => unreachable!("only these two go to many"),
        });
    }

    fn at_sync(&mut self, chunk: ChunkId, slot: &mut dyn ErasedSlot, cell: CellId, bytes: u64) {
        let array = &self.shared.arrays[chunk.array as usize];
        assert!(array.syncs(), "chunks of an array without sync do not call at_sync");
        self.lap(cell);
        let declared = slot.declared_load();
        let migratable = slot.migratable();
        let passport = slot.passport();
        let report = passport.syncs.report();
        let declared = passport.charged.take().or(declared);
        let stands = !passport.goes_on();
        let arrival = Arrival { chunk, cell, report, declared, bytes, migratable, stands };
        let mut waits = true;
        self.with_core(|core, _, out| waits = core.at_sync(arrival, out));
        if !waits {
            let mut resume = Some(Delivery { from: Sender::RUNTIME, payload: Payload::Resume });
            let pushed = self.push(cell, chunk, &mut resume, By::Core);
            assert!(pushed, "a chunk that runs is in its cell");
        }
    }

    /// Gives back the cell of a chunk that was removed. Mail it did not handle is counted and dropped: it was for this
    /// chunk, and not for the next of its index.
    fn vacate(&mut self, chunk: ChunkId, id: CellId, slot: Box<dyn ErasedSlot>, mail: VecDeque<Delivery>) {
        let cell = self.shared.cells.get(id);
        let kept = slot.into_kept();
        let unread = kept.into_iter().chain(mail).chain(cell.mailbox.vacate());
        // Broadcasts and results for all have no number: they are for whoever is there.
        let own = unread.filter(|delivery| delivery.from.number > 0);
        let array = &self.shared.arrays[chunk.array as usize];
        let kinds: Vec<&'static str> = own.map(|delivery| array.kind(&delivery.payload)).collect();
        self.shared.cells.free(id);
        if !kinds.is_empty() {
            self.with_core(|core, _, _| core.unread(chunk, &kinds));
        }
    }

    /// Charges the time since the last lap to the chunk in this cell.
    #[inline]
    fn lap(&mut self, cell: CellId) {
        let Some(meter) = &mut self.meter else {
            self.in_hand.running = false;
            return;
        };
        let now_ns = self.shared.clock.now_ns();
        let wall_ns = meter.lap(cell, now_ns);
        self.shared.cells.get(cell).charge(wall_ns as i64);
        if let Some(recorder) = &mut self.recorder {
            self.in_hand.record(recorder, now_ns);
        }
        if meter.due() {
            self.close_batch();
        }
    }

    /// Reads the CPU clock and corrects what was charged since it was read last.
    #[cold]
    pub(crate) fn close_batch(&mut self) {
        if let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.keeps_events()) {
            recorder.encode();
            self.skip(Part::Flush, 0);
        }
        let Some(meter) = &mut self.meter else { return };
        let (refund, published) = meter.close();
        let lost_ns = refund.as_ref().map_or(0, |refund| refund.ns);
        if let Some(refund) = refund {
            self.shared.cells.get(refund.cell).charge(-(refund.ns as i64));
        }
        let gauge = &self.shared.gauges.workers[self.id as usize];
        gauge.publish(published);
        gauge.set_deliveries(self.handled);
        if let Some(recorder) = &mut self.recorder {
            recorder.close_batch(lost_ns);
            if self.id == 0 {
                self.observe(Observed::Between);
            }
        }
        self.calibrate();
    }

    /// What is done with messages besides sending them. False if one cannot be encoded, which ends the run.
    #[cold]
    fn look_at_send(&mut self, to: ChunkId, delivery: &mut Option<Delivery>) -> bool {
        if self.recorder.as_ref().is_some_and(Recorder::keeps_events) {
            self.record_send(to, delivery.as_ref());
        }
        if !self.shared.wire {
            return true;
        }
        let sent = delivery.take().expect("no mailbox has taken it");
        match self.shared.codec.round_trip(Packet::Message(Envelope { to, delivery: sent })) {
            Ok(Packet::Message(envelope)) => *delivery = Some(envelope.delivery),
            Ok(other) => unreachable!("{other:?} was a message"),
            Err(error) => self.fail(error),
        }
        delivery.is_some()
    }

    /// Records that a message is about to leave.
    fn record_send(&mut self, to: ChunkId, delivery: Option<&Delivery>) {
        let Some((recorder, delivery)) = self.recorder.as_mut().zip(delivery) else { return };
        if recorder.wants_send(delivery.from) {
            let shared = self.shared;
            let rank = match shared.core.lock().rank.location.route(to) {
                Route::There(rank) => rank,
                Route::Here(_) | Route::Stash => shared.facts.rank,
            };
            let bytes = shared.arrays[to.array as usize].encoded_bytes(&delivery.payload);
            let others_see_it = rank != shared.facts.rank || !shared.lone();
            let clock = others_see_it.then_some(|| shared.clock.now_ns());
            recorder.sends(delivery.from, to, rank.0, bytes, clock);
        }
    }

    /// Records the handler that is running up to now: what follows in its time is something else.
    #[cold]
    pub(crate) fn interrupt(&mut self) {
        if let Some(recorder) = self.recorder.as_mut().filter(|_| self.in_hand.running) {
            self.in_hand.record(recorder, self.shared.clock.now_ns());
        }
        self.in_hand.running = false;
    }

    /// Turns to something that is no handler, but may run user code.
    #[inline]
    pub(crate) fn take_in_hand(&mut self, other: InHand) {
        self.at_work.serves(other.chunk);
        self.in_hand = other;
    }

    pub(crate) fn describe(&self, chunk: ChunkId) -> String {
        if chunk == RUNTIME { "the runtime".into() } else { self.shared.core.lock().rank.describe(chunk) }
    }
}

impl InHand {
    /// Records what it has been until now.
    #[inline]
    fn record(&mut self, recorder: &mut Recorder, now_ns: u64) {
        if std::mem::take(&mut self.running) {
            recorder.handled(self.chunk, self.name, self.from, now_ns);
        } else {
            recorder.kept(now_ns);
        }
    }
}

impl Outlet for Worker<'_> {
    fn flush(&mut self, chunk: ChunkId, outbox: &mut Vec<Wish>) {
        let message =
            |wish: &Wish| matches!(wish, Wish::Send { .. } | Wish::Broadcast { .. } | Wish::Multicast { .. });
        let messages = outbox.iter().take_while(|wish| message(wish)).count();
        if let Some(recorder) = &mut self.recorder {
            recorder.flushes();
        }
        for wish in outbox.drain(..messages) {
            match wish {
                Wish::Send { to, mut delivery } => self.send(to, &mut delivery),
                spread => self.spread(chunk, spread),
            }
        }
        if let Some(transport) = &mut self.transport {
            transport.idle();
        }
        // This worker is busy for longer: somebody else should run what it has just made ready.
        self.shared.crew.wake_one(self.id);
    }

    fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }

    #[inline]
    fn note(&mut self, kind: &'static str, phase: u64, from: Sender) {
        if self.in_hand.running {
            self.interrupt();
        }
        if let Some(recorder) = &mut self.recorder {
            self.in_hand.name = recorder.kind(self.in_hand.chunk.array, kind);
            self.at_work.names(self.in_hand.name);
        }
        self.in_hand.kind = kind;
        self.in_hand.phase = phase;
        self.in_hand.from = from;
        self.in_hand.running = true;
    }

    fn keeps(&mut self) {
        self.in_hand.running = false;
    }

    fn tell(&mut self, event: UserEvent) {
        if let Some(recorder) = &mut self.recorder {
            recorder.tell(self.in_hand.chunk, event, self.shared.clock.now_ns());
        }
    }

    fn charge(&mut self, ticks_ns: u64) {
        self.charged_ns += ticks_ns;
    }
}
