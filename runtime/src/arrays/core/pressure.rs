//! Back-pressure: a chunk that has sent to a rank which has not caught up is not run again until that rank has.
//!
//! # Words
//!
//! The *waiting* bytes of a rank are those of the messages in its mailboxes, of those that chunks keep because they wait at a
//! sync, until they handle them, and of all that lies there for chunks on their way to it: what they bring, what has come
//! before them, and the broadcasts that they are still to hear.
//! Above its limit it is *full*; at half of it it has *room* again. Bytes *under way* to a rank were sent to it, and it has
//! not said that it took them in. A chunk is *pressed* by ranks it has sent to, and by the *broadcasts* if it has made some;
//! the token of a pressed chunk is *parked*, until nothing presses it any more.
//!
//! # Rules
//!
//! 1. Among the messages to a rank a sender puts *marks*, with the bytes since the last, four or more a window. A receiver
//!    that has room answers a mark at once, one that is full owes the answer until it has room. Answered bytes are no longer
//!    under way.
//! 2. A chunk is pressed by another rank once more than a window is under way to it, until it is at most half of one; by its
//!    own rank while that is full.
//! 3. A pressed chunk handles nothing, nor what it has kept; all others go on. So does everything else that ranks say to each
//!    other: nobody stops polling, and nothing but answers to marks is held back.
//! 4. A chunk that was pressed when it left comes pressed to its new rank, and one that is inserted comes pressed: by all that
//!    presses there, and by that rank if it is full. So to go on elsewhere, or as another, is no way past.
//! 5. Broadcasts go to all ranks by way of rank 0, and a rank that makes some has one window for them, in which each counts as
//!    on the rank where [most](super::audience) hear it. A mark travels with a broadcast, to all ranks; each where chunks have
//!    heard any since the last owes its answer until it has room, and none is on its way to it, who may still have to hear
//!    them; rank 0 answers for all: see [`uptake`](super::uptake).
//! 6. A full rank that has nothing to run, and parked tokens, *stands still*, and tells rank 0 for whom they wait. Ranks that
//!    stand still and wait, by whatever way, for nobody but such ranks, themselves among them, are told so by rank 0. The
//!    first time each runs what is parked once: it may be its own mail that a chunk is held back from. One that stands
//!    still again and has had no room since *widens* its limit, to the double and to the double of what waits. Who waits for
//!    others doubles its windows too. Who waits for the broadcasts waits for the ranks that owe the answer to its first open
//!    mark: a rank that stands still says from which mark on it does.
//! 7. A full rank that would have room if a sync ended does not stand still: it waits for that. Whom the sync waits for nobody
//!    knows, and it may be a chunk that this rank presses. So it widens once it has been so for as long as it has *patience*,
//!    which doubles with each time.
//! 8. A chunk may leave with mail, so that its rank has room. The rank then does not answer what it owes: that goes along, and
//!    the new rank owes it, and says so to whom it is owed, who counts these bytes as under way to it. Chunks of the old rank
//!    that this presses count as if they had sent the mail.
//!
//! # What follows
//!
//! *Memory is bounded.* A rank holds its limit, a window for each rank that sends to it, one for each that broadcasts, and
//! what one run of a handler of each of their chunks leaves on each of those ranks. While chunks with mail are on their way
//! to it as much as its limit may come for them from chunks that nothing presses. A limit grows only where all stand still,
//! or a sync does not end, then in proportion to the time that it took: a chain in which somebody consumes, however slowly,
//! never stands still as a whole, since whoever consumes and sends nothing is pressed at most until it first runs, so that
//! its rank runs it. Both double, so a program that needs more at once than they allow stands still a few times and then
//! never again.
//!
//! *No deadlock.* A parked token waits for ranks that are full (one with room answers, and the last mark leaves less than
//! half a window unanswered), or for the broadcasts, and so for ranks that are full or to which chunks are on their way.
//! These land: a migration waits for nobody who is parked. A full rank that runs something gets room by it, or parks what it
//! runs, or stands still, or waits for a sync and widens in the end. Of ranks that stand still, those that wait for somebody
//! who does not are answered in time. The others are all told: rank 0 hears of the last of them, and until it has told them
//! nothing can change for them. If one was freed meanwhile, its *spell* is over, and it does not listen.
//!
//! A parked chunk is not idle: its rank answers no search for quiescence. A sync needs no chunk that is parked, once all have
//! come; migration holds a chunk also where its token is parked. Messages that a chunk keeps because it is not ready are not
//! waiting: whom it waits for nobody knows. Nor are those for a chunk that there is not, which may never come.
//!
//! *A gap.* Broadcasts are answered for by all ranks, and no debt of theirs goes along with a chunk: each move of one that
//! hears them slowly lets them be a window further ahead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use crate::ids::{CellId, Rank};
use crate::trace::queued_bytes::{QueuedBytes, QueuedBytesGuard};

/// Marks in a window; windows of all other ranks in a limit.
const MARKS: u64 = 4;
const WINDOWS: u64 = 4;
/// A window is at least so long, if the limit is much longer.
const WINDOW_MIN: u64 = 64 << 10;

/// Time for which a rank is full because of a sync, ns, before it widens for the first time.
const PATIENCE_NS: u64 = 250_000_000;

/// Who presses a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Presser {
    Rank(Rank),
    /// All ranks that have not taken in what this one has broadcast.
    Broadcasts,
}

/// One rank's side of it.
#[derive(Debug)]
pub(crate) struct Pressure {
    me: Rank,
    /// Bytes that may be under way to another rank.
    window: u64,
    /// The same in broadcasts.
    broadcast_window: u64,
    links: LiteMap<Rank, Link>,
    broadcasts: Link,
    pressed: BTreeMap<CellId, Pressed>,
    /// Tokens that are parked.
    parked: usize,
    /// Chunks that were pressed when they were told to leave.
    leaving: BTreeSet<CellId>,
    /// Of the bytes that wait here, those for chunks that are on their way.
    held: QueuedBytesGuard,
    spell: u64,
    reported: Option<Standing>,
    /// Since it last had room it has let what was parked run once.
    relieved: bool,
    /// Since when it has no room because of what its chunks keep at a sync, ns; and for how long it waits for that to end.
    full_at_sync_ns: Option<u64>,
    patience_ns: u64,
}

/// What ends a spell in which ranks wait for each other alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Relief {
    /// These tokens are no longer parked.
    Run(Vec<CellId>),
    /// More may wait.
    Widen,
}

/// What rank 0 is told of a rank that stands still.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Standing {
    /// What parked tokens wait for, ascending.
    pub(crate) waits_for: Vec<Presser>,
    /// The number of the first mark of the broadcasts whose answer it owes.
    pub(crate) owes: Option<u64>,
}

/// What is known of another rank, or of the broadcasts: bytes, to it and from it.
#[derive(Debug, Default)]
struct Link {
    /// Less than none for a moment, where one rank says that they have gone on from there before another has said that they
    /// have come.
    under_way: i64,
    /// Of those, sent since the last mark.
    unmarked: u64,
    /// Marked by the other rank, and not answered.
    owed: u64,
}

impl Link {
    /// So many bytes more are under way.
    #[inline]
    fn add(&mut self, bytes: u64, window: u64) -> Sent {
        self.under_way += bytes as i64;
        self.unmarked += bytes;
        Sent { marks: self.unmarked >= (window / MARKS).max(1), presses: self.exceeds(window) }
    }

    /// Tells whether more bytes than these are under way.
    #[inline]
    fn exceeds(&self, bytes: u64) -> bool {
        u64::try_from(self.under_way).is_ok_and(|under_way| under_way > bytes)
    }
}

#[derive(Debug)]
struct Pressed {
    by: Vec<Presser>,
    /// Its token is here.
    parked: bool,
}

/// What follows from a message to another rank, or from a broadcast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// A mark is due behind it.
    pub(crate) marks: bool,
    /// Its sender is pressed.
    pub(crate) presses: bool,
}

impl Pressure {
    /// Of a rank with this limit of bytes that wait there, one of `ranks`.
    pub(crate) fn new(me: Rank, ranks: u32, limit: u64, waiting: &Arc<QueuedBytes>) -> Pressure {
        // All windows to a rank with the same limit together are a part of that, unless there are very many.
        let shared_out = limit / WINDOWS / u64::from(ranks.max(2) - 1);
        let window = shared_out.max(WINDOW_MIN.min(limit / 16));
        Pressure {
            me,
            window,
            // Those of one rank or a few: shared out among very many they would stop who broadcasts each time.
            broadcast_window: window.max(limit / WINDOWS / WINDOWS),
            links: LiteMap::new(),
            broadcasts: Link::default(),
            pressed: BTreeMap::new(),
            parked: 0,
            leaving: BTreeSet::new(),
            held: waiting.guard(0),
            spell: 0,
            reported: None,
            relieved: false,
            full_at_sync_ns: None,
            patience_ns: PATIENCE_NS,
        }
    }

    /// Of one that is never full.
    #[cfg(test)]
    pub(crate) fn without_limit(me: Rank) -> Pressure {
        Pressure::new(me, 1, u64::MAX, &Arc::default())
    }

    /// So many more bytes wait for chunks that are on their way to this rank.
    pub(crate) fn holds_more(&mut self, bytes: u64) {
        self.held.change(bytes as i64);
    }

    /// So many of these no longer do.
    pub(crate) fn holds_less(&mut self, bytes: u64) {
        self.held.change(-(bytes as i64));
    }

    /// These wait for as long as what is returned exists.
    pub(crate) fn hold(&self, bytes: u64) -> QueuedBytesGuard {
        self.held.another(bytes as i64)
    }

    fn link(&mut self, rank: Rank) -> &mut Link {
        self.links.entry(rank).or_default()
    }

    fn link_of(&mut self, presser: Presser) -> &mut Link {
        match presser {
            Presser::Rank(rank) => self.link(rank),
            Presser::Broadcasts => &mut self.broadcasts,
        }
    }

    /// So many bytes leave for another rank.
    #[inline]
    pub(crate) fn sent(&mut self, to: Rank, bytes: u64) -> Sent {
        let window = self.window;
        self.link(to).add(bytes, window)
    }

    /// So many bytes leave for all ranks.
    pub(crate) fn broadcast(&mut self, bytes: u64) -> Sent {
        self.broadcasts.add(bytes, self.broadcast_window)
    }

    /// The bytes since the last mark: one is sent now.
    pub(crate) fn mark(&mut self, to: Presser) -> u64 {
        std::mem::take(&mut self.link_of(to).unmarked)
    }

    /// A mark of another rank has come: its answer is owed.
    pub(crate) fn owe(&mut self, to: Rank, bytes: u64) {
        self.link(to).owed += bytes;
    }

    /// Takes the answers that are owed: this rank has room.
    pub(crate) fn take_owed(&mut self) -> Vec<(Rank, u64)> {
        let owed = self.links.iter_mut().filter(|(_, link)| link.owed > 0);
        owed.map(|(&rank, link)| (rank, std::mem::take(&mut link.owed))).collect()
    }

    /// A chunk leaves with mail of so many bytes, so that this rank has room. All that it owes goes along, and what chunks
    /// of this rank have sent counts as if sent to the new one. Returns to whom that owes which answers.
    pub(crate) fn hand_over(&mut self, to: Rank, bytes: u64) -> Vec<(Rank, u64)> {
        let mut owed = self.take_owed();
        let by_me = Presser::Rank(self.me);
        if self.pressed.values().any(|pressed| pressed.by.contains(&by_me)) {
            self.came(self.me, to, bytes);
            owed.push((self.me, bytes));
        }
        owed
    }

    /// So many bytes that were under way to a rank have come to another, which owes the answer: who is pressed by the first is
    /// by the second too. The bytes to the first still have to be answered.
    pub(crate) fn came(&mut self, by_way_of: Rank, to: Rank, bytes: u64) {
        let [first, second] = [by_way_of, to].map(Presser::Rank);
        if to != self.me {
            self.link(to).under_way += bytes as i64;
            if !self.presses(second) {
                return;
            }
        }
        let by_first = |pressed: &&mut Pressed| pressed.by.contains(&first) && !pressed.by.contains(&second);
        self.pressed.values_mut().filter(by_first).for_each(|pressed| pressed.by.push(second));
    }

    /// Another rank answers a mark, or rank 0 one of the broadcasts. Returns the tokens that are no longer parked.
    pub(crate) fn answered(&mut self, by: Presser, bytes: u64) -> Vec<CellId> {
        self.link_of(by).under_way -= bytes as i64;
        if self.presses(by) { Vec::new() } else { self.release(by) }
    }

    /// Tells whether chunks go on being pressed by another rank, or by the broadcasts.
    fn presses(&self, by: Presser) -> bool {
        let (link, window) = match by {
            Presser::Rank(rank) => (self.links.get(&rank), self.window),
            Presser::Broadcasts => (Some(&self.broadcasts), self.broadcast_window),
        };
        link.is_some_and(|link| link.exceeds(window / 2))
    }

    /// The chunk of this cell is pressed from now on, unless these have caught up meanwhile; its own rank is asked to
    /// [release](Self::release_own) it then.
    pub(crate) fn press(&mut self, cell: CellId, mut by: Vec<Presser>) {
        by.retain(|&presser| presser == Presser::Rank(self.me) || self.presses(presser));
        if !by.is_empty() {
            let before = self.pressed.insert(cell, Pressed { by, parked: false });
            debug_assert!(before.is_none(), "a pressed chunk does not run");
        }
    }

    /// Tells whether any chunk is pressed.
    pub(crate) fn has_pressed(&self) -> bool {
        !self.pressed.is_empty()
    }

    /// Tells whether any token is parked.
    pub(crate) fn has_parked(&self) -> bool {
        self.parked > 0
    }

    /// Parks the token of a cell if its chunk is pressed.
    pub(crate) fn parks(&mut self, cell: CellId) -> bool {
        let Some(pressed) = self.pressed.get_mut(&cell) else { return false };
        pressed.parked = true;
        self.parked += 1;
        true
    }

    /// This rank has room. Returns the tokens that are no longer parked.
    pub(crate) fn release_own(&mut self) -> Vec<CellId> {
        self.relieved = false;
        self.full_at_sync_ns = None;
        self.release(Presser::Rank(self.me))
    }

    fn release(&mut self, presser: Presser) -> Vec<CellId> {
        self.free(|pressed| {
            pressed.by.retain(|&by| by != presser);
            pressed.by.is_empty()
        })
    }

    /// Chunks of which this is said are no longer pressed. Returns the tokens that are no longer parked.
    fn free(&mut self, is_free: impl Fn(&mut Pressed) -> bool) -> Vec<CellId> {
        let mut freed = Vec::new();
        self.pressed.retain(|&cell, pressed| {
            let is_free = is_free(pressed);
            freed.extend((is_free && pressed.parked).then_some(cell));
            !is_free
        });
        self.parked -= freed.len();
        freed
    }

    /// The chunk of this cell is about to leave: nothing presses it any more. True if its token was parked.
    pub(crate) fn leave(&mut self, cell: CellId) -> bool {
        let Some(Pressed { parked, .. }) = self.pressed.remove(&cell) else { return false };
        self.leaving.insert(cell);
        self.parked -= usize::from(parked);
        parked
    }

    /// The chunk of this cell leaves. True if it was pressed when it was told to, or has been since.
    pub(crate) fn left(&mut self, cell: CellId) -> bool {
        self.leave(cell);
        self.leaving.remove(&cell)
    }

    /// All that presses on this rank now: a chunk that comes here pressed is pressed by these.
    pub(crate) fn pressing(&self) -> Vec<Presser> {
        let ranks = self.links.keys().copied().map(Presser::Rank);
        ranks.chain([Presser::Broadcasts]).filter(|&presser| self.presses(presser)).collect()
    }

    /// This rank is full and has nothing to run; `owes` is the first mark of the broadcasts whose answer it owes. Returns the
    /// spell, and what rank 0 is to be told, if any token is parked and that is news.
    pub(crate) fn stands_still(&mut self, owes: Option<u64>) -> Option<(u64, Standing)> {
        let parked = self.pressed.values().filter(|pressed| pressed.parked);
        let mut waits_for: Vec<Presser> = parked.flat_map(|pressed| pressed.by.iter().copied()).collect();
        waits_for.sort_unstable();
        waits_for.dedup();
        let standing = Some(Standing { waits_for, owes }).filter(|now| !now.waits_for.is_empty())?;
        if self.reported.as_ref() == Some(&standing) {
            return None;
        }
        self.spell += 1;
        self.reported = Some(standing.clone());
        Some((self.spell, standing))
    }

    /// This rank is full. If that `is_for_sync`, and has been for as long as it has patience, it is to widen. Returns for how long
    /// it has been, ns.
    pub(crate) fn loses_patience(&mut self, is_for_sync: bool, now_ns: u64) -> Option<u64> {
        if !is_for_sync {
            self.full_at_sync_ns = None;
        } else if self.full_at_sync_ns.is_none() {
            self.full_at_sync_ns = Some(now_ns);
        }
        let full_ns = now_ns.saturating_sub(self.full_at_sync_ns?);
        (full_ns >= self.patience_ns).then(|| {
            self.full_at_sync_ns = None;
            self.patience_ns = self.patience_ns.saturating_mul(2);
            full_ns
        })
    }

    /// A sync has ended.
    pub(crate) fn sync_ended(&mut self) {
        self.full_at_sync_ns = None;
    }

    /// When this rank will have no patience any more, ns.
    pub(crate) fn patient_until_ns(&self) -> Option<u64> {
        Some(self.full_at_sync_ns?.saturating_add(self.patience_ns))
    }

    /// Tokens were freed: this spell is over, if rank 0 was told of it.
    pub(crate) fn goes_on(&mut self) -> Option<u64> {
        self.reported.take().map(|_| self.spell)
    }

    /// Rank 0 says that this spell would not end by itself. None if it is over.
    pub(crate) fn relief(&mut self, spell: u64) -> Option<Relief> {
        if spell != self.spell {
            return None;
        }
        let Standing { waits_for, .. } = self.reported.take()?;
        if !std::mem::replace(&mut self.relieved, true) {
            return Some(Relief::Run(self.free(|pressed| pressed.parked)));
        }
        if waits_for.iter().any(|&awaited| awaited != Presser::Rank(self.me)) {
            for window in [&mut self.window, &mut self.broadcast_window] {
                *window = (*window).max(1).saturating_mul(2);
            }
        }
        Some(Relief::Widen)
    }
}

/// Rank 0's knowledge of who stands still, in which spell, and for whom it waits.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    ranks: BTreeMap<Rank, (u64, Standing)>,
}

impl Standstill {
    /// A rank stands still.
    pub(crate) fn stands(&mut self, rank: Rank, spell: u64, standing: Standing) {
        self.ranks.insert(rank, (spell, standing));
    }

    /// Takes the ranks that are stuck, with their spells: they wait for each other alone. `first_open` tells
    /// the first mark of a rank's broadcasts that not all ranks have answered.
    pub(crate) fn take_stuck(&mut self, first_open: impl Fn(Rank) -> Option<u64>) -> Vec<(Rank, u64)> {
        let mut stuck: BTreeSet<Rank> = self.ranks.keys().copied().collect();
        loop {
            let before = stuck.len();
            // Who waits for somebody that goes on will go on itself.
            let candidates = stuck.clone();
            let owe =
                |mark| candidates.iter().any(|rank| self.ranks[rank].1.owes.is_some_and(|owes| owes <= mark));
            let is_stuck = |by: Rank, awaited: &Presser| match awaited {
                Presser::Rank(rank) => candidates.contains(rank),
                Presser::Broadcasts => first_open(by).is_some_and(owe),
            };
            stuck.retain(|&rank| self.ranks[&rank].1.waits_for.iter().all(|awaited| is_stuck(rank, awaited)));
            if stuck.len() == before {
                break;
            }
        }
        stuck
            .into_iter()
            .filter_map(|rank| self.ranks.remove(&rank).map(|(spell, _)| (rank, spell)))
            .collect()
    }

    /// A spell is over.
    pub(crate) fn goes_on(&mut self, rank: Rank, spell: u64) {
        if self.ranks.get(&rank).is_some_and(|&(told, _)| told == spell) {
            self.ranks.remove(&rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Rank = Rank(0);
    const OTHER: Rank = Rank(1);
    const BY_ME: Presser = Presser::Rank(ME);
    const BY_OTHER: Presser = Presser::Rank(OTHER);

    /// What rank 0 is told in a spell.
    #[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be nothing")]
    fn waits(spell: u64, waits_for: Vec<Presser>) -> Option<(u64, Standing)> {
        Some((spell, Standing { waits_for, owes: None }))
    }

    /// With a window of 100 bytes and a mark every 25.
    fn pressure() -> Pressure {
        let pressure = Pressure { window: 100, ..Pressure::new(ME, 2, 1 << 20, &Arc::default()) };
        assert!(!pressure.has_pressed());
        pressure
    }

    #[test]
    fn more_than_a_window_presses_until_half_of_it_is_answered() {
        let mut pressure = pressure();
        assert_eq!(pressure.sent(OTHER, 24), Sent { marks: false, presses: false });
        assert_eq!(pressure.sent(OTHER, 70), Sent { marks: true, presses: false });
        assert_eq!(pressure.mark(BY_OTHER), 94);
        assert_eq!(pressure.sent(OTHER, 7), Sent { marks: false, presses: true });
        pressure.press(CellId(3), vec![BY_OTHER]);
        assert!(pressure.parks(CellId(3)) && !pressure.parks(CellId(4)));
        assert_eq!(pressure.answered(BY_OTHER, 50), []);
        assert_eq!(pressure.answered(BY_OTHER, 44), [CellId(3)]);
        assert!(!pressure.has_pressed() && !pressure.has_parked());
    }

    #[test]
    fn who_is_pressed_by_two_ranks_waits_for_both() {
        let mut pressure = pressure();
        pressure.sent(OTHER, 101);
        pressure.press(CellId(3), vec![BY_OTHER, BY_ME]);
        assert!(pressure.parks(CellId(3)));
        assert_eq!(pressure.release_own(), []);
        let marked = pressure.mark(BY_OTHER);
        assert_eq!(pressure.answered(BY_OTHER, marked), [CellId(3)]);
    }

    #[test]
    fn a_rank_that_has_caught_up_meanwhile_presses_nobody() {
        let mut pressure = pressure();
        assert!(pressure.sent(OTHER, 101).presses);
        let marked = pressure.mark(BY_OTHER);
        assert_eq!(pressure.answered(BY_OTHER, marked), []);
        pressure.press(CellId(3), vec![BY_OTHER]);
        assert!(!pressure.has_pressed());
    }

    #[test]
    fn a_chunk_that_leaves_is_known_to_have_been_pressed_and_is_wherever_it_comes_to() {
        let mut pressure = pressure();
        pressure.sent(OTHER, 101);
        [3, 4].map(CellId).into_iter().for_each(|cell| pressure.press(cell, vec![BY_OTHER]));
        assert!(pressure.parks(CellId(3)));
        let returned = [3, 4, 5].map(|cell| pressure.leave(CellId(cell)));
        assert_eq!(returned, [true, false, false], "one token was parked");
        assert!(!pressure.has_pressed() && !pressure.has_parked());
        pressure.press(CellId(5), vec![BY_ME]);
        assert_eq!([3, 4, 5, 6].map(|cell| pressure.left(CellId(cell))), [true, true, true, false]);
        assert!(!pressure.left(CellId(3)), "another is in its cell");
        assert_eq!(pressure.pressing(), [BY_OTHER]);
        pressure.broadcast(1 << 20);
        assert_eq!(pressure.pressing(), [BY_OTHER, Presser::Broadcasts]);
    }

    #[test]
    fn who_waits_for_mail_that_goes_on_with_a_chunk_waits_for_its_new_rank() {
        const THIRD: Rank = Rank(2);
        let by_third = Presser::Rank(THIRD);
        let mut pressure = pressure();
        pressure.owe(OTHER, 30);
        assert_eq!(pressure.hand_over(THIRD, 80), [(OTHER, 30)], "no chunk here waits for it");
        pressure.press(CellId(3), vec![BY_ME]);
        assert!(pressure.parks(CellId(3)));
        assert_eq!(pressure.hand_over(THIRD, 80), [(ME, 80)]);
        assert_eq!(pressure.release_own(), [], "it waits for the third");
        pressure.came(THIRD, OTHER, 80);
        assert_eq!(pressure.answered(by_third, 80), [], "and now for the other");
        pressure.came(OTHER, ME, 80);
        assert_eq!(pressure.answered(BY_OTHER, 80), []);
        assert_eq!(pressure.release_own(), [CellId(3)], "it has come back");
    }

    #[test]
    fn little_that_goes_on_presses_nobody() {
        let mut pressure = pressure();
        pressure.press(CellId(3), vec![BY_ME]);
        assert_eq!(pressure.hand_over(OTHER, 50), [(ME, 50)], "half a window");
        assert!(pressure.release_own().is_empty() && !pressure.has_pressed());
        assert!(pressure.sent(OTHER, 51).presses, "but counts");
    }

    #[test]
    fn a_rank_tells_once_a_spell_for_whom_its_tokens_wait() {
        let mut pressure = pressure();
        pressure.press(CellId(3), vec![BY_ME]);
        assert_eq!(pressure.stands_still(None), None, "its token is elsewhere");
        pressure.parks(CellId(3));
        assert_eq!(pressure.stands_still(None), waits(1, vec![BY_ME]));
        assert_eq!(pressure.stands_still(None), None);
        pressure.sent(OTHER, 101);
        pressure.press(CellId(4), vec![BY_OTHER]);
        pressure.parks(CellId(4));
        assert_eq!(pressure.stands_still(None), waits(2, vec![BY_ME, BY_OTHER]));
        assert_eq!(pressure.relief(1), None);
        assert_eq!(pressure.relief(2), Some(Relief::Run(vec![CellId(3), CellId(4)])));
        assert_eq!(pressure.relief(2), None);
        pressure.press(CellId(3), vec![BY_ME]);
        pressure.press(CellId(4), vec![BY_OTHER]);
        assert!(pressure.parks(CellId(3)) && pressure.parks(CellId(4)));
        assert_eq!(pressure.stands_still(None), waits(3, vec![BY_ME, BY_OTHER]));
        assert_eq!(pressure.relief(3), Some(Relief::Widen), "it has had no room since");
        assert!(
            !pressure.sent(OTHER, 99).presses && pressure.sent(OTHER, 1).presses,
            "a window of 200 bytes"
        );
        assert_eq!(pressure.goes_on(), None);
        assert_eq!(pressure.stands_still(None), waits(4, vec![BY_ME, BY_OTHER]));
        assert_eq!(pressure.goes_on(), Some(4));
        assert_eq!(pressure.relief(4), None, "it has gone on meanwhile");
    }

    #[test]
    fn windows_widen_where_others_are_waited_for_also_those_of_nothing() {
        let window_after = |by| {
            let mut pressure = Pressure { window: 0, broadcast_window: 0, ..pressure() };
            pressure.sent(OTHER, 1);
            pressure.broadcast(1);
            pressure.press(CellId(3), vec![by]);
            pressure.parks(CellId(3));
            assert_eq!(pressure.stands_still(None), waits(1, vec![by]));
            pressure.relieved = true;
            assert_eq!(pressure.relief(1), Some(Relief::Widen));
            pressure.window
        };
        assert_eq!([BY_ME, BY_OTHER, Presser::Broadcasts].map(window_after), [0, 2, 2]);
    }

    /// A rank that waits for these ranks.
    fn waiting_for(ranks: &[Rank]) -> Standing {
        Standing { waits_for: ranks.iter().copied().map(Presser::Rank).collect(), owes: None }
    }

    /// The ranks that are stuck once this one stands still, where nobody broadcasts.
    fn stuck_after(standstill: &mut Standstill, rank: Rank, spell: u64, ranks: &[Rank]) -> Vec<(Rank, u64)> {
        standstill.stands(rank, spell, waiting_for(ranks));
        standstill.take_stuck(|_| None)
    }

    #[test]
    fn only_ranks_that_wait_for_each_other_alone_are_stuck() {
        let [a, b, c, slow] = [0, 1, 2, 3].map(Rank);
        let mut standstill = Standstill::default();
        let mut stands = |rank, spell, ranks: &[Rank]| stuck_after(&mut standstill, rank, spell, ranks);
        assert_eq!(stands(a, 1, &[b, slow]), []);
        assert_eq!(stands(b, 1, &[a]), [], "the slow one answers, then the first, then the second");
        assert_eq!(stands(c, 7, &[c]), [(c, 7)]);
        assert_eq!(stands(a, 2, &[b]), [(a, 2), (b, 1)]);
        assert_eq!(stands(a, 3, &[b]), []);
        standstill.goes_on(a, 2);
        let stuck = stuck_after(&mut standstill, b, 2, &[a]);
        assert_eq!(stuck, [(a, 3), (b, 2)], "an old spell ends nothing");
        assert_eq!(stuck_after(&mut standstill, a, 4, &[b]), []);
        standstill.goes_on(a, 4);
        assert_eq!(stuck_after(&mut standstill, b, 3, &[a]), []);
    }

    #[test]
    fn who_waits_for_the_broadcasts_waits_for_those_who_owe_its_first_open_mark() {
        let [broadcaster, full, other] = [0, 1, 2].map(Rank);
        let broadcasts = || Standing { waits_for: vec![Presser::Broadcasts], owes: None };
        let mut standstill = Standstill::default();
        standstill.stands(broadcaster, 1, broadcasts());
        standstill.stands(other, 1, waiting_for(&[broadcaster]));
        assert_eq!(standstill.take_stuck(|_| Some(7)), [], "somebody will answer");
        standstill.stands(full, 1, Standing { owes: Some(8), ..waiting_for(&[broadcaster]) });
        assert_eq!(standstill.take_stuck(|_| Some(7)), [], "it has answered the mark, and another will");
        assert_eq!(standstill.take_stuck(|_| None), [], "all have answered");
        let stuck = standstill.take_stuck(|rank| (rank == broadcaster).then_some(8));
        assert_eq!(stuck, [(broadcaster, 1), (full, 1), (other, 1)]);
        standstill.stands(full, 2, Standing { owes: Some(9), ..broadcasts() });
        assert_eq!(standstill.take_stuck(|_| Some(9)), [(full, 2)], "it waits for itself");
    }

    #[test]
    fn that_a_rank_owes_an_answer_is_news() {
        let mut pressure = pressure();
        pressure.press(CellId(3), vec![BY_ME]);
        pressure.parks(CellId(3));
        assert_eq!(pressure.stands_still(None), waits(1, vec![BY_ME]));
        let owing = Standing { waits_for: vec![BY_ME], owes: Some(4) };
        let told = (pressure.stands_still(Some(4)), pressure.stands_still(Some(4)));
        assert_eq!(told, (Some((2, owing)), None));
    }

    #[test]
    fn the_window_for_broadcasts_is_no_part_of_one_for_each_rank() {
        let window = |ranks| Pressure::new(ME, ranks, 64 << 20, &Arc::default()).broadcast_window;
        assert_eq!([2, 5, 1000].map(window), [16 << 20, 4 << 20, 4 << 20]);
    }
}
