//! The reports on a phase that the balancer decides by, and the moves that it decides on.

use serde::{Deserialize, Serialize};

use super::estimate::{RankPlace, RankSample};
use super::snapshot::{ArrayId, ChunkId, ChunkLoad};
use crate::rank::Rank;

/// The reports of all ranks on one phase.
///
/// ```
/// let nothing = lb_strategies::balancer::PhaseReport::default();
/// assert!(nothing.ranks.is_empty() && nothing.chunks.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseReport {
    /// All ranks, in order, the same in each phase.
    pub ranks: Vec<RankReport>,
    /// All chunks, in any order.
    pub chunks: Vec<ChunkReport>,
    /// By array, the one whose chunks its own keep to: a chunk goes where the leader's chunk of the same key goes. An array
    /// that is by itself is its own leader. The same in each phase; empty where all are by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaders: Vec<ArrayId>,
    /// True if the phase is a window, which cuts steps in the middle; false if a sync ended it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub window: bool,
    /// Windows since the last decision that were not decided, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<PhaseReport>,
}

impl PhaseReport {
    /// Number of chunks and ranks in it, and in the windows before it that were not decided.
    pub fn size(&self) -> usize {
        self.chunks.len() + self.ranks.len() + self.undecided.iter().map(PhaseReport::size).sum::<usize>()
    }
}

/// The report of one rank.
///
/// ```
/// use lb_strategies::balancer::{RankPlace, RankReport};
/// let report = RankReport { place: RankPlace { host: 0, workers: 1 }, sample: None };
/// assert!(report.sample.is_none(), "it has no chunks");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// The place of the rank.
    pub place: RankPlace,
    /// Its measurements; a rank without chunks has none.
    pub sample: Option<RankSample>,
}

/// The report on one chunk.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, ChunkLoad, Rank, balancer::ChunkReport};
/// let id = ChunkId { array: ArrayId(0), key: 7 };
/// let load = ChunkLoad { id, rank: Rank(1), ticks: 2_000_000, bytes: 4096, migratable: true };
/// assert!(!ChunkReport { load, declared: false, wish: None, handled: 0 }.declared, "2 ms of CPU time, at whatever speed");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkReport {
    /// Its load; where it is not declared, the ticks are ns of CPU time on its rank.
    pub load: ChunkLoad,
    /// True if the chunk itself declares how many ticks it took.
    pub declared: bool,
    /// The rank on which its program wants it next; the strategy has no say in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<Rank>,
    /// Number of messages that it has handled, if the phase is a window, which cuts steps in the middle; else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handled: u32,
}

// The signatures are those of `skip_serializing_if`.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A chunk that changes its rank.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, Rank, balancer::Move};
/// let one = Move { chunk: ChunkId { array: ArrayId(0), key: 7 }, from: Rank(0), to: Rank(1) };
/// assert_ne!(one.from, one.to);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The chunk.
    pub chunk: ChunkId,
    /// The rank it leaves.
    pub from: Rank,
    /// The rank it goes to.
    pub to: Rank,
}
