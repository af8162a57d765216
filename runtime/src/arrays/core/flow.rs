//! Flow control: a chunk that has sent to a rank which has not caught up does not run again until that rank has.
//!
//! # Words
//!
//! The *queued bytes* of a rank are the bytes of messages in its mailboxes, and of messages that chunks defer while they wait
//! at a sync. They include all that waits for incoming chunks: messages that the chunks bring, pending messages, and
//! broadcasts that they are still to receive. A rank becomes *full* above its limit, the high watermark. It stays full until
//! it is below its *low watermark*, half the limit, or raises the limit. Bytes *in flight* to a rank were sent to it and are
//! not acknowledged. A chunk is *blocked* by ranks it has sent to, and by the *broadcasts* if it has made some. The ready
//! entry of a blocked chunk is *parked* until nothing blocks the chunk.
//!
//! # Rules
//!
//! 1. *Acks.* A sender requests an ack of the bytes since its last request, four times per window or more often
//!    ([`FlowControl::count_sent`]). A receiver that is not full acknowledges at once. A full receiver defers the ack
//!    ([`FlowControl::defer_ack`]) until it is no longer full ([`FlowControl::below_low_watermark`]). Acknowledged bytes
//!    are no longer in flight.
//! 2. *Blocking.* Another rank blocks a sender once more than a window is in flight to it, until half a window or less is
//!    ([`FlowControl::block`], [`FlowControl::count_acked`]). The sender's own rank blocks it while that rank is full.
//! 3. *Scope.* A blocked chunk handles no message, not even a deferred one ([`FlowControl::park_if_blocked`]). All other
//!    chunks go on. The packets of protocols are never held back, except acks.
//! 4. *No way past.* A chunk that was blocked when it left, and an inserted chunk, are blocked by all destinations that block
//!    on their new rank. That rank blocks them too if it is full ([`FlowControl::blocking`]). Migrating or inserting a chunk
//!    therefore cannot bypass flow control.
//! 5. *Broadcasts* go to all ranks by way of rank 0. A rank has one window for its broadcasts. Each broadcast counts with its
//!    bytes on the rank with the [most receivers](receivers). The request for an ack travels with a broadcast to all ranks. A
//!    rank where chunks have received any broadcast since the last request defers its ack. It acknowledges as soon as it is not
//!    full and no chunk is on its way to it. Rank 0 acknowledges for all, see [`broadcast_acks`].
//! 6. *Stalls.* A full rank that can run only parked entries reports to rank 0 which destinations these wait for
//!    ([`FlowControl::report_stall`]). Rank 0 finds the stalled ranks that wait only for each other or for themselves,
//!    and tells them ([`StallDetector::take_deadlocked`]). The first time, each runs its parked entries once: its
//!    queued messages may be for a blocked chunk. A rank that stalls again, and has been full since, doubles its limit
//!    to at least twice its queued bytes. If it waits for others, it doubles its windows too
//!    ([`FlowControl::resolve_stall`]). A rank that waits for the broadcasts waits for the ranks that defer the ack of
//!    its first unacknowledged one.
//! 7. *Syncs.* A full rank that would be below its low watermark if a sync ended does not stall: it waits for that end. The
//!    rank cannot tell which chunk the sync waits for; it may be one that this rank blocks. So it doubles its limit after
//!    a time that doubles with each use ([`FlowControl::backoff_expired`]).
//! 8. *Migration.* A chunk may leave with its messages, so that its rank falls below its low watermark. Then the acks that the
//!    rank has deferred go along ([`FlowControl::hand_over_acks`]). The new rank defers them from now on and tells their
//!    receivers, which count these bytes as in flight to the new rank ([`FlowControl::count_moved`]). The old rank itself may
//!    block chunks of its own. It counts the moved bytes as if these chunks had sent them to the new rank.
//!
//! # Proof that memory is bounded
//!
//! 1. A rank holds at most its limit, one window per sending rank and one per broadcasting rank, and the output of
//!    one run of each of their chunks. By rules 1 and 2 a chunk above a window does not run again.
//! 2. While chunks with messages are on their way to a rank, chunks that nothing blocks may send it as much as its limit more.
//!    The messages that such a chunk brings were within the bound of its old rank, and come on top. The chunk brings a copy of a
//!    broadcast that it shared with chunks that stay.
//! 3. Limits and windows grow only by rules 6 and 7: where all ranks stall, or in proportion to the time of a sync.
//! 4. A chain in which some chunk consumes never stalls as a whole. A chunk that consumes and sends nothing is blocked at most
//!    until it first runs, so its rank runs it.
//! 5. Limits and windows double, so a program that needs more at once stalls a few times and never again.
//!
//! # Proof that there is no deadlock
//!
//! 1. A parked entry waits for full ranks or for the broadcasts. A rank that is not full acknowledges (rule 1), and the bytes
//!    after the last request are less than half a window. The broadcasts wait for ranks that are full or await chunks.
//! 2. Chunks on their way arrive: a migration waits for no parked chunk.
//! 3. A full rank that runs something falls below its low watermark, parks what it runs, stalls (rule 6), or waits for a
//!    sync. A rank that waits for a sync doubles its limit in the end (rule 7).
//! 4. A stalled rank that waits for a rank that is not stalled is acknowledged in time.
//! 5. Rank 0 tells all other stalled ranks: it hears of the last of them, and until it has told them nothing changes for them.
//!    If a rank has unparked an entry meanwhile, its stall has another number, and the rank ignores the answer.
//!
//! A rank with a parked entry is not idle: it does not reply to the search for quiescence. Once all chunks have come, a sync
//! needs no parked chunk. A migration holds a chunk also where its entry is parked. Messages that a chunk defers because it is
//! not ready do not count as queued: no rank knows what the chunk waits for. Messages to a chunk that does not exist do not
//! count either.
//!
//! *A gap.* The deferred ack of a broadcast does not go along with a chunk. Each move of a chunk that receives broadcasts slowly
//! lets their senders be a window further ahead.

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
    /// All ranks: they have not acknowledged the broadcasts of this rank.
    AllRanks,
}

/// A packet of flow control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FlowPacket {
    /// Requests an ack of `bytes` bytes of messages, sent since the last request.
    AckRequest { bytes: u64 },
    /// Acknowledges bytes of messages.
    Ack { bytes: u64 },
    /// The sender defers the ack of `bytes` bytes that were sent to `first_receiver`: a chunk has brought their messages.
    DeferredAckMoved { first_receiver: Rank, bytes: u64 },
    /// The sender and all ranks below it acknowledge `more` further broadcasts with a request for an ack. To the parent.
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
    /// The stall of this number does not end by itself.
    Deadlocked { number: u64 },
}

impl FlowPacket {
    /// A copy for a child in the tree.
    pub(crate) fn copy_to_child(&self) -> Option<FlowPacket> {
        matches!(self, FlowPacket::MaxReceivers { .. }).then(|| self.clone())
    }
}

/// One rank's flow control.
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
    /// More bytes may be queued.
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

    /// Takes the acks to send now that this rank is not full: receivers and bytes (rule 1).
    pub(crate) fn take_deferred_acks(&mut self) -> Vec<(Rank, u64)> {
        self.credits.take_deferred_acks()
    }

    /// This rank is not full, or no longer. Returns the entries that are no longer parked (rule 2).
    pub(crate) fn below_low_watermark(&mut self) -> Vec<CellId> {
        self.stall.below_low_watermark();
        self.backoff.reset();
        self.blocked.unblock(Destination::Rank(self.me))
    }

    /// A chunk leaves with messages of `bytes` bytes, so that this rank falls below its low watermark. Takes the acks that
    /// go along, receivers and bytes (rule 8).
    pub(crate) fn hand_over_acks(&mut self, to: Rank, bytes: u64) -> Vec<(Rank, u64)> {
        let mut deferred = self.take_deferred_acks();
        if self.blocked.any_by(Destination::Rank(self.me)) {
            self.count_moved(self.me, to, bytes);
            deferred.push((self.me, bytes));
        }
        deferred
    }

    /// Bytes in flight to one rank have moved on to another, which defers their ack (rule 8). If `to` now blocks senders, or is
    /// this rank, it blocks the chunks that `first_receiver` blocks.
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

    /// The chunk of this cell is blocked by these destinations from now on, unless they have caught up meanwhile (rule 2).
    pub(crate) fn block(&mut self, cell: CellId, mut by: Vec<Destination>) {
        by.retain(|&destination| {
            destination == Destination::Rank(self.me) || self.credits.blocks(destination)
        });
        self.blocked.block(cell, by);
    }

    /// Tells whether any chunk is blocked.
    pub(crate) fn has_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Tells whether any ready entry is parked.
    pub(crate) fn has_parked(&self) -> bool {
        self.blocked.has_parked()
    }

    /// Parks the ready entry of a cell if its chunk is blocked (rule 3).
    pub(crate) fn park_if_blocked(&mut self, cell: CellId) -> bool {
        self.blocked.park(cell)
    }

    /// The chunk of this cell is about to leave: nothing blocks it any more. True if its entry was parked.
    pub(crate) fn prepare_leave(&mut self, cell: CellId) -> bool {
        self.blocked.prepare_leave(cell)
    }

    /// The chunk of this cell leaves. True if it was blocked when `prepare_leave` was called, or has been since (rule 4).
    pub(crate) fn leave(&mut self, cell: CellId) -> bool {
        self.blocked.leave(cell)
    }

    /// All destinations that block senders on this rank now: they block a chunk that comes here blocked (rule 4).
    pub(crate) fn blocking(&self) -> Vec<Destination> {
        self.credits.blocking()
    }

    /// This rank is full and has nothing to run. `first_deferred_ack` is the number of the first broadcast whose ack it defers.
    /// Returns the number of the stall and the report to rank 0, if any entry is parked and the report is new (rule 6).
    pub(crate) fn report_stall(&mut self, first_deferred_ack: Option<u64>) -> Option<(u64, StallReport)> {
        self.stall.report(StallReport { waits_for: self.blocked.awaited(), first_deferred_ack })
    }

    /// Entries were unparked. Returns the number of the stall that this ends, if rank 0 has heard of one (rule 6).
    pub(crate) fn end_stall(&mut self) -> Option<u64> {
        self.stall.end()
    }

    /// Rank 0 says that the stall of this number is part of a deadlock. None if it has ended (rule 6).
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

    /// This rank is full. Returns how long it has waited for a sync once it is to raise its limit, ns (rule 7).
    pub(crate) fn backoff_expired(&mut self, waits_for_sync: bool, now_ns: u64) -> Option<u64> {
        self.backoff.expired(waits_for_sync, now_ns)
    }

    /// A sync has ended (rule 7).
    pub(crate) fn sync_ended(&mut self) {
        self.backoff.reset();
    }

    /// When this rank will raise its limit, ns (rule 7).
    pub(crate) fn backoff_until_ns(&self) -> Option<u64> {
        self.backoff.until_ns()
    }
}
