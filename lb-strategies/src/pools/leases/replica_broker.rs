//! The root side of tail replication: passes offers, questions and answers between owners and copiers.
//!
//! An offer is passed on once, to a rank with a waiting worker, when nothing is free and no rank can be cut.

use super::holdings::Holdings;
use super::message::Order;
use super::root::Orders;
use crate::rank::Rank;
use std::ops::Range;

/// Offers that are not taken yet, and answers that are owed.
#[derive(Debug, Default)]
pub(super) struct ReplicaBroker {
    offers: Vec<(Rank, u64, Range<u64>)>,
    /// Owner, piece and copier.
    outstanding: Vec<(Rank, u64, Rank)>,
}

impl ReplicaBroker {
    pub(super) fn offer(&mut self, owner: Rank, piece: u64, range: Range<u64>) {
        self.offers.push((owner, piece, range));
    }

    /// The oldest offer that still makes sense, for a rank with a waiting worker.
    pub(super) fn take(&mut self, holdings: &Holdings) -> Option<Order> {
        while !self.offers.is_empty() {
            let (owner, piece, range) = self.offers.remove(0);
            if holdings.holds(owner, &range) {
                return Some(Order::Copy { owner, piece, range });
            }
        }
        None
    }

    /// A copier is through: the owner is asked whether that counts.
    pub(super) fn copied(&mut self, owner: Rank, piece: u64, copier: Rank, orders: &mut Orders) {
        self.outstanding.push((owner, piece, copier));
        orders.push((owner, Order::Settle { piece }));
    }

    /// The owner has answered; returns the rank that waits for it.
    pub(super) fn settled(&mut self, owner: Rank, piece: u64) -> Option<Rank> {
        let at = self.outstanding.iter().position(|&(of, number, _)| (of, number) == (owner, piece))?;
        Some(self.outstanding.remove(at).2)
    }
}
