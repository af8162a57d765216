//! Back-pressure: a chunk that has sent to a rank which has not caught up is not run again until that rank has.
//!
//! # Words
//!
//! The *waiting* bytes of a rank are those of the messages in its mailboxes. Above its limit it is *full*; at half of it
//! it has *room* again. Bytes *under way* to a rank were sent to it, and it has not said that it took them in. A chunk is
//! *pressed* by ranks it has sent to; the token of a pressed chunk is *parked*, until none of them presses it any more.
//!
//! # Rules
//!
//! 1. Among the messages to a rank a sender puts *marks*, with the bytes since the last, four or more a window. A receiver
//!    that has room answers a mark at once, one that is full owes the answer until it has room. Answered bytes are no longer
//!    under way.
//! 2. A chunk is pressed by another rank once more than a window is under way to it, until it is at most half of one; by its
//!    own rank while that is full.
//! 3. A pressed chunk handles nothing; all others go on. So does everything else that ranks say to each other: nobody
//!    stops polling, and nothing but answers to marks is held back.
//! 4. A full rank that has nothing to run, and parked tokens, *stands still*, and tells rank 0 for whom they wait. Ranks that
//!    stand still and wait, by whatever way, for nobody but such ranks, themselves among them, are told by rank 0 to *widen*
//!    their limits, to the double and to the double of what waits. Who waits for others doubles its windows too.
//!
//! # What follows
//!
//! *Memory is bounded.* A rank holds its limit, a window for each rank that sends to it, and what one run of a handler of
//! each of their chunks leaves. A limit grows only where all stand still: a chain in which somebody consumes, however slowly,
//! never stands still as a whole, since whoever consumes and sends nothing is never pressed, so that its rank runs it.
//! Both double, so a program that needs more at once than they allow stands still a few times and then never again.
//!
//! *No deadlock.* A parked token waits for ranks that are full (one with room answers, and the last mark leaves less than half
//! a window unanswered). A full rank that runs something gets room by it, or parks what it runs, or stands still. Of ranks
//! that stand still, those that wait for somebody who does not are answered in time. The others are all told: rank 0
//! hears of the last of them, and until it has told them nothing can change for them. If one was freed meanwhile, its
//! *spell* is over, and it does not listen.
//!
//! A parked chunk is not idle: its rank answers no search for quiescence. A sync needs no chunk that is parked, once all have
//! come; migration holds a chunk also where its token is parked. Messages that a chunk keeps, because it is not ready or waits at
//! a sync, are not waiting: whom it waits for nobody knows.

use std::collections::{BTreeMap, BTreeSet};

use litemap::LiteMap;

use crate::ids::{CellId, Rank};

/// Marks in a window; windows of all other ranks in a limit.
const MARKS: u64 = 4;
const WINDOWS: u64 = 4;
/// A window is at least so long, if the limit is much longer.
const WINDOW_MIN: u64 = 64 << 10;

/// One rank's side of it.
#[derive(Debug)]
pub(crate) struct Pressure {
    me: Rank,
    /// Bytes that may be under way to another rank.
    window: u64,
    links: LiteMap<Rank, Link>,
    pressed: BTreeMap<CellId, Pressed>,
    /// Tokens that are parked.
    parked: usize,
    spell: u64,
    /// Ranks that rank 0 was told this one waits for, in this spell.
    reported: Option<Vec<Rank>>,
}

/// What is known of another rank: bytes, to it and from it.
#[derive(Debug, Default)]
struct Link {
    under_way: u64,
    /// Of those, sent since the last mark.
    unmarked: u64,
    /// Marked by the other rank, and not answered.
    owed: u64,
}

#[derive(Debug)]
struct Pressed {
    by: Vec<Rank>,
    /// Its token is here.
    parked: bool,
}

/// What follows from a message to another rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// A mark is due behind it.
    pub(crate) marks: bool,
    /// Its sender is pressed.
    pub(crate) presses: bool,
}

impl Pressure {
    /// Of a rank with this limit of waiting bytes, one of `ranks`.
    pub(crate) fn new(me: Rank, ranks: u32, limit: u64) -> Pressure {
        // All windows to a rank with the same limit together are a part of that, unless there are very many.
        let shared_out = limit / WINDOWS / u64::from(ranks.max(2) - 1);
        let window = shared_out.max(WINDOW_MIN.min(limit / 16));
        Pressure {
            me,
            window,
            links: LiteMap::new(),
            pressed: BTreeMap::new(),
            parked: 0,
            spell: 0,
            reported: None,
        }
    }

    fn link(&mut self, rank: Rank) -> &mut Link {
        self.links.entry(rank).or_default()
    }

    /// So many bytes leave for another rank.
    #[inline]
    pub(crate) fn sent(&mut self, to: Rank, bytes: u64) -> Sent {
        let window = self.window;
        let link = self.link(to);
        link.under_way += bytes;
        link.unmarked += bytes;
        Sent { marks: link.unmarked >= (window / MARKS).max(1), presses: link.under_way > window }
    }

    /// The bytes since the last mark: one is sent now.
    pub(crate) fn mark(&mut self, to: Rank) -> u64 {
        std::mem::take(&mut self.link(to).unmarked)
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

    /// Another rank answers a mark. Returns the tokens that are no longer parked.
    pub(crate) fn answered(&mut self, by: Rank, bytes: u64) -> Vec<CellId> {
        self.link(by).under_way -= bytes;
        if self.presses(by) { Vec::new() } else { self.release(by) }
    }

    /// Tells whether chunks that another rank presses go on being pressed.
    fn presses(&self, by: Rank) -> bool {
        self.links.get(&by).is_some_and(|link| link.under_way > self.window / 2)
    }

    /// The chunk of this cell is pressed from now on, unless these ranks have caught up meanwhile; its own it is asked to
    /// [`release`](Self::release) then.
    pub(crate) fn press(&mut self, cell: CellId, mut by: Vec<Rank>) {
        by.retain(|&rank| rank == self.me || self.presses(rank));
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

    /// A rank presses no longer. Returns the tokens that are no longer parked.
    pub(crate) fn release(&mut self, rank: Rank) -> Vec<CellId> {
        let mut freed = Vec::new();
        self.pressed.retain(|&cell, pressed| {
            pressed.by.retain(|&by| by != rank);
            freed.extend((pressed.by.is_empty() && pressed.parked).then_some(cell));
            !pressed.by.is_empty()
        });
        self.parked -= freed.len();
        freed
    }

    /// The chunk of this cell is about to leave: nothing presses it any more. True if its token was parked.
    pub(crate) fn forget(&mut self, cell: CellId) -> bool {
        let parked = self.pressed.remove(&cell).is_some_and(|pressed| pressed.parked);
        self.parked -= usize::from(parked);
        parked
    }

    /// This rank is full and has nothing to run. Returns the spell, and the ranks for which tokens wait, if there are any
    /// and rank 0 has not heard it.
    pub(crate) fn stands_still(&mut self) -> Option<(u64, Vec<Rank>)> {
        let parked = self.pressed.values().filter(|pressed| pressed.parked);
        let mut waits_for: Vec<Rank> = parked.flat_map(|pressed| pressed.by.iter().copied()).collect();
        waits_for.sort_unstable();
        waits_for.dedup();
        if waits_for.is_empty() || self.reported.as_ref() == Some(&waits_for) {
            return None;
        }
        self.spell += 1;
        self.reported = Some(waits_for.clone());
        Some((self.spell, waits_for))
    }

    /// Tokens were freed: this spell is over, if rank 0 was told of it.
    pub(crate) fn goes_on(&mut self) -> Option<u64> {
        self.reported.take().map(|_| self.spell)
    }

    /// Rank 0 says that this spell would not end by itself. False if it is over.
    pub(crate) fn widens(&mut self, spell: u64) -> bool {
        if spell != self.spell {
            return false;
        }
        let Some(awaited) = self.reported.take() else { return false };
        if awaited.iter().any(|&rank| rank != self.me) {
            self.window = self.window.max(1).saturating_mul(2);
        }
        true
    }
}

/// Rank 0's knowledge of who stands still: the spell, and the ranks that it waits for.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    ranks: BTreeMap<Rank, (u64, Vec<Rank>)>,
}

impl Standstill {
    /// A rank stands still. Returns ranks that have to widen their limits, with their spells: they wait for each other alone.
    pub(crate) fn stands(&mut self, rank: Rank, spell: u64, waits_for: Vec<Rank>) -> Vec<(Rank, u64)> {
        self.ranks.insert(rank, (spell, waits_for));
        let mut stuck: BTreeSet<Rank> = self.ranks.keys().copied().collect();
        loop {
            let before = stuck.len();
            // Who waits for somebody that goes on will go on itself.
            let candidates = stuck.clone();
            stuck.retain(|rank| self.ranks[rank].1.iter().all(|awaited| candidates.contains(awaited)));
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

    /// With a window of 100 bytes and a mark every 25.
    fn pressure() -> Pressure {
        let pressure = Pressure { window: 100, ..Pressure::new(ME, 2, 1 << 20) };
        assert!(!pressure.has_pressed());
        pressure
    }

    #[test]
    fn more_than_a_window_presses_until_half_of_it_is_answered() {
        let mut pressure = pressure();
        assert_eq!(pressure.sent(OTHER, 24), Sent { marks: false, presses: false });
        assert_eq!(pressure.sent(OTHER, 70), Sent { marks: true, presses: false });
        assert_eq!(pressure.mark(OTHER), 94);
        assert_eq!(pressure.sent(OTHER, 7), Sent { marks: false, presses: true });
        pressure.press(CellId(3), vec![OTHER]);
        assert!(pressure.parks(CellId(3)) && !pressure.parks(CellId(4)));
        assert_eq!(pressure.answered(OTHER, 50), []);
        assert_eq!(pressure.answered(OTHER, 44), [CellId(3)]);
        assert!(!pressure.has_pressed() && !pressure.has_parked());
    }

    #[test]
    fn who_is_pressed_by_two_ranks_waits_for_both() {
        let mut pressure = pressure();
        pressure.sent(OTHER, 101);
        pressure.press(CellId(3), vec![OTHER, ME]);
        assert!(pressure.parks(CellId(3)));
        assert_eq!(pressure.release(ME), []);
        let marked = pressure.mark(OTHER);
        assert_eq!(pressure.answered(OTHER, marked), [CellId(3)]);
    }

    #[test]
    fn a_rank_that_has_caught_up_meanwhile_presses_nobody() {
        let mut pressure = pressure();
        assert!(pressure.sent(OTHER, 101).presses);
        let marked = pressure.mark(OTHER);
        assert_eq!(pressure.answered(OTHER, marked), []);
        pressure.press(CellId(3), vec![OTHER]);
        assert!(!pressure.has_pressed());
    }

    #[test]
    fn a_rank_tells_once_a_spell_for_whom_its_tokens_wait() {
        let mut pressure = pressure();
        pressure.press(CellId(3), vec![ME]);
        assert_eq!(pressure.stands_still(), None, "its token is elsewhere");
        pressure.parks(CellId(3));
        assert_eq!(pressure.stands_still(), Some((1, vec![ME])));
        assert_eq!(pressure.stands_still(), None);
        pressure.sent(OTHER, 101);
        pressure.press(CellId(4), vec![OTHER]);
        pressure.parks(CellId(4));
        assert_eq!(pressure.stands_still(), Some((2, vec![ME, OTHER])));
        assert!(!pressure.widens(1) && pressure.widens(2) && !pressure.widens(2));
        assert!(
            !pressure.sent(OTHER, 99).presses && pressure.sent(OTHER, 1).presses,
            "a window of 200 bytes"
        );
        assert_eq!(pressure.goes_on(), None);
        assert_eq!(pressure.stands_still(), Some((3, vec![ME, OTHER])));
        assert_eq!(pressure.goes_on(), Some(3));
        assert!(!pressure.widens(3), "it has gone on meanwhile");
    }

    #[test]
    fn windows_widen_where_others_are_waited_for_also_those_of_nothing() {
        let window_after = |by| {
            let mut pressure = Pressure { window: 0, ..pressure() };
            pressure.sent(OTHER, 1);
            pressure.press(CellId(3), vec![by]);
            pressure.parks(CellId(3));
            assert_eq!(pressure.stands_still(), Some((1, vec![by])));
            assert!(pressure.widens(1));
            pressure.window
        };
        assert_eq!([ME, OTHER].map(window_after), [0, 2]);
    }

    #[test]
    fn only_ranks_that_wait_for_each_other_alone_are_stuck() {
        let [a, b, c, slow] = [0, 1, 2, 3].map(Rank);
        let mut standstill = Standstill::default();
        assert_eq!(standstill.stands(a, 1, vec![b, slow]), []);
        assert_eq!(
            standstill.stands(b, 1, vec![a]),
            [],
            "the slow one answers, then the first, then the second"
        );
        assert_eq!(standstill.stands(c, 7, vec![c]), [(c, 7)]);
        assert_eq!(standstill.stands(a, 2, vec![b]), [(a, 2), (b, 1)]);
        assert_eq!(standstill.stands(a, 3, vec![b]), []);
        standstill.goes_on(a, 2);
        assert_eq!(standstill.stands(b, 2, vec![a]), [(a, 3), (b, 2)], "an old spell ends nothing");
        assert_eq!(standstill.stands(a, 4, vec![b]), []);
        standstill.goes_on(a, 4);
        assert_eq!(standstill.stands(b, 3, vec![a]), []);
    }
}
