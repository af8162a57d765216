//! Pure load-balancing policies: a [`Snapshot`] of measurements goes in, an [`Assignment`] of chunks to ranks comes out.
//!
//! ```text
//! measure -> Snapshot -> predict -> Strategy::assign -> Assignment -> accept? -> migrate
//!            snapshot    predict    strategies/*        snapshot      accept     (of arrays/)
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
//! use lb_strategies::{ArrayId, ChunkId, ChunkLoad, Rank, RankLoad, Snapshot, ARRAYS};
//!
//! let chunk = |key: u64| ChunkLoad {
//!     id: ChunkId { array: ArrayId(0), key },
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
//! | [`arrays`] | how arrays of chunks are balanced |
//! | [`pools`] | how pools of independent iterations are |
//! | [`supersteps`] | how steps on divisible data are |
//! | [`shape`] | the shapes of programs, each with its policies |
//! | [`apportion`](mod@apportion) | whole numbers in proportion to speeds |
//! | [`entry`], [`table`], [`tables`] | a policy by its name, the policies of a shape, the tables of all shapes |
//! | [`parameters`], [`spec`] | the parameters of a policy, and how a person writes them |
//! | [`renamed`] | former names of parameters |
//! | [`parse_error`], [`choice`] | errors in a person's input |
//! | [`virtual_time`] | tools of every simulation: events, links, vCPUs |
//!
//! Arrays, pools and supersteps know nothing of each other.
#![forbid(unsafe_code)]

pub mod apportion;
pub mod arrays;
pub mod choice;
pub mod entry;
mod median;
pub mod parameters;
pub mod parse_error;
pub mod pools;
mod rank;
pub mod renamed;
pub mod shape;
pub mod spec;
pub mod supersteps;
pub mod table;
pub mod tables;
pub mod virtual_time;

pub use arrays::accept::{MoveCost, Verdict, accept, worth_asking};
pub use arrays::period::{Moments, Period};
pub use arrays::predict::Prediction;
pub use arrays::snapshot::{ArrayId, Assignment, ChunkId, ChunkLoad, Edge, RankLoad, Snapshot};
pub use arrays::strategy::{Background, Strategy, Terms};
pub use arrays::{
    accept, balancer, metrics, predict, snapshot, strategies, strategy, synthetic, window_policy,
};
pub use choice::Choice;
pub use entry::Entry;
pub use median::median;
pub use parameters::{Parameter, Parameters};
pub use parse_error::ParseError;
pub use pools as pool;
pub use rank::{Rank, WorkerId};
pub use renamed::Renamed;
pub use shape::Shape;
pub use supersteps::SuperstepStrategy;
pub use table::{Listing, Table};
pub use tables::{ARRAYS, BadName, POOLS, SUPERSTEPS, check_own, help, unknown};
