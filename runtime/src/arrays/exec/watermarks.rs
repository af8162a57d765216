//! The workers' part of flow control: compares the queued bytes of a rank with its high and low watermark. The protocol
//! is in [`flow`](crate::arrays::core::flow).
//!
//! Each worker counts the bytes that it puts into mailboxes and the bytes that it reads. It reports the difference to
//! the rank once that is large enough. So workers do not contend for the total: a message costs two local additions.
//!
//! | transition | when |
//! |---|---|
//! | the rank becomes full | at any report |
//! | a full rank falls below its low watermark | only with the core locked, since the core has the deferred acks |

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use super::local_delivery::LocalDelivery;
use super::mailbox::PushedBy;
use super::shared::RankShared;
use super::worker::Worker;
use crate::arrays::core::command::Commands;
use crate::arrays::core::flow::{Destination, SendOutcome};
use crate::arrays::core::rank::RankCore;
use crate::arrays::core::routing::message_list::MessageList;
use crate::ids::{CellId, Rank};
use crate::trace::queued_bytes::{QueuedBytes, QueuedBytesGuard};

/// The queued bytes of a rank that its workers have reported, and the limit of the rank.
pub(crate) struct Watermarks {
    waiting: Arc<QueuedBytes>,
    limit: AtomicI64,
    /// [`FULL`] and [`BLOCKS`] in one atomic, because workers read them before each run of a chunk.
    state: AtomicU8,
}

/// The rank is full.
const FULL: u8 = 1;
/// Some chunk is blocked.
const BLOCKS: u8 = 2;

/// A worker reports at least every `UNREPORTED_MAX` bytes, and the workers together at least `REPORTS_PER_LIMIT` times
/// per limit.
const UNREPORTED_MAX: i64 = 64 << 10;
const REPORTS_PER_LIMIT: i64 = 8;

impl Watermarks {
    pub(crate) fn new(limit: u64, waiting: Arc<QueuedBytes>) -> Watermarks {
        Watermarks {
            waiting,
            limit: AtomicI64::new(limit.try_into().unwrap_or(i64::MAX)),
            state: AtomicU8::new(0),
        }
    }

    /// The gauge of one worker of a rank with `workers` workers.
    pub(crate) fn gauge(&self, workers: usize) -> QueueGauge {
        let most = (self.limit.load(Ordering::Relaxed) / REPORTS_PER_LIMIT / workers as i64)
            .clamp(1, UNREPORTED_MAX);
        QueueGauge { unreported: 0, most, least: -most, blocked_by: Vec::new() }
    }

    /// The maximum number of bytes that were queued.
    pub(crate) fn max_bytes(&self) -> u64 {
        self.waiting.bytes_max()
    }

    fn add(&self, bytes: i64) {
        let waiting = self.waiting.add(bytes);
        if bytes > 0 {
            self.fill(waiting);
        }
    }

    /// Makes the rank full if the queued bytes, which have grown to `waiting`, are above its limit.
    fn fill(&self, waiting: i64) {
        if waiting > self.limit.load(Ordering::Relaxed) && !self.is_full() {
            self.set(FULL, true);
        }
    }

    fn is(&self, what: u8) -> bool {
        self.state.load(Ordering::Relaxed) & what != 0
    }

    fn set(&self, what: u8, now: bool) {
        if now {
            self.state.fetch_or(what, Ordering::Relaxed);
        } else {
            self.state.fetch_and(!what, Ordering::Relaxed);
        }
    }

    /// Counts the bytes of a message that is stored once for several chunks as queued, until the guard is dropped.
    pub(super) fn track(&self, bytes: u64) -> QueuedBytesGuard {
        let held = self.waiting.guard(bytes as i64);
        self.fill(self.waiting.published());
        held
    }

    pub(super) fn is_full(&self) -> bool {
        self.is(FULL)
    }

    /// Sends the deferred acks unless the rank is full. A full rank that is below its low watermark stops being full.
    /// Called with the core locked.
    pub(super) fn check_low_watermark(&self, core: &mut RankCore, out: &mut Commands) {
        // Messages for incoming chunks may have filled the rank just now.
        self.fill(self.waiting.published());
        if self.is_full() && self.is_below_low_watermark() {
            self.set(FULL, false);
        }
        if !self.is_full() {
            core.below_low_watermark(out);
        }
    }

    fn is_below_low_watermark(&self) -> bool {
        self.excess() == 0
    }

    /// True if the rank is full, and would be below its low watermark with this number of bytes less.
    pub(super) fn is_below_without(&self, bytes: u64) -> bool {
        let excess = self.excess();
        self.is_full() && excess > 0 && excess <= bytes
    }

    /// Number of queued bytes above the low watermark.
    fn excess(&self) -> u64 {
        (self.waiting.published() - self.limit.load(Ordering::Relaxed) / 2).max(0).unsigned_abs()
    }

    /// Lets the core check whether the backoff of a full rank has expired.
    fn check_backoff(&self, core: &mut RankCore, is_idle: bool, now_ns: u64, out: &mut Commands) {
        if self.is_full() {
            core.above_high_watermark(self.excess(), is_idle, now_ns, out);
        }
    }

    /// Doubles the limit, to at least twice the queued bytes. Called with the core locked.
    pub(super) fn grow_limit(&self) {
        let (limit, waiting) = (&self.limit, self.waiting.published());
        limit.store(limit.load(Ordering::Relaxed).max(waiting).saturating_mul(2), Ordering::Relaxed);
        self.set(FULL, false);
    }

    /// Updates the flags after the core may have blocked its first chunk, unblocked its last one, or queued bytes.
    /// Called with the core locked.
    #[inline]
    pub(super) fn update(&self, core: &RankCore) {
        self.fill(self.waiting.published());
        if core.has_blocked() != self.is(BLOCKS) {
            self.set(BLOCKS, core.has_blocked());
        }
    }

    /// True if the rank is full or an entry may have to be parked. A worker checks this before it runs a chunk.
    #[inline]
    pub(super) fn may_block(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }
}

/// The bytes that a worker has counted and not reported, and the destinations that block its current chunk.
pub(crate) struct QueueGauge {
    /// Bytes put into mailboxes less bytes read, since the last report.
    unreported: i64,
    /// Values of `unreported` at which the worker reports. While the rank is full, the worker reports each message, to
    /// check whether the rank is still full.
    most: i64,
    least: i64,
    blocked_by: Vec<Destination>,
}

impl QueueGauge {
    /// True if the current chunk has to stop.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        !self.blocked_by.is_empty()
    }

    fn blocked_by(&mut self, destination: Destination) {
        if !self.blocked_by.contains(&destination) {
            self.blocked_by.push(destination);
        }
    }
}

impl LocalDelivery<'_> {
    /// Counts a message that was put into a mailbox.
    #[inline(always)]
    pub(super) fn count_in(&mut self, bytes: u64, by: PushedBy) {
        self.gauge.unreported += bytes as i64;
        if self.gauge.unreported >= self.gauge.most {
            self.report_in(by);
        }
    }

    #[cold]
    fn report_in(&mut self, by: PushedBy) {
        let (shared, gauge) = (self.shared, &mut self.gauge);
        shared.watermarks.add(std::mem::take(&mut gauge.unreported));
        if !shared.watermarks.is_full() {
            gauge.most = -gauge.least;
            return;
        }
        gauge.most = i64::MIN;
        if by == PushedBy::Chunk {
            gauge.blocked_by(Destination::Rank(shared.info.rank));
        }
    }
}

impl Worker<'_> {
    /// Counts a message that was taken out of its mailbox to be handled.
    #[inline(always)]
    pub(super) fn count_out(&mut self, bytes: u64) {
        self.local_delivery.gauge.unreported -= bytes as i64;
        if self.local_delivery.gauge.unreported <= self.local_delivery.gauge.least {
            self.report_bytes();
        }
    }

    /// Reports the counted bytes to the rank, which may fall below its low watermark.
    #[cold]
    pub(super) fn report_bytes(&mut self) {
        let watermarks = &self.shared.watermarks;
        watermarks.add(std::mem::take(&mut self.local_delivery.gauge.unreported));
        self.check_low_watermark();
    }

    /// Lets the core send deferred acks if the rank has fallen below its low watermark.
    #[cold]
    pub(super) fn check_low_watermark(&mut self) {
        let watermarks = &self.shared.watermarks;
        if watermarks.is_full() && watermarks.is_below_low_watermark() {
            self.with_core(|core, _, out| watermarks.check_low_watermark(core, out));
        }
    }

    /// Applies flow control after messages were sent to another rank.
    #[cold]
    pub(super) fn after_send(&mut self, to: Rank, sent: SendOutcome) {
        if sent.blocks {
            self.local_delivery.gauge.blocked_by(Destination::Rank(to));
        }
        if sent.ack_request_due {
            self.with_core(|core, _, out| core.request_ack(to, out));
        }
    }

    /// Makes these destinations block the current chunk; its own rank only if that rank is full.
    pub(super) fn blocked_by(&mut self, destinations: impl IntoIterator<Item = Destination>) {
        let (watermarks, me) = (&self.shared.watermarks, Destination::Rank(self.shared.info.rank));
        let blocks = |destination: &Destination| *destination != me || watermarks.is_full();
        destinations
            .into_iter()
            .filter(blocks)
            .for_each(|destination| self.local_delivery.gauge.blocked_by(destination));
    }

    /// Discards the blocking destinations of messages that no running chunk has sent.
    pub(super) fn clear_blocked(&mut self) {
        self.local_delivery.gauge.blocked_by.clear();
    }

    /// Blocks the chunk of this cell, which has stopped.
    #[cold]
    pub(super) fn block(&mut self, cell: CellId) {
        let (watermarks, by) =
            (&self.shared.watermarks, std::mem::take(&mut self.local_delivery.gauge.blocked_by));
        self.with_core(|core, _, out| {
            core.block(cell, by);
            watermarks.check_low_watermark(core, out);
        });
    }

    /// Checks before a run, if [`Watermarks::may_block`]. Parks the entry if its chunk is blocked; true if so. First
    /// checks the low watermark, since other workers read messages too.
    #[cold]
    pub(super) fn park_if_blocked(&mut self, entry: CellId) -> bool {
        self.check_low_watermark();
        self.shared.watermarks.is(BLOCKS) && self.shared.control_plane.lock().rank.park_if_blocked(entry)
    }
}

/// The total bytes of messages that leave with their chunk, or are dropped with it.
pub(super) fn bytes_of(mail: &MessageList) -> u64 {
    mail.iter().map(|node| node.message.bytes).sum()
}

/// Reports to the core that its workers have nothing to run.
pub(super) fn idle(shared: &RankShared, core: &mut RankCore, now_ns: u64, out: &mut Commands) {
    let watermarks = &shared.watermarks;
    if watermarks.is_full() {
        core.full_and_idle(watermarks.excess(), out);
    }
    watermarks.check_backoff(core, true, now_ns, out);
    core.idle(now_ns, out);
}

/// Reports to the core that the rank may have something to run.
pub(super) fn hurry(shared: &RankShared, core: &mut RankCore, now_ns: u64, out: &mut Commands) {
    shared.watermarks.check_backoff(core, false, now_ns, out);
    core.flush_partials(out);
}
