//! A worker: finds a ready chunk, runs its handlers, carries out their effects.
//!
//! One turn of a worker is the program in small:
//!
//! ```text
//! find a ready entry -> begin -> for each message: deliver, flush, lap -> finish -> poll
//! ```
//!
//! `flush` is hop 2 of the way from `send` to `receive`; the others are [`Ctx::send`](crate::Ctx::send) (1),
//! [`Transport`](crate::transport::Transport) send and poll (3), [`Mailbox::push`](super::mailbox::Mailbox::push) (4) and
//! [`Slot::deliver`](crate::arrays::api::slot::Slot) (5).

use std::sync::Arc;

use super::cells::Cell;
use super::deciding::PendingDecision;
use super::instruments::Instruments;
use super::local_delivery::LocalDelivery;
use super::mailbox::{BeginOutcome, FinishOutcome, PushedBy};
use super::ready::ReadyQueue;
use super::remote_sender::RemoteSender;
use super::sending::SendState;
use super::shared::RankShared;
use super::simulated::Simulated;
use super::spin_policy::SpinPolicy;
use super::timers::Timers;
use super::watermarks::bytes_of;
use crate::arrays::core::command::Commands;
use crate::arrays::core::lifecycle::erased::ErasedSlot;
use crate::arrays::core::lifecycle::handler::{Effect, Handler, HandlerHost};
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::envelope::{Delivery, Payload};
use crate::arrays::core::routing::message_list::{FreeList, MessageList, MessageNode, Outbox, OutboxEntry};
use crate::arrays::core::sync::sync_arrivals::SyncArrival;
use crate::error::Error;
use crate::ids::{CellId, ChunkId, RUNTIME, Sender, SyncId, WorkerId};
use crate::trace::{StepRecord, StepsSoFar, UserEvent};
use crate::transport::handle::TransportHandle;
use crate::wire::WireError;

/// Time that a chunk runs before its worker polls the transport in the middle of the run, ns.
const RUN_NS_MAX: u64 = 50_000;
/// Number of short handlers in a run between two readings of the clock, where handlers are not measured.
const RUN_HANDLERS: u64 = 8;
/// Time between two polls that separate runs of chunks, ns: short runs share a poll.
const POLL_EVERY_NS: u64 = 1_000;
/// Number of short handlers between two such polls, where handlers are not measured.
const POLL_EVERY_HANDLERS: u64 = 4;

/// One thread of a rank.
pub(crate) struct Worker<'r> {
    pub(super) shared: &'r RankShared,
    pub(super) id: WorkerId,
    pub(super) local_delivery: LocalDelivery<'r>,
    pub(super) spin_policy: SpinPolicy,
    pub(super) send_state: SendState,
    pub(super) remote_sender: RemoteSender<'r>,
    pub(super) timers: Timers,
    /// The sync that is being decided while this worker goes on.
    pub(super) pending_decision: Option<Arc<PendingDecision>>,
    /// There is something to look at between two runs of chunks: a transport, a timer, or a sync that is being decided.
    pub(super) polls: bool,
    pub(super) instruments: Instruments<'r>,
    pub(super) simulated: Simulated,
    /// Empty; kept for its memory.
    pub(super) commands: Commands,
}

/// The state of a chunk after the effects of its handler: still there or not, or one that has ended the run half way and
/// handles nothing more.
#[derive(PartialEq)]
enum HandlerOutcome {
    Stays,
    Removed,
    Ended,
}

impl<'r> Worker<'r> {
    pub(crate) fn new(
        shared: &'r RankShared,
        id: WorkerId,
        ready: ReadyQueue<'r>,
        transport: Option<TransportHandle<'r, Packet>>,
    ) -> Worker<'r> {
        let instruments = Instruments::new(shared, id);
        let remote_sender = RemoteSender::new(shared, transport);
        Worker {
            shared,
            id,
            local_delivery: LocalDelivery::new(shared, id, ready),
            spin_policy: SpinPolicy::new(),
            send_state: SendState::new(
                shared.scheduler.lone(),
                shared.arrays.len(),
                shared.wire || instruments.keeps_events(),
            ),
            timers: Timers::default(),
            pending_decision: None,
            polls: remote_sender.has_transport(),
            remote_sender,
            instruments,
            simulated: Simulated::default(),
            commands: Commands::default(),
        }
    }

    /// An outbox for the handlers that it runs.
    pub(crate) fn outbox(&self) -> Outbox {
        Outbox::of(self.instruments.activity().clone())
    }

    /// Runs at most `runs_max` ready chunks; returns early when a poll is due. Returns the number of runs.
    pub(crate) fn run_ready(&mut self, runs_max: u32, outbox: &mut Outbox) -> u32 {
        let mut runs = 0;
        while runs < runs_max
            && let Some((id, cell)) = self.local_delivery.find().or_else(|| self.find_seed())
        {
            self.run(id, cell, outbox);
            runs += 1;
            if (self.polls && !self.has_just_polled()) || self.shared.scheduler.stopped() {
                break;
            }
        }
        runs
    }

    /// Runs the chunk whose entry this is, for mail that it has now.
    #[inline(always)]
    fn run(&mut self, id: CellId, cell: &'r Cell, outbox: &mut Outbox) {
        let shared = self.shared;
        if shared.watermarks.may_block() && self.park_if_blocked(id) {
            return;
        }
        let (chunk, mut slot, mut mail) = match cell.mailbox.begin() {
            BeginOutcome::Run(chunk, slot, mail) => (chunk, slot, mail),
            BeginOutcome::Start(chunk, slot, mut mail) => {
                mail.push(outbox.free_list.fill(chunk, Sender::RUNTIME, 0, || Payload::Start));
                (chunk, slot, mail)
            }
            BeginOutcome::Held => return self.held(),
        };
        if !shared.scheduler.lone() {
            self.local_delivery.share_newest();
            if cell.count_run(self.id) {
                // Its last handler, on another worker, may have ended a moment ago.
                self.instruments.restart_clock();
            }
        }
        self.instruments.turn_to(chunk, id, cell);
        let left = self.simulated.shuffle(&mut mail, || cell.mailbox.take_newer());
        if self.handle(chunk, &mut *slot, &mut mail, left, outbox, id) == HandlerOutcome::Removed {
            return self.vacate(chunk, id, slot, mail);
        }
        if !cell.facts.are_known() {
            cell.facts.learn(&mut *slot);
        }
        match cell.mailbox.finish(slot, mail) {
            FinishOutcome::Idle => {}
            FinishOutcome::Ready => self.local_delivery.enqueue_ready(id, cell),
            FinishOutcome::Held => self.held(),
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
        mail: &mut MessageList,
        mut left: usize,
        outbox: &mut Outbox,
        cell: CellId,
    ) -> HandlerOutcome {
        let info = &self.shared.info;
        while left > 0
            && let Some(mut node) = mail.next()
        {
            left -= 1;
            self.count_out(node.message.bytes);
            self.instruments.begin();
            if let Err(why) = slot.deliver(&mut node.message, &mut Handler { outbox, info, host: self }) {
                self.fail_to_decode(chunk, &why);
                return HandlerOutcome::Stays;
            }
            outbox.free_list.recycle(node);
            let more = !mail.is_empty();
            if outbox.has_only_messages() {
                self.flush_messages(outbox);
                self.instruments.lap(more);
            } else {
                let outcome = self.carry_out_all(chunk, slot, mail, outbox, cell);
                self.instruments.lap(more && outcome == HandlerOutcome::Stays);
                match outcome {
                    HandlerOutcome::Stays => {}
                    HandlerOutcome::Removed => return outcome,
                    HandlerOutcome::Ended => return HandlerOutcome::Stays,
                }
            }
            if self.local_delivery.gauge.is_blocked() {
                self.instruments.pause();
                self.block(cell);
                return HandlerOutcome::Stays;
            }
            if !more {
                return HandlerOutcome::Stays;
            }
            self.local_delivery.share_newest();
            if self.polls && self.has_run_long() {
                self.poll_amid_run(chunk, cell, &mut outbox.free_list);
                if self.shared.scheduler.stopped() {
                    return HandlerOutcome::Stays;
                }
            }
        }
        HandlerOutcome::Stays
    }

    #[cold]
    fn fail_to_decode(&mut self, chunk: ChunkId, why: &WireError) {
        let what = format!("a message to {}", self.describe(chunk));
        self.fail(Error::Wire { rank: self.shared.info.rank, what, why: why.to_string() });
    }

    /// Tells whether a poll is due although the running chunk has more messages.
    #[inline]
    fn has_run_long(&mut self) -> bool {
        let reads =
            || self.remote_sender.polls_rarely() || self.instruments.handled().is_multiple_of(RUN_HANDLERS);
        (self.instruments.last_ns().is_some() || reads())
            && self.instruments.time_ns() >= self.remote_sender.next_poll_ns(RUN_NS_MAX)
    }

    /// Tells whether there is anything to poll between two runs of chunks.
    pub(super) fn has_polls(&self) -> bool {
        self.remote_sender.has_transport() || self.timers.next_ns().is_some() || self.has_question()
    }

    /// Tells whether a poll now would cost more than it finds, so soon after the last, and would split outgoing batches.
    #[inline]
    pub(super) fn has_just_polled(&self) -> bool {
        match self.instruments.last_ns() {
            Some(last_ns) => last_ns < self.remote_sender.next_poll_ns(POLL_EVERY_NS),
            None => {
                !self.remote_sender.polls_rarely()
                    && !self.instruments.handled().is_multiple_of(POLL_EVERY_HANDLERS)
            }
        }
    }

    /// Sends and receives in the middle of a run.
    #[cold]
    fn poll_amid_run(&mut self, chunk: ChunkId, id: CellId, free_list: &mut FreeList) {
        self.instruments.pause();
        self.progress(free_list);
        self.instruments.turn_to(chunk, id, self.shared.cells.get(id));
    }

    /// Hop 2, the flush, of a handler that has returned and left only nodes, as most do.
    #[inline]
    fn flush_messages(&mut self, outbox: &mut Outbox) {
        for node in outbox.take_messages() {
            self.send(node, &mut outbox.free_list);
        }
    }

    /// The flush of one that has left effects too: carries out all, in order.
    #[inline(never)]
    fn carry_out_all(
        &mut self,
        chunk: ChunkId,
        slot: &mut dyn ErasedSlot,
        mail: &mut MessageList,
        outbox: &mut Outbox,
        cell: CellId,
    ) -> HandlerOutcome {
        let mut outcome = HandlerOutcome::Stays;
        let (effects, free_list) = outbox.effects_and_free_list();
        for (before, effect) in effects {
            self.send_all(before, free_list);
            if let Effect::HandleDeferred = effect {
                mail.push(free_list.fill(chunk, Sender::RUNTIME, 0, || Payload::Deferred));
                continue;
            }
            match self.carry_out(effect, chunk, slot, cell) {
                HandlerOutcome::Stays => {}
                HandlerOutcome::Removed => outcome = HandlerOutcome::Removed,
                HandlerOutcome::Ended => return HandlerOutcome::Ended,
            }
        }
        outbox.shrink();
        self.share_seeds();
        let behind = outbox.take_messages();
        self.send_all(behind, &mut outbox.free_list);
        outcome
    }

    /// Carries out one effect of the chunk that runs.
    fn carry_out(
        &mut self,
        effect: Effect,
        chunk: ChunkId,
        slot: &mut dyn ErasedSlot,
        cell: CellId,
    ) -> HandlerOutcome {
        match effect {
            Effect::SendAtQuiescence(node) => self.send_at_quiescence(node),
            Effect::SendAfter { delay, node } => self.send_after(delay, node),
            Effect::Broadcast { .. } | Effect::Multicast { .. } => self.spread(chunk, effect),
            Effect::Contribute { spec, values, step } => {
                self.contribute(chunk, slot, spec, values, step);
            }
            Effect::ContributeIn(contribution) => self.contribute_in(chunk, *contribution),
            Effect::AbstainUntil(step) => self.abstain_until(chunk, slot, step),
            Effect::LeaveReductions => self.leave_reductions(chunk, slot),
            Effect::Insert { key, slot: child } => {
                self.insert(ChunkId { array: chunk.array, key }, child, slot);
            }
            Effect::InsertRoot { chunk, slot } => self.insert_root(chunk, slot),
            Effect::Spawn(child) => self.spawn(chunk.array, slot.record(), child),
            Effect::AtSync { bytes } => self.at_sync(chunk, slot, cell, bytes),
            Effect::Remove => {
                let record = slot.record();
                self.with_core(|core, _, out| core.remove(chunk, record, out));
                return HandlerOutcome::Removed;
            }
            Effect::HandleDeferred => unreachable!("it goes before the rest of the mail"),
            Effect::Exit(value) => {
                value.into_iter().for_each(|value| self.shared.ending.set_exit_value(*value));
                self.with_core(|core, _, out| core.exit(out));
            }
            Effect::Fail(why) => {
                let (rank, chunk) = (self.shared.info.rank, self.describe(chunk));
                self.fail(Error::Program { rank, chunk, why: why.into() });
                return HandlerOutcome::Ended;
            }
        }
        HandlerOutcome::Stays
    }

    fn at_sync(&mut self, chunk: ChunkId, slot: &mut dyn ErasedSlot, cell: CellId, bytes: u64) {
        let array = &self.shared.arrays[chunk.array.index()];
        assert!(array.syncs(), "chunks of an array without sync do not call at_sync");
        if self.shared.info.by_windows {
            return self.pass_sync(chunk, slot, cell);
        }
        self.instruments.lap(false);
        let declared = slot.declared_load();
        let migratable = slot.migratable();
        let record = slot.record();
        let report = record.syncs.report();
        let declared = record.charged.take().or(declared);
        let wish = record.wish.take();
        let paused = !record.is_runnable();
        let arrival = SyncArrival { chunk, cell, report, declared, bytes, migratable, wish, paused };
        let mut waits = true;
        // It may have come without having read what it kept at the last.
        let kept_bytes = slot.deferred_bytes();
        self.with_core(|core, _, out| {
            waits = core.at_sync(arrival, out);
            core.defer(SyncId(report.sequence), kept_bytes);
        });
        if !waits {
            self.resume(chunk, cell);
        }
    }

    /// A chunk comes to a sync of a run that balances in windows: it resumes at once.
    #[cold]
    fn pass_sync(&mut self, chunk: ChunkId, slot: &mut dyn ErasedSlot, cell: CellId) {
        let record = slot.record();
        record.syncs.report();
        if let Some(rank) = record.wish.take() {
            self.shared.cells.get(cell).facts.wish(rank);
        }
        self.resume(chunk, cell);
    }

    /// Lets the chunk that runs resume after its handler.
    fn resume(&mut self, chunk: ChunkId, cell: CellId) {
        let resume = Delivery::by_runtime(Payload::Resume);
        let refused = self.local_delivery.push(cell, MessageNode::new(chunk, resume), PushedBy::Core);
        assert!(refused.is_none(), "a chunk that runs is in its cell");
    }

    /// Gives back the cell of a chunk that was removed. Messages that it did not handle are counted and dropped: they were for
    /// this chunk, and not for the next of its index.
    #[cold]
    fn vacate(&mut self, chunk: ChunkId, id: CellId, slot: Box<dyn ErasedSlot>, mail: MessageList) {
        let kept_bytes = slot.deferred_bytes();
        let (kept, newer) = (slot.into_deferred(), self.shared.cells.get(id).mailbox.vacate());
        self.clear_blocked();
        self.count_out(kept_bytes + bytes_of(&mail) + bytes_of(&newer));
        let unread = kept.into_iter().chain(mail.into_messages()).chain(newer.into_messages());
        // Broadcasts and results for all have no number: a chunk that is gone does not miss them.
        let own = unread.filter(|delivery| delivery.from.number > 0);
        let array = &self.shared.arrays[chunk.array.index()];
        let kinds: Vec<_> = own.map(|delivery| array.kind(&delivery.payload)).collect();
        self.shared.cells.free(id);
        if !kinds.is_empty() {
            self.with_core(|core, _, _| core.unread(chunk, kinds));
        }
    }

    pub(crate) fn describe(&self, chunk: ChunkId) -> String {
        if chunk == RUNTIME {
            "the runtime".into()
        } else {
            self.shared.control_plane.lock().rank.describe(chunk)
        }
    }
}

impl HandlerHost for Worker<'_> {
    fn flush(&mut self, outbox: &mut Outbox) {
        if let Some(recorder) = self.instruments.recorder() {
            recorder.flushes();
        }
        let (chunk, mut all) = (outbox.activity.chunk.get(), outbox.take().peekable());
        let leaves_now = |left: &OutboxEntry| {
            matches!(
                left,
                OutboxEntry::Message(_)
                    | OutboxEntry::Effect(Effect::Broadcast { .. } | Effect::Multicast { .. })
            )
        };
        while let Some(left) = all.next_if(leaves_now) {
            match left {
                OutboxEntry::Message(node) => self.send_early(node, &mut outbox.free_list),
                OutboxEntry::Effect(spread) => self.spread(chunk, spread),
            }
        }
        all.for_each(|left| outbox.put_back(left));
        self.remote_sender.idle();
        // This worker is busy for longer: somebody else should run what it has just made ready.
        self.local_delivery.share_newest();
    }

    fn send_messages(&mut self, outbox: &mut Outbox) -> bool {
        let sends = outbox.has_only_messages();
        if sends && outbox.has_messages() {
            if let Some(recorder) = self.instruments.recorder() {
                recorder.flushes();
            }
            let nodes = outbox.take_messages();
            self.send_all(nodes, &mut outbox.free_list);
            self.local_delivery.share_newest();
        }
        sends
    }

    fn is_blocked(&self) -> bool {
        self.local_delivery.gauge.is_blocked()
    }

    fn defer(&mut self, sync: SyncId, bytes: u64) {
        self.local_delivery.count_in(bytes, PushedBy::Core);
        self.shared.control_plane.lock().rank.defer(sync, bytes);
    }

    fn read_deferred(&mut self, passed: Option<SyncId>, bytes: u64) {
        if let Some(sync) = passed {
            self.shared.control_plane.lock().rank.read_deferred(sync, bytes);
        }
        self.count_out(bytes);
    }

    fn shared_message_read(&mut self) {
        if self.shared.watermarks.is_full() {
            self.report_bytes();
        }
    }

    fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }

    fn set_kind(&mut self, kind: &'static str) {
        self.instruments.set_kind(kind);
    }

    fn record_event(&mut self, event: UserEvent) {
        self.instruments.tell(event);
    }

    fn is_traced(&self) -> bool {
        self.shared.measurements.recording().has_file()
    }

    fn record_steps(&mut self, steps: &[StepRecord]) {
        self.shared.measurements.recording().steps(steps);
    }

    fn update_steps(&mut self, update: &mut dyn FnMut(&mut StepsSoFar)) {
        self.shared.measurements.recording().stepped(update);
    }

    fn charge(&mut self, ticks_ns: u64) {
        self.simulated.charge(ticks_ns);
        if self.shared.info.by_windows {
            self.instruments.charge_declared(ticks_ns);
        }
    }
}
