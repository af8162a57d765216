//! A worker: finds a ready chunk, runs its handlers, carries out their effects.
//!
//! One turn of a worker is the program in small:
//!
//! ```text
//! find a token -> begin -> for each message: deliver, flush, lap -> finish -> poll
//! ```
//!
//! `flush` is hop 2 of the way from `send` to `receive`; the others are [`Ctx::send`](crate::Ctx::send) (1),
//! [`Transport`](crate::transport::Transport) send and poll (3), [`Mailbox::push`](super::mailbox::Mailbox::push) (4) and
//! [`Slot::deliver`](crate::arrays::api::slot::Slot) (5).

use std::sync::Arc;

use super::backlog::bytes_of;
use super::cells::Cell;
use super::deciding::Question;
use super::gateway::Gateway;
use super::instruments::Instruments;
use super::mailbox::{Begun, By, Finished};
use super::mailroom::Mailroom;
use super::patience::Patience;
use super::ready::Ready;
use super::sending::Outgoing;
use super::shared::RankShared;
use super::simulated::Simulated;
use super::timers::Timers;
use crate::arrays::core::collect::Arrival;
use crate::arrays::core::envelope::{Delivery, Payload};
use crate::arrays::core::erased::ErasedSlot;
use crate::arrays::core::handler::{Effect, Handler, Outlet};
use crate::arrays::core::mail::{Blanks, Left, Letter, Mail, Outbox};
use crate::arrays::core::packet::Packet;
use crate::arrays::core::rank::Actions;
use crate::error::Error;
use crate::ids::{CellId, ChunkId, RUNTIME, Sender, SyncId, WorkerId};
use crate::trace::{StepRecord, StepsSoFar, UserEvent};
use crate::transport::handle::TransportHandle;
use crate::wire::WireError;

/// Time that a chunk runs before its worker looks at the transport in between, ns; and number of handlers between two
/// readings of the clock where no time is measured, and they are not long.
const RUN_NS_MAX: u64 = 50_000;
const RUN_HANDLERS: u64 = 8;
/// The same between runs of chunks: short ones share a look.
const LOOK_EVERY_NS: u64 = 1_000;
const LOOK_EVERY_HANDLERS: u64 = 4;

/// One thread of a rank.
pub(crate) struct Worker<'r> {
    pub(super) shared: &'r RankShared,
    pub(super) id: WorkerId,
    pub(super) mailroom: Mailroom<'r>,
    pub(super) patience: Patience,
    pub(super) outgoing: Outgoing,
    pub(super) gateway: Gateway<'r>,
    pub(super) timers: Timers,
    /// The sync that is being decided while this worker goes on.
    pub(super) question: Option<Arc<Question>>,
    /// There is something to look at between two runs of chunks: a transport, a timer, or a sync that is being decided.
    pub(super) looks_around: bool,
    pub(super) instruments: Instruments<'r>,
    pub(super) simulated: Simulated,
    /// Empty; kept for its memory.
    pub(super) actions: Actions,
}

/// The state of a chunk after the effects of its handler: still there or not, or one that has ended the run half way and
/// handles nothing more.
#[derive(PartialEq)]
enum Fate {
    Stays,
    Removed,
    Ended,
}

impl<'r> Worker<'r> {
    pub(crate) fn new(
        shared: &'r RankShared,
        id: WorkerId,
        ready: Ready<'r>,
        transport: Option<TransportHandle<'r, Packet>>,
    ) -> Worker<'r> {
        let instruments = Instruments::new(shared, id);
        let gateway = Gateway::new(shared, transport);
        Worker {
            shared,
            id,
            mailroom: Mailroom::new(shared, id, ready),
            patience: Patience::new(),
            outgoing: Outgoing::new(
                shared.scheduler.lone(),
                shared.arrays.len(),
                shared.wire || instruments.keeps_events(),
            ),
            timers: Timers::default(),
            question: None,
            looks_around: gateway.drives(),
            gateway,
            instruments,
            simulated: Simulated::default(),
            actions: Actions::new(),
        }
    }

    /// An outbox for the handlers that it runs.
    pub(crate) fn outbox(&self) -> Outbox {
        Outbox::of(self.instruments.in_hand().clone())
    }

    /// Runs ready chunks, so many at most, until there is something to look at in between. Says how many.
    pub(crate) fn steps(&mut self, most: u32, outbox: &mut Outbox) -> u32 {
        let mut steps = 0;
        while steps < most
            && let Some((id, cell)) = self.mailroom.find().or_else(|| self.find_seed())
        {
            self.run(id, cell, outbox);
            steps += 1;
            if (self.looks_around && !self.has_just_looked()) || self.shared.scheduler.stopped() {
                break;
            }
        }
        steps
    }

    /// Runs the chunk whose token this is, for mail that it has now.
    #[inline(always)]
    fn run(&mut self, id: CellId, cell: &'r Cell, outbox: &mut Outbox) {
        let shared = self.shared;
        if shared.backlog.is_tight() && self.parks(id) {
            return;
        }
        let (chunk, mut slot, mut mail) = match cell.mailbox.begin() {
            Begun::Run(chunk, slot, mail) => (chunk, slot, mail),
            Begun::Start(chunk, slot, mut mail) => {
                mail.push(outbox.blanks.write(chunk, Sender::RUNTIME, 0, || Payload::Start));
                (chunk, slot, mail)
            }
            Begun::Held => return self.held(),
        };
        if !shared.scheduler.lone() {
            self.mailroom.show_newest();
            if cell.runs_on(self.id) {
                // Its last handler, on another worker, may have ended a moment ago.
                self.instruments.begin_anew();
            }
        }
        self.instruments.turn_to(chunk, id, cell);
        let left = self.simulated.mix(&mut mail, || cell.mailbox.take_newer());
        if self.handle(chunk, &mut *slot, &mut mail, left, outbox, id) == Fate::Removed {
            return self.vacate(chunk, id, slot, mail);
        }
        match cell.mailbox.finish(slot, mail) {
            Finished::Idle => {}
            Finished::Token => self.mailroom.put(id, cell),
            Finished::Held => self.held(),
        }
    }

    /// A chunk that is to leave has come to rest.
    #[cold]
    fn held(&mut self) {
        self.with_core(|core, now_ns, out| core.held(now_ns, out));
    }

    /// Handles so many messages at most. Each is a function (state, message) -> (state, outbox), flushed before the next.
    #[inline]
    fn handle(
        &mut self,
        chunk: ChunkId,
        slot: &mut dyn ErasedSlot,
        mail: &mut Mail,
        mut left: usize,
        outbox: &mut Outbox,
        cell: CellId,
    ) -> Fate {
        let facts = &self.shared.facts;
        while left > 0
            && let Some(mut letter) = mail.next()
        {
            left -= 1;
            self.count_out(letter.message.bytes);
            self.instruments.begin();
            if let Err(why) = slot.deliver(&mut letter.message, &mut Handler { outbox, facts, outlet: self })
            {
                self.fail_to_decode(chunk, &why);
                return Fate::Stays;
            }
            outbox.blanks.keep(letter);
            let more = !mail.is_empty();
            if outbox.has_only_letters() {
                self.send_letters(outbox);
                self.instruments.lap(more);
            } else {
                let fate = self.carry_out_all(chunk, slot, mail, outbox, cell);
                self.instruments.lap(more && fate == Fate::Stays);
                match fate {
                    Fate::Stays => {}
                    Fate::Removed => return fate,
                    Fate::Ended => return Fate::Stays,
                }
            }
            if self.mailroom.account.is_pressed() {
                self.instruments.pause();
                self.press(cell);
                return Fate::Stays;
            }
            if !more {
                return Fate::Stays;
            }
            self.mailroom.show_newest();
            if self.looks_around && self.has_run_long() {
                self.look_around(chunk, cell, &mut outbox.blanks);
                if self.shared.scheduler.stopped() {
                    return Fate::Stays;
                }
            }
        }
        Fate::Stays
    }

    #[cold]
    fn fail_to_decode(&mut self, chunk: ChunkId, why: &WireError) {
        let what = format!("a message to {}", self.describe(chunk));
        self.fail(Error::Wire { rank: self.shared.facts.rank, what, why: why.to_string() });
    }

    /// Tells whether it is time to look around, though the chunk that runs has more mail.
    #[inline]
    fn has_run_long(&mut self) -> bool {
        let reads = || self.gateway.looks_rarely() || self.instruments.handled().is_multiple_of(RUN_HANDLERS);
        (self.instruments.last_ns().is_some() || reads())
            && self.instruments.time_ns() >= self.gateway.next_look_ns(RUN_NS_MAX)
    }

    /// Tells whether there is anything to look at between two runs of chunks.
    pub(super) fn must_look_around(&self) -> bool {
        self.gateway.drives() || self.timers.next_ns().is_some() || self.has_question()
    }

    /// Tells whether a look around would come so soon after the last that it costs more than what it finds, and less of
    /// what leaves would leave together.
    #[inline]
    pub(super) fn has_just_looked(&self) -> bool {
        match self.instruments.last_ns() {
            Some(last_ns) => last_ns < self.gateway.next_look_ns(LOOK_EVERY_NS),
            None => {
                !self.gateway.looks_rarely()
                    && !self.instruments.handled().is_multiple_of(LOOK_EVERY_HANDLERS)
            }
        }
    }

    /// Sends and receives in the middle of a run.
    #[cold]
    fn look_around(&mut self, chunk: ChunkId, id: CellId, blanks: &mut Blanks) {
        self.instruments.pause();
        self.progress(blanks);
        self.instruments.turn_to(chunk, id, self.shared.cells.get(id));
    }

    /// Hop 2, the flush, of a handler that has returned and left only letters, as most do.
    #[inline]
    fn send_letters(&mut self, outbox: &mut Outbox) {
        for letter in outbox.take_letters() {
            self.send(letter, &mut outbox.blanks);
        }
    }

    /// The flush of one that has left effects too: carries out all, in order.
    #[inline(never)]
    fn carry_out_all(
        &mut self,
        chunk: ChunkId,
        slot: &mut dyn ErasedSlot,
        mail: &mut Mail,
        outbox: &mut Outbox,
        cell: CellId,
    ) -> Fate {
        let mut fate = Fate::Stays;
        let (effects, blanks) = outbox.effects_and_blanks();
        for (before, effect) in effects {
            self.send_all(before, blanks);
            if let Effect::GoOnWithKept = effect {
                mail.push(blanks.write(chunk, Sender::RUNTIME, 0, || Payload::Kept));
                continue;
            }
            match self.carry_out(effect, chunk, slot, cell) {
                Fate::Stays => {}
                Fate::Removed => fate = Fate::Removed,
                Fate::Ended => return Fate::Ended,
            }
        }
        outbox.shrink();
        self.share_seeds();
        let behind = outbox.take_letters();
        self.send_all(behind, &mut outbox.blanks);
        fate
    }

    /// Carries out one effect of the chunk that runs.
    fn carry_out(&mut self, effect: Effect, chunk: ChunkId, slot: &mut dyn ErasedSlot, cell: CellId) -> Fate {
        match effect {
            Effect::SendAtQuiescence(letter) => self.send_at_quiescence(letter),
            Effect::SendAfter { delay, letter } => self.send_after(delay, letter),
            Effect::Broadcast { .. } | Effect::Multicast { .. } => self.spread(chunk, effect),
            Effect::Contribute { agreement, values, step } => {
                self.contribute(chunk, slot, agreement, values, step);
            }
            Effect::ContributeIn(contribution) => self.contribute_in(chunk, *contribution),
            Effect::AbstainUntil(step) => self.abstain_until(chunk, slot, step),
            Effect::LeaveReductions => self.leave_reductions(chunk, slot),
            Effect::Insert { key, slot: child } => {
                self.insert(ChunkId { array: chunk.array, key }, child, slot);
            }
            Effect::InsertRoot { chunk, slot } => self.insert_root(chunk, slot),
            Effect::Spawn(child) => self.spawn(chunk.array, slot.passport(), child),
            Effect::AtSync { bytes } => self.at_sync(chunk, slot, cell, bytes),
            Effect::Remove => {
                let passport = slot.passport();
                self.with_core(|core, _, out| core.remove(chunk, passport, out));
                return Fate::Removed;
            }
            Effect::GoOnWithKept => unreachable!("it goes before the rest of the mail"),
            Effect::Exit(value) => {
                value.into_iter().for_each(|value| self.shared.ending.yields(*value));
                self.with_core(|core, _, out| core.exit(out));
            }
            Effect::Fail(why) => {
                let (rank, chunk) = (self.shared.facts.rank, self.describe(chunk));
                self.fail(Error::Program { rank, chunk, why: why.into() });
                return Fate::Ended;
            }
        }
        Fate::Stays
    }

    fn at_sync(&mut self, chunk: ChunkId, slot: &mut dyn ErasedSlot, cell: CellId, bytes: u64) {
        let array = &self.shared.arrays[chunk.array.index()];
        assert!(array.syncs(), "chunks of an array without sync do not call at_sync");
        self.instruments.lap(false);
        let declared = slot.declared_load();
        let migratable = slot.migratable();
        let passport = slot.passport();
        let report = passport.syncs.report();
        let declared = passport.charged.take().or(declared);
        let wish = passport.wish.take();
        let stands = !passport.goes_on();
        let arrival = Arrival { chunk, cell, report, declared, bytes, migratable, wish, stands };
        let mut waits = true;
        // It may have come without having read what it kept at the last.
        let kept_bytes = slot.kept_bytes();
        self.with_core(|core, _, out| {
            waits = core.at_sync(arrival, out);
            core.keeps(SyncId(report.sequence), kept_bytes);
        });
        if !waits {
            let resume = Delivery::by_runtime(Payload::Resume);
            let refused = self.mailroom.push(cell, Letter::new(chunk, resume), By::Core);
            assert!(refused.is_none(), "a chunk that runs is in its cell");
        }
    }

    /// Gives back the cell of a chunk that was removed. Mail it did not handle is counted and dropped: it was for this
    /// chunk, and not for the next of its index.
    #[cold]
    fn vacate(&mut self, chunk: ChunkId, id: CellId, slot: Box<dyn ErasedSlot>, mail: Mail) {
        let kept_bytes = slot.kept_bytes();
        let (kept, newer) = (slot.into_kept(), self.shared.cells.get(id).mailbox.vacate());
        self.press_nobody();
        self.count_out(kept_bytes + bytes_of(&mail) + bytes_of(&newer));
        let unread = kept.into_iter().chain(mail.into_messages()).chain(newer.into_messages());
        // Broadcasts and results for all have no number: they are for whoever is there.
        let own = unread.filter(|delivery| delivery.from.number > 0);
        let array = &self.shared.arrays[chunk.array.index()];
        let kinds: Vec<_> = own.map(|delivery| array.kind(&delivery.payload)).collect();
        self.shared.cells.free(id);
        if !kinds.is_empty() {
            self.with_core(|core, _, _| core.unread(chunk, kinds));
        }
    }

    pub(crate) fn describe(&self, chunk: ChunkId) -> String {
        if chunk == RUNTIME { "the runtime".into() } else { self.shared.plane.lock().rank.describe(chunk) }
    }
}

impl Outlet for Worker<'_> {
    fn flush(&mut self, outbox: &mut Outbox) {
        if let Some(recorder) = self.instruments.recorder() {
            recorder.flushes();
        }
        let (chunk, mut all) = (outbox.in_hand.chunk.get(), outbox.take().peekable());
        let leaves_now = |left: &Left| {
            matches!(
                left,
                Left::Letter(_) | Left::Effect(Effect::Broadcast { .. } | Effect::Multicast { .. })
            )
        };
        while let Some(left) = all.next_if(leaves_now) {
            match left {
                Left::Letter(letter) => self.send_one(letter, &mut outbox.blanks),
                Left::Effect(spread) => self.spread(chunk, spread),
            }
        }
        all.for_each(|left| outbox.put_back(left));
        self.gateway.idle();
        // This worker is busy for longer: somebody else should run what it has just made ready.
        self.mailroom.show_newest();
    }

    fn sends(&mut self, outbox: &mut Outbox) -> bool {
        let sends = outbox.has_only_letters();
        if sends && outbox.has_letters() {
            if let Some(recorder) = self.instruments.recorder() {
                recorder.flushes();
            }
            let letters = outbox.take_letters();
            self.send_all(letters, &mut outbox.blanks);
            self.mailroom.show_newest();
        }
        sends
    }

    fn stops(&self) -> bool {
        self.mailroom.account.is_pressed()
    }

    fn keeps(&mut self, sync: SyncId, bytes: u64) {
        self.mailroom.count_in(bytes, By::Core);
        self.shared.plane.lock().rank.keeps(sync, bytes);
    }

    fn reads(&mut self, passed: Option<SyncId>, bytes: u64) {
        if let Some(sync) = passed {
            self.shared.plane.lock().rank.reads(sync, bytes);
        }
        self.count_out(bytes);
    }

    fn frees(&mut self) {
        if self.shared.backlog.is_full() {
            self.tell();
        }
    }

    fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }

    fn names(&mut self, kind: &'static str) {
        self.instruments.names(kind);
    }

    fn tell(&mut self, event: UserEvent) {
        self.instruments.tell(event);
    }

    fn writes(&self) -> bool {
        self.shared.record.recording().has_file()
    }

    fn steps(&mut self, steps: &[StepRecord]) {
        self.shared.record.recording().steps(steps);
    }

    fn stepped(&mut self, update: &mut dyn FnMut(&mut StepsSoFar)) {
        self.shared.record.recording().stepped(update);
    }

    fn charge(&mut self, ticks_ns: u64) {
        self.simulated.charge(ticks_ns);
    }
}
