//! Defines the report of messages between chunks (*edges*), and adds reports up over workers, ranks and windows.
//!
//! A report has at most [`EDGES_MAX`] edges. The lightest edges beyond that are left out and their messages counted, so
//! the number of all messages stays known.

use serde::{Deserialize, Serialize};

use super::snapshot::{ChunkId, ChunkLoad, Edge};

/// The largest number of edges in a report. An edge takes 48 bytes, and about 30 in a trace.
pub const EDGES_MAX: usize = 1 << 17;

/// The messages that one chunk sent to another in a phase.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, balancer::EdgeReport};
/// let chunk = |key| ChunkId { array: ArrayId(0), key };
/// let halo = EdgeReport { from: chunk(3), to: chunk(4), messages: 20, bytes: 40_960 };
/// assert_eq!(halo.weight(), 20 * EdgeReport::MESSAGE_BYTES + 40_960);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Encoded", into = "Encoded")]
pub struct EdgeReport {
    /// The chunk that sent the messages.
    pub from: ChunkId,
    /// The chunk that they were sent to.
    pub to: ChunkId,
    /// Number of messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An edge without the names of its fields, because a trace has many: array and key of the sender, array and key of the
/// receiver, messages, bytes.
type Encoded = (super::snapshot::ArrayId, u64, super::snapshot::ArrayId, u64, u64, u64);

impl From<Encoded> for EdgeReport {
    fn from((from_array, from_key, to_array, to_key, messages, bytes): Encoded) -> Self {
        let from = ChunkId { array: from_array, key: from_key };
        let to = ChunkId { array: to_array, key: to_key };
        Self { from, to, messages, bytes }
    }
}

impl From<EdgeReport> for Encoded {
    fn from(EdgeReport { from, to, messages, bytes }: EdgeReport) -> Self {
        (from.array, from.key, to.array, to.key, messages, bytes)
    }
}

impl EdgeReport {
    /// A message weighs as much as this number of its bytes: a message costs about 50 ns, and a byte 0.25 ns.
    pub const MESSAGE_BYTES: u64 = 200;

    /// The weight by which the heaviest edges are kept, in bytes.
    pub fn weight(&self) -> u64 {
        self.messages.saturating_mul(Self::MESSAGE_BYTES).saturating_add(self.bytes)
    }

    /// A hash of both ends.
    fn hash(&self) -> u64 {
        let of_chunk = |hash: u64, chunk: ChunkId| mix(mix(hash ^ u64::from(chunk.array.0)) ^ chunk.key);
        of_chunk(of_chunk(1, self.from), self.to)
    }

    fn ends(&self) -> (ChunkId, ChunkId) {
        (self.from, self.to)
    }
}

/// The mix of splitmix64. It maps near numbers far apart.
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The messages between chunks in a phase.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, balancer::{EdgeReport, EdgeReports}};
/// let chunk = |key| ChunkId { array: ArrayId(0), key };
/// let halo = EdgeReport { from: chunk(3), to: chunk(4), messages: 20, bytes: 40_960 };
/// let mut sum = EdgeReports::new(vec![halo], 0);
/// sum.add(EdgeReports::new(vec![halo], 1));
/// assert_eq!((sum.list.len(), sum.list[0].messages, sum.unlisted_messages), (1, 40, 1));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeReports {
    /// The edges, by sender and then by receiver, each pair once.
    pub list: Vec<EdgeReport>,
    /// Number of messages on edges that were too light to be listed.
    pub unlisted_messages: u64,
}

impl EdgeReports {
    /// The report of these edges, in any order, and of so many messages beside them. Equal pairs are added up.
    pub fn new(list: Vec<EdgeReport>, unlisted_messages: u64) -> Self {
        let mut reports = Self { list, unlisted_messages };
        reports.join_pairs();
        reports.leave_out(EDGES_MAX);
        reports
    }

    /// True if no message was counted.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.unlisted_messages == 0
    }

    /// Adds the messages of another report.
    pub fn add(&mut self, other: Self) {
        if self.list.is_empty() {
            self.list = other.list;
        } else if !other.list.is_empty() {
            self.list.extend(other.list);
            self.join_pairs();
            self.leave_out(EDGES_MAX);
        }
        self.unlisted_messages = self.unlisted_messages.saturating_add(other.unlisted_messages);
    }

    fn join_pairs(&mut self) {
        // Stable sorting takes linear time on a few sorted lists.
        self.list.sort_by_key(EdgeReport::ends);
        self.list.dedup_by(|edge, sum| {
            let same = edge.ends() == sum.ends();
            if same {
                sum.messages = sum.messages.saturating_add(edge.messages);
                sum.bytes = sum.bytes.saturating_add(edge.bytes);
            }
            same
        });
    }

    /// Keeps the heaviest edges, at most `max`. Of equal weights a hash decides. The order of keys would leave out all
    /// edges of one part of a regular grid.
    fn leave_out(&mut self, max: usize) {
        if self.list.len() <= max {
            return;
        }
        self.list.sort_by_key(|edge| (std::cmp::Reverse(edge.weight()), edge.hash(), edge.ends()));
        let lighter = self.list.drain(max..).map(|edge| edge.messages);
        self.unlisted_messages = self.unlisted_messages.saturating_add(lighter.sum());
        self.list.sort_by_key(EdgeReport::ends);
    }

    /// The edges between chunks of this list, which is sorted by identifier, with the positions of the chunks in it.
    pub(super) fn between(&self, chunks: &[ChunkLoad]) -> Vec<Edge> {
        let position = |id: ChunkId| chunks.binary_search_by_key(&id, |chunk| chunk.id).ok();
        let edge = |edge: &EdgeReport| {
            let &EdgeReport { from, to, messages, bytes } = edge;
            Some(Edge { from: position(from)?, to: position(to)?, messages, bytes })
        };
        self.list.iter().filter_map(edge).collect()
    }
}

/// The edges between groups of chunks, where the chunk at position `i` is in group `group_of[i]`. Edges within a group
/// are dropped, and edges between the same two groups added up.
pub(super) fn between_groups(edges: &[Edge], group_of: &[usize]) -> Vec<Edge> {
    let group = |chunk: usize| group_of.get(chunk).copied();
    let edge = |edge: &Edge| Some(Edge { from: group(edge.from)?, to: group(edge.to)?, ..edge.clone() });
    let mut all: Vec<Edge> = edges.iter().filter_map(edge).filter(|edge| edge.from != edge.to).collect();
    all.sort_by_key(|edge| (edge.from, edge.to));
    all.dedup_by(|edge, sum| {
        let same = (edge.from, edge.to) == (sum.from, sum.to);
        if same {
            sum.messages = sum.messages.saturating_add(edge.messages);
            sum.bytes = sum.bytes.saturating_add(edge.bytes);
        }
        same
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::snapshot::ArrayId;
    use crate::rank::Rank;

    fn edge(from: u64, to: u64, messages: u64, bytes: u64) -> EdgeReport {
        let chunk = |key| ChunkId { array: ArrayId(0), key };
        EdgeReport { from: chunk(from), to: chunk(to), messages, bytes }
    }

    #[test]
    fn reports_add_up_by_sender_and_receiver_in_any_order() {
        let parts =
            [vec![edge(2, 1, 1, 10), edge(1, 2, 2, 20)], vec![edge(1, 2, 3, 30)], vec![edge(1, 1, 1, 1)]];
        let sum = |order: [usize; 3]| {
            let mut sum = EdgeReports::default();
            order.into_iter().for_each(|part| sum.add(EdgeReports::new(parts[part].clone(), 7)));
            sum
        };
        let expected = vec![edge(1, 1, 1, 1), edge(1, 2, 5, 50), edge(2, 1, 1, 10)];
        assert_eq!(sum([0, 1, 2]), EdgeReports { list: expected, unlisted_messages: 21 });
        assert_eq!(sum([2, 1, 0]), sum([0, 1, 2]));
    }

    #[test]
    fn the_lightest_edges_are_left_out_and_their_messages_are_counted() {
        let mut reports = EdgeReports::new(vec![edge(3, 1, 1, 900), edge(1, 2, 4, 0), edge(2, 3, 2, 10)], 0);
        reports.leave_out(2);
        let expected = vec![edge(1, 2, 4, 0), edge(3, 1, 1, 900)];
        assert_eq!(reports, EdgeReports { list: expected, unlisted_messages: 2 });
    }

    #[test]
    fn edges_of_equal_weight_are_left_out_evenly_and_the_same_ones_in_any_order() {
        let ring: Vec<EdgeReport> = (0..4_000).map(|key| edge(key, (key + 1) % 4_000, 2, 8)).collect();
        let kept = |ring: Vec<EdgeReport>| {
            let mut reports = EdgeReports::new(ring, 0);
            reports.leave_out(2_000);
            reports
        };
        let reports = kept(ring.clone());
        assert_eq!((reports.list.len(), reports.unlisted_messages), (2_000, 4_000));
        assert!(reports.list.is_sorted_by_key(EdgeReport::ends));
        for part in 0..10 {
            let listed = reports.list.iter().filter(|edge| edge.from.key / 400 == part).count();
            assert!((150..250).contains(&listed), "part {part} has {listed} of 400");
        }
        assert_eq!(kept(ring.into_iter().rev().collect()), reports);
    }

    #[test]
    fn an_edge_is_encoded_as_six_numbers() {
        let encoded = serde_json::to_string(&edge(1, 2, 3, 4)).expect("numbers");
        assert_eq!(encoded, "[0,1,0,2,3,4]");
        assert_eq!(serde_json::from_str::<EdgeReport>(&encoded).expect("the same numbers"), edge(1, 2, 3, 4));
    }

    #[test]
    fn a_report_without_edges_is_written_and_read_as_before_there_were_any() {
        let report = super::super::report::PhaseReport::default();
        let written = serde_json::to_string(&report).expect("it is plain");
        assert_eq!(written, r#"{"ranks":[],"chunks":[]}"#);
        assert_eq!(
            serde_json::from_str::<super::super::report::PhaseReport>(&written).expect("it is whole"),
            report
        );
    }

    #[test]
    fn only_edges_between_chunks_of_the_snapshot_count_and_none_within_a_group() {
        let chunk = |key| {
            let id = ChunkId { array: ArrayId(0), key };
            ChunkLoad { id, rank: Rank(0), ticks: 1, bytes: 1, migratable: true }
        };
        let reports = EdgeReports::new(
            vec![edge(1, 5, 1, 10), edge(5, 7, 2, 20), edge(7, 1, 3, 30), edge(1, 2, 9, 9)],
            0,
        );
        let edges = reports.between(&[chunk(1), chunk(5), chunk(7)]);
        let position = |from, to, messages, bytes| Edge { from, to, messages, bytes };
        assert_eq!(edges, [position(0, 1, 1, 10), position(1, 2, 2, 20), position(2, 0, 3, 30)]);
        assert_eq!(between_groups(&edges, &[0, 0, 1]), [position(0, 1, 2, 20), position(1, 0, 3, 30)]);
        let both = [edges, vec![position(0, 2, 4, 40)]].concat();
        assert_eq!(between_groups(&both, &[0, 0, 1])[0], position(0, 1, 6, 60));
    }
}
