//! Counts the messages of each chunk by their receivers, for the edges between chunks, in bounded memory.
//!
//! A worker has a table per sending chunk, with at most [`RECEIVERS_MAX`] receivers. The message to one more receiver
//! takes the place of the lightest (the space-saving algorithm of Metwally et al., 2005). The newcomer inherits that
//! weight for its rank in the table, so that a heavy receiver that comes late is not replaced at once. It does not
//! inherit messages: each count is of messages that were sent, and all others are counted together as unlisted.
//!
//! A sender with messages of weight W and k places therefore lists each receiver above W / k, with a count that is at
//! most that much too small. A worker lists at most [`EDGES_MAX`] receivers in all its tables. From then on tables do not
//! grow, and the messages of a sender without a table are unlisted.

use lb_strategies::balancer::{EDGES_MAX, EdgeReport};
use rustc_hash::FxHashMap;

use crate::ids::ChunkId;

/// Number of receivers that are listed for each sender.
const RECEIVERS_MAX: usize = 16;

/// Whether a run records the messages between chunks, see [`Config::lb_edges`](crate::Config::lb_edges).
///
/// ```
/// assert_eq!(caribou::config::EdgeRecording::default(), caribou::config::EdgeRecording::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeRecording {
    /// In the phases in which the strategy uses them.
    #[default]
    Auto,
    /// In every phase, also if the strategy uses none.
    On,
    /// Never. The strategy gets none.
    Off,
}

/// The messages that chunks sent while one worker ran them.
#[derive(Debug)]
pub(crate) struct EdgeRecorder {
    /// Position of each sender in `tables`. Looked up, never iterated.
    senders: FxHashMap<ChunkId, usize>,
    tables: Vec<Table>,
    /// The table of the last sender, which often sends the next message too.
    last: usize,
    /// Number of receivers in all tables, and its limit.
    edges: usize,
    edges_max: usize,
    unlisted_messages: u64,
}

impl Default for EdgeRecorder {
    fn default() -> EdgeRecorder {
        EdgeRecorder::limited(EDGES_MAX)
    }
}

impl EdgeRecorder {
    fn limited(edges_max: usize) -> EdgeRecorder {
        let (senders, tables) = (FxHashMap::default(), Vec::new());
        EdgeRecorder { senders, tables, last: 0, edges: 0, edges_max, unlisted_messages: 0 }
    }

    /// Counts a message. A message of a chunk to itself is none between chunks.
    #[inline]
    pub(crate) fn count(&mut self, from: ChunkId, to: ChunkId, bytes: u64) {
        if from == to {
            return;
        }
        if self.tables.get(self.last).is_none_or(|table| table.from != from) && !self.turn_to(from) {
            self.unlisted_messages += 1;
            return;
        }
        let table = &mut self.tables[self.last];
        let Some(edge) = table.find(to) else { return self.count_new(to, bytes) };
        edge.messages += 1;
        edge.bytes = edge.bytes.saturating_add(bytes);
    }

    /// Finds or makes the table of a sender. False if there is none and all tables are full.
    #[inline(never)]
    fn turn_to(&mut self, from: ChunkId) -> bool {
        if let Some(&table) = self.senders.get(&from) {
            self.last = table;
            return true;
        }
        if self.edges >= self.edges_max {
            return false;
        }
        self.last = self.tables.len();
        self.senders.insert(from, self.last);
        self.tables.push(Table { from, edges: Vec::new(), next: 0 });
        true
    }

    /// Counts a message to a receiver that the last sender does not list.
    #[inline(never)]
    fn count_new(&mut self, to: ChunkId, bytes: u64) {
        let table = &mut self.tables[self.last];
        let edge = Edge { to, messages: 1, bytes, inherited: 0 };
        if table.edges.len() < RECEIVERS_MAX && self.edges < self.edges_max {
            table.edges.push(edge);
            self.edges += 1;
        } else if let Some(lightest) = table.edges.iter_mut().min_by_key(|edge| edge.rank_weight()) {
            self.unlisted_messages += lightest.messages;
            *lightest = Edge { inherited: lightest.rank_weight(), ..edge };
        }
    }

    /// Takes the edges since the last call, in any order, and the number of messages on edges that are not listed.
    pub(crate) fn take(&mut self) -> (Vec<EdgeReport>, u64) {
        let EdgeRecorder { tables, unlisted_messages, .. } =
            std::mem::replace(self, EdgeRecorder::limited(self.edges_max));
        let edges = tables.into_iter().flat_map(|Table { from, edges, .. }| {
            let report = move |Edge { to, messages, bytes, .. }| EdgeReport { from, to, messages, bytes };
            edges.into_iter().map(report)
        });
        (edges.collect(), unlisted_messages)
    }
}

/// The receivers of one sender.
#[derive(Debug)]
struct Table {
    from: ChunkId,
    edges: Vec<Edge>,
    /// The place after the last receiver. Handlers mostly send to the same receivers in the same order.
    next: usize,
}

impl Table {
    #[inline]
    fn find(&mut self, to: ChunkId) -> Option<&mut Edge> {
        let here = |edge: &Edge| edge.to == to;
        let found = match self.edges.get(self.next) {
            Some(edge) if here(edge) => self.next,
            _ => self.edges.iter().position(here)?,
        };
        self.next = if found + 1 < self.edges.len() { found + 1 } else { 0 };
        Some(&mut self.edges[found])
    }
}

/// The messages to one receiver.
#[derive(Debug)]
struct Edge {
    to: ChunkId,
    messages: u64,
    bytes: u64,
    /// The weight of the edge that had the place before.
    inherited: u64,
}

impl Edge {
    fn rank_weight(&self) -> u64 {
        let own = self.messages.saturating_mul(EdgeReport::MESSAGE_BYTES).saturating_add(self.bytes);
        self.inherited.saturating_add(own)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::ids::ArrayId;

    fn chunk(key: u64) -> ChunkId {
        ChunkId { array: ArrayId(0), key }
    }

    #[test]
    fn few_receivers_are_counted_exactly_and_a_chunk_is_no_receiver_of_itself() {
        let mut recorder = EdgeRecorder::default();
        for round in 0..10 {
            for from in 0..3 {
                [1, 0, 2].iter().for_each(|apart| recorder.count(chunk(from), chunk(from + apart), round));
            }
        }
        let (mut edges, unlisted) = recorder.take();
        edges.sort_by_key(|edge| (edge.from, edge.to));
        let expected = (0..3).flat_map(|from| [1, 2].map(|apart| (from, from + apart)));
        let expected: Vec<EdgeReport> = expected
            .map(|(from, to)| EdgeReport { from: chunk(from), to: chunk(to), messages: 10, bytes: 45 })
            .collect();
        assert_eq!((edges, unlisted), (expected, 0));
        assert_eq!(recorder.take(), (Vec::new(), 0));
    }

    #[test]
    fn a_full_recorder_lists_no_more_edges_and_loses_no_message() {
        let mut recorder = EdgeRecorder::limited(2);
        for (from, to) in [(0, 1), (0, 2), (0, 2), (0, 3), (1, 0), (1, 0), (0, 2)] {
            recorder.count(chunk(from), chunk(to), 8);
        }
        assert_eq!((recorder.tables.len(), recorder.senders.len()), (1, 1), "chunk 1 takes no memory");
        let (edges, unlisted) = recorder.take();
        assert_eq!((edges.len(), unlisted), (2, 3), "chunk 3 has replaced chunk 1, and chunk 1 has no place");
        assert_eq!(edges[1], EdgeReport { from: chunk(0), to: chunk(2), messages: 3, bytes: 24 });
    }

    proptest! {
        #[test]
        fn heavy_receivers_are_listed_with_a_bounded_error(
            sent in prop::collection::vec((0..2_u64, prop_oneof![0..8_u64, 0..60_u64], 0..2_000_u64), 0..600),
        ) {
            let mut recorder = EdgeRecorder::default();
            let mut truth: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
            for &(from, to, bytes) in &sent {
                recorder.count(chunk(from), chunk(100 + to), bytes);
                let sum = truth.entry((from, 100 + to)).or_default();
                *sum = (sum.0 + 1, sum.1 + bytes);
            }
            let weight = |(messages, bytes): (u64, u64)| messages * EdgeReport::MESSAGE_BYTES + bytes;
            let (edges, unlisted) = recorder.take();
            let listed: BTreeMap<(u64, u64), (u64, u64)> =
                edges.iter().map(|edge| ((edge.from.key, edge.to.key), (edge.messages, edge.bytes))).collect();
            prop_assert_eq!(listed.len(), edges.len(), "each once");
            let messages: u64 = listed.values().map(|&(messages, _)| messages).sum();
            prop_assert_eq!(messages + unlisted, sent.len() as u64);
            for from in 0..2 {
                let of_sender = |edges: &BTreeMap<(u64, u64), (u64, u64)>| -> Vec<((u64, u64), (u64, u64))> {
                    edges.range((from, 0)..(from + 1, 0)).map(|(&ends, &sum)| (ends, sum)).collect()
                };
                prop_assert!(of_sender(&listed).len() <= RECEIVERS_MAX);
                let all: u64 = of_sender(&truth).iter().map(|&(_, sum)| weight(sum)).sum();
                let error_max = all / RECEIVERS_MAX as u64;
                for (ends, sum) in of_sender(&truth) {
                    let found = listed.get(&ends).copied().unwrap_or_default();
                    prop_assert!(found.0 <= sum.0 && found.1 <= sum.1, "no message was made up");
                    prop_assert!(weight(found) + error_max >= weight(sum), "{found:?} of {sum:?}, {error_max}");
                }
            }
        }
    }
}
