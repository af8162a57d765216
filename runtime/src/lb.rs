//! Re-exports the crate `lb_strategies`, so that a strategy of your own needs no other crate than this one.
//!
//! A strategy turns a [`Snapshot`] of measurements into an [`Assignment`] of chunks to ranks. Set it with
//! [`Config::strategy`](crate::Config::strategy), or register it, so that the user of the program can select it by name:
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
//! An invalid assignment, or a panic, ends the run with [`Error::StrategyFailed`](crate::Error::StrategyFailed). An
//! assignment is invalid if it has the wrong length, names a missing or unavailable rank, or moves a pinned chunk.
//!
//! The runtime makes the moves of a strategy only if they pay. If the moves of `Deal` would not shorten the next phase,
//! all chunks stay, and the runtime logs this at level `info` (see `docs/traces.md`).
//! [`SyncReport::proposed`](crate::report::SyncReport::proposed) is the number of proposed moves. A strategy whose
//! moves need not pay sets `must_pay` to false in its [terms](Strategy::terms).
//!
//! The examples of single items import from `lb_strategies`: read `caribou::lb`, which has the same names.
//!
//! A policy for pools is a [`pool::PoolStrategy`] with an `Entry<dyn PoolStrategy>`, for
//! [`Config::register_pool_strategy`](crate::Config::register_pool_strategy). The policy makes a [`pool::Machine`] for
//! each rank. The machines exchange messages of a type that the policy defines. See `docs/pools.md`.

pub use lb_strategies::*;
