//! Records on rank 0 which indices are free, and how many each rank was granted.
//!
//! A rank never gives an index back. So no quota may fall below the number granted to its rank, the floor in the
//! balance between ranks. With this floor, quotas and free indices always match: in the end nothing is left over or
//! missing.

use std::ops::Range;

use crate::pools::range_set::RangeSet;
use crate::rank::Rank;

/// Free indices, and the number of indices granted to each rank.
#[derive(Clone, Debug)]
pub(crate) struct Grants {
    free: RangeSet,
    granted: Vec<u64>,
}

impl Grants {
    /// All indices are free.
    pub(crate) fn new(iterations: u64, ranks: usize) -> Self {
        Self { free: RangeSet::from(0..iterations), granted: vec![0; ranks] }
    }

    /// Number of indices granted to a rank.
    pub(crate) fn granted(&self, rank: Rank) -> u64 {
        self.granted[rank.index()]
    }

    /// Grants up to `count` free indices, the lowest first.
    pub(crate) fn grant(&mut self, rank: Rank, count: u64) -> Vec<Range<u64>> {
        let (mut ranges, mut left) = (Vec::new(), count);
        while let Some(range) = self.free.take_front(left) {
            left -= range.end - range.start;
            self.granted[rank.index()] += range.end - range.start;
            ranges.push(range);
        }
        ranges
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "sets of indices are lists of ranges, some of one")]
mod tests {
    use super::*;

    #[test]
    fn each_index_is_granted_once() {
        let mut grants = Grants::new(10, 3);
        assert_eq!((grants.grant(Rank(1), 4), grants.grant(Rank(2), 2)), (vec![0..4], vec![4..6]));
        assert_eq!((grants.grant(Rank(1), 5), grants.grant(Rank(2), 5)), (vec![6..10], vec![]));
        assert_eq!((grants.granted(Rank(1)), grants.granted(Rank(2))), (8, 2));
    }
}
