//! InFlight: messages from rank to rank, counted by the routes under which they were sent.
//!
//! When a sync moves chunks, every rank switches to new routes, each at its own time. An *epoch* is the time between two
//! switches of a rank, and each message says of which epoch of its sender it is. A rank counts what it sends in an epoch, by
//! receiver; the counts of all are added up in the [tree](crate::arrays::core::collectives::tree), and each rank is told how many messages of the epoch
//! that has ended it is to receive. Then it knows when it has all of them, in whatever order they come and whoever sent
//! them: it is *drained*.
//!
//! Two epochs at most are on their way at a time, so one bit names them: who switches again has been told that all ranks
//! are drained of the epoch before, see [`balance`](crate::arrays::core::sync::migration).
//!
//! The cost is one addition for a message that leaves a rank, and one for one that comes; messages within a rank are not
//! counted. The counts are hashed, for speed, and leave sorted.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::arrays::core::collectives::tree::Tree;
use crate::ids::Rank;

/// The routes under which a message was sent: one bit of the number of switches before.
///
/// A word, for it is moved with messages, word by word: a byte that was just written is slow to read as part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Epoch(u64);

impl Epoch {
    /// The next one, and as far as anybody can tell the one before.
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

/// Numbers of messages by receiver, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountsByRank(Vec<(Rank, u64)>);

impl CountsByRank {
    /// Adds those of others.
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

    /// The messages to this rank, and for each child of it the counts of the ranks from there on.
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

/// Ranks whose messages are counted without hashing.
const RECENT: usize = 8;

/// The messages of one rank to others and from them.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    epoch: Epoch,
    /// Sent in this epoch, but for those in `recent`.
    sent: FxHashMap<Rank, u64>,
    /// Sent since another rank had the place: the ranks that messages went to lately, which are few.
    recent: [(Rank, u64); RECENT],
    /// Received of each epoch, by its bit, until the rank is drained of it.
    received: [u64; 2],
    /// Messages to receive of the epoch that has ended, once that is known.
    expected: Option<u64>,
}

impl InFlight {
    /// A message leaves for another rank, by the routes of now.
    #[inline]
    pub(crate) fn count_sent(&mut self, to: Rank) -> Epoch {
        let place = to.index() % RECENT;
        if self.recent[place].0 != to {
            self.evict(place, to);
        }
        self.recent[place].1 += 1;
        self.epoch
    }

    /// Gives a place to another rank.
    #[inline(never)]
    fn evict(&mut self, place: usize, next: Rank) {
        let (rank, messages) = std::mem::replace(&mut self.recent[place], (next, 0));
        if messages > 0 {
            *self.sent.entry(rank).or_default() += messages;
        }
    }

    /// The routes of now.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// A message has come from another rank. True if it was the last one of the epoch that has ended.
    #[inline]
    pub(crate) fn count_received(&mut self, epoch: Epoch) -> bool {
        self.received[usize::from(epoch.bit())] += 1;
        self.expected.is_some() && self.check_drained()
    }

    /// The routes change. Returns what was sent under the old ones.
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

    /// So many messages of the epoch that has ended were sent to this rank. True if it has all of them.
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
    fn what_was_sent_in_an_epoch_is_counted_by_receiver_and_the_next_begins_at_nothing() {
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
    fn a_rank_is_drained_by_the_last_message_of_the_old_epoch_whatever_comes_of_the_new_one() {
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
    fn counts_add_up_on_the_way_to_rank_0_and_come_apart_on_the_way_back() {
        let mut all = counts(&[(1, 4), (5, 2)]);
        all.add(CountsByRank::default());
        all.add(counts(&[(0, 1), (5, 3), (6, 7)]));
        assert_eq!(all, counts(&[(0, 1), (1, 4), (5, 5), (6, 7)]));
        // 0 has children 1 and 2; 1 has 3 and 4, 2 has 5 and 6.
        let tree = |rank| Tree { rank: Rank(rank), ranks: 7, arity: 2 };
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
