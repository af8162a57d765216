//! Records at the root which rank holds which indices.
//!
//! | an index is | moves to | when |
//! |---|---|---|
//! | free | held by a rank | it is leased |
//! | held | done | its rank reports it, or reports that a copy of it finished first |
//! | held | free | its rank gives it up |

use std::ops::Range;

use crate::pools::range_set::RangeSet;
use crate::rank::Rank;

/// The free indices, the indices that each rank holds, and the number of indices that are not done.
///
/// ```
/// use lb_strategies::{Rank, pool::leases::Holdings};
/// let mut holdings = Holdings::new(10, 2);
/// assert_eq!(holdings.lease(Rank(0), 4), [0..4]);
/// holdings.done(Rank(0), 0..3);
/// holdings.give_up(Rank(0), 3..4);
/// assert_eq!(holdings.lease(Rank(1), 10), [3..10]);
/// holdings.done(Rank(1), 3..10);
/// assert!(holdings.are_done());
/// ```
#[derive(Debug)]
pub struct Holdings {
    free: RangeSet,
    /// By rank.
    held: Vec<RangeSet>,
    /// Number of indices that are not done.
    left: u64,
}

impl Holdings {
    /// All of `0..iterations` is free.
    pub fn new(iterations: u64, ranks: u32) -> Self {
        let held = vec![RangeSet::default(); ranks as usize];
        Self { free: RangeSet::from(0..iterations), held, left: iterations }
    }

    /// Number of free indices.
    pub fn free(&self) -> u64 {
        self.free.len()
    }

    /// True if all indices are done.
    pub fn are_done(&self) -> bool {
        self.left == 0
    }

    /// Leases up to `count` free indices to a rank, the lowest first.
    pub fn lease(&mut self, rank: Rank, count: u64) -> Vec<Range<u64>> {
        let mut leased = Vec::new();
        let mut left = count;
        while let Some(range) = self.free.take_front(left) {
            left -= range.end - range.start;
            self.held[rank.index()].insert(range.clone());
            leased.push(range);
        }
        leased
    }

    /// Marks a range that a rank held as done, by this rank or by another.
    pub fn done(&mut self, holder: Rank, range: Range<u64>) {
        self.take(holder, &range);
        self.left -= range.end - range.start;
    }

    /// Frees a range that a rank held.
    pub fn give_up(&mut self, holder: Rank, range: Range<u64>) {
        self.take(holder, &range);
        self.free.insert(range);
    }

    /// True if the rank holds this range.
    pub fn holds(&self, rank: Rank, range: &Range<u64>) -> bool {
        self.held[rank.index()].contains(range.start)
    }

    fn take(&mut self, holder: Rank, range: &Range<u64>) {
        let held = self.held[holder.index()].remove(range.clone());
        debug_assert_eq!(held, range.end - range.start, "{holder:?} held {range:?}");
    }
}
