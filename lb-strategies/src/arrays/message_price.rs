//! Learns how expensive messages between ranks are, from plans that change which messages cross ranks.
//!
//! The time of a step is assumed to be the time of the loads of the latest rank plus its traffic (the time of its
//! messages to and from other ranks). Of two placements, each is measured in a window (between two balancing decisions).
//! The difference of their steps, less the difference of their loads, is the difference of their traffic. Traffic as
//! assumed is multiplied by the ratio of both. So a program that waits for something else than messages makes messages
//! no dearer: its steps do not change with the placement.

use rustc_hash::FxHashMap;

use super::loads::Loads;
use super::snapshot::{Assignment, ChunkId, ChunkLoad, LinkCost, LinkCosts, Snapshot};
use super::strategy::Background;
use super::traffic::Traffic;
use crate::rank::Rank;

/// The least difference of traffic, as a part of the larger one, from which a price is learned.
const DIFFERENCE_MIN: f64 = 0.2;
/// Weight of the newest difference.
const WEIGHT: f64 = 0.5;
/// Least and largest factor to the assumed price.
const FACTORS: std::ops::RangeInclusive<f64> = 0.5..=50.0;
/// The largest price of a byte that the factor reaches, ns. A slower link is seen in migrations.
const BYTE_MAX_NS: f64 = 12.5;
/// Largest factor by which one plan makes messages dearer. A longer step has waited for something else.
const DEARER_MAX: f64 = 4.0;
/// The part of a window that a migration may take, if the window shows the new placement.
const MIGRATION_MAX: f64 = 0.25;
/// A shorter window is mostly chance, ns.
const WINDOW_MIN_NS: f64 = 10e6;

/// A window and its placement, per step.
#[derive(Clone, Debug)]
struct Window {
    ranks: FxHashMap<ChunkId, Rank>,
    step_ns: f64,
    loads_ns: f64,
}

/// The factor to the assumed price of messages.
#[derive(Clone, Debug)]
pub(super) struct MessagePrice {
    factor: f64,
    last: Option<Window>,
}

impl Default for MessagePrice {
    fn default() -> Self {
        Self { factor: 1.0, last: None }
    }
}

impl MessagePrice {
    /// The prices of messages, if `links` are the assumed ones. Between hosts are most of the costs, so only the link
    /// between hosts is corrected, if there are several.
    pub(super) fn correct(&self, mut links: LinkCosts, many_hosts: bool) -> LinkCosts {
        let link = if many_hosts { &mut links.between_hosts } else { &mut links.within_host };
        let LinkCost { ns_per_message, ns_per_byte } = link;
        *ns_per_message *= self.factor;
        *ns_per_byte = (*ns_per_byte * self.factor).min(ns_per_byte.max(BYTE_MAX_NS));
        links
    }

    /// Learns from a window of this length, in which the mean chunk made `steps` steps. Messages have corrected prices
    /// in `measured`. The window began with a migration that took `migration_ns`.
    pub(super) fn follow(
        &mut self,
        measured: &Snapshot,
        model: Background,
        steps: f64,
        window_ns: f64,
        migration_ns: f64,
    ) {
        if measured.edges.is_empty() || steps < 1.0 {
            self.last = None;
            return;
        }
        if window_ns < WINDOW_MIN_NS || migration_ns > MIGRATION_MAX * window_ns {
            return;
        }
        let current = Assignment::current(measured);
        let loads_ns = Loads::placed(measured, &current, model).max_ns() as f64 / steps;
        let step_ns = window_ns / steps;
        if let Some(last) = &self.last {
            // Both placements with the messages of this window, because messages may have changed as well.
            let rank = |chunk: &ChunkLoad| last.ranks.get(&chunk.id).copied().unwrap_or(chunk.rank);
            let earlier = Assignment { ranks: measured.chunks.iter().map(rank).collect() };
            let [now_ns, then_ns] =
                [&current, &earlier].map(|placement| traffic_ns(measured, placement) / steps);
            if (now_ns - then_ns).abs() > DIFFERENCE_MIN * now_ns.max(then_ns) {
                let longer_ns = (step_ns - last.step_ns) - (loads_ns - last.loads_ns);
                let ratio = (longer_ns / (now_ns - then_ns)).clamp(0.0, DEARER_MAX);
                let factor = self.factor * (1.0 + WEIGHT * (ratio - 1.0));
                self.factor = factor.clamp(*FACTORS.start(), *FACTORS.end());
            }
        }
        let ranks = measured.chunks.iter().map(|chunk| (chunk.id, chunk.rank)).collect();
        self.last = Some(Window { ranks, step_ns, loads_ns });
    }
}

/// Traffic of the rank with most of it, ns.
fn traffic_ns(snapshot: &Snapshot, placement: &Assignment) -> f64 {
    Traffic::of(snapshot, placement).map_or(0.0, |traffic| traffic.most_ns() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::snapshot::Edge;
    use crate::arrays::synthetic::Workload;

    /// Eight chunks in a line on two hosts, in turn or in blocks; links cost 1 us per message, corrected.
    fn line(price: &MessagePrice, in_turn: bool) -> Snapshot {
        let mut snapshot = Workload::Equal.snapshot(8, 2, 1);
        snapshot.ranks[1].host = 1;
        if in_turn {
            (0..8).zip(&mut snapshot.chunks).for_each(|(key, chunk)| chunk.rank = Rank(key % 2));
        }
        snapshot.edges = (0..7).map(|from| Edge { from, to: from + 1, messages: 100, bytes: 0 }).collect();
        let link = LinkCost { ns_per_message: 1_000.0, ns_per_byte: 0.0 };
        snapshot.links = price.correct(LinkCosts { within_host: link, between_hosts: link }, true);
        snapshot
    }

    /// Windows of 100 steps, in which chunks are in turn and in blocks alternately. A step takes 1 ms, and for each
    /// message that crosses to the latest rank `message_ns` more.
    fn after(windows: usize, message_ns: f64) -> MessagePrice {
        let mut price = MessagePrice::default();
        for window in 0..windows {
            let snapshot = line(&price, window % 2 == 0);
            let crossing = if window % 2 == 0 { 400.0 } else { 100.0 };
            price.follow(&snapshot, Background::Share, 100.0, 100e6 + crossing * message_ns, 0.0);
        }
        price
    }

    #[test]
    fn the_price_of_messages_follows_from_two_placements() {
        let ns = |windows, message_ns| {
            let price = after(windows, message_ns);
            line(&price, true).links.between_hosts.ns_per_message
        };
        assert_eq!(ns(1, 12_000.0).to_bits(), 1_000_f64.to_bits(), "one placement shows nothing");
        assert_eq!(ns(2, 12_000.0).to_bits(), 2_500_f64.to_bits(), "one plan says little");
        assert!((11_900.0..12_100.0).contains(&ns(20, 12_000.0)), "{}", ns(20, 12_000.0));
        assert_eq!(ns(20, 0.0).to_bits(), 500_f64.to_bits(), "messages that cost nothing");
        assert_eq!(ns(20, 1e9).to_bits(), 50_000_f64.to_bits(), "not dearer than believable");
    }

    #[test]
    fn links_within_a_host_keep_their_price_and_short_windows_show_nothing() {
        let mut price = after(20, 12_000.0);
        assert_eq!(line(&price, true).links.within_host.ns_per_message.to_bits(), 1_000_f64.to_bits());
        let before = price.factor;
        let snapshot = line(&price, true);
        price.follow(&snapshot, Background::Share, 1.0, 5e6, 0.0);
        price.follow(&snapshot, Background::Share, 100.0, 900e6, 300e6);
        assert_eq!(price.factor.to_bits(), before.to_bits());
    }
}
