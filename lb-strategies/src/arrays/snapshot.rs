//! Defines the input of a strategy, [`Snapshot`], and its answer, [`Assignment`].
//!
//! Loads are integer nanoseconds, so sums do not depend on their order and every machine decides alike.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rank::Rank;

/// The number of an array: arrays count from 0, in the order in which they were set up.
///
/// ```
/// use lb_strategies::ArrayId;
/// assert_eq!(ArrayId(3).to_string(), "3");
/// assert!(ArrayId(3) < ArrayId(10));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ArrayId(pub u32);

impl ArrayId {
    /// The array as a position in a list of all arrays.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ArrayId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The name of a chunk: its array, and its index packed into a key. Ordered by array, then by key.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId};
/// assert!(ChunkId { array: ArrayId(0), key: 9 } < ChunkId { array: ArrayId(1), key: 0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkId {
    /// The array the chunk belongs to.
    pub array: ArrayId,
    /// The chunk's index in that array, packed into 64 bits.
    pub key: u64,
}

/// The capacity of a rank. The default is a whole, quiet vCPU of speed 1.
///
/// ```
/// use lb_strategies::RankLoad;
/// let slow = RankLoad { speed: 0.71, ..RankLoad::default() };
/// assert!(slow.available && slow.background_ns == 0);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankLoad {
    /// Relative vCPU speed, `f_p` of the refinement paper: ticks per nanosecond of CPU time. A rank with several vCPUs
    /// has the sum of their speeds.
    pub speed: f64,
    /// CPU time got / (got + waited for), in (0, 1], while the rank wanted to run.
    pub share: f64,
    /// CPU time that others took in the phase, `O_p` of the refinement paper's equation 2. For a rank with several
    /// vCPUs, the mean of its vCPUs.
    pub background_ns: u64,
    /// True if chunks may be placed here. An unavailable rank must be emptied.
    pub available: bool,
    /// Number of the rank's host, counted from 0: ranks of one host share its memory.
    #[serde(default)]
    pub host: u32,
}

impl Default for RankLoad {
    fn default() -> Self {
        Self { speed: 1.0, share: 1.0, background_ns: 0, available: true, host: 0 }
    }
}

/// The cost of a chunk in the phase, and its present place.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, ChunkLoad, Rank};
/// let id = ChunkId { array: ArrayId(0), key: 7 };
/// let chunk = ChunkLoad { id, rank: Rank(1), ticks: 1_200_000, bytes: 524_288, migratable: true };
/// assert_eq!(chunk.rank, Rank(1));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkLoad {
    /// The chunk's name.
    pub id: ChunkId,
    /// The rank that holds the chunk.
    pub rank: Rank,
    /// Work done in the phase: nanoseconds of CPU time times the speed of the rank they were spent on.
    pub ticks: u64,
    /// Size of the state that travels when the chunk moves.
    pub bytes: u64,
    /// True if the chunk may move at all. A pinned chunk stays, even on an unavailable rank.
    pub migratable: bool,
}

/// Communication between two chunks in the phase.
///
/// ```
/// use lb_strategies::Edge;
/// let halo = Edge { from: 0, to: 1, messages: 20, bytes: 20 * 2048 };
/// assert_ne!(halo.from, halo.to);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// Position of the sender in [`Snapshot::chunks`].
    pub from: usize,
    /// Position of the receiver in [`Snapshot::chunks`].
    pub to: usize,
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent.
    pub bytes: u64,
}

/// The cost of messages on one kind of link, beyond that of messages within a rank. The default costs nothing.
///
/// ```
/// use lb_strategies::{Edge, LinkCost};
/// let gigabit = LinkCost { ns_per_message: 2_000.0, ns_per_byte: 8.0 };
/// let halo = Edge { from: 0, to: 1, messages: 20, bytes: 20 * 2048 };
/// assert_eq!(gigabit.ns(&halo), 20.0 * 2_000.0 + 40_960.0 * 8.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkCost {
    /// Time of the sender, and of the receiver, for each message, ns.
    pub ns_per_message: f64,
    /// The same for each byte, ns: 1e9 / (bytes per second of the link).
    pub ns_per_byte: f64,
}

impl LinkCost {
    /// Time of all messages of an edge, ns.
    pub fn ns(&self, edge: &Edge) -> f64 {
        edge.messages as f64 * self.ns_per_message + edge.bytes as f64 * self.ns_per_byte
    }
}

/// The cost of messages between ranks, by the place of the two ranks. By default messages are free.
///
/// ```
/// use lb_strategies::{LinkCost, LinkCosts};
/// let ethernet = LinkCost { ns_per_message: 2_000.0, ns_per_byte: 8.0 };
/// let links = LinkCosts { between_hosts: ethernet, ..LinkCosts::default() };
/// assert_eq!(links.within_host, LinkCost::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkCosts {
    /// Between two ranks of one host.
    pub within_host: LinkCost,
    /// Between ranks of different hosts.
    pub between_hosts: LinkCost,
}

/// The memory of ranks, and the memory that chunks need.
///
/// A rank needs the sum of the memory of its chunks, one copy of each [`Block`] that its chunks use, and room for its
/// chunk with the largest working memory. This is the memory model of LBAF (the load balancing analysis framework).
///
/// ```
/// use lb_strategies::Memory;
/// let two_ranks = Memory { limits: vec![8_000_000_000; 2], ..Memory::default() };
/// assert!(two_ranks.blocks.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// By rank: bytes that chunks may use. A rank beyond the end of the list has no limit.
    pub limits: Vec<u64>,
    /// By chunk: bytes that the chunk uses besides its blocks. A chunk beyond the end of the list uses
    /// [`ChunkLoad::bytes`].
    #[serde(default)]
    pub footprints: Vec<u64>,
    /// By chunk: bytes that the chunk uses only while it runs. A chunk beyond the end of the list uses none.
    #[serde(default)]
    pub working: Vec<u64>,
    /// Data that several chunks use.
    #[serde(default)]
    pub blocks: Vec<Block>,
}

/// Data that several chunks use. All chunks of a rank share one copy.
///
/// ```
/// use lb_strategies::Block;
/// let matrix = Block { bytes: 1_300_000_000, chunks: vec![0, 3, 4] };
/// assert_eq!(matrix.chunks.len(), 3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Size of a copy.
    pub bytes: u64,
    /// Positions in [`Snapshot::chunks`] of the chunks that use it.
    pub chunks: Vec<usize>,
}

/// Everything measured in one phase, and the only input of a strategy.
///
/// ```
/// use lb_strategies::{RankLoad, Snapshot};
/// let empty = Snapshot { ranks: vec![RankLoad::default(); 4], ..Snapshot::default() };
/// assert_eq!(empty.ranks.len(), 4);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The phase measured, counted from the start of the run.
    pub phase: u64,
    /// One entry per rank, in rank order.
    pub ranks: Vec<RankLoad>,
    /// One entry per chunk, in an order that every run repeats.
    pub chunks: Vec<ChunkLoad>,
    /// Communication between chunks; empty where it was not recorded.
    #[serde(default)]
    pub edges: Vec<Edge>,
    /// The cost of communication between ranks.
    #[serde(default)]
    pub links: LinkCosts,
    /// Limits of memory; none where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// The new placement: `ranks[i]` is the rank of `snapshot.chunks[i]`.
///
/// ```
/// use lb_strategies::{Assignment, synthetic::Workload};
/// let snapshot = Workload::Equal.snapshot(8, 2, 1);
/// let stay = Assignment::current(&snapshot);
/// assert_eq!(stay.ranks.len(), 8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// One rank per chunk, in the order of [`Snapshot::chunks`].
    pub ranks: Vec<Rank>,
}

impl Assignment {
    /// The placement in which every chunk stays where it is.
    pub fn current(snapshot: &Snapshot) -> Self {
        Self { ranks: snapshot.chunks.iter().map(|chunk| chunk.rank).collect() }
    }

    /// The chunks whose rank changes, each with its new rank, in the order of the chunks.
    ///
    /// ```
    /// use lb_strategies::{Assignment, Rank, synthetic::Workload};
    /// let snapshot = Workload::Equal.snapshot(8, 2, 1);
    /// let mut plan = Assignment::current(&snapshot);
    /// plan.ranks[7] = Rank(0);
    /// let moves: Vec<_> = plan.moves(&snapshot).map(|(chunk, to)| (chunk.rank, to)).collect();
    /// assert_eq!(moves, [(Rank(1), Rank(0))]);
    /// ```
    pub fn moves<'a>(&self, snapshot: &'a Snapshot) -> impl Iterator<Item = (&'a ChunkLoad, Rank)> {
        let placed = snapshot.chunks.iter().zip(self.ranks.iter().copied());
        placed.filter(|(chunk, to)| chunk.rank != *to)
    }
}
