//! The root side of tail replication: passes offers, questions and answers between owners and copiers.
//!
//! 1. An offer is passed on once, to a rank with a waiting worker, when nothing is free and nobody can be cut.
//! 2. Of a lost owner nobody copies any more: what it held is free and will be leased again.

use super::ledger::Ledger;
use super::message::Order;
use super::root::Orders;
use crate::Rank;
use std::ops::Range;

/// What was offered, and which answers are owed.
#[derive(Debug, Default)]
pub(super) struct Copies {
    offers: Vec<(Rank, u64, Range<u64>)>,
    /// Owner, piece and copier.
    owed: Vec<(Rank, u64, Rank)>,
}

impl Copies {
    pub(super) fn offer(&mut self, owner: Rank, piece: u64, range: Range<u64>) {
        self.offers.push((owner, piece, range));
    }

    /// The oldest offer that still makes sense, for a rank with a waiting worker.
    pub(super) fn take(&mut self, ledger: &Ledger) -> Option<Order> {
        while !self.offers.is_empty() {
            let (owner, piece, range) = self.offers.remove(0);
            if ledger.holds(owner, &range) {
                return Some(Order::Copy { owner, piece, range });
            }
        }
        None
    }

    /// A copier is through: its owner is asked, if it is here.
    pub(super) fn copied(
        &mut self,
        owner: Rank,
        is_here: bool,
        piece: u64,
        copier: Rank,
        orders: &mut Orders,
    ) {
        if is_here {
            self.owed.push((owner, piece, copier));
            orders.push((owner, Order::Settle { piece }));
        } else {
            orders.push((copier, Order::Verdict { owner, piece, counts: false }));
        }
    }

    /// The owner has answered; says whom.
    pub(super) fn settled(&mut self, owner: Rank, piece: u64) -> Option<Rank> {
        let at = self.owed.iter().position(|&(of, number, _)| (of, number) == (owner, piece))?;
        Some(self.owed.remove(at).2)
    }

    /// A rank is lost: it answers nobody.
    pub(super) fn lost(&mut self, rank: Rank, orders: &mut Orders) {
        self.offers.retain(|offer| offer.0 != rank);
        for &(owner, piece, copier) in self.owed.iter().filter(|owed| owed.0 == rank) {
            orders.push((copier, Order::Verdict { owner, piece, counts: false }));
        }
        self.owed.retain(|owed| owed.0 != rank);
    }
}
