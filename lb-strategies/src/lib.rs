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
//! use lb_strategies::{ChunkId, ChunkLoad, Rank, RankLoad, Snapshot, ARRAYS};
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
//! let assignment = ARRAYS.parse("refine,tolerance=0.05")?.assign(&snapshot);
//! let on_rank_0 = assignment.ranks.iter().filter(|&&rank| rank == Rank(0)).count();
//! assert_eq!(on_rank_0, 8, "twice the capacity, twice the chunks");
//! # Ok::<(), lb_strategies::ParseError>(())
//! ```
//!
//! | module | answers |
//! |---|---|
//! | [`snapshot`] | what was measured, and what was decided |
//! | [`strategy`] | the trait of a policy, and how a neighbour counts |
//! | [`entry`], [`table`], [`tables`] | a policy by its name, the policies of a shape, and those of each shape |
//! | [`shape`] | the shapes of programs, each with policies of its own |
//! | [`parameters`], [`spec`] | what a policy can be told, and how a person writes that |
//! | [`parse_error`], [`choice`] | what was wrong with what a person wrote |
//! | [`strategies`] | one file a strategy |
//! | [`metrics`] | how good is a placement, and how good could it be |
//! | [`mod@predict`] | what the next phase will look like |
//! | [`mod@accept`] | whether a move pays |
//! | [`synthetic`] | workloads to study strategies with |
//! | [`pool`] | policies for pools of independent iterations |
//! | [`cluster`] | hosts, vCPUs and links in virtual time, and pools on them |
#![forbid(unsafe_code)]

pub mod accept;
pub mod choice;
pub mod cluster;
pub mod entry;
mod finish_first;
mod loads;
mod median;
pub mod metrics;
pub mod parameters;
pub mod parse_error;
pub mod pool;
pub mod predict;
pub mod shape;
pub mod snapshot;
pub mod spec;
pub mod strategies;
pub mod strategy;
pub mod synthetic;
pub mod table;
pub mod tables;

pub use accept::{MoveCost, Verdict, accept};
pub use choice::Choice;
pub use entry::Entry;
pub use median::median;
pub use parameters::{Parameter, Parameters};
pub use parse_error::ParseError;
pub use shape::Shape;
pub use snapshot::{Assignment, ChunkId, ChunkLoad, Edge, Rank, RankLoad, Snapshot};
pub use strategy::{Background, Preparation, Strategy};
pub use table::{Listing, Table};
pub use tables::{ARRAYS, BadName, POOLS, check_own, help, unknown};
