//! Computes the time that each rank spends on messages to and from other ranks.
//!
//! A message within a rank is free. A message between ranks costs both of them the time of their link
//! ([`LinkCosts`](crate::LinkCosts)). A rank sends and receives at the same time, so its *traffic* is the longer of the
//! two. This is the term `beta x max(sent, received)` in the work model of LBAF (the load balancing analysis
//! framework).

use crate::arrays::snapshot::{Assignment, Edge, LinkCost, Snapshot};
use crate::rank::Rank;

/// The largest time that counts for all messages together, ns. Sums of it and of loads do not overflow.
const TOTAL_MAX: f64 = (u64::MAX / 4) as f64;

/// The cost of each edge of a snapshot.
///
/// Times are whole nanoseconds, so that sums do not depend on their order. An edge from a chunk to itself, or to a
/// chunk that is not in the snapshot, costs nothing.
pub(crate) struct EdgeCosts<'a> {
    snapshot: &'a Snapshot,
    /// The largest time that counts for one edge, ns.
    limit: f64,
}

impl<'a> EdgeCosts<'a> {
    /// The costs of all edges; none if no message costs anything.
    pub(crate) fn new(snapshot: &'a Snapshot) -> Option<Self> {
        let is_free = |cost: &LinkCost| !(cost.ns_per_byte > 0.0 || cost.ns_per_message > 0.0);
        let links = [snapshot.links.within_host, snapshot.links.between_hosts];
        if snapshot.edges.is_empty() || links.iter().all(is_free) {
            return None;
        }
        Some(Self { snapshot, limit: TOTAL_MAX / snapshot.edges.len() as f64 })
    }

    /// Time of an edge within a host and between hosts, ns.
    pub(crate) fn both_ns(&self, edge: &Edge) -> [u64; 2] {
        // NaN and negative products become 0.
        let ns = |link: &LinkCost| link.ns(edge).min(self.limit) as u64;
        [ns(&self.snapshot.links.within_host), ns(&self.snapshot.links.between_hosts)]
    }

    /// True if both ends of the edge exist and differ.
    pub(crate) fn connects(&self, edge: &Edge) -> bool {
        edge.from != edge.to && edge.from.max(edge.to) < self.snapshot.chunks.len()
    }

    /// Whether the link between two different ranks is between hosts. A rank that does not exist is on host 0.
    pub(crate) fn is_far(&self, one: Rank, other: Rank) -> bool {
        let host = |rank: Rank| self.snapshot.ranks.get(rank.index()).map_or(0, |rank| rank.host);
        host(one) != host(other)
    }
}

/// Time that each rank sends and receives, ns.
pub(crate) struct Traffic {
    pub(crate) sent: Vec<u64>,
    pub(crate) received: Vec<u64>,
}

impl Traffic {
    /// The traffic of a placement; none if messages are free. O(edges + ranks).
    pub(crate) fn of(snapshot: &Snapshot, assignment: &Assignment) -> Option<Self> {
        let costs = EdgeCosts::new(snapshot)?;
        let none = vec![0_u64; snapshot.ranks.len()];
        let mut traffic = Self { sent: none.clone(), received: none };
        for edge in snapshot.edges.iter().filter(|edge| costs.connects(edge)) {
            let [from, to] = [edge.from, edge.to].map(|chunk| assignment.ranks[chunk]);
            if from != to {
                let ns = costs.both_ns(edge)[usize::from(costs.is_far(from, to))];
                if let Some(sent) = traffic.sent.get_mut(from.index())
                    && let Some(received) = traffic.received.get_mut(to.index())
                {
                    (*sent, *received) = (*sent + ns, *received + ns);
                }
            }
        }
        Some(traffic)
    }

    /// Traffic of the rank with most of it, ns.
    pub(crate) fn most_ns(&self) -> u64 {
        (0..self.sent.len()).map(|rank| self.ns(rank)).max().unwrap_or(0)
    }

    /// Traffic of a rank, ns.
    pub(crate) fn ns(&self, rank: usize) -> u64 {
        self.sent[rank].max(self.received[rank])
    }
}

/// The messages and bytes of a placement that cross ranks.
///
/// ```
/// use lb_strategies::{Assignment, Edge, Rank, metrics::Crossing, synthetic::Workload};
/// let mut snapshot = Workload::Equal.snapshot(4, 2, 1);
/// snapshot.edges = vec![Edge { from: 1, to: 2, messages: 3, bytes: 300 }];
/// let mut placement = Assignment::current(&snapshot);
/// assert_eq!(Crossing::of(&snapshot, &placement).bytes, 300);
/// placement.ranks[2] = Rank(0);
/// assert_eq!(Crossing::of(&snapshot, &placement), Crossing::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossing {
    /// Messages between chunks of different ranks.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes of these messages that cross hosts.
    pub bytes_between_hosts: u64,
}

impl Crossing {
    /// Counts the edges whose two chunks are on different ranks. O(edges).
    pub fn of(snapshot: &Snapshot, assignment: &Assignment) -> Self {
        let host = |rank: Rank| snapshot.ranks.get(rank.index()).map_or(0, |rank| rank.host);
        let mut sum = Self::default();
        for edge in &snapshot.edges {
            let ends = [edge.from, edge.to].map(|chunk| assignment.ranks.get(chunk).copied());
            if let [Some(from), Some(to)] = ends
                && from != to
            {
                sum.messages = sum.messages.saturating_add(edge.messages);
                sum.bytes = sum.bytes.saturating_add(edge.bytes);
                if host(from) != host(to) {
                    sum.bytes_between_hosts = sum.bytes_between_hosts.saturating_add(edge.bytes);
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::metrics::completion_ns;
    use crate::arrays::snapshot::LinkCosts;
    use crate::arrays::strategy::Background;
    use crate::arrays::synthetic::Workload;

    #[test]
    fn a_rank_pays_for_what_it_sends_or_receives_whichever_is_more() {
        // Chunks 0 and 1 are on rank 0, 2 on rank 1, 3 on rank 2, which is on another host.
        let mut snapshot = Workload::Equal.snapshot(4, 3, 1);
        snapshot.chunks[1].rank = Rank(0);
        snapshot.ranks[2].host = 1;
        let edge = |from, to, bytes| Edge { from, to, messages: 1, bytes };
        snapshot.edges = vec![edge(0, 1, 1_000), edge(0, 2, 10), edge(1, 3, 1), edge(2, 1, 7), edge(0, 9, 5)];
        let link = |ns_per_byte| LinkCost { ns_per_message: 100.0, ns_per_byte };
        snapshot.links = LinkCosts { within_host: link(1.0), between_hosts: link(1_000.0) };
        let now = Assignment::current(&snapshot);
        let traffic = Traffic::of(&snapshot, &now).expect("messages cost");
        assert_eq!(
            (&traffic.sent[..], &traffic.received[..]),
            (&[1_210, 107, 0][..], &[107, 110, 1_100][..])
        );
        let times = completion_ns(&snapshot, &now, Background::Share);
        assert_eq!(times, [2_001_210, 1_000_110, 1_001_100]);
        let crossing = Crossing { messages: 3, bytes: 18, bytes_between_hosts: 1 };
        assert_eq!(Crossing::of(&snapshot, &now), crossing);
        snapshot.links = LinkCosts::default();
        assert!(Traffic::of(&snapshot, &now).is_none(), "free");
    }
}
