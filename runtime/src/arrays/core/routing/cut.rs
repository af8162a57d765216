//! Makes a consistent cut through the messages between ranks (Chandy and Lamport), at which
//! [migration](crate::arrays::core::sync::migration) changes routes. A rank is *drained* when every message that was
//! sent to it before the cut, by any rank, has arrived.
//!
//! # Steps
//!
//! | input | output |
//! |---|---|
//! | [`make`](Cut::make), and the counts of all children have come | the sum of these counts and the rank's own goes to its parent ([`CutPacket::SentCounts`]) |
//! | the counts of the last child, after `make` | the same sum; rank 0 then has the number of messages to each rank |
//! | all counts on rank 0, or [`CutPacket::ExpectedCounts`] | each child gets the counts for its subtree |
//! | the last message that was sent before the cut | [`CutStep::Drained`] |
//!
//! # Rules
//! 1. A rank makes a cut once it has stopped everything that must not cross it. The counts and the switch to the next
//!    epoch are one step. So each message is counted before the cut or carries the next epoch.
//! 2. A rank makes the next cut only after all ranks are drained of the last one, so one bit names an epoch.
//!
//! Cost: two packets on each edge of the tree, with at most one count per receiving rank.

use serde::{Deserialize, Serialize};

use super::in_flight::{CountsByRank, Epoch, InFlight};
use crate::arrays::core::collectives::tree::{Convergecast, Tree};
use crate::ids::Rank;

/// A packet of a cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CutPacket {
    /// The messages that the sender and the ranks below it sent before the cut, by receiver. To the parent.
    SentCounts(CountsByRank),
    /// The messages that were sent before the cut to the receiver and to the ranks below it. Down the tree.
    ExpectedCounts(CountsByRank),
}

/// One output of a cut. The caller carries out all outputs, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CutStep {
    Send(Rank, CutPacket),
    /// Every message that was sent to this rank before the cut has arrived.
    Drained,
}

/// The state of one rank for cuts, with its count of messages in flight.
#[derive(Debug)]
pub(crate) struct Cut {
    tree: Tree,
    in_flight: InFlight,
    /// Counts of this rank and its children.
    sent: Convergecast<CountsByRank>,
}

impl Cut {
    pub(crate) fn new(tree: Tree) -> Cut {
        Cut { tree, in_flight: InFlight::default(), sent: Convergecast::default() }
    }

    /// The epoch of the messages that this rank sends now.
    #[inline]
    pub(crate) fn epoch(&self) -> Epoch {
        self.in_flight.epoch()
    }

    /// A message leaves for another rank. Returns its epoch.
    #[inline]
    pub(crate) fn count_sent(&mut self, to: Rank) -> Epoch {
        self.in_flight.count_sent(to)
    }

    /// A message has come from another rank. True if the message drains this rank.
    #[inline]
    pub(crate) fn count_received(&mut self, epoch: Epoch) -> bool {
        self.in_flight.count_received(epoch)
    }

    /// This rank makes its cut, between the messages that it has sent and the messages that it will send.
    pub(crate) fn make(&mut self) -> Vec<CutStep> {
        let counts = self.in_flight.end_epoch();
        self.add(counts)
    }

    /// A packet of another rank.
    pub(crate) fn receive(&mut self, packet: CutPacket) -> Vec<CutStep> {
        match packet {
            CutPacket::SentCounts(counts) => self.add(counts),
            CutPacket::ExpectedCounts(counts) => self.expect(counts),
        }
    }

    /// Counts of this rank or of a child.
    fn add(&mut self, counts: CountsByRank) -> Vec<CutStep> {
        let Some(all) = self.sent.add(&self.tree, |sum| sum.add(counts)) else { return Vec::new() };
        match self.tree.parent() {
            Some(parent) => vec![CutStep::Send(parent, CutPacket::SentCounts(all))],
            None => self.expect(all),
        }
    }

    /// All ranks have made their cuts.
    fn expect(&mut self, counts: CountsByRank) -> Vec<CutStep> {
        let (own, below) = counts.split(&self.tree);
        let send = |(child, counts)| CutStep::Send(child, CutPacket::ExpectedCounts(counts));
        let mut steps: Vec<_> = below.into_iter().map(send).collect();
        steps.extend(self.in_flight.expect(own).then_some(CutStep::Drained));
        steps
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// A message (by its epoch) or a packet in flight, with its sender and its receiver.
    type Flight = (Rank, Rank, Result<Epoch, CutPacket>);

    /// Ranks that do nothing but send messages and make cuts.
    struct Ranks {
        cuts: Vec<Cut>,
        flights: VecDeque<Flight>,
        /// Messages sent to each rank before its sender's cut that have not come.
        open: Vec<u32>,
        has_cut: Vec<bool>,
        drained: Vec<bool>,
    }

    impl Ranks {
        fn new(ranks: u32, arity: u32) -> Ranks {
            let cut = |rank| Cut::new(Tree { rank: Rank(rank), ranks, arity, group: 1 });
            let none = |_| false;
            Ranks {
                cuts: (0..ranks).map(cut).collect(),
                flights: VecDeque::new(),
                open: vec![0; ranks as usize],
                has_cut: (0..ranks).map(none).collect(),
                drained: (0..ranks).map(none).collect(),
            }
        }

        fn send(&mut self, from: usize, to: usize) {
            if from != to {
                let epoch = self.cuts[from].count_sent(Rank(to as u32));
                self.open[to] += u32::from(!self.has_cut[from]);
                self.flights.push_back((Rank(from as u32), Rank(to as u32), Ok(epoch)));
            }
        }

        fn make(&mut self, rank: usize) {
            if !std::mem::replace(&mut self.has_cut[rank], true) {
                let steps = self.cuts[rank].make();
                self.follow(rank, steps);
            }
        }

        /// The flight at this place arrives; links need not keep the order of messages.
        fn arrive(&mut self, at: usize) {
            let Some((_, to, what)) = self.flights.remove(at % self.flights.len().max(1)) else { return };
            let rank = to.index();
            let steps = match what {
                Ok(epoch) => {
                    let before_the_cut = epoch == Epoch::default();
                    self.open[rank] -= u32::from(before_the_cut);
                    Vec::from_iter(self.cuts[rank].count_received(epoch).then_some(CutStep::Drained))
                }
                Err(packet) => self.cuts[rank].receive(packet),
            };
            self.follow(rank, steps);
        }

        fn follow(&mut self, rank: usize, steps: Vec<CutStep>) {
            for step in steps {
                match step {
                    CutStep::Send(to, packet) => {
                        self.flights.push_back((Rank(rank as u32), to, Err(packet)));
                    }
                    CutStep::Drained => {
                        assert!(
                            self.has_cut.iter().all(|&cut| cut),
                            "a rank may still send under the old routes"
                        );
                        assert_eq!(self.open[rank], 0, "rank {rank} is drained before its last message");
                        assert!(!std::mem::replace(&mut self.drained[rank], true), "once");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_rank_is_drained_once_by_its_last_message_in_any_order_of_arrival(
            ranks in 1..7u32,
            arity in 1..4u32,
            acts in prop::collection::vec((0..3u8, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..80),
        ) {
            let mut all = Ranks::new(ranks, arity);
            let count = ranks as usize;
            for (act, one, other) in acts {
                match act {
                    0 => all.send(one.index(count), other.index(count)),
                    1 => all.make(one.index(count)),
                    _ => all.arrive(one.index(1 << 16)),
                }
            }
            (0..count).for_each(|rank| all.make(rank));
            while !all.flights.is_empty() {
                all.arrive(0);
            }
            prop_assert!(all.drained.iter().all(|&drained| drained));
        }
    }
}
