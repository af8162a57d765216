//! Drives flow control on one rank: passes each input to the state machines in [`flow`](crate::arrays::core::flow), and
//! turns their outputs into commands.

use super::RankCore;
use crate::arrays::core::command::{Command, Commands};
use crate::arrays::core::flow::{Destination, Flow, FlowPacket, SendOutcome, StallAction};
use crate::arrays::core::routing::in_flight::Epoch;
use crate::ids::{ArrayId, CellId, ROOT, Rank, SyncId};

#[cfg(test)]
mod tests;

impl RankCore {
    /// A packet of flow control.
    pub(super) fn handle_flow(&mut self, from: Rank, packet: FlowPacket, out: &mut Commands) {
        match packet {
            FlowPacket::AckRequest { bytes } => {
                self.flow.control.defer_ack(from, bytes);
                out.now.push_back(Command::CheckLowWatermark);
            }
            FlowPacket::Ack { bytes } => self.acked(Destination::Rank(from), bytes, out),
            FlowPacket::DeferredAckMoved { first_receiver, bytes } => {
                self.bytes_moved(first_receiver, from, bytes, out);
            }
            FlowPacket::BroadcastAck { more } => {
                self.flow.broadcast_acks.child_acked(from, more);
                self.forward_broadcast_acks(out);
            }
            FlowPacket::BroadcastAckedByAll { bytes } => self.acked(Destination::AllRanks, bytes, out),
            FlowPacket::ReceiversGrew { array, chunks } => self.receivers_grew(array, chunks, out),
            FlowPacket::MaxReceivers { array, chunks } => _ = self.flow.receivers.grow(array, chunks),
            FlowPacket::Stalled { number, report } => {
                self.flow.stall_detector.stalled(from, number, report);
                self.resolve_deadlocks(out);
            }
            FlowPacket::StallEnded { number } => self.flow.stall_detector.end_stall(from, number),
            FlowPacket::Deadlocked { number } => self.resolve_stall(number, out),
        }
    }

    /// A message of `bytes` bytes leaves for another rank, by a route looked up just now. Returns the epoch of the
    /// message and the consequences for its sender.
    #[inline]
    pub(crate) fn message_sent(&mut self, to: Rank, bytes: u64) -> (Epoch, SendOutcome) {
        self.termination.traffic.sent += 1;
        (self.routing.cut.count_sent(to), self.flow.control.count_sent(to, bytes))
    }

    /// Requests an ack of the bytes that were sent to a rank since the last request.
    #[cold]
    pub(crate) fn request_ack(&mut self, to: Rank, out: &mut Commands) {
        let bytes = self.flow.control.take_ack_request(Destination::Rank(to));
        self.send(to, FlowPacket::AckRequest { bytes }, 0, out);
    }

    /// This rank is not full: sends the acks that it deferred, and unparks the chunks that it blocked.
    pub(crate) fn below_low_watermark(&mut self, out: &mut Commands) {
        for (to, bytes) in self.flow.control.take_deferred_acks() {
            self.send(to, FlowPacket::Ack { bytes }, 0, out);
        }
        // Logged broadcasts are queued here until all incoming chunks have them.
        if !self.collectives.broadcasts.are_logged() {
            self.flow.broadcast_acks.ack();
            self.forward_broadcast_acks(out);
        }
        let freed = self.flow.control.below_low_watermark();
        self.unpark(freed, out);
    }

    /// This rank, or a child with all ranks below it, may have acknowledged more broadcasts.
    pub(super) fn forward_broadcast_acks(&mut self, out: &mut Commands) {
        match self.flow.broadcast_acks.take_new_acks() {
            0 => {}
            more if self.tree.rank != ROOT => self.send_up(FlowPacket::BroadcastAck { more }, 0, out),
            more => {
                for (rank, bytes) in self.flow.broadcast_acks.take_acked_by_all(more) {
                    self.send(rank, FlowPacket::BroadcastAckedByAll { bytes }, 0, out);
                }
                self.resolve_deadlocks(out);
            }
        }
    }

    /// The chunk of a cell is blocked by destinations to which its handlers have sent.
    pub(crate) fn block(&mut self, cell: CellId, by: Vec<Destination>) {
        self.flow.control.block(cell, by);
    }

    pub(crate) fn has_blocked(&self) -> bool {
        self.flow.control.has_blocked()
    }

    pub(crate) fn has_parked(&self) -> bool {
        self.flow.control.has_parked()
    }

    /// Parks the ready entry of a cell if its chunk is blocked. True if so.
    pub(crate) fn park_if_blocked(&mut self, cell: CellId) -> bool {
        self.flow.control.park_if_blocked(cell)
    }

    /// A chunk that was inserted, or was blocked on its old rank, comes to this cell. All destinations that block
    /// senders here block the chunk, and so does this rank if it is full.
    pub(crate) fn block_incoming(&mut self, cell: CellId, is_full: bool) {
        let mut by = self.flow.control.blocking();
        by.extend(is_full.then_some(Destination::Rank(self.tree.rank)));
        self.flow.control.block(cell, by);
    }

    /// The chunk of a cell is to leave: its ready entry must be queued again, and nothing blocks it any more.
    pub(super) fn unblock_leaving(&mut self, cell: CellId, out: &mut Commands) {
        if self.flow.control.prepare_leave(cell) {
            self.unpark(vec![cell], out);
        }
    }

    pub(super) fn acked(&mut self, by: Destination, bytes: u64, out: &mut Commands) {
        let freed = self.flow.control.count_acked(by, bytes);
        self.unpark(freed, out);
    }

    /// A chunk has brought messages and the deferred acks for them. This rank defers the acks now, and informs the
    /// senders.
    pub(super) fn take_over_acks(&mut self, from: Rank, deferred_acks: Vec<(Rank, u64)>, out: &mut Commands) {
        let any = !deferred_acks.is_empty();
        for (rank, bytes) in deferred_acks {
            if rank == self.tree.rank {
                self.bytes_moved(from, rank, bytes, out);
                continue;
            }
            self.flow.control.defer_ack(rank, bytes);
            if rank != from {
                self.send(rank, FlowPacket::DeferredAckMoved { first_receiver: from, bytes }, 0, out);
            }
        }
        out.now.extend(any.then_some(Command::CheckLowWatermark));
    }

    /// `bytes` of the bytes in flight to `first_receiver` have moved on to another rank.
    pub(super) fn bytes_moved(&mut self, first_receiver: Rank, to: Rank, bytes: u64, out: &mut Commands) {
        self.flow.control.count_moved(first_receiver, to, bytes);
        self.acked(Destination::Rank(first_receiver), bytes, out);
    }

    fn unpark(&mut self, freed: Vec<CellId>, out: &mut Commands) {
        if !freed.is_empty() {
            self.end_stall(out);
        }
        out.now.extend(freed.into_iter().map(Command::Unpark));
    }

    /// This rank is not stalled: informs rank 0 if this rank has reported a stall.
    fn end_stall(&mut self, out: &mut Commands) {
        if let Some(number) = self.flow.control.end_stall() {
            self.send(ROOT, FlowPacket::StallEnded { number }, 0, out);
        }
    }

    /// A chunk has come to this sync and defers a message of `bytes` bytes until the sync has ended.
    pub(crate) fn defer(&mut self, sync: SyncId, bytes: u64) {
        self.sync.arrivals.defer(sync, bytes);
    }

    /// A chunk that passes this sync has read a message of `bytes` bytes that it had deferred.
    pub(crate) fn read_deferred(&mut self, sync: SyncId, bytes: u64) {
        self.sync.arrivals.read_deferred(sync, bytes);
    }

    /// This rank is full: `excess` bytes must go before it is below its low watermark.
    ///
    /// If the end of a sync frees as much, the rank waits for that end, but not forever: the sync may wait for a chunk
    /// that this rank blocks. An idle rank without parked entries, where messages wait for something unknown, does the
    /// same.
    pub(crate) fn above_high_watermark(
        &mut self,
        excess: u64,
        is_idle: bool,
        now_ns: u64,
        out: &mut Commands,
    ) {
        let settled = self.sync.migrations.are_settled() && !self.checkpoints.stops();
        let for_unknown = is_idle && !self.flow.control.has_parked() && settled;
        let waits = self.waits_for_sync(excess) || (for_unknown && !self.sync.is_deciding());
        if let Some(full_ns) = self.flow.control.backoff_expired(waits, now_ns) {
            let (rank, kept, ms) =
                (self.tree.rank.0, self.sync.arrivals.deferred_bytes(), full_ns / 1_000_000);
            tracing::warn!(
                rank,
                kept,
                ms,
                "waiting messages have filled CARIBOU_MAIL_LIMIT for this time: the limit of this rank is doubled"
            );
            out.now.push_back(Command::GrowLimit);
        }
    }

    /// True if chunks of this rank defer `excess` bytes or more until the end of a sync.
    fn waits_for_sync(&self, excess: u64) -> bool {
        self.sync.arrivals.deferred_bytes() >= excess.max(1)
    }

    /// Time at which this rank, full for too long, will raise its limit, ns.
    pub(crate) fn backoff_until_ns(&self) -> Option<u64> {
        self.flow.control.backoff_until_ns()
    }

    /// This rank has nothing to run and is full: `excess` bytes must go before it is below its low watermark.
    pub(crate) fn full_and_idle(&mut self, excess: u64, out: &mut Commands) {
        if self.waits_for_sync(excess) {
            return self.end_stall(out);
        }
        if !self.sync.migrations.are_settled() || self.sync.is_deciding() {
            // The queued messages may be for chunks that are about to leave or to resume.
            return;
        }
        let first_deferred_ack = self.flow.broadcast_acks.first_deferred();
        if let Some((number, report)) = self.flow.control.report_stall(first_deferred_ack) {
            self.send(ROOT, FlowPacket::Stalled { number, report }, 0, out);
        }
    }

    /// Rank 0 sends `Deadlocked` to the ranks that wait only for each other.
    pub(super) fn resolve_deadlocks(&mut self, out: &mut Commands) {
        let Flow { stall_detector, broadcast_acks, .. } = &mut self.flow;
        for (deadlocked, number) in stall_detector.take_deadlocked(|rank| broadcast_acks.first_unacked(rank))
        {
            self.send(deadlocked, FlowPacket::Deadlocked { number }, 0, out);
        }
    }

    /// Rank 0 has found that a stall of this rank is part of a deadlock.
    fn resolve_stall(&mut self, number: u64, out: &mut Commands) {
        match self.flow.control.resolve_stall(number) {
            None => {}
            Some(StallAction::Unpark(freed)) => self.unpark(freed, out),
            Some(StallAction::GrowLimit) => out.now.push_back(Command::GrowLimit),
        }
    }

    /// The number of chunks of an array on this rank may have grown.
    pub(super) fn update_receivers(&mut self, array: ArrayId, out: &mut Commands) {
        self.receivers_grew(array, self.routing.location.count(array), out);
    }

    /// This rank or a rank below it has `chunks` chunks of an array.
    fn receivers_grew(&mut self, array: ArrayId, chunks: u64, out: &mut Commands) {
        if self.flow.receivers.grow(array, chunks) {
            match self.tree.parent() {
                Some(_) => self.send_up(FlowPacket::ReceiversGrew { array, chunks }, 0, out),
                None => self.broadcast_down(ROOT, FlowPacket::MaxReceivers { array, chunks }, 0, out),
            }
        }
    }

    /// A broadcast has come, with or without a request for an ack. `is_heard`: chunks here or incoming receive it.
    pub(super) fn broadcast_received(&mut self, is_heard: bool, ack_requested: bool, out: &mut Commands) {
        if is_heard {
            self.flow.broadcast_acks.receive();
        }
        if ack_requested {
            self.flow.broadcast_acks.requested();
            self.forward_broadcast_acks(out);
            out.now.push_back(Command::CheckLowWatermark);
        }
    }
}
