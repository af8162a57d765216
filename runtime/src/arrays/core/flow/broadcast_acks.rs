//! How far all ranks are with broadcasts, counted up the tree: who broadcasts waits for the slowest.
//!
//! The rules are in [`flow`](crate::arrays::core::flow). Some broadcasts are *marked*; rank 0 puts them in one row, and they come
//! to every rank in that order. A rank *takes in* a marked one when it comes or, if chunks here have heard any since the last,
//! as soon as the rank has room, and all have landed who are to hear them. Whenever it and all ranks below it have taken in
//! more, it tells its parent how many more; rank 0 tells who made them. So a mark costs a rank a packet to its parent and one
//! from each child, and less where ranks catch up.

use std::collections::VecDeque;

use litemap::LiteMap;

use crate::arrays::core::collectives::tree::Tree;
use crate::ids::Rank;

/// One rank's part of it. All numbers are of marked broadcasts.
#[derive(Debug)]
pub(crate) struct BroadcastAcks {
    /// Those that this rank has taken in.
    acked: u64,
    /// Those that came and wait for room.
    deferred: u64,
    /// Chunks that are here, or on their way, have heard a broadcast, marked or not, since the last of them came.
    received: bool,
    /// Those that a child and all ranks below it have taken in.
    below: LiteMap<Rank, u64>,
    /// Those that this rank and all below it have taken in, as far as it has told.
    reported: u64,
    /// Rank 0: who made those that not all ranks have taken in, and how many bytes each stands for.
    unacked: VecDeque<(Rank, u64)>,
}

impl BroadcastAcks {
    pub(crate) fn new(tree: &Tree) -> BroadcastAcks {
        let below = tree.children().map(|child| (child, 0)).collect();
        BroadcastAcks { acked: 0, deferred: 0, received: false, below, reported: 0, unacked: VecDeque::new() }
    }

    /// Rank 0: the next one was made by this rank.
    pub(crate) fn sent(&mut self, by: Rank, bytes: u64) {
        self.unacked.push_back((by, bytes));
    }

    /// Chunks that are here, or on their way, hear a broadcast, marked or not.
    pub(crate) fn receive(&mut self) {
        self.received = true;
    }

    /// One has come. It waits for room if chunks here have heard any since the last, for which it stands too.
    pub(crate) fn requested(&mut self) {
        let waits = std::mem::take(&mut self.received) || self.deferred > 0;
        if waits { self.deferred += 1 } else { self.acked += 1 }
    }

    /// The number of the first that waits for room, counted from 0.
    pub(crate) fn first_deferred(&self) -> Option<u64> {
        (self.deferred > 0).then_some(self.acked)
    }

    /// This rank has room.
    pub(crate) fn ack(&mut self) {
        self.acked += std::mem::take(&mut self.deferred);
    }

    /// A child and all ranks below it have taken in so many more.
    pub(crate) fn child_acked(&mut self, child: Rank, more: u64) {
        *self.below.entry(child).or_default() += more;
    }

    /// How many more this rank and all below it have taken in: to be told now.
    pub(crate) fn take_new_acks(&mut self) -> u64 {
        let least = self.below.values().fold(self.acked, |least, &below| least.min(below));
        least - std::mem::replace(&mut self.reported, least)
    }

    /// Rank 0: so many more were taken in by all ranks. Takes who made them, and the bytes that they stand for.
    pub(crate) fn take_acked_by_all(&mut self, more: u64) -> Vec<(Rank, u64)> {
        self.unacked.drain(..more as usize).collect()
    }

    /// Rank 0: the number of the first that this rank made and not all have taken in.
    pub(crate) fn first_unacked(&self, by: Rank) -> Option<u64> {
        (self.reported..).zip(&self.unacked).find(|(_, made)| made.0 == by).map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ROOT;

    #[test]
    fn a_mark_is_answered_when_the_last_rank_of_the_tree_has_room() {
        let mut root = BroadcastAcks::new(&Tree { rank: ROOT, ranks: 3, arity: 8 });
        root.sent(Rank(2), 50);
        root.sent(ROOT, 7);
        assert_eq!([ROOT, Rank(1), Rank(2)].map(|by| root.first_unacked(by)), [Some(1), None, Some(0)]);
        root.receive();
        root.requested();
        assert_eq!(root.first_deferred(), Some(0));
        root.child_acked(Rank(1), 2);
        root.child_acked(Rank(2), 1);
        assert_eq!(root.take_new_acks(), 0, "its own is owed");
        root.requested();
        assert_eq!(root.take_new_acks(), 0, "it is behind the other");
        root.ack();
        assert_eq!(root.first_deferred(), None);
        let more = root.take_new_acks();
        assert_eq!(root.take_acked_by_all(more), [(Rank(2), 50)], "one rank has taken in one alone");
        assert_eq!((root.take_new_acks(), root.first_unacked(ROOT)), (0, Some(1)));
        root.child_acked(Rank(2), 1);
        let more = root.take_new_acks();
        assert_eq!(root.take_acked_by_all(more), [(ROOT, 7)]);
    }

    #[test]
    fn what_nobody_hears_needs_no_room() {
        let mut leaf = BroadcastAcks::new(&Tree { rank: Rank(2), ranks: 3, arity: 8 });
        leaf.requested();
        assert_eq!((leaf.take_new_acks(), leaf.take_new_acks()), (1, 0));
        leaf.receive();
        leaf.requested();
        assert_eq!((leaf.take_new_acks(), leaf.first_deferred()), (0, Some(1)));
    }
}
