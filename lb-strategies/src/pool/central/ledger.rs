//! Who answers for which indices.
//!
//! Each index waits, or is with exactly one rank, which runs it or has run it. What a rank has run stays with it until the
//! end, because its result is there: if the rank is lost, the index waits again.

use std::ops::Range;

use crate::Rank;
use crate::pool::{Pool, RangeSet};

/// The indices that wait, and those of each rank.
///
/// ```
/// use lb_strategies::{Rank, pool::{Pool, central::Ledger}};
/// let mut ledger = Ledger::new(&Pool::new(10, vec![1, 1]));
/// assert_eq!(ledger.grant(Rank(1), 4), Some(0..4));
/// assert_eq!(ledger.waiting(), 6);
/// ledger.lost(Rank(1));
/// assert_eq!(ledger.waiting(), 10);
/// assert!(ledger.is_lost(Rank(1)));
/// ```
#[derive(Clone, Debug)]
pub struct Ledger {
    waiting: RangeSet,
    with: Vec<RangeSet>,
    lost: Vec<bool>,
}

impl Ledger {
    /// All indices of the pool wait.
    pub fn new(pool: &Pool) -> Self {
        let ranks = pool.ranks() as usize;
        Self {
            waiting: RangeSet::from(0..pool.iterations),
            with: vec![RangeSet::default(); ranks],
            lost: vec![false; ranks],
        }
    }

    /// How many indices wait.
    pub fn waiting(&self) -> u64 {
        self.waiting.len()
    }

    /// Gives a rank up to `count` of those that wait, the lowest, all in one range; `None` if none waits.
    pub fn grant(&mut self, rank: Rank, count: u64) -> Option<Range<u64>> {
        let range = self.waiting.take_front(count)?;
        self.with[rank.index()].insert(range.clone());
        Some(range)
    }

    /// Gives a rank these, which wait.
    pub fn hand(&mut self, rank: Rank, range: Range<u64>) {
        self.waiting.remove(range.clone());
        self.with[rank.index()].insert(range);
    }

    /// A rank gives back what it has not begun.
    pub fn give_back(&mut self, rank: Rank, range: Range<u64>) {
        self.with[rank.index()].remove(range.clone());
        self.waiting.insert(range);
    }

    /// A rank is gone, and all it had.
    pub fn lost(&mut self, rank: Rank) {
        self.lost[rank.index()] = true;
        let had = self.with[rank.index()].take();
        self.waiting.extend(&had);
    }

    /// Whether a rank is gone.
    pub fn is_lost(&self, rank: Rank) -> bool {
        self.lost[rank.index()]
    }

    /// The ranks that are not gone.
    pub fn living(&self) -> impl Iterator<Item = Rank> + '_ {
        (0..).map(Rank).zip(&self.lost).filter(|&(_, &lost)| !lost).map(|(rank, _)| rank)
    }
}
