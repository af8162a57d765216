//! Sends messages: hop 2 finds the mailbox or the rank, hop 4 is the push, and a push that made a token queues it.

use std::time::Duration;

use super::mailbox::By;
use super::worker::Worker;
use crate::arrays::core::crossings::Epoch;
use crate::arrays::core::envelope::{Delivery, Envelope, LETTER_BYTES, Payload};
use crate::arrays::core::handler::Effect;
use crate::arrays::core::location::Route;
use crate::arrays::core::mail::{Blanks, Letter, Mail};
use crate::arrays::core::packet::Packet;
use crate::arrays::core::pressure::Presser;
use crate::arrays::core::residents::Residents;
use crate::ids::{CellId, ChunkId, Sender};
use crate::wire::codec::Codec;

/// So many cells a worker knows of an array whether or not there are as many chunks.
const KNOWN_MIN: usize = 1024;

/// The state of a worker for sending.
pub(crate) struct Outgoing {
    /// Cells of chunks of this rank, by array, as far as this worker knows; a refused push corrects it. Unused by a lone worker.
    known: Box<[Residents]>,
    /// Messages are recorded, or forced through the encoder, when they are sent.
    looks_at_sends: bool,
    /// Neither that, nor are there other workers: the routes are asked at once.
    is_plain: bool,
}

impl Outgoing {
    pub(crate) fn new(lone: bool, arrays: usize, looks_at_sends: bool) -> Outgoing {
        let known = (0..arrays).map(|_| Residents::default()).collect();
        Outgoing { known, looks_at_sends, is_plain: lone && !looks_at_sends }
    }
}

impl<'r> Worker<'r> {
    /// Hop 2. A letter whose message leaves the rank is blank again.
    #[inline(always)]
    pub(super) fn send(&mut self, letter: Box<Letter>, blanks: &mut Blanks) {
        tracing::trace!(hop = 2, "Worker::flush");
        if self.outgoing.is_plain {
            self.look_up_and_push(letter, blanks);
        } else {
            self.send_otherwise(letter, blanks);
        }
    }

    /// Sends several of a handler that has left effects too: most leave none, so this is kept out of their way.
    #[inline(never)]
    pub(super) fn send_all(&mut self, letters: Mail, blanks: &mut Blanks) {
        for letter in letters {
            self.send(letter, blanks);
        }
    }

    /// Sends one before its handler returns.
    #[inline(never)]
    pub(super) fn send_one(&mut self, letter: Box<Letter>, blanks: &mut Blanks) {
        self.send(letter, blanks);
    }

    /// The same where the rank has several workers, or looks at what it sends.
    #[inline(never)]
    fn send_otherwise(&mut self, mut letter: Box<Letter>, blanks: &mut Blanks) {
        if !self.outgoing.looks_at_sends || self.look_at_send(&mut letter) {
            self.send_on(letter, blanks);
        }
    }

    /// Sends a message that was looked at.
    fn send_on(&mut self, letter: Box<Letter>, blanks: &mut Blanks) {
        if self.shared.scheduler.lone() {
            self.look_up_and_push(letter, blanks);
            return;
        }
        let to = letter.to;
        if let Some(letter) = self.push_to_known(letter)
            && let Some(cell) = self.look_up_and_push(letter, blanks)
        {
            self.knows(to, cell);
        }
    }

    /// Notes the cell of a chunk. Where it has noted more than there are, of chunks that have gone, it begins anew.
    fn knows(&mut self, to: ChunkId, cell: CellId) {
        let known = &mut self.outgoing.known[to.array.index()];
        if known.len() >= KNOWN_MIN && known.len().is_power_of_two() {
            let here = self.shared.plane.lock().rank.location.count(to.array);
            if known.len() as u64 > 2 * here {
                *known = Residents::default();
            }
        }
        known.insert(to.key, cell);
    }

    /// Asks the routes, and pushes if the chunk is here: into which cell.
    #[inline(always)]
    fn look_up_and_push(&mut self, letter: Box<Letter>, blanks: &mut Blanks) -> Option<CellId> {
        let to = letter.to;
        let Some(cell) = self.shared.plane.with(|core| core.rank.location.cell(to)) else {
            self.send_away(letter, blanks);
            return None;
        };
        if let Some(letter) = self.mailroom.push(cell, letter, By::Chunk) {
            self.look_again(letter, blanks);
            return None;
        }
        Some(cell)
    }

    /// The routes have changed since they were asked.
    #[cold]
    fn look_again(&mut self, letter: Box<Letter>, blanks: &mut Blanks) {
        self.send_on(letter, blanks);
    }

    /// Pushes without a look at the routes, which takes the lock of the core. Returns what was not sent.
    fn push_to_known(&mut self, letter: Box<Letter>) -> Option<Box<Letter>> {
        let to = letter.to;
        let Some(cell) = self.outgoing.known[to.array.index()].get(to.key) else { return Some(letter) };
        let refused = self.mailroom.push(cell, letter, By::Chunk);
        if refused.is_some() {
            self.outgoing.known[to.array.index()].remove(to.key);
        }
        refused
    }

    /// The chunk is not on this rank, or has not arrived.
    #[inline(never)]
    fn send_away(&mut self, mut letter: Box<Letter>, blanks: &mut Blanks) {
        let mut core = self.shared.plane.lock();
        let rank = match core.rank.location.route_away(letter.to) {
            Route::There(rank) => rank,
            Route::Stash => {
                core.rank.stash(letter.to, blanks.read(letter));
                self.shared.backlog.follow(&core.rank);
                drop(core);
                return self.pressed_by([Presser::Rank(self.shared.facts.rank)]);
            }
            Route::Here(_) => {
                drop(core);
                return self.look_again(letter, blanks);
            }
        };
        let (epoch, sent) = core.rank.message_sent(rank, letter.message.bytes);
        if self.gateway.drives() && !core.has_outbound() {
            drop(core);
            tracing::trace!(hop = 3, "Transport::send");
            self.gateway.send_letter(rank, &mut letter, epoch);
        } else {
            self.gateway.transmit(&mut core, rank, Packet::of_letter(&mut letter, epoch));
            drop(core);
            self.gateway.hand_over_all();
        }
        blanks.put(letter);
        if sent.marks || sent.presses {
            self.follow_up(rank, sent);
        }
        self.fail_if_failed();
    }

    pub(super) fn send_at_quiescence(&mut self, mut letter: Box<Letter>) {
        if self.look_at_send(&mut letter) {
            let (to, delivery, epoch) = (letter.to, letter.message, Epoch::default());
            let envelope = Box::new(Envelope { to, delivery, epoch });
            self.with_core(|core, _, out| core.send_at_quiescence(envelope, out));
            // On rank 0 it searches from now on.
            self.shared.scheduler.wake_driver();
        }
    }

    /// Keeps a message of a chunk to itself until it is due. The handler has returned: its delay begins.
    pub(super) fn send_after(&mut self, delay: Duration, mut letter: Box<Letter>) {
        if !self.look_at_send(&mut letter) {
            return;
        }
        self.with_core(|core, _, _| core.postpone());
        // By the kernel's clock, which never goes back: two with the same delay stay in order.
        let now_ns = self.shared.clock.now_ns();
        let due_ns = now_ns.saturating_add(delay.as_nanos().try_into().unwrap_or(u64::MAX));
        self.timers.set(due_ns, letter);
        self.looks_around = true;
    }

    /// Sends the messages that are due, by the routes of now. True if there were any.
    #[cold]
    pub(super) fn send_due(&mut self, blanks: &mut Blanks) -> bool {
        let now_ns = self.shared.clock.now_ns();
        let mut any = false;
        while let Some(letter) = self.timers.take_due(now_ns) {
            // Its bytes may be counted by user code, which may panic.
            self.instruments.turn_to_hook(letter.to, "send_after", 0);
            let mut searched = false;
            self.with_core(|core, _, _| searched = core.falls_due());
            self.send_on(letter, blanks);
            if searched {
                // Who answers may be asleep for longer than need be.
                self.shared.scheduler.wake_driver();
            }
            any = true;
        }
        self.press_nobody();
        self.looks_around = self.must_look_around();
        any
    }

    pub(super) fn spread(&mut self, from: ChunkId, effect: Effect) {
        let mut pressed_by = Vec::new();
        self.with_core(|core, _, out| match effect {
            Effect::Broadcast { array, message } => {
                let (from, payload) = (Sender::new(from, 0), Payload::Encoded(message));
                let delivery = Delivery { from, bytes: LETTER_BYTES, payload };
                pressed_by.extend(core.broadcast(array, delivery, out));
            }
            Effect::Multicast { array, keys, message } => {
                pressed_by = core.multicast(from, array, &keys, &message, out);
            }
            _ => unreachable!("only these two go to many"),
        });
        self.pressed_by(pressed_by);
    }

    /// Records a message, and sends it through the wire format where a run asks for that. False if it cannot be
    /// encoded, which ends the run.
    #[cold]
    fn look_at_send(&mut self, letter: &mut Letter) -> bool {
        if self.instruments.keeps_events() {
            self.record_send(letter.to, &letter.message);
        }
        if !self.shared.wire {
            return true;
        }
        // It is routed afterwards, and gets its epoch then.
        match self.shared.codec.round_trip(Packet::of_letter(letter, Epoch::default())) {
            Ok(Packet::Message(envelope)) => letter.message = envelope.delivery,
            Ok(other) => unreachable!("{other:?} was a message"),
            Err(error) => {
                self.fail(error);
                return false;
            }
        }
        true
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
