//! Back-flow: a chunk that has sent to a rank which has not caught up is not run again until that rank has.
//!
//! # Words
//!
//! The *waiting* bytes of a rank are those of the messages in its mailboxes, of those that chunks keep because they wait at a
//! sync, until they handle them, and of all that lies there for chunks on their way to it: what they bring, what has come
//! before them, and the broadcasts that they are still to hear.
//! Above its limit it is *full*; at half of it it has *room* again. Bytes *under way* to a rank were sent to it, and it has
//! not said that it took them in. A chunk is *blocked* by ranks it has sent to, and by the *broadcasts* if it has made some;
//! the entry of a blocked chunk is *parked*, until nothing blocks it any more.
//!
//! # Rules
//!
//! 1. Among the messages to a rank a sender puts *ack_request_due*, with the bytes since the last, four or more a window. A receiver
//!    that has room answers a mark at once, one that is full first_deferred_ack the answer until it has room. Answered bytes are no longer
//!    under way.
//! 2. A chunk is blocked by another rank once more than a window is under way to it, until it is at most half of one; by its
//!    own rank while that is full.
//! 3. A blocked chunk handles nothing, nor what it has kept; all others go on. So does everything else that ranks say to each
//!    other: nobody stops polling, and nothing but answers to ack_request_due is held back.
//! 4. A chunk that was blocked when it left comes blocked to its new rank, and one that is inserted comes blocked: by all that
//!    blocks there, and by that rank if it is full. So to go on elsewhere, or as another, is no way past.
//! 5. Broadcasts go to all ranks by way of rank 0, and a rank that makes some has one window for them, in which each counts as
//!    on the rank where [most](super::flow::receivers) hear it. A mark travels with a broadcast, to all ranks; each where chunks have
//!    heard any since the last first_deferred_ack its answer until it has room, and none is on its way to it, who may still have to hear
//!    them; rank 0 answers for all: see [`broadcast_acks`](super::flow::broadcast_acks).
//! 6. A full rank that has nothing to run, and parked entries, *stands still*, and tells rank 0 for whom they wait. Ranks that
//!    stand still and wait, by whatever way, for nobody but such ranks, themselves among them, are told so by rank 0. The
//!    first time each runs what is parked once: it may be its own mail that a chunk is held back from. One that stands
//!    still again and has had no room since *widens* its limit, to the double and to the double of what waits. Who waits for
//!    others doubles its windows too. Who waits for the broadcasts waits for the ranks that owe the answer to its first open
//!    mark: a rank that stands still says from which mark on it does.
//! 7. A full rank that would have room if a sync ended does not stand still: it waits for that. Whom the sync waits for nobody
//!    knows, and it may be a chunk that this rank blocks. So it widens once it has been so for as long as it has *patience*,
//!    which doubles with each time.
//! 8. A chunk may leave with mail, so that its rank has room. The rank then does not answer what it first_deferred_ack: that goes along, and
//!    the new rank first_deferred_ack it, and says so to whom it is owed, who counts these bytes as under way to it. Chunks of the old rank
//!    that this blocks count as if they had sent the mail.
//!
//! # What follows
//!
//! *Memory is bounded.* A rank holds its limit, a window for each rank that sends to it, one for each that broadcasts, and
//! what one run of a handler of each of their chunks leaves on each of those ranks. While chunks with mail are on their way
//! to it as much as its limit may come for them from chunks that nothing blocks. A limit grows only where all stand still,
//! or a sync does not end, then in proportion to the time that it took: a chain in which somebody consumes, however slowly,
//! never stands still as a whole, since whoever consumes and sends nothing is blocked at most until it first runs, so that
//! its rank runs it. Both double, so a program that needs more at once than they allow stands still a few times and then
//! never again.
//!
//! *No deadlock.* A parked entry waits for ranks that are full (one with room answers, and the last mark leaves less than
//! half a window unanswered), or for the broadcasts, and so for ranks that are full or to which chunks are on their way.
//! These land: a migration waits for nobody who is parked. A full rank that runs something gets room by it, or parks what it
//! runs, or stands still, or waits for a sync and widens in the end. Of ranks that stand still, those that wait for somebody
//! who does not are answered in time. The others are all told: rank 0 hears of the last of them, and until it has told them
//! nothing can change for them. If one was freed meanwhile, its *stall_number* is over, and it does not listen.
//!
//! A parked chunk is not idle: its rank answers no search for quiescence. A sync needs no chunk that is parked, once all have
//! come; migration holds a chunk also where its entry is parked. Messages that a chunk keeps because it is not ready are not
//! waiting: whom it waits for nobody knows. Nor are those for a chunk that there is not, which may never come.
//!
//! *A gap.* Broadcasts are answered for by all ranks, and no debt of theirs goes along with a chunk: each move of one that
//! hears them slowly lets them be a window further ahead.

pub(crate) mod broadcast_acks;
pub(crate) mod receivers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use crate::ids::{CellId, Rank};
use crate::trace::queued_bytes::{QueuedBytes, QueuedBytesGuard};

/// Marks in a window; windows of all other ranks in a limit.
const ACK_REQUESTS_PER_WINDOW: u64 = 4;
const WINDOWS_PER_LIMIT: u64 = 4;
/// A window is at least so long, if the limit is much longer.
const WINDOW_MIN: u64 = 64 << 10;

/// Time for which a rank is full because of a sync, ns, before it widens for the first time.
const BACKOFF_NS: u64 = 250_000_000;

/// Who blocks a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Destination {
    Rank(Rank),
    /// All ranks that have not taken in what this one has broadcast.
    AllRanks,
}

/// One rank's side of it.
#[derive(Debug)]
pub(crate) struct FlowControl {
    me: Rank,
    /// Bytes that may be under way to another rank.
    window: u64,
    /// The same in broadcasts.
    broadcast_window: u64,
    destinations: LiteMap<Rank, ByteCounts>,
    broadcasts: ByteCounts,
    blocked: BTreeMap<CellId, Blocked>,
    /// Tokens that are parked.
    parked: usize,
    /// Chunks that were blocked when they were told to leave.
    blocked_leaving: BTreeSet<CellId>,
    /// Of the bytes that wait here, those for chunks that are on their way.
    incoming_bytes: QueuedBytesGuard,
    stall_number: u64,
    last_report: Option<StallReport>,
    /// Since it last had room it has let what was parked run once.
    retried: bool,
    /// Since when it has no room because of what its chunks keep at a sync, ns; and for how long it waits for that to end.
    full_since_ns: Option<u64>,
    backoff_ns: u64,
}

/// What ends a stall_number in which ranks wait for each other alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StallAction {
    /// These entries are no longer parked.
    Unpark(Vec<CellId>),
    /// More may wait.
    GrowLimit,
}

/// What rank 0 is told of a rank that stands still.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StallReport {
    /// What parked entries wait for, ascending.
    pub(crate) waits_for: Vec<Destination>,
    /// The number of the first mark of the broadcasts whose answer it first_deferred_ack.
    pub(crate) first_deferred_ack: Option<u64>,
}

/// What is known of another rank, or of the broadcasts: bytes, to it and from it.
#[derive(Debug, Default)]
struct ByteCounts {
    /// Less than none for a moment, where one rank says that they have gone on from there before another has said that they
    /// have come.
    in_flight: i64,
    /// Of those, sent since the last mark.
    since_ack_request: u64,
    /// Marked by the other rank, and not answered.
    deferred_ack: u64,
}

impl ByteCounts {
    /// So many bytes more are under way.
    #[inline]
    fn add(&mut self, bytes: u64, window: u64) -> SendOutcome {
        self.in_flight += bytes as i64;
        self.since_ack_request += bytes;
        SendOutcome {
            ack_request_due: self.since_ack_request >= (window / ACK_REQUESTS_PER_WINDOW).max(1),
            blocks: self.exceeds(window),
        }
    }

    /// Tells whether more bytes than these are under way.
    #[inline]
    fn exceeds(&self, bytes: u64) -> bool {
        u64::try_from(self.in_flight).is_ok_and(|in_flight| in_flight > bytes)
    }
}

#[derive(Debug)]
struct Blocked {
    by: Vec<Destination>,
    /// Its entry is here.
    parked: bool,
}

/// What follows from a message to another rank, or from a broadcast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendOutcome {
    /// A mark is due behind it.
    pub(crate) ack_request_due: bool,
    /// Its sender is blocked.
    pub(crate) blocks: bool,
}

impl FlowControl {
    /// Of a rank with this limit of bytes that wait there, one of `ranks`.
    pub(crate) fn new(me: Rank, ranks: u32, limit: u64, waiting: &Arc<QueuedBytes>) -> FlowControl {
        // All windows to a rank with the same limit together are a part of that, unless there are very many.
        let shared_out = limit / WINDOWS_PER_LIMIT / u64::from(ranks.max(2) - 1);
        let window = shared_out.max(WINDOW_MIN.min(limit / 16));
        FlowControl {
            me,
            window,
            // Those of one rank or a few: shared out among very many they would stop who broadcasts each time.
            broadcast_window: window.max(limit / WINDOWS_PER_LIMIT / WINDOWS_PER_LIMIT),
            destinations: LiteMap::new(),
            broadcasts: ByteCounts::default(),
            blocked: BTreeMap::new(),
            parked: 0,
            blocked_leaving: BTreeSet::new(),
            incoming_bytes: waiting.guard(0),
            stall_number: 0,
            last_report: None,
            retried: false,
            full_since_ns: None,
            backoff_ns: BACKOFF_NS,
        }
    }

    /// Of one that is never full.
    #[cfg(test)]
    pub(crate) fn without_limit(me: Rank) -> FlowControl {
        FlowControl::new(me, 1, u64::MAX, &Arc::default())
    }

    /// So many more bytes wait for chunks that are on their way to this rank.
    pub(crate) fn add_incoming(&mut self, bytes: u64) {
        self.incoming_bytes.change(bytes as i64);
    }

    /// So many of these no longer do.
    pub(crate) fn remove_incoming(&mut self, bytes: u64) {
        self.incoming_bytes.change(-(bytes as i64));
    }

    /// These wait for as long as what is returned exists.
    pub(crate) fn track(&self, bytes: u64) -> QueuedBytesGuard {
        self.incoming_bytes.another(bytes as i64)
    }

    fn destination(&mut self, rank: Rank) -> &mut ByteCounts {
        self.destinations.entry(rank).or_default()
    }

    fn counts_of(&mut self, destination: Destination) -> &mut ByteCounts {
        match destination {
            Destination::Rank(rank) => self.destination(rank),
            Destination::AllRanks => &mut self.broadcasts,
        }
    }

    /// So many bytes leave for another rank.
    #[inline]
    pub(crate) fn count_sent(&mut self, to: Rank, bytes: u64) -> SendOutcome {
        let window = self.window;
        self.destination(to).add(bytes, window)
    }

    /// So many bytes leave for all ranks.
    pub(crate) fn count_broadcast(&mut self, bytes: u64) -> SendOutcome {
        self.broadcasts.add(bytes, self.broadcast_window)
    }

    /// The bytes since the last mark: one is sent now.
    pub(crate) fn take_ack_request(&mut self, to: Destination) -> u64 {
        std::mem::take(&mut self.counts_of(to).since_ack_request)
    }

    /// A mark of another rank has come: its answer is owed.
    pub(crate) fn defer_ack(&mut self, to: Rank, bytes: u64) {
        self.destination(to).deferred_ack += bytes;
    }

    /// Takes the answers that are owed: this rank has room.
    pub(crate) fn take_deferred_acks(&mut self) -> Vec<(Rank, u64)> {
        let owed = self.destinations.iter_mut().filter(|(_, link)| link.deferred_ack > 0);
        owed.map(|(&rank, link)| (rank, std::mem::take(&mut link.deferred_ack))).collect()
    }

    /// A chunk leaves with mail of so many bytes, so that this rank has room. All that it first_deferred_ack goes along, and what chunks
    /// of this rank have sent counts as if sent to the new one. Returns to whom that first_deferred_ack which answers.
    pub(crate) fn hand_over_acks(&mut self, to: Rank, bytes: u64) -> Vec<(Rank, u64)> {
        let mut owed = self.take_deferred_acks();
        let by_me = Destination::Rank(self.me);
        if self.blocked.values().any(|blocked| blocked.by.contains(&by_me)) {
            self.count_moved(self.me, to, bytes);
            owed.push((self.me, bytes));
        }
        owed
    }

    /// So many bytes that were under way to a rank have come to another, which first_deferred_ack the answer: who is blocked by the first is
    /// by the second too. The bytes to the first still have to be answered.
    pub(crate) fn count_moved(&mut self, first_receiver: Rank, to: Rank, bytes: u64) {
        let [first, second] = [first_receiver, to].map(Destination::Rank);
        if to != self.me {
            self.destination(to).in_flight += bytes as i64;
            if !self.blocks(second) {
                return;
            }
        }
        let by_first = |blocked: &&mut Blocked| blocked.by.contains(&first) && !blocked.by.contains(&second);
        self.blocked.values_mut().filter(by_first).for_each(|blocked| blocked.by.push(second));
    }

    /// Another rank answers a mark, or rank 0 one of the broadcasts. Returns the entries that are no longer parked.
    pub(crate) fn count_acked(&mut self, by: Destination, bytes: u64) -> Vec<CellId> {
        self.counts_of(by).in_flight -= bytes as i64;
        if self.blocks(by) { Vec::new() } else { self.unblock(by) }
    }

    /// Tells whether chunks go on being blocked by another rank, or by the broadcasts.
    fn blocks(&self, by: Destination) -> bool {
        let (link, window) = match by {
            Destination::Rank(rank) => (self.destinations.get(&rank), self.window),
            Destination::AllRanks => (Some(&self.broadcasts), self.broadcast_window),
        };
        link.is_some_and(|link| link.exceeds(window / 2))
    }

    /// The chunk of this cell is blocked from now on, unless these have caught up meanwhile; its own rank is asked to
    /// [release](Self::unblock_own) it then.
    pub(crate) fn block(&mut self, cell: CellId, mut by: Vec<Destination>) {
        by.retain(|&destination| destination == Destination::Rank(self.me) || self.blocks(destination));
        if !by.is_empty() {
            let before = self.blocked.insert(cell, Blocked { by, parked: false });
            debug_assert!(before.is_none(), "a blocked chunk does not run");
        }
    }

    /// Tells whether any chunk is blocked.
    pub(crate) fn has_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Tells whether any entry is parked.
    pub(crate) fn has_parked(&self) -> bool {
        self.parked > 0
    }

    /// Parks the entry of a cell if its chunk is blocked.
    pub(crate) fn park_if_blocked(&mut self, cell: CellId) -> bool {
        let Some(blocked) = self.blocked.get_mut(&cell) else { return false };
        blocked.parked = true;
        self.parked += 1;
        true
    }

    /// This rank has room. Returns the entries that are no longer parked.
    pub(crate) fn unblock_own(&mut self) -> Vec<CellId> {
        self.retried = false;
        self.full_since_ns = None;
        self.unblock(Destination::Rank(self.me))
    }

    fn unblock(&mut self, destination: Destination) -> Vec<CellId> {
        self.unblock_if(|blocked| {
            blocked.by.retain(|&by| by != destination);
            blocked.by.is_empty()
        })
    }

    /// Chunks of which this is said are no longer blocked. Returns the entries that are no longer parked.
    fn unblock_if(&mut self, is_free: impl Fn(&mut Blocked) -> bool) -> Vec<CellId> {
        let mut freed = Vec::new();
        self.blocked.retain(|&cell, blocked| {
            let is_free = is_free(blocked);
            freed.extend((is_free && blocked.parked).then_some(cell));
            !is_free
        });
        self.parked -= freed.len();
        freed
    }

    /// The chunk of this cell is about to leave: nothing blocks it any more. True if its entry was parked.
    pub(crate) fn prepare_leave(&mut self, cell: CellId) -> bool {
        let Some(Blocked { parked, .. }) = self.blocked.remove(&cell) else { return false };
        self.blocked_leaving.insert(cell);
        self.parked -= usize::from(parked);
        parked
    }

    /// The chunk of this cell leaves. True if it was blocked when it was told to, or has been since.
    pub(crate) fn leave(&mut self, cell: CellId) -> bool {
        self.prepare_leave(cell);
        self.blocked_leaving.remove(&cell)
    }

    /// All that blocks on this rank now: a chunk that comes here blocked is blocked by these.
    pub(crate) fn blocking(&self) -> Vec<Destination> {
        let ranks = self.destinations.keys().copied().map(Destination::Rank);
        ranks.chain([Destination::AllRanks]).filter(|&destination| self.blocks(destination)).collect()
    }

    /// This rank is full and has nothing to run; `first_deferred_ack` is the first mark of the broadcasts whose answer it first_deferred_ack. Returns the
    /// stall_number, and what rank 0 is to be told, if any entry is parked and that is news.
    pub(crate) fn report_stall(&mut self, first_deferred_ack: Option<u64>) -> Option<(u64, StallReport)> {
        let parked = self.blocked.values().filter(|blocked| blocked.parked);
        let mut waits_for: Vec<Destination> = parked.flat_map(|blocked| blocked.by.iter().copied()).collect();
        waits_for.sort_unstable();
        waits_for.dedup();
        let stall_report =
            Some(StallReport { waits_for, first_deferred_ack }).filter(|now| !now.waits_for.is_empty())?;
        if self.last_report.as_ref() == Some(&stall_report) {
            return None;
        }
        self.stall_number += 1;
        self.last_report = Some(stall_report.clone());
        Some((self.stall_number, stall_report))
    }

    /// This rank is full. If that `is_for_sync`, and has been for as long as it has patience, it is to widen. Returns for how long
    /// it has been, ns.
    pub(crate) fn backoff_expired(&mut self, is_for_sync: bool, now_ns: u64) -> Option<u64> {
        if !is_for_sync {
            self.full_since_ns = None;
        } else if self.full_since_ns.is_none() {
            self.full_since_ns = Some(now_ns);
        }
        let full_ns = now_ns.saturating_sub(self.full_since_ns?);
        (full_ns >= self.backoff_ns).then(|| {
            self.full_since_ns = None;
            self.backoff_ns = self.backoff_ns.saturating_mul(2);
            full_ns
        })
    }

    /// A sync has ended.
    pub(crate) fn sync_ended(&mut self) {
        self.full_since_ns = None;
    }

    /// When this rank will have no patience any more, ns.
    pub(crate) fn backoff_until_ns(&self) -> Option<u64> {
        Some(self.full_since_ns?.saturating_add(self.backoff_ns))
    }

    /// Tokens were freed: this stall_number is over, if rank 0 was told of it.
    pub(crate) fn end_stall(&mut self) -> Option<u64> {
        self.last_report.take().map(|_| self.stall_number)
    }

    /// Rank 0 says that this stall_number would not end by itself. None if it is over.
    pub(crate) fn resolve_stall(&mut self, stall_number: u64) -> Option<StallAction> {
        if stall_number != self.stall_number {
            return None;
        }
        let StallReport { waits_for, .. } = self.last_report.take()?;
        if !std::mem::replace(&mut self.retried, true) {
            return Some(StallAction::Unpark(self.unblock_if(|blocked| blocked.parked)));
        }
        if waits_for.iter().any(|&awaited| awaited != Destination::Rank(self.me)) {
            for window in [&mut self.window, &mut self.broadcast_window] {
                *window = (*window).max(1).saturating_mul(2);
            }
        }
        Some(StallAction::GrowLimit)
    }
}

/// Rank 0's knowledge of who stands still, in which stall_number, and for whom it waits.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    ranks: BTreeMap<Rank, (u64, StallReport)>,
}

impl StallDetector {
    /// A rank stands still.
    pub(crate) fn stalled(&mut self, rank: Rank, stall_number: u64, stall_report: StallReport) {
        self.ranks.insert(rank, (stall_number, stall_report));
    }

    /// Takes the ranks that are stuck, with their spells: they wait for each other alone. `first_open` tells
    /// the first mark of a rank's broadcasts that not all ranks have answered.
    pub(crate) fn take_deadlocked(&mut self, first_open: impl Fn(Rank) -> Option<u64>) -> Vec<(Rank, u64)> {
        let mut stuck: BTreeSet<Rank> = self.ranks.keys().copied().collect();
        loop {
            let before = stuck.len();
            // Who waits for somebody that goes on will go on itself.
            let candidates = stuck.clone();
            let owe = |mark| {
                candidates.iter().any(|rank| {
                    self.ranks[rank]
                        .1
                        .first_deferred_ack
                        .is_some_and(|first_deferred_ack| first_deferred_ack <= mark)
                })
            };
            let is_stuck = |by: Rank, awaited: &Destination| match awaited {
                Destination::Rank(rank) => candidates.contains(rank),
                Destination::AllRanks => first_open(by).is_some_and(owe),
            };
            stuck.retain(|&rank| self.ranks[&rank].1.waits_for.iter().all(|awaited| is_stuck(rank, awaited)));
            if stuck.len() == before {
                break;
            }
        }
        stuck
            .into_iter()
            .filter_map(|rank| self.ranks.remove(&rank).map(|(stall_number, _)| (rank, stall_number)))
            .collect()
    }

    /// A stall_number is over.
    pub(crate) fn end_stall(&mut self, rank: Rank, stall_number: u64) {
        if self.ranks.get(&rank).is_some_and(|&(told, _)| told == stall_number) {
            self.ranks.remove(&rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Rank = Rank(0);
    const OTHER: Rank = Rank(1);
    const BY_ME: Destination = Destination::Rank(ME);
    const BY_OTHER: Destination = Destination::Rank(OTHER);

    /// What rank 0 is told in a stall_number.
    #[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be nothing")]
    fn waits(stall_number: u64, waits_for: Vec<Destination>) -> Option<(u64, StallReport)> {
        Some((stall_number, StallReport { waits_for, first_deferred_ack: None }))
    }

    /// With a window of 100 bytes and a mark every 25.
    fn flow() -> FlowControl {
        let flow = FlowControl { window: 100, ..FlowControl::new(ME, 2, 1 << 20, &Arc::default()) };
        assert!(!flow.has_blocked());
        flow
    }

    #[test]
    fn more_than_a_window_presses_until_half_of_it_is_answered() {
        let mut flow = flow();
        assert_eq!(flow.count_sent(OTHER, 24), SendOutcome { ack_request_due: false, blocks: false });
        assert_eq!(flow.count_sent(OTHER, 70), SendOutcome { ack_request_due: true, blocks: false });
        assert_eq!(flow.take_ack_request(BY_OTHER), 94);
        assert_eq!(flow.count_sent(OTHER, 7), SendOutcome { ack_request_due: false, blocks: true });
        flow.block(CellId(3), vec![BY_OTHER]);
        assert!(flow.park_if_blocked(CellId(3)) && !flow.park_if_blocked(CellId(4)));
        assert_eq!(flow.count_acked(BY_OTHER, 50), []);
        assert_eq!(flow.count_acked(BY_OTHER, 44), [CellId(3)]);
        assert!(!flow.has_blocked() && !flow.has_parked());
    }

    #[test]
    fn who_is_pressed_by_two_ranks_waits_for_both() {
        let mut flow = flow();
        flow.count_sent(OTHER, 101);
        flow.block(CellId(3), vec![BY_OTHER, BY_ME]);
        assert!(flow.park_if_blocked(CellId(3)));
        assert_eq!(flow.unblock_own(), []);
        let marked = flow.take_ack_request(BY_OTHER);
        assert_eq!(flow.count_acked(BY_OTHER, marked), [CellId(3)]);
    }

    #[test]
    fn a_rank_that_has_caught_up_meanwhile_presses_nobody() {
        let mut flow = flow();
        assert!(flow.count_sent(OTHER, 101).blocks);
        let marked = flow.take_ack_request(BY_OTHER);
        assert_eq!(flow.count_acked(BY_OTHER, marked), []);
        flow.block(CellId(3), vec![BY_OTHER]);
        assert!(!flow.has_blocked());
    }

    #[test]
    fn a_chunk_that_leaves_is_known_to_have_been_pressed_and_is_wherever_it_comes_to() {
        let mut flow = flow();
        flow.count_sent(OTHER, 101);
        [3, 4].map(CellId).into_iter().for_each(|cell| flow.block(cell, vec![BY_OTHER]));
        assert!(flow.park_if_blocked(CellId(3)));
        let returned = [3, 4, 5].map(|cell| flow.prepare_leave(CellId(cell)));
        assert_eq!(returned, [true, false, false], "one entry was parked");
        assert!(!flow.has_blocked() && !flow.has_parked());
        flow.block(CellId(5), vec![BY_ME]);
        assert_eq!([3, 4, 5, 6].map(|cell| flow.leave(CellId(cell))), [true, true, true, false]);
        assert!(!flow.leave(CellId(3)), "another is in its cell");
        assert_eq!(flow.blocking(), [BY_OTHER]);
        flow.count_broadcast(1 << 20);
        assert_eq!(flow.blocking(), [BY_OTHER, Destination::AllRanks]);
    }

    #[test]
    fn who_waits_for_mail_that_goes_on_with_a_chunk_waits_for_its_new_rank() {
        const THIRD: Rank = Rank(2);
        let by_third = Destination::Rank(THIRD);
        let mut flow = flow();
        flow.defer_ack(OTHER, 30);
        assert_eq!(flow.hand_over_acks(THIRD, 80), [(OTHER, 30)], "no chunk here waits for it");
        flow.block(CellId(3), vec![BY_ME]);
        assert!(flow.park_if_blocked(CellId(3)));
        assert_eq!(flow.hand_over_acks(THIRD, 80), [(ME, 80)]);
        assert_eq!(flow.unblock_own(), [], "it waits for the third");
        flow.count_moved(THIRD, OTHER, 80);
        assert_eq!(flow.count_acked(by_third, 80), [], "and now for the other");
        flow.count_moved(OTHER, ME, 80);
        assert_eq!(flow.count_acked(BY_OTHER, 80), []);
        assert_eq!(flow.unblock_own(), [CellId(3)], "it has come back");
    }

    #[test]
    fn little_that_goes_on_presses_nobody() {
        let mut flow = flow();
        flow.block(CellId(3), vec![BY_ME]);
        assert_eq!(flow.hand_over_acks(OTHER, 50), [(ME, 50)], "half a window");
        assert!(flow.unblock_own().is_empty() && !flow.has_blocked());
        assert!(flow.count_sent(OTHER, 51).blocks, "but counts");
    }

    #[test]
    fn a_rank_tells_once_a_spell_for_whom_its_tokens_wait() {
        let mut flow = flow();
        flow.block(CellId(3), vec![BY_ME]);
        assert_eq!(flow.report_stall(None), None, "its entry is elsewhere");
        flow.park_if_blocked(CellId(3));
        assert_eq!(flow.report_stall(None), waits(1, vec![BY_ME]));
        assert_eq!(flow.report_stall(None), None);
        flow.count_sent(OTHER, 101);
        flow.block(CellId(4), vec![BY_OTHER]);
        flow.park_if_blocked(CellId(4));
        assert_eq!(flow.report_stall(None), waits(2, vec![BY_ME, BY_OTHER]));
        assert_eq!(flow.resolve_stall(1), None);
        assert_eq!(flow.resolve_stall(2), Some(StallAction::Unpark(vec![CellId(3), CellId(4)])));
        assert_eq!(flow.resolve_stall(2), None);
        flow.block(CellId(3), vec![BY_ME]);
        flow.block(CellId(4), vec![BY_OTHER]);
        assert!(flow.park_if_blocked(CellId(3)) && flow.park_if_blocked(CellId(4)));
        assert_eq!(flow.report_stall(None), waits(3, vec![BY_ME, BY_OTHER]));
        assert_eq!(flow.resolve_stall(3), Some(StallAction::GrowLimit), "it has had no room since");
        assert!(
            !flow.count_sent(OTHER, 99).blocks && flow.count_sent(OTHER, 1).blocks,
            "a window of 200 bytes"
        );
        assert_eq!(flow.end_stall(), None);
        assert_eq!(flow.report_stall(None), waits(4, vec![BY_ME, BY_OTHER]));
        assert_eq!(flow.end_stall(), Some(4));
        assert_eq!(flow.resolve_stall(4), None, "it has gone on meanwhile");
    }

    #[test]
    fn windows_widen_where_others_are_waited_for_also_those_of_nothing() {
        let window_after = |by| {
            let mut flow = FlowControl { window: 0, broadcast_window: 0, ..flow() };
            flow.count_sent(OTHER, 1);
            flow.count_broadcast(1);
            flow.block(CellId(3), vec![by]);
            flow.park_if_blocked(CellId(3));
            assert_eq!(flow.report_stall(None), waits(1, vec![by]));
            flow.retried = true;
            assert_eq!(flow.resolve_stall(1), Some(StallAction::GrowLimit));
            flow.window
        };
        assert_eq!([BY_ME, BY_OTHER, Destination::AllRanks].map(window_after), [0, 2, 2]);
    }

    /// A rank that waits for these ranks.
    fn waiting_for(ranks: &[Rank]) -> StallReport {
        StallReport {
            waits_for: ranks.iter().copied().map(Destination::Rank).collect(),
            first_deferred_ack: None,
        }
    }

    /// The ranks that are stuck once this one stands still, where nobody broadcasts.
    fn stuck_after(
        stall_detector: &mut StallDetector,
        rank: Rank,
        stall_number: u64,
        ranks: &[Rank],
    ) -> Vec<(Rank, u64)> {
        stall_detector.stalled(rank, stall_number, waiting_for(ranks));
        stall_detector.take_deadlocked(|_| None)
    }

    #[test]
    fn only_ranks_that_wait_for_each_other_alone_are_stuck() {
        let [a, b, c, slow] = [0, 1, 2, 3].map(Rank);
        let mut stall_detector = StallDetector::default();
        let mut stands =
            |rank, stall_number, ranks: &[Rank]| stuck_after(&mut stall_detector, rank, stall_number, ranks);
        assert_eq!(stands(a, 1, &[b, slow]), []);
        assert_eq!(stands(b, 1, &[a]), [], "the slow one answers, then the first, then the second");
        assert_eq!(stands(c, 7, &[c]), [(c, 7)]);
        assert_eq!(stands(a, 2, &[b]), [(a, 2), (b, 1)]);
        assert_eq!(stands(a, 3, &[b]), []);
        stall_detector.end_stall(a, 2);
        let stuck = stuck_after(&mut stall_detector, b, 2, &[a]);
        assert_eq!(stuck, [(a, 3), (b, 2)], "an old stall_number ends nothing");
        assert_eq!(stuck_after(&mut stall_detector, a, 4, &[b]), []);
        stall_detector.end_stall(a, 4);
        assert_eq!(stuck_after(&mut stall_detector, b, 3, &[a]), []);
    }

    #[test]
    fn who_waits_for_the_broadcasts_waits_for_those_who_owe_its_first_open_mark() {
        let [broadcaster, full, other] = [0, 1, 2].map(Rank);
        let broadcasts = || StallReport { waits_for: vec![Destination::AllRanks], first_deferred_ack: None };
        let mut stall_detector = StallDetector::default();
        stall_detector.stalled(broadcaster, 1, broadcasts());
        stall_detector.stalled(other, 1, waiting_for(&[broadcaster]));
        assert_eq!(stall_detector.take_deadlocked(|_| Some(7)), [], "somebody will answer");
        stall_detector.stalled(
            full,
            1,
            StallReport { first_deferred_ack: Some(8), ..waiting_for(&[broadcaster]) },
        );
        assert_eq!(
            stall_detector.take_deadlocked(|_| Some(7)),
            [],
            "it has answered the mark, and another will"
        );
        assert_eq!(stall_detector.take_deadlocked(|_| None), [], "all have answered");
        let stuck = stall_detector.take_deadlocked(|rank| (rank == broadcaster).then_some(8));
        assert_eq!(stuck, [(broadcaster, 1), (full, 1), (other, 1)]);
        stall_detector.stalled(full, 2, StallReport { first_deferred_ack: Some(9), ..broadcasts() });
        assert_eq!(stall_detector.take_deadlocked(|_| Some(9)), [(full, 2)], "it waits for itself");
    }

    #[test]
    fn that_a_rank_owes_an_answer_is_news() {
        let mut flow = flow();
        flow.block(CellId(3), vec![BY_ME]);
        flow.park_if_blocked(CellId(3));
        assert_eq!(flow.report_stall(None), waits(1, vec![BY_ME]));
        let owing = StallReport { waits_for: vec![BY_ME], first_deferred_ack: Some(4) };
        let told = (flow.report_stall(Some(4)), flow.report_stall(Some(4)));
        assert_eq!(told, (Some((2, owing)), None));
    }

    #[test]
    fn the_window_for_broadcasts_is_no_part_of_one_for_each_rank() {
        let window = |ranks| FlowControl::new(ME, ranks, 64 << 20, &Arc::default()).broadcast_window;
        assert_eq!([2, 5, 1000].map(window), [16 << 20, 4 << 20, 4 << 20]);
    }
}
