//! How far all ranks are with broadcasts, counted up the tree: who broadcasts waits for the slowest.
//!
//! The rules are in [`pressure`](super::pressure). Some broadcasts are *marked*; rank 0 puts them in one row, and they come
//! to every rank in that order. A rank *takes in* a marked one when it comes or, if chunks here have heard any since the last,
//! as soon as the rank has room, and all have landed who are to hear them. Whenever it and all ranks below it have taken in
//! more, it tells its parent how many more; rank 0 tells who made them. So a mark costs a rank a packet to its parent and one
//! from each child, and less where ranks catch up.

use std::collections::VecDeque;

use litemap::LiteMap;

use super::tree::Tree;
use crate::ids::Rank;

/// One rank's part of it. All numbers are of marked broadcasts.
#[derive(Debug)]
pub(crate) struct Uptake {
    /// Those that this rank has taken in.
    own: u64,
    /// Those that came and wait for room.
    owed: u64,
    /// Chunks that are here, or on their way, have heard a broadcast, marked or not, since the last of them came.
    hears: bool,
    /// Those that a child and all ranks below it have taken in.
    below: LiteMap<Rank, u64>,
    /// Those that this rank and all below it have taken in, as far as it has told.
    told: u64,
    /// Rank 0: who made those that not all ranks have taken in, and how many bytes each stands for.
    made: VecDeque<(Rank, u64)>,
}

impl Uptake {
    pub(crate) fn new(tree: &Tree) -> Uptake {
        let below = tree.children().map(|child| (child, 0)).collect();
        Uptake { own: 0, owed: 0, hears: false, below, told: 0, made: VecDeque::new() }
    }

    /// Rank 0: the next one was made by this rank.
    pub(crate) fn made(&mut self, by: Rank, bytes: u64) {
        self.made.push_back((by, bytes));
    }

    /// Chunks that are here, or on their way, hear a broadcast, marked or not.
    pub(crate) fn hear(&mut self) {
        self.hears = true;
    }

    /// One has come. It waits for room if chunks here have heard any since the last, for which it stands too.
    pub(crate) fn come(&mut self) {
        let waits = std::mem::take(&mut self.hears) || self.owed > 0;
        if waits { self.owed += 1 } else { self.own += 1 }
    }

    /// The number of the first that waits for room, counted from 0.
    pub(crate) fn first_owed(&self) -> Option<u64> {
        (self.owed > 0).then_some(self.own)
    }

    /// This rank has room.
    pub(crate) fn take_in(&mut self) {
        self.own += std::mem::take(&mut self.owed);
    }

    /// A child and all ranks below it have taken in so many more.
    pub(crate) fn below(&mut self, child: Rank, more: u64) {
        *self.below.entry(child).or_default() += more;
    }

    /// How many more this rank and all below it have taken in: to be told now.
    pub(crate) fn take_news(&mut self) -> u64 {
        let least = self.below.values().fold(self.own, |least, &below| least.min(below));
        least - std::mem::replace(&mut self.told, least)
    }

    /// Rank 0: so many more were taken in by all ranks. Takes who made them, and the bytes that they stand for.
    pub(crate) fn take_made(&mut self, more: u64) -> Vec<(Rank, u64)> {
        self.made.drain(..more as usize).collect()
    }

    /// Rank 0: the number of the first that this rank made and not all have taken in.
    pub(crate) fn first_open(&self, by: Rank) -> Option<u64> {
        (self.told..).zip(&self.made).find(|(_, made)| made.0 == by).map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ROOT;

    #[test]
    fn a_mark_is_answered_when_the_last_rank_of_the_tree_has_room() {
        let mut root = Uptake::new(&Tree { rank: ROOT, ranks: 3, arity: 8 });
        root.made(Rank(2), 50);
        root.made(ROOT, 7);
        assert_eq!([ROOT, Rank(1), Rank(2)].map(|by| root.first_open(by)), [Some(1), None, Some(0)]);
        root.hear();
        root.come();
        assert_eq!(root.first_owed(), Some(0));
        root.below(Rank(1), 2);
        root.below(Rank(2), 1);
        assert_eq!(root.take_news(), 0, "its own is owed");
        root.come();
        assert_eq!(root.take_news(), 0, "it is behind the other");
        root.take_in();
        assert_eq!(root.first_owed(), None);
        let more = root.take_news();
        assert_eq!(root.take_made(more), [(Rank(2), 50)], "one rank has taken in one alone");
        assert_eq!((root.take_news(), root.first_open(ROOT)), (0, Some(1)));
        root.below(Rank(2), 1);
        let more = root.take_news();
        assert_eq!(root.take_made(more), [(ROOT, 7)]);
    }

    #[test]
    fn what_nobody_hears_needs_no_room() {
        let mut leaf = Uptake::new(&Tree { rank: Rank(2), ranks: 3, arity: 8 });
        leaf.come();
        assert_eq!((leaf.take_news(), leaf.take_news()), (1, 0));
        leaf.hear();
        leaf.come();
        assert_eq!((leaf.take_news(), leaf.first_owed()), (0, Some(1)));
    }
}
