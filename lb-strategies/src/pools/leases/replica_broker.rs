//! The root side of tail replication: forwards offers of late pieces, and questions and answers about their copies.
//!
//! An offer is forwarded once, to a rank with a waiting worker, when nothing is free and no rank can give ranges.

use super::holdings::Holdings;
use super::message::Order;
use super::root::Orders;
use crate::rank::Rank;
use std::ops::Range;

/// Offers that are not forwarded yet, and questions that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct ReplicaBroker {
    offers: Vec<(Rank, u64, Range<u64>)>,
    /// The owner, the piece, and the rank with the copy.
    outstanding: Vec<(Rank, u64, Rank)>,
}

impl ReplicaBroker {
    pub(super) fn offer(&mut self, owner: Rank, piece: u64, range: Range<u64>) {
        self.offers.push((owner, piece, range));
    }

    /// The oldest offer whose piece is not done, for a rank with a waiting worker.
    pub(super) fn take(&mut self, holdings: &Holdings) -> Option<Order> {
        while !self.offers.is_empty() {
            let (owner, piece, range) = self.offers.remove(0);
            if holdings.holds(owner, &range) {
                return Some(Order::Copy { owner, piece, range });
            }
        }
        None
    }

    /// A copy has finished: asks the owner whether the copy counts.
    pub(super) fn copied(&mut self, owner: Rank, piece: u64, copier: Rank, orders: &mut Orders) {
        self.outstanding.push((owner, piece, copier));
        orders.push((owner, Order::Settle { piece }));
    }

    /// The owner has answered. Returns the rank that waits for the answer.
    pub(super) fn settled(&mut self, owner: Rank, piece: u64) -> Option<Rank> {
        let at = self.outstanding.iter().position(|&(of, number, _)| (of, number) == (owner, piece))?;
        Some(self.outstanding.remove(at).2)
    }
}
