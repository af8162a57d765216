//! Sends the packets of a worker to other ranks: worker 0 calls the transport, the others queue packets for it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::control_plane::Core;
use super::local_delivery::{LocalDelivery, PacketSink, PollState};
use super::shared::RankShared;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::envelope::Payload;
use crate::arrays::core::routing::in_flight::Epoch;
use crate::arrays::core::routing::message_list::{FreeList, MessageNode};
use crate::error::Error;
use crate::ids::Rank;
use crate::transport::handle::TransportHandle;
use crate::wire::codec::Codec;

/// The remote sender of one worker.
pub(crate) struct RemoteSender<'r> {
    shared: &'r RankShared,
    /// None for workers other than 0, and in a run of one rank.
    transport: Option<TransportHandle<'r, Packet>>,
    /// Packets to give to the transport as soon as the core is unlocked.
    leaving: VecDeque<(Rank, Packet)>,
}

/// `Ok`, or the error of a packet that could not be encoded or sent. The error ends the run.
pub(crate) type SendResult = Result<(), Box<Error>>;

impl<'r> RemoteSender<'r> {
    pub(crate) fn new(
        shared: &'r RankShared,
        transport: Option<TransportHandle<'r, Packet>>,
    ) -> RemoteSender<'r> {
        let mut remote_sender = RemoteSender { shared, transport, leaving: VecDeque::new() };
        remote_sender.set_frequent_polls(true);
        remote_sender
    }

    #[inline]
    pub(crate) fn has_transport(&self) -> bool {
        self.transport.is_some()
    }

    /// True if the other ranks are other processes.
    pub(crate) fn is_between_processes(&self) -> bool {
        matches!(self.transport, Some(TransportHandle::Boxed(_)))
    }

    /// Hop 3, sending side, with the core locked. Only worker 0 calls the transport, and sends packets of other workers
    /// before its own. Worker 0 calls [`flush`](Self::flush) once the core is unlocked.
    #[inline]
    pub(crate) fn transmit(&mut self, core: &mut Core, to: Rank, packet: Packet) {
        tracing::trace!(hop = 3, "Transport::send");
        if self.transport.is_none() {
            self.shared.control_plane.leave(core, to, packet);
            self.shared.scheduler.wake_driver();
            return;
        }
        self.shared.control_plane.take_outbound(core, &mut self.leaving);
        self.leaving.push_back((to, packet));
    }

    /// Gives the transport the packets that other workers have queued.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn send_outbound(&mut self) -> SendResult {
        let control_plane = &self.shared.control_plane;
        control_plane.take_outbound(&mut control_plane.lock(), &mut self.leaving);
        self.flush()
    }

    /// Gives the transport all packets that are about to leave, in order.
    ///
    /// # Errors
    /// The first packet that could not be sent. All other packets were sent.
    #[inline]
    pub(crate) fn flush(&mut self) -> SendResult {
        let mut all = Ok(());
        while let Some((to, packet)) = self.leaving.pop_front() {
            let sent = self.flush_one(to, packet);
            all = all.and(sent);
        }
        all
    }

    /// Gives the transport one packet. Encodes and decodes the packet first if the run asks for that.
    #[inline(never)]
    fn flush_one(&mut self, to: Rank, packet: Packet) -> SendResult {
        // Messages between chunks were encoded and decoded before they were routed.
        let crossed = || matches!(&packet, Packet::Message(envelope) if envelope.delivery.from.number > 0);
        let through =
            if self.shared.wire && !crossed() { self.shared.codec.round_trip(packet) } else { Ok(packet) };
        self.send(to, through.map_err(Box::new)?)
    }

    /// Gives the transport the message of a node. The node is free afterwards.
    ///
    /// # Errors
    /// The message cannot be encoded.
    #[inline]
    pub(crate) fn send_node(&mut self, to: Rank, node: &mut MessageNode, epoch: Epoch) -> SendResult {
        match &mut self.transport {
            Some(TransportHandle::Threads(local)) => {
                local.send_with(to, || Packet::from_node(node, epoch));
                Ok(())
            }
            Some(TransportHandle::Boxed(_)) => self.send_encoded(to, node, epoch),
            None => Ok(()),
        }
    }

    /// Encodes a message directly into the bytes of the transport, if the transport sends bytes.
    #[inline(never)]
    fn send_encoded(&mut self, to: Rank, node: &mut MessageNode, epoch: Epoch) -> SendResult {
        let codec = &self.shared.codec;
        if node.message.payload.is_value()
            && let Some(TransportHandle::Boxed(transport)) = &mut self.transport
            && let Some(sent) = transport
                .send_written(to, &mut |bytes| codec.encode_message(node.to, &node.message, epoch, bytes))
        {
            node.message.payload = Payload::Resume;
            return sent.map_err(Box::new);
        }
        self.send(to, Packet::from_node(node, epoch))
    }

    fn send(&mut self, to: Rank, packet: Packet) -> SendResult {
        match &mut self.transport {
            Some(TransportHandle::Threads(local)) => {
                local.send_with(to, || packet);
                Ok(())
            }
            Some(TransportHandle::Boxed(transport)) => transport.send(to, packet).map_err(Box::new),
            None => Ok(()),
        }
    }

    /// Drops the packets that are about to leave.
    pub(crate) fn clear(&mut self) {
        self.leaving.clear();
    }

    /// True if other workers have queued packets to send.
    pub(crate) fn outbound_waits(&self) -> bool {
        self.has_transport() && self.shared.control_plane.outbound_waits()
    }

    /// Sets whether the transport is polled often.
    #[cold]
    pub(super) fn set_frequent_polls(&mut self, often: bool) {
        if let Some(transport) = &mut self.transport {
            transport.set_frequent_polls(often);
        }
    }

    /// Hop 3, receiving side: passes packets to local delivery until that takes no more. Between threads the closure
    /// has no other caller, so it is inlined, which saves a copy of each packet.
    ///
    /// # Errors
    /// A packet cannot be decoded.
    #[inline(always)]
    pub(crate) fn poll(
        &mut self,
        local_delivery: &mut LocalDelivery<'r>,
        free_list: &mut FreeList,
        poll_state: &mut PollState,
    ) -> SendResult {
        match &mut self.transport {
            Some(TransportHandle::Threads(local)) => {
                local.take_each(|from, packet| local_delivery.receive(from, packet, free_list, poll_state));
                Ok(())
            }
            Some(TransportHandle::Boxed(transport)) => transport
                .poll_each(&mut PacketSink { local_delivery, free_list, poll_state })
                .map_err(Box::new),
            None => Ok(()),
        }
    }

    /// True if a poll might find something.
    pub(crate) fn is_ready(&mut self) -> bool {
        self.transport.as_mut().is_some_and(|transport| transport.ready())
    }

    /// True if a transfer is in progress that will be complete soon.
    pub(crate) fn transfers(&self) -> bool {
        self.transport.as_ref().is_some_and(|transport| transport.has_transfers())
    }

    /// True if the queue of packets to a slow rank is so long that workers should not add to it. Worker 0 checks the
    /// transport and sets a flag for the others.
    #[inline]
    pub(crate) fn congested(&self) -> bool {
        let scheduler = &self.shared.scheduler;
        let Some(transport) = &self.transport else { return scheduler.is_congested() };
        let now = transport.congested();
        scheduler.set_congested(now);
        now
    }

    /// Lets the transport send its buffered packets. True if all have left; None if this worker has no transport.
    pub(crate) fn idle(&mut self) -> Option<bool> {
        self.transport.as_mut().map(|transport| transport.idle())
    }

    /// The time that worker 0 may sleep without missing a packet.
    pub(crate) fn nap(&mut self) -> Option<Duration> {
        self.transport.as_mut().and_then(|transport| transport.nap())
    }

    /// Sends every other rank the error that it has not received yet, if there is one. Then closes the transport.
    pub(crate) fn close(&mut self) {
        let shared = self.shared;
        let Some(mut transport) = self.transport.take() else { return };
        if let Some(error) = shared.ending.unannounced() {
            for to in (0..shared.info.ranks).map(Rank).filter(|&to| to != shared.info.rank) {
                // If sending to one rank panics, the others must still get the error.
                let abort = Packet::Abort(Box::new(error.clone()));
                let _ = catch_unwind(AssertUnwindSafe(|| transport.send(to, abort)));
            }
        }
        transport.close(&shared.ending.gives_up(&shared.clock));
    }
}
