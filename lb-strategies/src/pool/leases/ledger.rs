//! Who has which index: the root's book.
//!
//! | an index is | moves to | when |
//! |---|---|---|
//! | free | held by a rank | it is leased |
//! | held | done by that rank | the rank reports it |
//! | held | done by another rank | its copy was first |
//! | held | free | the rank gives it up |
//! | held or done | free | the rank is lost |
//!
//! The name of the rank is the name of the lease: a lost rank never comes back, so nothing old can be mistaken for new.

use std::ops::Range;

use crate::Rank;
use crate::pool::RangeSet;

/// What is free, and what each rank holds and has done.
///
/// ```
/// use lb_strategies::{Rank, pool::leases::Ledger};
/// let mut ledger = Ledger::new(10, 2);
/// assert_eq!(ledger.lease(Rank(0), 4), [0..4]);
/// ledger.done(Rank(0), 0..3);
/// ledger.lose(Rank(0));
/// assert_eq!(ledger.free(), 10);
/// assert_eq!(ledger.lease(Rank(1), 10), [0..10]);
/// ledger.done(Rank(1), 0..10);
/// assert!(ledger.is_complete());
/// ```
#[derive(Debug)]
pub struct Ledger {
    iterations: u64,
    free: RangeSet,
    accounts: Vec<Account>,
}

#[derive(Clone, Debug, Default)]
struct Account {
    held: RangeSet,
    done: RangeSet,
}

impl Ledger {
    /// All of `0..iterations` is free.
    pub fn new(iterations: u64, ranks: u32) -> Self {
        let accounts = vec![Account::default(); ranks as usize];
        Self { iterations, free: RangeSet::from(0..iterations), accounts }
    }

    /// How many are free.
    pub fn free(&self) -> u64 {
        self.free.len()
    }

    /// Whether all are done.
    pub fn is_complete(&self) -> bool {
        self.accounts.iter().map(|account| account.done.len()).sum::<u64>() == self.iterations
    }

    /// Leases up to `count` free ones, the lowest.
    pub fn lease(&mut self, rank: Rank, count: u64) -> Vec<Range<u64>> {
        let mut leased = Vec::new();
        let mut left = count;
        while let Some(range) = self.free.take_front(left) {
            left -= range.end - range.start;
            self.accounts[rank.0 as usize].held.insert(range.clone());
            leased.push(range);
        }
        leased
    }

    /// A rank has executed what it held.
    pub fn done(&mut self, rank: Rank, range: Range<u64>) {
        let account = &mut self.accounts[rank.0 as usize];
        let held = account.held.remove(range.clone());
        debug_assert_eq!(held, range.end - range.start, "{rank:?} held what it has done: {range:?}");
        account.done.insert(range);
    }

    /// A rank gives up what it held.
    pub fn give_up(&mut self, rank: Rank, range: Range<u64>) {
        let held = self.accounts[rank.0 as usize].held.remove(range.clone());
        debug_assert_eq!(held, range.end - range.start, "{rank:?} held what it gives up: {range:?}");
        self.free.insert(range);
    }

    /// Whether a rank holds this.
    pub fn holds(&self, rank: Rank, range: &Range<u64>) -> bool {
        self.accounts[rank.0 as usize].held.contains(range.start)
    }

    /// One rank held it, another has done it.
    pub fn done_by(&mut self, holder: Rank, rank: Rank, range: Range<u64>) {
        let held = self.accounts[holder.0 as usize].held.remove(range.clone());
        debug_assert_eq!(held, range.end - range.start, "{holder:?} held what {rank:?} has done: {range:?}");
        self.accounts[rank.0 as usize].done.insert(range);
    }

    /// A rank is gone, with all it had.
    pub fn lose(&mut self, rank: Rank) {
        let Account { held, done } = std::mem::take(&mut self.accounts[rank.0 as usize]);
        self.free.extend(&held);
        self.free.extend(&done);
    }
}
