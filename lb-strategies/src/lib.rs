//! Pure load-balancing policies: a [`Snapshot`] of what was measured goes in, an [`Assignment`] of chunks to
//! ranks comes out.
//!
//! ```text
//! measure -> Snapshot -> predict -> Strategy::assign -> Assignment -> accept? -> migrate
//!            snapshot    predict    strategies/*        snapshot      accept
//! ```
//!
//! This crate is the bottom of Caribou: the runtime, the offline tool and every simulation call the same
//! policies, and the policies can call none of them. It therefore does no IO, reads no clock, starts no
//! thread, prints nothing and depends on no hash order. The same snapshot and seed give the same answer on
//! every run.
//!
//! A first program: two equal ranks, one beside a busy neighbour that leaves it half of its vCPU.
//!
//! ```
//! use lb_strategies::{ChunkId, ChunkLoad, Rank, RankLoad, Snapshot, parse};
//!
//! let chunk = |key: u64| ChunkLoad {
//!     id: ChunkId { array: 0, key },
//!     rank: Rank(if key < 6 { 0 } else { 1 }),
//!     ticks: 1_000_000,
//!     bytes: 4096,
//!     migratable: true,
//! };
//! let snapshot = Snapshot {
//!     phase: 1,
//!     ranks: vec![RankLoad::default(), RankLoad { share: 0.5, ..RankLoad::default() }],
//!     chunks: (0..12).map(chunk).collect(),
//!     edges: Vec::new(),
//! };
//! let assignment = parse("refine,tolerance=0.05")?.assign(&snapshot);
//! let on_rank_0 = assignment.ranks.iter().filter(|&&rank| rank == Rank(0)).count();
//! assert_eq!(on_rank_0, 8, "twice the capacity, twice the chunks");
//! # Ok::<(), lb_strategies::ParseError>(())
//! ```
//!
//! | module | answers |
//! |---|---|
//! | [`snapshot`] | what was measured, and what was decided |
//! | [`strategy`] | the trait of a policy, and how a neighbour counts |
//! | [`parameters`] | what a strategy can be told, and what was wrong with what it was told |
//! | [`table`] | which strategies exist, and how a person selects one |
//! | [`strategies`] | one file a strategy |
//! | [`metrics`] | how good is a placement, and how good could it be |
//! | [`mod@predict`] | what the next phase will look like |
//! | [`mod@accept`] | whether a move pays |
//! | [`synthetic`] | workloads to study strategies with |
//! | [`pool`] | policies for pools of independent iterations |
//! | [`cluster`] | hosts, vCPUs and links in virtual time, and pools on them |
#![forbid(unsafe_code)]

pub mod accept;
pub mod cluster;
mod finish_first;
mod loads;
pub mod metrics;
pub mod parameters;
pub mod pool;
pub mod predict;
pub mod snapshot;
pub mod strategies;
pub mod strategy;
pub mod synthetic;
pub mod table;

pub use accept::{MoveCost, Verdict, accept};
pub use parameters::{Parameter, Parameters, ParseError};
pub use snapshot::{Assignment, ChunkId, ChunkLoad, Edge, Rank, RankLoad, Snapshot};
pub use strategy::{Background, Preparation, Strategy};
pub use table::{STRATEGIES, StrategyEntry, help, help_among, parse};
