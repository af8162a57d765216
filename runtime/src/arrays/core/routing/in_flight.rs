//! Counts the messages between ranks, per *epoch*: the time between two switches of routes on one rank. With these
//! counts a rank finds out in a migration when no message under the old routes is in flight to it.
//!
//! Each message carries the epoch of its sender. A rank counts the messages that it sends in an epoch, per receiver.
//! The [cut](super::cut) adds up the counts of all ranks and sends each rank its expected number of messages of the
//! ended epoch. A rank is *drained* once it has received that number, in any order and from any senders.
//!
//! Messages of at most two epochs are in flight at a time, so one bit names an epoch. A rank switches again only after
//! all ranks are drained of the epoch before, see [`migration`](crate::arrays::core::sync::migration).
//!
//! Cost: one addition per message that leaves a rank, and one per message that arrives. Messages within a rank are not
//! counted. The counts are in a hash map for speed, and are reported sorted.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::arrays::core::collectives::tree::Tree;
use crate::ids::Rank;

/// The epoch in which a message was sent: one bit of the number of route switches before.
///
/// A whole word, because messages are copied word by word: a word load that spans a byte just stored stalls (a
/// store-forwarding failure).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Epoch(u64);

impl Epoch {
    /// The next epoch. Its bit is also the bit of the epoch before.
    fn other(self) -> Epoch {
        Epoch(self.0 ^ 1)
    }

    pub(crate) fn bit(self) -> u8 {
        self.0 as u8
    }

    pub(crate) fn of_bit(bit: u8) -> Epoch {
        Epoch(u64::from(bit) & 1)
    }
}

/// Number of messages per receiver, by ascending rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountsByRank(Vec<(Rank, u64)>);

impl CountsByRank {
    /// Adds the counts of other ranks.
    pub(crate) fn add(&mut self, other: CountsByRank) {
        if self.0.is_empty() {
            self.0 = other.0;
            return;
        }
        self.0.extend(other.0);
        // Two ascending runs: the sort merges them.
        self.0.sort_by_key(|&(rank, _)| rank);
        self.0.dedup_by(|(rank, messages), (before, sum)| {
            let same = rank == before;
            *sum += if same { *messages } else { 0 };
            same
        });
    }

    /// The number of messages to this rank, and per child the counts of the child and the ranks below it.
    pub(crate) fn split(self, tree: &Tree) -> (u64, Vec<(Rank, CountsByRank)>) {
        let (mut own, mut below) =
            (0, Vec::from_iter(tree.children().map(|child| (child, CountsByRank::default()))));
        for (rank, messages) in self.0 {
            let towards = tree.child_towards(rank);
            match below.iter_mut().find(|(child, _)| Some(*child) == towards) {
                Some((_, counts)) => counts.0.push((rank, messages)),
                None => own = messages,
            }
        }
        (own, below)
    }
}

/// Number of receivers with a count in a small cache, without hashing.
const RECENT: usize = 8;

/// The counts of one rank: messages sent to other ranks and received from them.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    epoch: Epoch,
    /// Messages sent in this epoch, without the counts in `recent`.
    sent: FxHashMap<Rank, u64>,
    /// A small cache of the latest receivers: the messages sent to each since it entered the cache.
    recent: [(Rank, u64); RECENT],
    /// Messages received, by the bit of their epoch. Reset when the rank is drained of the epoch.
    received: [u64; 2],
    /// Number of messages to receive of the ended epoch, once the cut has sent it.
    expected: Option<u64>,
}

impl InFlight {
    /// A message leaves for another rank. Returns the current epoch.
    #[inline]
    pub(crate) fn count_sent(&mut self, to: Rank) -> Epoch {
        let place = to.index() % RECENT;
        if self.recent[place].0 != to {
            self.evict(place, to);
        }
        self.recent[place].1 += 1;
        self.epoch
    }

    /// Gives a place of the cache to another rank.
    #[inline(never)]
    fn evict(&mut self, place: usize, next: Rank) {
        let (rank, messages) = std::mem::replace(&mut self.recent[place], (next, 0));
        if messages > 0 {
            *self.sent.entry(rank).or_default() += messages;
        }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// A message has come from another rank. True if it drains this rank, as the last message of the ended epoch.
    #[inline]
    pub(crate) fn count_received(&mut self, epoch: Epoch) -> bool {
        self.received[usize::from(epoch.bit())] += 1;
        self.expected.is_some() && self.check_drained()
    }

    /// The routes change. Returns the counts of messages that were sent under the old ones.
    pub(crate) fn end_epoch(&mut self) -> CountsByRank {
        assert!(self.expected.is_none(), "a rank is drained of one epoch before it ends the next");
        self.epoch = self.epoch.other();
        for place in 0..RECENT {
            self.evict(place, Rank::default());
        }
        let mut counts: Vec<_> = std::mem::take(&mut self.sent).into_iter().collect();
        counts.sort_unstable_by_key(|&(rank, _)| rank);
        CountsByRank(counts)
    }

    /// Sets the number of messages of the ended epoch that were sent to this rank. True if it has all of them.
    pub(crate) fn expect(&mut self, messages: u64) -> bool {
        self.expected = Some(messages);
        self.check_drained()
    }

    fn check_drained(&mut self) -> bool {
        let received = &mut self.received[usize::from(self.epoch.other().bit())];
        if self.expected != Some(*received) {
            return false;
        }
        (self.expected, *received) = (None, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Epoch = Epoch(0);
    const NEW: Epoch = Epoch(1);

    fn counts(all: &[(u32, u64)]) -> CountsByRank {
        CountsByRank(all.iter().map(|&(rank, messages)| (Rank(rank), messages)).collect())
    }

    #[test]
    fn messages_are_counted_per_receiver_and_each_epoch_starts_at_zero() {
        let mut in_flight = InFlight::default();
        assert_eq!([9, 2, 9].map(|to| in_flight.count_sent(Rank(to))), [OLD; 3]);
        assert_eq!(in_flight.end_epoch(), counts(&[(2, 1), (9, 2)]));
        assert_eq!(in_flight.count_sent(Rank(2)), NEW);
        assert!(in_flight.expect(0));
        assert_eq!(in_flight.end_epoch(), counts(&[(2, 1)]));
    }

    #[test]
    fn many_receivers_are_counted_like_few() {
        let mut in_flight = InFlight::default();
        for messages in 1..=3 {
            (0..messages * 20).for_each(|to| _ = in_flight.count_sent(Rank(to)));
        }
        let expected: Vec<_> = (0..60).map(|to| (to, u64::from(3 - to / 20))).collect();
        assert_eq!(in_flight.end_epoch(), counts(&expected));
    }

    #[test]
    fn only_messages_of_the_old_epoch_drain_a_rank() {
        let mut in_flight = InFlight::default();
        assert!(!in_flight.count_received(OLD));
        assert!(!in_flight.count_received(NEW), "its sender has switched, this rank has not");
        in_flight.end_epoch();
        assert!(!in_flight.count_received(NEW));
        assert!(!in_flight.expect(2), "one is on its way");
        assert!(!in_flight.count_received(NEW));
        assert!(in_flight.count_received(OLD));
        in_flight.end_epoch();
        assert!(in_flight.expect(3), "of the new epoch, which is now the old one");
    }

    #[test]
    fn counts_are_added_up_the_tree_and_split_down_the_tree() {
        let mut all = counts(&[(1, 4), (5, 2)]);
        all.add(CountsByRank::default());
        all.add(counts(&[(0, 1), (5, 3), (6, 7)]));
        assert_eq!(all, counts(&[(0, 1), (1, 4), (5, 5), (6, 7)]));
        // Rank 0 has the children 1 and 2, rank 1 has 3 and 4, rank 2 has 5 and 6.
        let tree = |rank| Tree { rank: Rank(rank), ranks: 7, arity: 2, group: 1 };
        let (own, below) = all.split(&tree(0));
        assert_eq!(
            (own, &below[..]),
            (1, &[(Rank(1), counts(&[(1, 4)])), (Rank(2), counts(&[(5, 5), (6, 7)]))][..])
        );
        let (own, below) = below[0].1.clone().split(&tree(1));
        assert_eq!(
            (own, below),
            (4, vec![(Rank(3), counts(&[])), (Rank(4), counts(&[]))]),
            "nothing is said too"
        );
    }
}
