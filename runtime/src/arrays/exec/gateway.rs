//! A worker's way to other ranks: worker 0 has the transport, the others leave for it what they have to send.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::mailroom::{Intake, Mailroom, Reception};
use super::plane::Core;
use super::shared::RankShared;
use crate::arrays::core::crossings::Epoch;
use crate::arrays::core::envelope::Payload;
use crate::arrays::core::mail::{Blanks, Letter};
use crate::arrays::core::packet::Packet;
use crate::error::Error;
use crate::ids::Rank;
use crate::transport::handle::TransportHandle;
use crate::wire::codec::Codec;

/// Looks are rare that are so far apart, ns.
const RARE_NS: u64 = 10_000;

/// One worker's way out.
pub(crate) struct Gateway<'r> {
    shared: &'r RankShared,
    /// Worker 0 of a rank that is not alone.
    transport: Option<TransportHandle<'r, Packet>>,
    /// Packets that the transport gets as soon as the core is free.
    leaving: VecDeque<(Rank, Packet)>,
    /// The error of a packet that could not be sent.
    failed: Option<Error>,
    look: Look,
}

/// The last look at the transport of which the time was known: a lap of the worker ended before it, ns. Those of a worker
/// without work are not, where handlers are not measured.
#[derive(Default)]
struct Look {
    began_ns: u64,
    /// As far as it is known: the end of a look that found nothing is not worth reading the clock.
    ended_ns: u64,
    /// The one before it was long ago.
    rare: bool,
}

impl<'r> Gateway<'r> {
    pub(crate) fn new(shared: &'r RankShared, transport: Option<TransportHandle<'r, Packet>>) -> Gateway<'r> {
        let mut gateway =
            Gateway { shared, transport, leaving: VecDeque::new(), failed: None, look: Look::default() };
        gateway.looks_often(true);
        gateway
    }

    /// Tells whether this worker calls the transport.
    #[inline]
    pub(crate) fn drives(&self) -> bool {
        self.transport.is_some()
    }

    /// Tells whether other ranks are other processes.
    pub(crate) fn leads_to_processes(&self) -> bool {
        matches!(self.transport, Some(TransportHandle::Boxed(_)))
    }

    /// Hop 3, sending side, with the core locked. Only worker 0 calls the transport; what others send leaves before what
    /// it sends itself. Worker 0 calls [`hand_over_all`](Self::hand_over_all) once the core is free again.
    #[inline]
    pub(crate) fn transmit(&mut self, core: &mut Core, to: Rank, packet: Packet) {
        tracing::trace!(hop = 3, "Transport::send");
        if self.transport.is_none() {
            self.shared.plane.leave(core, to, packet);
            self.shared.scheduler.wake_driver();
            return;
        }
        self.shared.plane.take_outbound(core, &mut self.leaving);
        self.leaving.push_back((to, packet));
    }

    /// Gives the transport what other workers left for it.
    pub(crate) fn send_outbound(&mut self) {
        let plane = &self.shared.plane;
        plane.take_outbound(&mut plane.lock(), &mut self.leaving);
        self.hand_over_all();
    }

    /// Gives the transport all that is about to leave, in order.
    #[inline]
    pub(crate) fn hand_over_all(&mut self) {
        while let Some((to, packet)) = self.leaving.pop_front() {
            self.hand_over(to, packet);
        }
    }

    /// The same of one packet, which goes through the wire format where a run asks for that.
    #[inline(never)]
    fn hand_over(&mut self, to: Rank, packet: Packet) {
        // Messages between chunks have been there and back before they were routed.
        let crossed = || matches!(&packet, Packet::Message(envelope) if envelope.delivery.from.number > 0);
        let through =
            if self.shared.wire && !crossed() { self.shared.codec.round_trip(packet) } else { Ok(packet) };
        match through {
            Ok(packet) => self.send(to, packet),
            Err(error) => self.fails(error),
        }
    }

    /// Hands the transport a message, from the letter it is on, which is blank then. One that cannot be encoded ends the run as
    /// soon as the worker is back from what it does.
    #[inline]
    pub(crate) fn send_letter(&mut self, to: Rank, letter: &mut Letter, epoch: Epoch) {
        match &mut self.transport {
            Some(TransportHandle::Threads(local)) => local.send_with(to, || Packet::of_letter(letter, epoch)),
            Some(TransportHandle::Boxed(_)) => self.send_written(to, letter, epoch),
            None => {}
        }
    }

    /// The same where the transport sends bytes.
    #[inline(never)]
    fn send_written(&mut self, to: Rank, letter: &mut Letter, epoch: Epoch) {
        let codec = &self.shared.codec;
        if letter.message.payload.is_value()
            && let Some(TransportHandle::Boxed(transport)) = &mut self.transport
            && let Some(sent) =
                transport.send_written(to, &mut |bytes| codec.write(letter.to, &letter.message, epoch, bytes))
        {
            letter.message.payload = Payload::Resume;
            if let Err(error) = sent {
                self.fails(error);
            }
        } else {
            self.send(to, Packet::of_letter(letter, epoch));
        }
    }

    /// Hands the transport a packet. One that cannot be encoded ends the run, as such a message does.
    fn send(&mut self, to: Rank, packet: Packet) {
        let sent = match &mut self.transport {
            Some(TransportHandle::Threads(local)) => {
                local.send_with(to, || packet);
                Ok(())
            }
            Some(TransportHandle::Boxed(transport)) => transport.send(to, packet),
            None => Ok(()),
        };
        if let Err(error) = sent {
            self.fails(error);
        }
    }

    #[cold]
    fn fails(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// Takes the error of a packet that could not be sent.
    #[inline]
    pub(crate) fn take_failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// Drops what is about to leave.
    pub(crate) fn clear(&mut self) {
        self.leaving.clear();
    }

    /// Tells whether other workers have left something to send.
    pub(crate) fn outbound_waits(&self) -> bool {
        self.drives() && self.shared.plane.outbound_waits()
    }

    /// A look at the transport begins, `now_ns` after the run did.
    #[inline]
    pub(crate) fn look(&mut self, now_ns: u64) {
        let rare = now_ns >= self.look.ended_ns + RARE_NS;
        if rare != self.look.rare {
            self.looks_often(!rare);
        }
        self.look = Look { began_ns: now_ns, ended_ns: now_ns, rare };
    }

    #[cold]
    fn looks_often(&mut self, often: bool) {
        if let Some(transport) = &mut self.transport {
            transport.set_frequent_polls(often);
        }
    }

    /// Tells whether looks are rare: handlers, or waits, are long.
    #[inline]
    pub(crate) fn looks_rarely(&self) -> bool {
        self.look.rare
    }

    /// It has ended.
    pub(crate) fn looked(&mut self, now_ns: u64) {
        self.look.ended_ns = now_ns;
    }

    /// The time from which on the next look is due, if chunks are to run for so long at least, ns. They run for as long
    /// as the last look took: while chunks migrate it may copy one.
    #[inline]
    pub(crate) fn next_look_ns(&self, run_ns: u64) -> u64 {
        let Look { began_ns, ended_ns, .. } = self.look;
        ended_ns + run_ns.max(ended_ns.saturating_sub(began_ns))
    }

    /// Hop 3, receiving side: the mailroom gets what has come, as long as it takes more. Between
    /// threads by a closure that nothing else calls: it is inlined, and no packet is copied to be handed over.
    #[inline(always)]
    pub(crate) fn poll(&mut self, mailroom: &mut Mailroom<'r>, blanks: &mut Blanks, intake: &mut Intake) {
        let polled = match &mut self.transport {
            Some(TransportHandle::Threads(local)) => {
                local.take_each(|from, packet| mailroom.receive(from, packet, blanks, intake));
                Ok(())
            }
            Some(TransportHandle::Boxed(transport)) => {
                transport.poll_each(&mut Reception { mailroom, blanks, intake })
            }
            None => Ok(()),
        };
        if let Err(error) = polled {
            self.fails(error);
        }
    }

    /// Tells whether a poll might find something.
    pub(crate) fn is_ready(&mut self) -> bool {
        self.transport.as_mut().is_some_and(|transport| transport.ready())
    }

    /// Tells whether something is under way that will be complete soon.
    pub(crate) fn transfers(&self) -> bool {
        self.transport.as_ref().is_some_and(|transport| transport.has_transfers())
    }

    /// Tells whether so much waits for a slow rank that workers here should make no more of it. Worker 0 asks, and
    /// tells the others.
    #[inline]
    pub(crate) fn congested(&self) -> bool {
        let scheduler = &self.shared.scheduler;
        let Some(transport) = &self.transport else { return scheduler.is_congested() };
        let now = transport.congested();
        scheduler.set_congested(now);
        now
    }

    /// Lets what lies at the transport leave. None where this worker has none, else whether all has left.
    pub(crate) fn idle(&mut self) -> Option<bool> {
        self.transport.as_mut().map(|transport| transport.idle())
    }

    /// The time that worker 0 may sleep without missing what arrives.
    pub(crate) fn nap(&mut self) -> Option<Duration> {
        self.transport.as_mut().and_then(|transport| transport.nap())
    }

    /// Tells every other rank of an error that it has not heard of, if there is one, and sends no more.
    pub(crate) fn close(&mut self) {
        let shared = self.shared;
        let Some(mut transport) = self.transport.take() else { return };
        if let Some(error) = shared.ending.untold() {
            for to in (0..shared.facts.ranks).map(Rank).filter(|&to| to != shared.facts.rank) {
                // Each for itself: who cannot be told must not keep the others from hearing it.
                let abort = Packet::Abort(Box::new(error.clone()));
                let _ = catch_unwind(AssertUnwindSafe(|| transport.send(to, abort)));
            }
        }
        transport.close(&shared.ending.gives_up(&shared.clock));
    }
}
