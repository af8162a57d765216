//! Drives the core: carries out its actions, feeds it packets, and says when a rank is idle.
//!
//! Actions of the first group (see [`Action`]) are carried out while the core is locked, so that no other worker of the
//! rank can see a state between two of them; those of the second group run handlers and hooks, and come after the lock.
//! What user code does run under the lock has no way back into the runtime: placement functions and index conversions.
//! Packets are encoded after the lock, in the order in which the core gave them out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lb_strategies::{Assignment, Snapshot};

use super::mailbox::By;
use super::worker::{InHand, Worker};
use crate::arrays::core::action::Action;
use crate::arrays::core::collect::{Arrival, Reports};
use crate::arrays::core::envelope::{Delivery, Envelope};
use crate::arrays::core::packet::{Cargo, Journey, Packet, Traveller};
use crate::arrays::core::rank::{Actions, RankCore};
use crate::arrays::exec::shared::Core;
use crate::error::Error;
use crate::ids::{CellId, ChunkId, ROOT, RUNTIME, Rank};
use crate::measure::measured::Sample;
use crate::measure::meter::Meter;
use crate::measure::sample::Observed;
use crate::text::counted;
use crate::text::of_panic;
use crate::trace::Part;
use crate::wire::codec::Codec;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Packets taken from the transport before looking at ready chunks again.
const PACKETS_MAX: usize = 64;

impl Worker<'_> {
    /// Gives the core an input and carries out what it asks for.
    pub(crate) fn with_core(&mut self, input: impl FnOnce(&mut RankCore, u64, &mut Actions)) {
        let shared = self.shared;
        let now_ns = shared.clock.now_ns();
        let mut actions = std::mem::take(&mut self.actions);
        let mut later = Actions::new();
        {
            let core = &mut *shared.core.lock();
            input(&mut core.rank, now_ns, &mut actions);
            while let Some(action) = actions.pop_front() {
                if let Some(action) = self.at_once(core, action, now_ns, &mut actions) {
                    later.push_back(action);
                }
            }
        }
        self.actions = actions;
        self.hand_over_all();
        for action in later {
            self.afterwards(action);
        }
        self.fail_if_failed();
    }

    /// Ends the run if something failed while the core was locked.
    #[inline]
    pub(crate) fn fail_if_failed(&mut self) {
        if let Some(error) = self.failed.take() {
            self.fail(error);
        }
    }

    /// Carries out an action of the first group; returns one of the second.
    fn at_once(&mut self, core: &mut Core, action: Action, now_ns: u64, out: &mut Actions) -> Option<Action> {
        match action {
            Action::Send(to, packet) => self.transmit(core, to, packet),
            Action::Deliver { to, cell, delivery } => {
                let mut delivery = Some(delivery);
                self.push(cell, to, &mut delivery, By::Core);
                // The chunk was removed between the core's look and now: it is found missing like any other.
                delivery.into_iter().for_each(|unread| core.rank.location.stash(to, unread));
            }
            Action::Hold(cells) => {
                for cell in cells {
                    if self.shared.cells.get(cell).mailbox.hold() {
                        core.rank.held(now_ns, out);
                    }
                }
            }
            Action::Close(cell) => self.shared.cells.get(cell).mailbox.close(),
            Action::BeginPhase if self.shared.measure => self.shared.gauges.begin_phase(now_ns),
            Action::BeginPhase => {}
            Action::Admit(traveller) => self.admit(core, *traveller),
            Action::Landed => core.rank.landed(),
            later => return Some(later),
        }
        None
    }

    /// Hop 3, sending side, with the core locked. Only worker 0 calls the transport; what others send leaves before what
    /// it sends itself. Worker 0 calls [`hand_over_all`](Self::hand_over_all) once the core is free again.
    #[inline]
    pub(crate) fn transmit(&mut self, core: &mut Core, to: Rank, packet: Packet) {
        tracing::trace!(hop = 3, "Transport::send");
        if self.transport.is_none() {
            core.outbound.push((to, packet));
            self.shared.outbound_waits.store(true, Ordering::Release);
            self.shared.crew.sleepers[0].wake();
            return;
        }
        self.take_outbound(core);
        self.leaving.push_back((to, packet));
    }

    #[inline]
    fn take_outbound(&mut self, core: &mut Core) {
        if !core.outbound.is_empty() {
            self.shared.outbound_waits.store(false, Ordering::Relaxed);
            self.leaving.extend(core.outbound.drain(..));
        }
    }

    /// Gives the transport what other workers left for it.
    pub(crate) fn send_outbound(&mut self) {
        let shared = self.shared;
        self.take_outbound(&mut shared.core.lock());
        self.hand_over_all();
    }

    /// Gives the transport all that is about to leave, in order.
    #[inline]
    pub(crate) fn hand_over_all(&mut self) {
        while let Some((to, packet)) = self.leaving.pop_front() {
            self.hand_over(to, packet);
        }
    }

    /// A packet that cannot be encoded ends the run as soon as the worker is back from what it does.
    #[inline]
    pub(crate) fn hand_over(&mut self, to: Rank, packet: Packet) {
        let Some(transport) = &mut self.transport else { return };
        // Messages between chunks have been there and back before they were routed.
        let crossed = || matches!(&packet, Packet::Message(envelope) if envelope.delivery.from.number > 0);
        let sent = if self.shared.wire && !crossed() {
            self.shared.codec.round_trip(packet).and_then(|packet| transport.send(to, packet))
        } else {
            transport.send(to, packet)
        };
        if let Err(error) = sent {
            self.failed.get_or_insert(error);
        }
    }

    /// A chunk has come: gives it a cell, its mail, and what waited for it.
    fn admit(&mut self, core: &mut Core, traveller: Traveller) {
        let Traveller { chunk, cargo, mail, journey, bytes } = traveller;
        let Cargo::Live(mut slot) = cargo else { unreachable!("chunks are decoded with their packets") };
        let next_sync = slot.passport().syncs.next;
        let in_handler = self.in_hand.running;
        if journey.is_some() && !in_handler {
            // Its arrival is now, and not when the last slice ended: that may have been before it departed.
            self.skip(Part::Migrate, next_sync.saturating_sub(1));
        }
        if let Some(recorder) = &mut self.recorder {
            let array = &self.shared.arrays[chunk.array as usize];
            recorder.arrived(chunk, bytes, in_handler, || array.index_text(chunk.key));
        }
        let cell = self.shared.cells.reserve();
        let mut mail = VecDeque::from(mail);
        mail.extend(core.rank.admit(chunk, cell, journey, next_sync));
        // Only now can others find it: whatever they send comes after what waited.
        if self.shared.cells.settle(cell, chunk, slot, mail) {
            self.put(cell);
        }
    }

    /// Carries out an action of the second group, with the core unlocked.
    fn afterwards(&mut self, action: Action) {
        match action {
            Action::Release { chunk, cell, to, journey } => self.release(chunk, cell, to, journey),
            Action::Sample(reports) => self.sample(reports),
            Action::Decide(expected) => self.decide(&expected),
            Action::Explain => {
                let lines = self.explain();
                self.with_core(|core, _, out| core.explained(lines, out));
            }
            Action::Stop(result) => self.stop(result.map_err(|error| *error)),
            first => unreachable!("{first:?} is carried out under the lock"),
        }
    }

    /// Asks the strategy, which may be the user's own, and may be wrong.
    fn decide(&mut self, expected: &Snapshot) {
        self.interrupt();
        let strategy = self.shared.core.lock().rank.strategy().expect("rank 0 has the strategy");
        self.at_work.decides(expected.phase);
        let start_ns = self.shared.clock.now_ns();
        let answer = catch_unwind(AssertUnwindSafe(|| strategy.assign(expected)));
        self.at_work.serves(RUNTIME);
        let decide_ns = self.shared.clock.now_ns() - start_ns;
        let answer = answer.map_err(|panic| format!("it panicked: {}", of_panic(&*panic)));
        match answer.and_then(|assignment| self.possible(expected, assignment)) {
            Ok(assignment) => self.with_core(|core, now_ns, out| {
                core.decided(expected, assignment, decide_ns, now_ns, out);
            }),
            Err(why) => {
                let strategy = strategy.name().to_owned();
                self.fail(Error::StrategyFailed { strategy, sync: expected.phase, why });
            }
        }
        // Here and not with a sample: rank 0 may have no chunks.
        self.record_new_syncs();
        self.skip(Part::Decide, expected.phase);
    }

    /// The assignment, if it can be carried out; else what is wrong with it.
    fn possible(&self, snapshot: &Snapshot, assignment: Assignment) -> Result<Assignment, String> {
        let (chunks, answers) = (snapshot.chunks.len(), assignment.ranks.len());
        if chunks != answers {
            return Err(format!("it assigned {answers} chunks of {chunks}"));
        }
        for (chunk, &to) in
            snapshot.chunks.iter().zip(&assignment.ranks).filter(|(chunk, to)| chunk.rank != **to)
        {
            let why = match snapshot.ranks.get(to.index()) {
                None => format!("there are {} ranks", snapshot.ranks.len()),
                Some(rank) if !rank.available => "that rank is not available".into(),
                Some(_) if !chunk.migratable => "the chunk is not migratable".into(),
                Some(_) => continue,
            };
            return Err(format!("it assigned {} to rank {to}, but {why}", self.describe(chunk.id)));
        }
        Ok(assignment)
    }

    fn release(&mut self, chunk: ChunkId, cell: CellId, to: Rank, journey: Journey) {
        self.interrupt();
        let (mut slot, mail) = self.shared.cells.get(cell).mailbox.take();
        self.shared.cells.free(cell);
        self.take_in_hand(InHand::hook(chunk, "on_depart", slot.passport().syncs.next));
        let bytes = slot.state_bytes();
        slot.on_depart();
        tracing::debug!(?chunk, to = to.0, "departs");
        let journey = Some(journey);
        let traveller =
            Box::new(Traveller { chunk, cargo: Cargo::Live(slot), mail: mail.into(), bytes, journey });
        self.with_core(|core, now_ns, out| core.released(traveller, to, now_ns, out));
        if let Some(recorder) = &mut self.recorder {
            recorder.departed(chunk, to.0, bytes, self.shared.clock.now_ns());
        }
    }

    fn sample(&mut self, reports: Reports) {
        self.interrupt();
        self.close_batch();
        let shared = self.shared;
        shared.gauges.rounds.ask(shared.clock.now_ns());
        self.calibrate();
        let measured = shared.measure.then(|| shared.gauges.sample(shared.clock.now_ns()));
        let sample = measured.unwrap_or_default();
        let take_load = |arrival: &Arrival| shared.cells.get(arrival.cell).take_load();
        let loads: Vec<u64> = reports.arrivals.iter().map(take_load).collect();
        let sync = reports.sync;
        if let Some(recorder) = &mut self.recorder {
            for (arrival, &cpu_ns) in reports.arrivals.iter().zip(&loads) {
                let load_ns = arrival.declared.unwrap_or(cpu_ns);
                recorder.loaded(arrival.chunk, sync, load_ns, arrival.bytes);
            }
        }
        // On rank 0 a decision may follow, which is another slice.
        self.skip(Part::Measure, sync);
        self.with_core(|core, now_ns, out| core.sampled(reports, sample, &loads, now_ns, out));
        self.observe(Observed::AtSync(sync));
        self.skip(Part::Measure, sync);
    }

    /// Measures the vCPU's speed again if a sync has asked all workers for that.
    pub(crate) fn calibrate(&mut self) {
        let gauges = &self.shared.gauges;
        if let Some(speed) = &mut self.speed
            && speed.answer(&gauges.rounds)
        {
            gauges.workers[self.id as usize].set_speed(speed.turns_per_us());
            self.skip(Part::Measure, 0);
        }
    }

    /// Keeps for the record how the rank is doing, if that was not done just before, and at the end what syncs did.
    pub(crate) fn observe(&mut self, when: Observed) {
        let shared = self.shared;
        if self.recorder.is_none() {
            return;
        }
        let now_ns = shared.clock.now_ns();
        let sync = match when {
            Observed::AtSync(sync) => Some(sync),
            Observed::Between | Observed::AtEnd => None,
        };
        if let Some(measured) = shared.gauges.observe(now_ns, when).filter(|_| shared.measure) {
            let chunks = shared.core.lock().rank.chunks();
            shared.recording.sample(Sample { sync, chunks, ..measured });
            shared.recording.look(|| shared.gauges.look(&measured));
        }
        if when == Observed::AtEnd && shared.facts.rank == ROOT {
            self.record_new_syncs();
        }
    }

    /// Keeps for the record what syncs did that are over. Rank 0 alone knows.
    fn record_new_syncs(&self) {
        let shared = self.shared;
        if self.recorder.is_none() {
            return;
        }
        let new = |seen| shared.core.lock().rank.sync_log().map(|log| log.after(seen)).unwrap_or_default();
        shared.recording.syncs(new);
    }

    /// What has just happened was the runtime's own time.
    pub(crate) fn skip(&mut self, part: Part, sync: u64) {
        let now_ns = self.shared.clock.now_ns();
        if let Some(meter) = &mut self.meter {
            meter.skip(now_ns);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.runtime(part, sync, now_ns);
        }
    }

    /// What every idle chunk of this rank waits for, or is waited for, where that can be seen from here.
    fn explain(&self) -> Vec<String> {
        let open = self.shared.core.lock().rank.open_sync();
        let (mut missing, mut waiting) = (Vec::new(), Vec::new());
        for cell in self.shared.cells.iter() {
            let looked = cell.mailbox.inspect(|chunk, slot| (chunk, slot.kept(), slot.passport().clone()));
            let Some((chunk, kept, passport)) = looked else { continue };
            let syncs = self.shared.arrays[chunk.array as usize].syncs();
            match open.filter(|&sync| syncs && passport.syncs.next <= sync) {
                Some(sync) => missing.push(format!("{} has not come to sync {sync}", self.describe(chunk))),
                None if !passport.goes_on() => {
                    waiting.push(format!("{} waits at a sync", self.describe(chunk)));
                }
                None => {}
            }
            if kept > 0 && passport.goes_on() {
                let kept = counted(kept, "message", "messages");
                waiting.push(format!("{} keeps {kept} it is not ready for", self.describe(chunk)));
            }
        }
        missing.append(&mut waiting);
        let more = missing.len().saturating_sub(LINES_MAX);
        missing.truncate(LINES_MAX);
        if more > 0 {
            missing.push(format!("and {more} more chunks of rank {}", self.shared.facts.rank));
        }
        missing
    }

    /// Takes packets from the transport, on the runtime's own time. True if there were any.
    pub(crate) fn progress(&mut self) -> bool {
        let any = self.take_packets();
        if any && let Some(meter) = &mut self.meter {
            let now_ns = self.shared.clock.now_ns();
            meter.skip(now_ns);
            if let Some(recorder) = &mut self.recorder {
                recorder.kept(now_ns);
            }
        }
        any
    }

    /// Hop 3, receiving side. The time it takes belongs to the slice that the caller ends.
    #[inline]
    pub(crate) fn take_packets(&mut self) -> bool {
        self.transport.is_some() && self.poll()
    }

    #[inline(never)]
    fn poll(&mut self) -> bool {
        if self.shared.outbound_waits.load(Ordering::Acquire) {
            self.send_outbound();
            self.fail_if_failed();
        }
        self.looked_ns = self.meter.as_ref().map_or(0, Meter::last_ns);
        // What comes is decoded by user code, which may panic.
        self.take_in_hand(InHand::nothing("a packet"));
        let mut any = false;
        for _ in 0..PACKETS_MAX {
            match self.transport.as_mut().and_then(|transport| transport.poll()) {
                None => break,
                Some(Ok((from, packet))) => self.receive(from, packet),
                Some(Err(error)) => self.fail(error),
            }
            any = true;
        }
        any
    }

    /// A packet of another rank has arrived.
    pub(crate) fn receive(&mut self, from: Rank, packet: Packet) {
        tracing::trace!(hop = 3, "Transport::poll");
        let packet = match packet {
            Packet::Message(Envelope { to, delivery }) => return self.receive_message(to, delivery),
            other => other,
        };
        let packet = self.welcome(packet);
        self.with_core(|core, now_ns, out| core.receive(from, packet, now_ns, out));
    }

    /// The short way for what comes most often.
    fn receive_message(&mut self, to: ChunkId, delivery: Delivery) {
        let mut core = self.shared.core.lock();
        let mut delivery = Some(delivery);
        if let Some(cell) = core.rank.message_received(to) {
            self.push(cell, to, &mut delivery, By::Core);
        }
        // Its chunk has not arrived, or was removed between the look and the push.
        delivery.into_iter().for_each(|early| core.rank.location.stash(to, early));
    }

    /// Tells a chunk that it has arrived: user code, so before the core is locked.
    fn welcome(&mut self, mut packet: Packet) -> Packet {
        if let Packet::Arrive(traveller) = &mut packet
            && let (Cargo::Live(slot), Some(_)) = (&mut traveller.cargo, traveller.journey)
        {
            let phase = slot.passport().syncs.next;
            self.take_in_hand(InHand::hook(traveller.chunk, "on_arrive", phase));
            slot.on_arrive();
        }
        packet
    }

    /// The run cannot go on: says so to every rank and stops this one.
    pub(crate) fn fail(&mut self, error: Error) {
        let text = error.to_string();
        self.with_core(|core, _, out| core.fail(error, out));
        // At once: the run returns it when all handlers have returned, and one of them may never. But after everybody
        // was told: whoever writes the log may panic.
        tracing::error!(rank = self.shared.facts.rank.0, error = %text, "the run has failed");
    }

    /// Leaves the scheduler with all workers of the rank.
    fn stop(&mut self, result: Result<(), Error>) {
        let shared = self.shared;
        if let Err(error) = result {
            shared.outcome.fail(error);
        }
        shared.outcome.finish(shared.clock.now_ns());
        shared.crew.stop();
    }
}

/// Chunks of one rank named in a stall report.
const LINES_MAX: usize = 8;
