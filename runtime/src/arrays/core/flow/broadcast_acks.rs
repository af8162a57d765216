//! Aggregates the acks of broadcasts up the tree of ranks, so that a sender of broadcasts waits for the slowest rank.
//! The rules are in [`flow`](crate::arrays::core::flow).
//!
//! Some broadcasts carry a request for an ack. Rank 0 puts these broadcasts into one sequence, and they arrive at every
//! rank in that order. Only broadcasts with a request are numbered and counted here.
//!
//! # Steps of a rank
//!
//! | input | output |
//! |---|---|
//! | a request; chunks here have received a broadcast since the last request, or another ack is deferred | the ack is deferred |
//! | a request in any other case | the rank acknowledges the broadcast |
//! | the rank is not full, and all its incoming chunks are admitted | the rank acknowledges all deferred broadcasts |
//! | this rank (not 0) and all ranks below it have acknowledged more broadcasts | the number of these, to the parent |
//! | all ranks have acknowledged more broadcasts, on rank 0 | an ack for all ranks, to the sender of each broadcast |
//!
//! Cost: per request, one packet from each child and one to the parent; fewer if a rank acknowledges several at once.

use std::collections::VecDeque;

use litemap::LiteMap;

use crate::arrays::core::collectives::tree::Tree;
use crate::ids::Rank;

/// The state of one rank. All numbers are of broadcasts with a request for an ack.
#[derive(Debug)]
pub(crate) struct BroadcastAcks {
    /// Broadcasts that this rank has acknowledged.
    acked: u64,
    /// Broadcasts that have arrived and have a deferred ack on this rank.
    deferred: u64,
    /// True if chunks here, or incoming ones, have received any broadcast since the last request.
    received: bool,
    /// By child, broadcasts that the child and all ranks below it have acknowledged.
    below: LiteMap<Rank, u64>,
    /// Broadcasts that this rank and all ranks below it have acknowledged, as last reported to the parent.
    reported: u64,
    /// Rank 0: the sender and the bytes to acknowledge of each broadcast that not all ranks have acknowledged.
    unacked: VecDeque<(Rank, u64)>,
}

impl BroadcastAcks {
    pub(crate) fn new(tree: &Tree) -> BroadcastAcks {
        let below = tree.children().map(|child| (child, 0)).collect();
        BroadcastAcks { acked: 0, deferred: 0, received: false, below, reported: 0, unacked: VecDeque::new() }
    }

    /// Rank 0: the next broadcast in the sequence is one of rank `by`; its ack is for `bytes` bytes.
    pub(crate) fn sent(&mut self, by: Rank, bytes: u64) {
        self.unacked.push_back((by, bytes));
    }

    /// Chunks that are here or incoming receive a broadcast, with a request or without.
    pub(crate) fn receive(&mut self) {
        self.received = true;
    }

    /// A broadcast with a request has come. Its ack covers all broadcasts since the last request, and is deferred if
    /// chunks here have received any of these.
    pub(crate) fn requested(&mut self) {
        let waits = std::mem::take(&mut self.received) || self.deferred > 0;
        if waits { self.deferred += 1 } else { self.acked += 1 }
    }

    /// The number of the first broadcast with a deferred ack, counted from 0.
    pub(crate) fn first_deferred(&self) -> Option<u64> {
        (self.deferred > 0).then_some(self.acked)
    }

    /// This rank acknowledges all deferred broadcasts: it is not full, and all its incoming chunks are admitted.
    pub(crate) fn ack(&mut self) {
        self.acked += std::mem::take(&mut self.deferred);
    }

    /// A child and all ranks below it have acknowledged `more` broadcasts.
    pub(crate) fn child_acked(&mut self, child: Rank, more: u64) {
        *self.below.entry(child).or_default() += more;
    }

    /// Takes the number of further broadcasts that this rank and all ranks below it have acknowledged, to report them
    /// now.
    pub(crate) fn take_new_acks(&mut self) -> u64 {
        let least = self.below.values().fold(self.acked, |least, &below| least.min(below));
        least - std::mem::replace(&mut self.reported, least)
    }

    /// Rank 0: all ranks have acknowledged `more` broadcasts. Takes their senders and the bytes to acknowledge.
    pub(crate) fn take_acked_by_all(&mut self, more: u64) -> Vec<(Rank, u64)> {
        self.unacked.drain(..more as usize).collect()
    }

    /// Rank 0: the number of the first broadcast of rank `by` that not all ranks have acknowledged.
    pub(crate) fn first_unacked(&self, by: Rank) -> Option<u64> {
        (self.reported..).zip(&self.unacked).find(|(_, made)| made.0 == by).map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ROOT;

    #[test]
    fn a_broadcast_is_acknowledged_when_the_last_rank_of_the_tree_acknowledges_it() {
        let mut root = BroadcastAcks::new(&Tree { rank: ROOT, ranks: 3, arity: 8, group: 1 });
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
    fn a_broadcast_without_receivers_is_acknowledged_at_once() {
        let mut leaf = BroadcastAcks::new(&Tree { rank: Rank(2), ranks: 3, arity: 8, group: 1 });
        leaf.requested();
        assert_eq!((leaf.take_new_acks(), leaf.take_new_acks()), (1, 0));
        leaf.receive();
        leaf.requested();
        assert_eq!((leaf.take_new_acks(), leaf.first_deferred()), (0, Some(1)));
    }
}
