//! Who has which indices, as rank 0 knows it.
//!
//! Each index is free or granted to one rank. A rank never gives one back; only if it dies, all it was granted is free
//! again. Therefore no quota may fall below what its rank was granted: this is the floor of the balance between ranks, and
//! with it the quotas and the free indices always match, so that in the end nothing is left over and nothing is missing.

use std::ops::Range;

use crate::Rank;
use crate::pool::RangeSet;

/// Free and granted indices.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    free: RangeSet,
    granted: Vec<RangeSet>,
}

impl Ledger {
    /// All indices free.
    pub(crate) fn new(iterations: u64, ranks: usize) -> Self {
        Self { free: RangeSet::from(0..iterations), granted: vec![RangeSet::default(); ranks] }
    }

    /// How many indices a rank was granted.
    pub(crate) fn granted(&self, rank: Rank) -> u64 {
        self.granted[rank.0 as usize].len()
    }

    /// Grants up to `count` free indices, the lowest first.
    pub(crate) fn grant(&mut self, rank: Rank, count: u64) -> Vec<Range<u64>> {
        let (mut ranges, mut left) = (Vec::new(), count);
        while let Some(range) = self.free.take_front(left) {
            left -= range.end - range.start;
            self.granted[rank.0 as usize].insert(range.clone());
            ranges.push(range);
        }
        ranges
    }

    /// Frees what a rank was granted: it is dead, and all that it did is lost.
    pub(crate) fn revoke(&mut self, rank: Rank) {
        let lost = self.granted[rank.0 as usize].take();
        self.free.extend(&lost);
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "sets of indices are lists of ranges, some of one")]
mod tests {
    use super::*;

    /// Invariant 17.
    #[test]
    fn what_a_dead_rank_was_granted_is_granted_again_once() {
        let mut ledger = Ledger::new(10, 3);
        assert_eq!(ledger.grant(Rank(1), 4), [0..4]);
        assert_eq!(ledger.grant(Rank(2), 2), [4..6]);
        ledger.revoke(Rank(1));
        ledger.revoke(Rank(1));
        assert_eq!(ledger.grant(Rank(0), 7), [0..4, 6..9]);
        assert_eq!((ledger.granted(Rank(0)), ledger.granted(Rank(1))), (7, 0));
        assert_eq!((ledger.grant(Rank(2), 5), ledger.grant(Rank(2), 5)), (vec![9..10], vec![]));
    }
}
