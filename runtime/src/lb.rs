//! The parts that strategies are made of: all of the crate `lb_strategies`, so that one of your own needs no other
//! crate than this.
//!
//! A strategy turns a [`Snapshot`] of what was measured into an [`Assignment`] of chunks to ranks. Set it with
//! [`Config::strategy`](crate::Config::strategy), or offer it by name to those who start the program:
//!
//! ```
//! use caribou::lb::{Assignment, ChunkLoad, Entry, Parameter, Rank, Shape, Snapshot, Strategy};
//! use caribou::Config;
//!
//! /// Deals chunks out like cards, beginning with one of the ranks.
//! struct Deal { first: u32 }
//!
//! impl Strategy for Deal {
//!     fn name(&self) -> &'static str { "deal" }
//!
//!     fn assign(&self, snapshot: &Snapshot) -> Assignment {
//!         let ranks = snapshot.ranks.len() as u32;
//!         let next = (self.first..).map(|turn| Rank(turn % ranks));
//!         // A pinned chunk stays.
//!         let place = |(chunk, next): (&ChunkLoad, Rank)| if chunk.migratable { next } else { chunk.rank };
//!         Assignment { ranks: snapshot.chunks.iter().zip(next).map(place).collect() }
//!     }
//! }
//!
//! const DEAL: Entry<dyn Strategy> = Entry {
//!     name: "deal",
//!     summary: "one chunk after the other to the ranks in turn",
//!     parameters: &[Parameter { name: "first", default: "0", meaning: "the rank of the first chunk" }],
//!     build: |parameters| Ok(Box::new(Deal { first: parameters.integer("first")? as u32 })),
//! };
//!
//! // `CARIBOU_LB=deal,first=1 ./program` selects it, and `CARIBOU_LB=help` lists it among the others.
//! let config = Config::default().register_strategy(DEAL).with_env()?;
//! assert_eq!(config.lb("deal,first=1")?.lb_spec(Shape::Arrays), "deal,first=1");
//! # Ok::<(), caribou::Error>(())
//! ```
//!
//! An assignment of the wrong length, to a rank that is not there or not available, or of a pinned chunk to another rank,
//! ends the run with [`Error::StrategyFailed`](crate::Error::StrategyFailed), and so does a panic.
//!
//! The moves of a strategy are made only if they pay: `Deal` deals the cards, and where that makes the next phase no shorter
//! all stay where they are. A line in the log at level `info` says so, which the subscriber of your program must let through (see
//! `docs/traces.md`), and [`SyncReport::proposed`](crate::report::SyncReport::proposed) is how many moves there would have been. A strategy that is to move
//! chunks whatever they cost says so in its [terms](Strategy::terms).
//!
//! The examples of single items say `lb_strategies`, the crate they are from: read `caribou::lb`, which has the same names.
//!
//! A policy for pools is a [`pool::PoolStrategy`] with an `Entry<dyn PoolStrategy>`, for
//! [`Config::register_pool_strategy`](crate::Config::register_pool_strategy). It makes a [`pool::Machine`] for each rank, and
//! what these say to each other is a type of its own; the page `docs/pools.md` has one.

pub use lb_strategies::*;
