//! Flow control: bounds the memory of waiting messages. A chunk that has sent too many bytes to a slow rank does not
//! run again until that rank has caught up.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | *queued bytes* of a rank | bytes of messages in its mailboxes, of messages that chunks defer while they wait at a sync, and of all that waits for incoming chunks: messages that the chunks bring, pending messages, broadcasts that they have yet to receive |
//! | *full* rank | has more queued bytes than its limit, the high watermark; stays full until it is below its *low watermark*, half the limit, or raises the limit |
//! | bytes *in flight* to a rank | sent to the rank and not acknowledged |
//! | *blocked* chunk | may not run, because of ranks that it has sent to, or because ranks have not acknowledged its broadcasts |
//! | *parked* ready entry | the entry of a blocked chunk, kept off the run queues until nothing blocks the chunk |
//!
//! # Rules
//!
//! 1. *Acks.* A sender requests an ack of the bytes since its last request, at least four times per window
//!    ([`FlowControl::count_sent`]). A receiver that is not full acknowledges at once. A full receiver defers the ack
//!    ([`FlowControl::defer_ack`]) until it is no longer full ([`FlowControl::below_low_watermark`]). Acknowledged
//!    bytes are no longer in flight.
//! 2. *Blocking.* Another rank blocks a sender once more than a window is in flight to that rank
//!    ([`FlowControl::block`]). The sender is unblocked when half a window or less is in flight
//!    ([`FlowControl::count_acked`]). The sender's own rank blocks the sender while that rank is full.
//! 3. *Scope.* A blocked chunk handles no message, not even a deferred one ([`FlowControl::park_if_blocked`]). All
//!    other chunks go on. The packets of protocols are never held back, except acks.
//! 4. *No bypass.* Some chunks come to a rank blocked: inserted chunks, and chunks that were blocked on their old rank.
//!    All destinations that block senders on the new rank block them. The new rank blocks them too if it is full
//!    ([`FlowControl::blocking`]). So migrating or inserting a chunk does not bypass flow control.
//! 5. *Broadcasts* go to all ranks through rank 0. A rank has one window for its broadcasts. Each broadcast counts with
//!    its bytes on the rank with the [most receivers](receivers). A broadcast carries the request for an ack to all
//!    ranks. A rank defers its ack if any of its chunks has received a broadcast since the last request. It
//!    acknowledges once it is not full and has no incoming chunk. Rank 0 acknowledges for all ranks, see
//!    [`broadcast_acks`].
//! 6. *Stalls.* A full rank that can run only parked entries reports to rank 0 the destinations that block these
//!    entries ([`FlowControl::report_stall`]). Rank 0 finds the stalled ranks that wait only for each other or for
//!    themselves, and sends each a `Deadlocked` ([`StallDetector::take_deadlocked`]). The first time, each rank runs
//!    its parked entries once, because its queued messages may be for a blocked chunk. A rank that stalls again, and
//!    has been full since, doubles its limit to at least twice its queued bytes. If the rank waits for others, it
//!    doubles its windows too ([`FlowControl::resolve_stall`]). A rank that waits for its broadcasts waits for the
//!    ranks that defer the ack of its first unacknowledged broadcast.
//! 7. *Syncs.* A full rank does not stall if the end of a sync would bring it below its low watermark: it waits for
//!    that end. The rank cannot tell whether the sync waits for a chunk that this rank blocks. So the rank doubles its
//!    limit after a backoff, a time that doubles with each use ([`FlowControl::backoff_expired`]).
//! 8. *Migration.* A chunk that leaves takes its messages along, so its old rank may fall below its low watermark. Then
//!    the deferred acks of the old rank go along ([`FlowControl::hand_over_acks`]). The new rank defers these acks and
//!    sends a `DeferredAckMoved` to each rank that waits for one. That rank then counts these bytes as in flight to the
//!    new rank ([`FlowControl::count_moved`]). If the old rank blocks chunks of its own, it counts the moved bytes as
//!    sent by these chunks to the new rank.
//!
//! # Proof that memory is bounded
//!
//! 1. A rank holds at most the sum of its limit, a window per sending rank, a window per broadcasting rank, and what
//!    one run of each of their chunks sends. By rules 1 and 2 a chunk above a window does not run again.
//! 2. While chunks with messages are on their way to a rank, unblocked chunks may send it as much as its limit more.
//!    The messages that an incoming chunk brings come on top; they were within the bound of its old rank. The chunk
//!    also brings its own copy of each broadcast that it shared with chunks that stay.
//! 3. Limits and windows grow only by rules 6 and 7: where all ranks stall, or in proportion to the time of a sync.
//! 4. A chain in which some chunk consumes never stalls as a whole. A chunk that consumes and sends nothing is blocked
//!    at most until its first run, so its rank runs it.
//! 5. Limits and windows double, so a program that needs more at once stalls a few times and never again.
//!
//! # Proof that there is no deadlock
//!
//! 1. A parked entry waits for full ranks or for broadcasts. A rank that is not full acknowledges (rule 1), and the
//!    bytes after the last request are less than half a window. Broadcasts wait for ranks that are full or have
//!    incoming chunks.
//! 2. Incoming chunks arrive: a migration waits for no parked chunk.
//! 3. A full rank that runs an entry falls below its low watermark, parks the entry, stalls (rule 6), or waits for a
//!    sync. A rank that waits for a sync doubles its limit in the end (rule 7).
//! 4. A stalled rank that waits for a rank that is not stalled is acknowledged in time.
//! 5. Rank 0 resolves all other stalls: it receives the last report, and nothing changes for these ranks before its
//!    answer. If a rank has unparked an entry meanwhile, its stall has another number, and the rank ignores the answer.
//!
//! A rank with a parked entry is not idle and does not reply to the search for quiescence. Once all chunks have come, a
//! sync needs no parked chunk, and a migration holds a chunk even if its entry is parked. Messages to a chunk that does
//! not exist, or is not ready for them, are not counted as queued. No rank can predict when such a message will be
//! read.
//!
//! *A gap.* The deferred ack of a broadcast does not go along with a chunk. Each move of a chunk that receives
//! broadcasts slowly lets the senders of these broadcasts be a window further ahead.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::blocked::BlockedChunks;
use self::broadcast_acks::BroadcastAcks;
use self::credit::Credits;
use self::receivers::Receivers;
use self::stall::{Backoff, Recovery, Stall};
use super::collectives::tree::Tree;
use crate::ids::{ArrayId, CellId, Rank};
use crate::trace::queued_bytes::{QueuedBytes, QueuedBytesGuard};

mod blocked;
pub(crate) mod broadcast_acks;
mod credit;
pub(crate) mod receivers;
mod stall;
#[cfg(test)]
mod tests;

pub(crate) use self::credit::SendOutcome;
pub(crate) use self::stall::{StallDetector, StallReport};

/// A rank, or all ranks, that may block a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Destination {
    Rank(Rank),
    /// All ranks, which have not acknowledged the broadcasts of this rank.
    AllRanks,
}

/// A packet of flow control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FlowPacket {
    /// Requests an ack of `bytes` bytes of messages, sent since the last request.
    AckRequest { bytes: u64 },
    /// Acknowledges bytes of messages.
    Ack { bytes: u64 },
    /// The sender defers the ack of `bytes` bytes sent to `first_receiver`, since a chunk has brought their messages.
    DeferredAckMoved { first_receiver: Rank, bytes: u64 },
    /// The sender and all ranks below it acknowledge `more` further broadcasts with a request for an ack. To the
    /// parent.
    BroadcastAck { more: u64 },
    /// All ranks acknowledge broadcasts of `bytes` bytes. To the rank that made them.
    BroadcastAckedByAll { bytes: u64 },
    /// The sender or a rank below it has `chunks` chunks of an array, at least twice the known maximum. To the parent.
    ReceiversGrew { array: ArrayId, chunks: u64 },
    /// A rank has `chunks` chunks of an array, the new maximum. Down the tree.
    MaxReceivers { array: ArrayId, chunks: u64 },
    /// The sender has stalled. To rank 0.
    Stalled { number: u64, report: StallReport },
    /// The stall of this number has ended. To rank 0.
    StallEnded { number: u64 },
    /// The stall of this number is part of a deadlock. From rank 0.
    Deadlocked { number: u64 },
}

impl FlowPacket {
    pub(crate) fn copy_to_child(&self) -> Option<FlowPacket> {
        matches!(self, FlowPacket::MaxReceivers { .. }).then(|| self.clone())
    }
}

/// The state of one rank for flow control.
pub(crate) struct Flow {
    pub(crate) control: FlowControl,
    pub(crate) broadcast_acks: BroadcastAcks,
    pub(crate) receivers: Receivers,
    /// Used by rank 0 only.
    pub(crate) stall_detector: StallDetector,
}

impl Flow {
    /// `populations` is the initial number of chunks of each array.
    pub(crate) fn new(tree: &Tree, control: FlowControl, populations: &[u64]) -> Flow {
        Flow {
            control,
            broadcast_acks: BroadcastAcks::new(tree),
            receivers: Receivers::new(populations, tree.ranks),
            stall_detector: StallDetector::default(),
        }
    }
}

/// The response of a stalled rank to a deadlock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StallAction {
    /// These ready entries are no longer parked.
    Unpark(Vec<CellId>),
    /// The limit grows, so that more bytes may be queued.
    GrowLimit,
}

/// The bytes in flight, blocked chunks and stalls of one rank, by the rules above.
#[derive(Debug)]
pub(crate) struct FlowControl {
    me: Rank,
    credits: Credits,
    blocked: BlockedChunks,
    /// Queued bytes for chunks that are on their way to this rank.
    incoming_bytes: QueuedBytesGuard,
    stall: Stall,
    backoff: Backoff,
}

impl FlowControl {
    /// The rank `me` of `ranks`, with this limit of queued bytes.
    pub(crate) fn new(me: Rank, ranks: u32, limit: u64, queued: &Arc<QueuedBytes>) -> FlowControl {
        FlowControl {
            me,
            credits: Credits::new(ranks, limit),
            blocked: BlockedChunks::default(),
            incoming_bytes: queued.guard(0),
            stall: Stall::default(),
            backoff: Backoff::default(),
        }
    }

    /// A rank that is never full.
    #[cfg(test)]
    pub(crate) fn without_limit(me: Rank) -> FlowControl {
        FlowControl::new(me, 1, u64::MAX, &Arc::default())
    }

    /// Bytes are queued for chunks on their way to this rank.
    pub(crate) fn add_incoming(&mut self, bytes: u64) {
        self.incoming_bytes.change(bytes as i64);
    }

    /// Bytes are no longer queued for incoming chunks.
    pub(crate) fn remove_incoming(&mut self, bytes: u64) {
        self.incoming_bytes.change(-(bytes as i64));
    }

    /// Counts bytes as queued for as long as the guard exists.
    pub(crate) fn track(&self, bytes: u64) -> QueuedBytesGuard {
        self.incoming_bytes.another(bytes as i64)
    }

    /// Bytes leave for another rank (rule 1).
    #[inline]
    pub(crate) fn count_sent(&mut self, to: Rank, bytes: u64) -> SendOutcome {
        self.credits.count_sent(to, bytes)
    }

    /// Bytes leave for all ranks (rule 5).
    pub(crate) fn count_broadcast(&mut self, bytes: u64) -> SendOutcome {
        self.credits.count_broadcast(bytes)
    }

    /// Takes the bytes since the last request for an ack, for the request that is sent now (rule 1).
    pub(crate) fn take_ack_request(&mut self, to: Destination) -> u64 {
        self.credits.take_ack_request(to)
    }

    /// Another rank requests an ack (rule 1).
    pub(crate) fn defer_ack(&mut self, to: Rank, bytes: u64) {
        self.credits.defer_ack(to, bytes);
    }

    /// Takes the acks to send now that this rank is not full, as pairs of receiver and bytes (rule 1).
    pub(crate) fn take_deferred_acks(&mut self) -> Vec<(Rank, u64)> {
        self.credits.take_deferred_acks()
    }

    /// This rank is not full, or no longer. Returns the entries that are no longer parked (rule 2).
    pub(crate) fn below_low_watermark(&mut self) -> Vec<CellId> {
        self.stall.below_low_watermark();
        self.backoff.reset();
        self.blocked.unblock(Destination::Rank(self.me))
    }

    /// A chunk leaves with messages of `bytes` bytes, so that this rank falls below its low watermark. Takes the acks
    /// that go along, as pairs of receiver and bytes (rule 8).
    pub(crate) fn hand_over_acks(&mut self, to: Rank, bytes: u64) -> Vec<(Rank, u64)> {
        let mut deferred = self.take_deferred_acks();
        if self.blocked.any_by(Destination::Rank(self.me)) {
            self.count_moved(self.me, to, bytes);
            deferred.push((self.me, bytes));
        }
        deferred
    }

    /// Bytes in flight to `first_receiver` have moved on to `to`, which defers their ack (rule 8). If `to` now blocks
    /// senders, or is this rank, it also blocks the chunks that `first_receiver` blocks.
    pub(crate) fn count_moved(&mut self, first_receiver: Rank, to: Rank, bytes: u64) {
        let [first, second] = [first_receiver, to].map(Destination::Rank);
        if to != self.me {
            self.credits.count_moved(to, bytes);
            if !self.credits.blocks(second) {
                return;
            }
        }
        self.blocked.also_block(first, second);
    }

    /// Bytes are acknowledged. Returns the entries that are no longer parked (rule 2).
    pub(crate) fn count_acked(&mut self, by: Destination, bytes: u64) -> Vec<CellId> {
        self.credits.count_acked(by, bytes);
        if self.credits.blocks(by) { Vec::new() } else { self.blocked.unblock(by) }
    }

    /// The chunk of this cell is blocked by these destinations from now on, unless they have caught up meanwhile (rule
    /// 2).
    pub(crate) fn block(&mut self, cell: CellId, mut by: Vec<Destination>) {
        by.retain(|&destination| {
            destination == Destination::Rank(self.me) || self.credits.blocks(destination)
        });
        self.blocked.block(cell, by);
    }

    pub(crate) fn has_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    pub(crate) fn has_parked(&self) -> bool {
        self.blocked.has_parked()
    }

    /// Parks the ready entry of a cell if its chunk is blocked. True if so (rule 3).
    pub(crate) fn park_if_blocked(&mut self, cell: CellId) -> bool {
        self.blocked.park(cell)
    }

    /// The chunk of this cell is about to leave: nothing blocks it any more. True if its entry was parked.
    pub(crate) fn prepare_leave(&mut self, cell: CellId) -> bool {
        self.blocked.prepare_leave(cell)
    }

    /// The chunk of this cell leaves. True if it was blocked when `prepare_leave` was called, or has been since (rule
    /// 4).
    pub(crate) fn leave(&mut self, cell: CellId) -> bool {
        self.blocked.leave(cell)
    }

    /// All destinations that block senders on this rank now: they block a chunk that comes here blocked (rule 4).
    pub(crate) fn blocking(&self) -> Vec<Destination> {
        self.credits.blocking()
    }

    /// This rank is full and has nothing to run. `first_deferred_ack` is the first broadcast with a deferred ack here.
    /// Returns the number of the stall and the report to rank 0, if any entry is parked and the report is new (rule 6).
    pub(crate) fn report_stall(&mut self, first_deferred_ack: Option<u64>) -> Option<(u64, StallReport)> {
        self.stall.report(StallReport { waits_for: self.blocked.awaited(), first_deferred_ack })
    }

    /// Entries were unparked. Returns the number of the stall that this ends, if rank 0 has its report (rule 6).
    pub(crate) fn end_stall(&mut self) -> Option<u64> {
        self.stall.end()
    }

    /// A `Deadlocked` for the stall of this number has come. None if the stall has ended (rule 6).
    pub(crate) fn resolve_stall(&mut self, number: u64) -> Option<StallAction> {
        Some(match self.stall.resolve(number)? {
            Recovery::Retry => StallAction::Unpark(self.blocked.unblock_parked()),
            Recovery::GrowLimit { waits_for } => {
                if waits_for.iter().any(|&awaited| awaited != Destination::Rank(self.me)) {
                    self.credits.grow();
                }
                StallAction::GrowLimit
            }
        })
    }

    /// This rank is full. Returns how long it has waited for a sync, ns, if it is to raise its limit now (rule 7).
    pub(crate) fn backoff_expired(&mut self, waits_for_sync: bool, now_ns: u64) -> Option<u64> {
        self.backoff.expired(waits_for_sync, now_ns)
    }

    /// A sync has ended (rule 7).
    pub(crate) fn sync_ended(&mut self) {
        self.backoff.reset();
    }

    /// Time at which this rank will raise its limit, ns (rule 7).
    pub(crate) fn backoff_until_ns(&self) -> Option<u64> {
        self.backoff.until_ns()
    }
}
