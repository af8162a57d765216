//! Carries out the requests of a handler: calls that run at once ([`HandlerHost`]), and effects after it has returned.

use super::mailbox::PushedBy;
use super::worker::{HandlerOutcome, Worker};
use crate::arrays::core::lifecycle::erased::ErasedSlot;
use crate::arrays::core::lifecycle::handler::{Effect, HandlerHost};
use crate::arrays::core::routing::envelope::Payload;
use crate::arrays::core::routing::message_list::{MessageList, Outbox, OutboxEntry};
use crate::error::Error;
use crate::ids::{CellId, ChunkId, Sender, SyncId};
use crate::trace::{StepRecord, StepsSoFar, UserEvent};
use crate::warn::tell;

impl Worker<'_> {
    /// Hop 2, the flush, for a handler that has left effects: applies the effects and sends the messages, in order.
    #[inline(never)]
    pub(super) fn apply_effects(
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
            match self.apply_effect(effect, chunk, slot, cell) {
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

    fn apply_effect(
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
            Effect::Checkpoint if self.shared.checkpoints.is_some() => {
                self.with_core(|core, now_ns, out| core.ask_for_checkpoint(now_ns, out));
            }
            Effect::Checkpoint => {}
            Effect::Resize(active) => {
                self.with_core(|core, now_ns, out| core.resize(active, now_ns, out));
            }
            Effect::Exit(value) => {
                value.into_iter().for_each(|value| self.shared.ending.set_exit_value(*value));
                self.with_core(|core, _, out| core.exit(out));
            }
            Effect::End(error) => {
                self.fail(*error);
                return HandlerOutcome::Ended;
            }
            Effect::Fail(why) => {
                let (rank, chunk) = (self.shared.info.rank, self.describe(chunk));
                self.fail(Error::Program { rank, chunk, why: why.into() });
                return HandlerOutcome::Ended;
            }
        }
        HandlerOutcome::Stays
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
        // This worker stays busy, so another worker should run the newest entry.
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

    fn take_resize(&mut self) -> Option<u32> {
        self.shared.resizes.as_ref()?.take()
    }

    fn resize_ended(&mut self, active: u32, line: &str) {
        if let Some(requests) = &self.shared.resizes {
            requests.set_active(active);
        }
        if !self.shared.clock.is_virtual() {
            tell(line);
        }
    }

    fn charge(&mut self, ticks_ns: u64) {
        self.simulated.charge(ticks_ns);
        if self.shared.info.by_windows {
            self.instruments.charge_declared(ticks_ns);
        }
    }
}
