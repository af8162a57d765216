//! Load-balancing policies without IO: a [`Snapshot`] of measurements goes in, an [`Assignment`] to ranks comes out.
//!
//! ```text
//! measure -> Snapshot -> predict -> Strategy::assign -> Assignment -> accept? -> migrate
//!            snapshot    predict    strategies/*        snapshot      accept     (of arrays/)
//! ```
//!
//! This crate is the bottom of Caribou: the runtime, the `caribou` command and every simulation call the same policies,
//! and policies call none of them. The crate does no IO, reads no clock, starts no thread, prints nothing and depends
//! on no hash order. The same snapshot and seed give the same answer on every run.
//!
//! A first program has two equal ranks. A busy process leaves one of them half of its vCPU.
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
//!     ..Snapshot::default()
//! };
//! let assignment = ARRAYS.parse("refine,tolerance=0.05")?.assign(&snapshot);
//! let on_rank_0 = assignment.ranks.iter().filter(|&&rank| rank == Rank(0)).count();
//! assert_eq!(on_rank_0, 8, "twice the capacity, twice the chunks");
//! # Ok::<(), lb_strategies::ParseError>(())
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`arrays`], [`pools`], [`supersteps`] | the policies for each shape of program; none of the three uses another |
//! | [`shape`] | names the shapes of programs: arrays, pools, supersteps |
//! | [`apportion`](mod@apportion) | splits whole numbers in proportion to speeds |
//! | [`entry`], [`table`], [`tables`] | describe a policy by its name, all policies of a shape, and the tables of all shapes |
//! | [`parameters`], [`spec`], [`renamed`] | read the parameters of a policy as users write them, with old names |
//! | [`parse_error`], [`choice`] | define the errors in a user's input, with suggestions |
//! | [`virtual_time`] | has the tools of every simulation: events, links, vCPUs |
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

pub use arrays::Hierarchy;
pub use arrays::accept::{MoveCost, Verdict, accept, worth_asking};
pub use arrays::period::{Moments, Period};
pub use arrays::predict::Prediction;
pub use arrays::snapshot::{
    ArrayId, Assignment, Block, ChunkId, ChunkLoad, Edge, LinkCost, LinkCosts, Memory, RankLoad, Snapshot,
};
pub use arrays::strategy::{Background, EdgeUse, Strategy, Terms};
pub use arrays::{
    accept, balancer, grouped, metrics, predict, snapshot, strategies, strategy, synthetic, window_policy,
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
