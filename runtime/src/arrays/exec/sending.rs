//! Sends messages: hop 2 finds the mailbox or the rank, hop 4 is the push, and a push that made a token queues it.

use std::ops::DerefMut;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::in_hand::InHand;
use super::mailbox::{By, Pushed};
use super::plane::Core;
use super::worker::Worker;
use crate::arrays::core::envelope::{Delivery, Envelope, Payload};
use crate::arrays::core::handler::Effect;
use crate::arrays::core::location::Route;
use crate::arrays::core::packet::Packet;
use crate::ids::{CellId, ChunkId, Sender, WorkerId};
use crate::wire::codec::Codec;

/// Buffers of mailboxes kept for reuse.
const SPARES_MAX: usize = 256;

/// The state of a worker for sending.
pub(crate) struct Outgoing {
    /// Buffers for mailboxes that have none.
    spares: Vec<Vec<Delivery>>,
    /// Cells of chunks of this rank, as far as this worker knows; a refused push corrects it. Unused by a lone worker.
    known: FxHashMap<ChunkId, CellId>,
    /// Messages are recorded, or forced through the encoder, when they are sent.
    looks_at_sends: bool,
}

impl Outgoing {
    pub(crate) fn new(looks_at_sends: bool) -> Outgoing {
        Outgoing { spares: Vec::new(), known: FxHashMap::default(), looks_at_sends }
    }

    /// Keeps the buffer of a mailbox whose mail was handled.
    #[inline]
    pub(crate) fn keep_buffer(&mut self, mail: Vec<Delivery>) {
        if self.spares.len() < SPARES_MAX && mail.capacity() > 0 {
            self.spares.push(mail);
        }
    }
}

impl Worker<'_> {
    #[inline]
    pub(super) fn send(&mut self, to: ChunkId, delivery: &mut Option<Delivery>) {
        tracing::trace!(hop = 2, "Worker::flush");
        if self.outgoing.looks_at_sends && !self.look_at_send(to, delivery) {
            return;
        }
        self.send_on(to, delivery);
    }

    /// Sends a message that was looked at.
    #[inline(always)]
    fn send_on(&mut self, to: ChunkId, delivery: &mut Option<Delivery>) {
        let lone = self.shared.scheduler.lone();
        if lone || !self.push_to_known(to, delivery) {
            self.look_up_and_push(lone, to, delivery);
        }
    }

    /// Asks the routes, and pushes if the chunk is here.
    #[inline]
    fn look_up_and_push(&mut self, lone: bool, to: ChunkId, delivery: &mut Option<Delivery>) {
        let shared = self.shared;
        let core = shared.plane.lock();
        let route = core.rank.location.route(to);
        let Route::Here(cell) = route else { return self.send_away(core, route, to, delivery) };
        drop(core);
        if !self.push(cell, to, delivery, By::Chunk) {
            return self.look_again(lone, to, delivery);
        }
        if !lone {
            self.outgoing.known.insert(to, cell);
        }
    }

    /// A mailbox has refused: the routes changed between the look and the push.
    #[cold]
    fn look_again(&mut self, lone: bool, to: ChunkId, delivery: &mut Option<Delivery>) {
        self.look_up_and_push(lone, to, delivery);
    }

    /// Pushes without a look at the routes, which takes the lock of the core.
    #[inline(never)]
    fn push_to_known(&mut self, to: ChunkId, delivery: &mut Option<Delivery>) -> bool {
        let Some(&cell) = self.outgoing.known.get(&to) else { return false };
        let pushed = self.push(cell, to, delivery, By::Chunk);
        if !pushed {
            self.outgoing.known.remove(&to);
        }
        pushed
    }

    /// The chunk is not on this rank, or has not arrived.
    #[inline(never)]
    fn send_away(
        &mut self,
        mut core: impl DerefMut<Target = Core>,
        route: Route,
        to: ChunkId,
        delivery: &mut Option<Delivery>,
    ) {
        let delivery = delivery.take().expect("no mailbox has taken it");
        let Route::There(rank) = route else { return core.rank.location.stash(to, delivery) };
        core.rank.message_sent();
        if self.gateway.drives() && !core.has_outbound() {
            drop(core);
            tracing::trace!(hop = 3, "Transport::send");
            self.gateway.hand_over(rank, Packet::Message(Envelope { to, delivery }));
        } else {
            self.gateway.transmit(&mut core, rank, Packet::Message(Envelope { to, delivery }));
            drop(core);
            self.gateway.hand_over_all();
        }
        self.fail_if_failed();
    }

    /// Hop 4, and the token on its way if the push made one. False if the mailbox refused.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        cell: CellId,
        to: ChunkId,
        delivery: &mut Option<Delivery>,
        by: By,
    ) -> bool {
        match self.shared.cells.get(cell).mailbox.push(to, delivery, by, &mut self.outgoing.spares) {
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
        if self.shared.scheduler.lone() {
            return self.ready.push(token);
        }
        self.put_for_all(token);
    }

    /// The same where the rank has several workers.
    #[inline(never)]
    fn put_for_all(&mut self, token: CellId) {
        let last = WorkerId(self.shared.cells.get(token).last_worker.load(Ordering::Relaxed));
        self.shared.scheduler.put(token, last, self.id, &mut self.ready);
    }

    pub(super) fn send_at_quiescence(&mut self, to: ChunkId, delivery: Delivery) {
        let mut delivery = Some(delivery);
        if self.look_at_send(to, &mut delivery)
            && let Some(delivery) = delivery
        {
            let envelope = Box::new(Envelope { to, delivery });
            self.with_core(|core, _, out| core.send_at_quiescence(envelope, out));
            // On rank 0 it searches from now on.
            self.shared.scheduler.wake_driver();
        }
    }

    /// Keeps a message of a chunk to itself until it is due. The handler has returned: its delay begins.
    pub(super) fn send_after(&mut self, chunk: ChunkId, delay: Duration, delivery: Delivery) {
        let mut delivery = Some(delivery);
        if !self.look_at_send(chunk, &mut delivery) {
            return;
        }
        let Some(delivery) = delivery else { return };
        let mut due_ns = 0;
        self.with_core(|core, now_ns, _| {
            core.postpone();
            due_ns = now_ns.saturating_add(delay.as_nanos().try_into().unwrap_or(u64::MAX));
        });
        self.timers.set(due_ns, Envelope { to: chunk, delivery });
        self.looks_around = true;
    }

    /// Sends the messages that are due, by the routes of now. True if there were any.
    #[cold]
    pub(super) fn send_due(&mut self) -> bool {
        // Where handlers are measured the clock was read a moment ago.
        let now_ns = self.instruments.last_ns().unwrap_or_else(|| self.shared.clock.now_ns());
        let mut any = false;
        while let Some(Envelope { to, delivery }) = self.timers.take_due(now_ns) {
            // To leave the process it is encoded by user code, which may panic.
            self.instruments.take_in_hand(InHand::hook(to, "send_after", 0));
            let mut searched = false;
            self.with_core(|core, _, _| searched = core.falls_due());
            self.send_on(to, &mut Some(delivery));
            if searched {
                // Who answers may be asleep for longer than need be.
                self.shared.scheduler.wake_driver();
            }
            any = true;
        }
        self.looks_around = self.gateway.drives() || self.timers.next_ns().is_some();
        any
    }

    pub(super) fn spread(&mut self, from: ChunkId, effect: Effect) {
        self.with_core(|core, _, out| match effect {
            Effect::Broadcast { array, message } => {
                let from = Sender::new(from, 0);
                core.broadcast(array, Delivery { from, payload: Payload::Encoded(message) }, out);
            }
            Effect::Multicast { array, keys, message } => core.multicast(from, array, &keys, &message, out),
            _ => unreachable!("only these two go to many"),
        });
    }

    /// Records a message, and sends it through the wire format where a run asks for that. False if it cannot be
    /// encoded, which ends the run.
    #[cold]
    fn look_at_send(&mut self, to: ChunkId, delivery: &mut Option<Delivery>) -> bool {
        if self.instruments.keeps_events()
            && let Some(delivery) = delivery.as_ref()
        {
            self.record_send(to, delivery);
        }
        let Some(codec) = &self.shared.wire else { return true };
        let sent = delivery.take().expect("no mailbox has taken it");
        match codec.round_trip(Packet::Message(Envelope { to, delivery: sent })) {
            Ok(Packet::Message(envelope)) => *delivery = Some(envelope.delivery),
            Ok(other) => unreachable!("{other:?} was a message"),
            Err(error) => self.fail(error),
        }
        delivery.is_some()
    }

    /// Records that a message is about to leave.
    fn record_send(&mut self, to: ChunkId, delivery: &Delivery) {
        let shared = self.shared;
        let Some(recorder) = self.instruments.recorder() else { return };
        if recorder.wants_send(delivery.from) {
            let rank = match shared.plane.lock().rank.location.route(to) {
                Route::There(rank) => rank,
                Route::Here(_) | Route::Stash => shared.facts.rank,
            };
            let bytes = shared.arrays[to.array.index()].encoded_bytes(&delivery.payload);
            let others_see_it = rank != shared.facts.rank || !shared.scheduler.lone();
            let clock = others_see_it.then_some(|| shared.clock.now_ns());
            recorder.sends(delivery.from, to, rank, bytes, clock);
        }
    }
}
