//! The mail of a rank in bytes, and who is stopped by it: workers count what they put into mailboxes and what they read.
//!
//! What follows from it is in [`flow`](crate::arrays::core::flow). A worker counts for itself, and tells the rank
//! once that makes a difference, so that workers do not contend for the number, and a message costs an addition on either
//! side. The rank becomes full whenever that is told; it has room again only with the core locked, where the answers are
//! that it owes.

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

/// The mail of a rank, as far as its workers have told.
pub(crate) struct Watermarks {
    waiting: Arc<QueuedBytes>,
    limit: AtomicI64,
    /// [`FULL`] and [`BLOCKS`], in one place: workers look at it before each run of a chunk.
    state: AtomicU8,
}

/// The rank is full.
const FULL: u8 = 1;
/// Some chunk is blocked.
const BLOCKS: u8 = 2;

/// A worker tells at least every so many bytes, and eight times on the way to the limit.
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

    /// The gauge of one of so many workers.
    pub(crate) fn gauge(&self, workers: usize) -> QueueGauge {
        let most = (self.limit.load(Ordering::Relaxed) / REPORTS_PER_LIMIT / workers as i64)
            .clamp(1, UNREPORTED_MAX);
        QueueGauge { unreported: 0, most, least: -most, blocked_by: Vec::new() }
    }

    /// The most bytes that have waited.
    pub(crate) fn max_bytes(&self) -> u64 {
        self.waiting.bytes_max()
    }

    fn add(&self, bytes: i64) {
        let waiting = self.waiting.add(bytes);
        if bytes > 0 {
            self.fill(waiting);
        }
    }

    /// So many bytes wait, more than before.
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

    /// So many bytes wait, in one place for several chunks.
    pub(super) fn track(&self, bytes: u64) -> QueuedBytesGuard {
        let held = self.waiting.guard(bytes as i64);
        self.fill(self.waiting.published());
        held
    }

    pub(super) fn is_full(&self) -> bool {
        self.is(FULL)
    }

    /// Answers what is owed if there is room. With the core locked.
    pub(super) fn check_low_watermark(&self, core: &mut RankCore, out: &mut Commands) {
        // What has come for chunks on their way may have filled it just now.
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

    /// Tells whether the rank is full, and would have room if so many bytes less waited.
    pub(super) fn is_below_without(&self, bytes: u64) -> bool {
        let excess = self.excess();
        self.is_full() && excess > 0 && excess <= bytes
    }

    /// The bytes that wait above those with which a full rank has room again.
    fn excess(&self) -> u64 {
        (self.waiting.published() - self.limit.load(Ordering::Relaxed) / 2).max(0).unsigned_abs()
    }

    /// The rank may have been full for long.
    fn check_backoff(&self, core: &mut RankCore, is_idle: bool, now_ns: u64, out: &mut Commands) {
        if self.is_full() {
            core.above_high_watermark(self.excess(), is_idle, now_ns, out);
        }
    }

    /// Lets twice as much wait, or twice what waits. With the core locked.
    pub(super) fn grow_limit(&self) {
        let (limit, waiting) = (&self.limit, self.waiting.published());
        limit.store(limit.load(Ordering::Relaxed).max(waiting).saturating_mul(2), Ordering::Relaxed);
        self.set(FULL, false);
    }

    /// The core may have blocked a chunk, or the last one no longer; more may wait with it. With the core locked.
    #[inline]
    pub(super) fn update(&self, core: &RankCore) {
        self.fill(self.waiting.published());
        if core.has_blocked() != self.is(BLOCKS) {
            self.set(BLOCKS, core.has_blocked());
        }
    }

    /// Tells whether the rank is full or a entry may have to be parked: a worker sees to it before it runs a chunk.
    #[inline]
    pub(super) fn may_block(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }
}

/// What a worker has counted, and what blocks the chunk it runs.
pub(crate) struct QueueGauge {
    /// Bytes put into mailboxes, less those read, since it last told.
    unreported: i64,
    /// It tells when that is so high, or low. While the rank is full it asks at each message whether it still is.
    most: i64,
    least: i64,
    blocked_by: Vec<Destination>,
}

impl QueueGauge {
    /// Tells whether the chunk that runs has to stop.
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
    /// A message was put into a mailbox.
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
    /// A message was taken out of its mailbox, to be handled.
    #[inline(always)]
    pub(super) fn count_out(&mut self, bytes: u64) {
        self.local_delivery.gauge.unreported -= bytes as i64;
        if self.local_delivery.gauge.unreported <= self.local_delivery.gauge.least {
            self.report_bytes();
        }
    }

    /// Tells the rank what was counted. It may have room now.
    #[cold]
    pub(super) fn report_bytes(&mut self) {
        let watermarks = &self.shared.watermarks;
        watermarks.add(std::mem::take(&mut self.local_delivery.gauge.unreported));
        self.check_low_watermark();
    }

    /// The rank may have room now.
    #[cold]
    pub(super) fn check_low_watermark(&mut self) {
        let watermarks = &self.shared.watermarks;
        if watermarks.is_full() && watermarks.is_below_low_watermark() {
            self.with_core(|core, _, out| watermarks.check_low_watermark(core, out));
        }
    }

    /// A message, or several, have left for another rank.
    #[cold]
    pub(super) fn after_send(&mut self, to: Rank, sent: SendOutcome) {
        if sent.blocks {
            self.local_delivery.gauge.blocked_by(Destination::Rank(to));
        }
        if sent.ack_request_due {
            self.with_core(|core, _, out| core.request_ack(to, out));
        }
    }

    /// These press the chunk that runs; its own rank does if it is full.
    pub(super) fn blocked_by(&mut self, destinations: impl IntoIterator<Item = Destination>) {
        let (watermarks, me) = (&self.shared.watermarks, Destination::Rank(self.shared.info.rank));
        let blocks = |destination: &Destination| *destination != me || watermarks.is_full();
        destinations
            .into_iter()
            .filter(blocks)
            .for_each(|destination| self.local_delivery.gauge.blocked_by(destination));
    }

    /// What was sent now was no chunk's that runs.
    pub(super) fn clear_blocked(&mut self) {
        self.local_delivery.gauge.blocked_by.clear();
    }

    /// The chunk of this cell has stopped because it is blocked.
    #[cold]
    pub(super) fn block(&mut self, cell: CellId) {
        let (watermarks, by) =
            (&self.shared.watermarks, std::mem::take(&mut self.local_delivery.gauge.blocked_by));
        self.with_core(|core, _, out| {
            core.block(cell, by);
            watermarks.check_low_watermark(core, out);
        });
    }

    /// Before a run while something is tight: others may have taken what this rank held. Parks the entry if its chunk is
    /// blocked.
    #[cold]
    pub(super) fn park_if_blocked(&mut self, entry: CellId) -> bool {
        self.check_low_watermark();
        self.shared.watermarks.is(BLOCKS) && self.shared.control_plane.lock().rank.park_if_blocked(entry)
    }
}

/// The bytes of messages that leave with their chunk, or are dropped with it.
pub(super) fn bytes_of(mail: &MessageList) -> u64 {
    mail.iter().map(|node| node.message.bytes).sum()
}

/// The rank has nothing to do, as far as its workers know.
pub(super) fn idle(shared: &RankShared, core: &mut RankCore, now_ns: u64, out: &mut Commands) {
    let watermarks = &shared.watermarks;
    if watermarks.is_full() {
        core.full_and_idle(watermarks.excess(), out);
    }
    watermarks.check_backoff(core, true, now_ns, out);
    core.idle(now_ns, out);
}

/// It may have something to do.
pub(super) fn hurry(shared: &RankShared, core: &mut RankCore, now_ns: u64, out: &mut Commands) {
    shared.watermarks.check_backoff(core, false, now_ns, out);
    core.flush_partials(out);
}
