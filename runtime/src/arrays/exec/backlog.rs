//! The mail of a rank in bytes, and who is stopped by it: workers count what they put into mailboxes and what they read.
//!
//! What follows from it is in [`pressure`](crate::arrays::core::pressure). A worker counts for itself, and tells the rank
//! once that makes a difference, so that workers do not contend for the number, and a message costs an addition on either
//! side. The rank becomes full whenever that is told; it has room again only with the core locked, where the answers are
//! that it owes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use super::mailbox::By;
use super::mailroom::Mailroom;
use super::shared::RankShared;
use super::worker::Worker;
use crate::arrays::core::mail::Mail;
use crate::arrays::core::pressure::{Presser, Sent};
use crate::arrays::core::rank::{Actions, RankCore};
use crate::ids::{CellId, Rank};
use crate::trace::queued_bytes::{QueuedBytes, QueuedBytesGuard};

/// The mail of a rank, as far as its workers have told.
pub(crate) struct Backlog {
    waiting: Arc<QueuedBytes>,
    limit: AtomicI64,
    /// [`FULL`] and [`PRESSES`], in one place: workers look at it before each run of a chunk.
    state: AtomicU8,
}

/// The rank is full.
const FULL: u8 = 1;
/// Some chunk is pressed.
const PRESSES: u8 = 2;

/// A worker tells at least every so many bytes, and eight times on the way to the limit.
const UNTOLD_MAX: i64 = 64 << 10;
const TELLS: i64 = 8;

impl Backlog {
    pub(crate) fn new(limit: u64, waiting: Arc<QueuedBytes>) -> Backlog {
        Backlog {
            waiting,
            limit: AtomicI64::new(limit.try_into().unwrap_or(i64::MAX)),
            state: AtomicU8::new(0),
        }
    }

    /// The account of one of so many workers.
    pub(crate) fn account(&self, workers: usize) -> Account {
        let most = (self.limit.load(Ordering::Relaxed) / TELLS / workers as i64).clamp(1, UNTOLD_MAX);
        Account { untold: 0, most, least: -most, pressed_by: Vec::new() }
    }

    /// The most bytes that have waited.
    pub(crate) fn waiting_max(&self) -> u64 {
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
    pub(super) fn hold(&self, bytes: u64) -> QueuedBytesGuard {
        let held = self.waiting.guard(bytes as i64);
        self.fill(self.waiting.published());
        held
    }

    pub(super) fn is_full(&self) -> bool {
        self.is(FULL)
    }

    /// Answers what is owed if there is room. With the core locked.
    pub(super) fn answer(&self, core: &mut RankCore, out: &mut Actions) {
        // What has come for chunks on their way may have filled it just now.
        self.fill(self.waiting.published());
        if self.is_full() && self.has_room() {
            self.set(FULL, false);
        }
        if !self.is_full() {
            core.has_room(out);
        }
    }

    fn has_room(&self) -> bool {
        self.excess() == 0
    }

    /// Tells whether the rank is full, and would have room if so many bytes less waited.
    pub(super) fn has_room_without(&self, bytes: u64) -> bool {
        let excess = self.excess();
        self.is_full() && excess > 0 && excess <= bytes
    }

    /// The bytes that wait above those with which a full rank has room again.
    fn excess(&self) -> u64 {
        (self.waiting.published() - self.limit.load(Ordering::Relaxed) / 2).max(0).unsigned_abs()
    }

    /// The rank may have been full for long.
    fn look_at_clock(&self, core: &mut RankCore, is_idle: bool, now_ns: u64, out: &mut Actions) {
        if self.is_full() {
            core.full(self.excess(), is_idle, now_ns, out);
        }
    }

    /// Lets twice as much wait, or twice what waits. With the core locked.
    pub(super) fn widen(&self) {
        let (limit, waiting) = (&self.limit, self.waiting.published());
        limit.store(limit.load(Ordering::Relaxed).max(waiting).saturating_mul(2), Ordering::Relaxed);
        self.set(FULL, false);
    }

    /// The core may have pressed a chunk, or the last one no longer; more may wait with it. With the core locked.
    #[inline]
    pub(super) fn follow(&self, core: &RankCore) {
        self.fill(self.waiting.published());
        if core.has_pressed() != self.is(PRESSES) {
            self.set(PRESSES, core.has_pressed());
        }
    }

    /// Tells whether the rank is full or a token may have to be parked: a worker sees to it before it runs a chunk.
    #[inline]
    pub(super) fn is_tight(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }
}

/// What a worker has counted, and what presses the chunk it runs.
pub(crate) struct Account {
    /// Bytes put into mailboxes, less those read, since it last told.
    untold: i64,
    /// It tells when that is so high, or low. While the rank is full it asks at each message whether it still is.
    most: i64,
    least: i64,
    pressed_by: Vec<Presser>,
}

impl Account {
    /// Tells whether the chunk that runs has to stop.
    #[inline]
    pub(super) fn is_pressed(&self) -> bool {
        !self.pressed_by.is_empty()
    }

    fn pressed_by(&mut self, presser: Presser) {
        if !self.pressed_by.contains(&presser) {
            self.pressed_by.push(presser);
        }
    }
}

impl Mailroom<'_> {
    /// A message was put into a mailbox.
    #[inline(always)]
    pub(super) fn count_in(&mut self, bytes: u64, by: By) {
        self.account.untold += bytes as i64;
        if self.account.untold >= self.account.most {
            self.tell_in(by);
        }
    }

    #[cold]
    fn tell_in(&mut self, by: By) {
        let (shared, account) = (self.shared, &mut self.account);
        shared.backlog.add(std::mem::take(&mut account.untold));
        if !shared.backlog.is_full() {
            account.most = -account.least;
            return;
        }
        account.most = i64::MIN;
        if by == By::Chunk {
            account.pressed_by(Presser::Rank(shared.facts.rank));
        }
    }
}

impl Worker<'_> {
    /// A message was taken out of its mailbox, to be handled.
    #[inline(always)]
    pub(super) fn count_out(&mut self, bytes: u64) {
        self.mailroom.account.untold -= bytes as i64;
        if self.mailroom.account.untold <= self.mailroom.account.least {
            self.tell();
        }
    }

    /// Tells the rank what was counted. It may have room now.
    #[cold]
    pub(super) fn tell(&mut self) {
        let backlog = &self.shared.backlog;
        backlog.add(std::mem::take(&mut self.mailroom.account.untold));
        self.ask_room();
    }

    /// The rank may have room now.
    #[cold]
    pub(super) fn ask_room(&mut self) {
        let backlog = &self.shared.backlog;
        if backlog.is_full() && backlog.has_room() {
            self.with_core(|core, _, out| backlog.answer(core, out));
        }
    }

    /// A message, or several, have left for another rank.
    #[cold]
    pub(super) fn follow_up(&mut self, to: Rank, sent: Sent) {
        if sent.presses {
            self.mailroom.account.pressed_by(Presser::Rank(to));
        }
        if sent.marks {
            self.with_core(|core, _, out| core.mark(to, out));
        }
    }

    /// These press the chunk that runs; its own rank does if it is full.
    pub(super) fn pressed_by(&mut self, pressers: impl IntoIterator<Item = Presser>) {
        let (backlog, me) = (&self.shared.backlog, Presser::Rank(self.shared.facts.rank));
        let presses = |presser: &Presser| *presser != me || backlog.is_full();
        pressers.into_iter().filter(presses).for_each(|presser| self.mailroom.account.pressed_by(presser));
    }

    /// What was sent now was no chunk's that runs.
    pub(super) fn press_nobody(&mut self) {
        self.mailroom.account.pressed_by.clear();
    }

    /// The chunk of this cell has stopped because it is pressed.
    #[cold]
    pub(super) fn press(&mut self, cell: CellId) {
        let (backlog, by) = (&self.shared.backlog, std::mem::take(&mut self.mailroom.account.pressed_by));
        self.with_core(|core, _, out| {
            core.press(cell, by);
            backlog.answer(core, out);
        });
    }

    /// Before a run while something is tight: others may have taken what this rank held. Parks the token if its chunk is
    /// pressed.
    #[cold]
    pub(super) fn parks(&mut self, token: CellId) -> bool {
        self.ask_room();
        self.shared.backlog.is(PRESSES) && self.shared.plane.lock().rank.parks(token)
    }
}

/// The bytes of messages that leave with their chunk, or are dropped with it.
pub(super) fn bytes_of(mail: &Mail) -> u64 {
    mail.iter().map(|letter| letter.message.bytes).sum()
}

/// The rank has nothing to do, as far as its workers know.
pub(super) fn idle(shared: &RankShared, core: &mut RankCore, now_ns: u64, out: &mut Actions) {
    let backlog = &shared.backlog;
    if backlog.is_full() {
        core.full_and_idle(backlog.excess(), out);
    }
    backlog.look_at_clock(core, true, now_ns, out);
    core.idle(now_ns, out);
}

/// It may have something to do.
pub(super) fn hurry(shared: &RankShared, core: &mut RankCore, now_ns: u64, out: &mut Actions) {
    shared.backlog.look_at_clock(core, false, now_ns, out);
    core.hurry(out);
}
