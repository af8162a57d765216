//! Pools of iterations: independent work by index, handed out in ranges. Start one with [`pool()`](crate::pool()).
//!
//! Each worker collects its results in an [`Accumulator`]. Numbers, tuples, [`Collected`], [`Histogram`], and extremes
//! such as [`Max`] and [`Smallest`] are accumulators.
//!
//! In the source, `api` is the user's interface. `core` has packets and saved state, without threads or clocks. `exec`
//! runs the pool, in threads or in one thread by a seed.

pub(crate) mod api;
pub(crate) mod core;
pub(crate) mod exec;
pub(crate) mod report;
pub(crate) mod run;

pub use self::api::accumulator::{Accumulator, Collected};
pub use self::api::extremes::{Largest, Max, Min, Smallest};
pub use self::api::histogram::Histogram;
pub use self::api::pool::{Cancel, PoolOutcome, PoolProgress};
pub use self::report::{PoolReport, PoolWorker};
