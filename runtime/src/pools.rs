//! Pools of iterations: independent work by index, handed out in ranges. Start one with [`pool()`](crate::pool()).
//!
//! The iterations fill an [`Accumulator`]; ready ones are numbers, tuples, [`Collected`], [`Histogram`], and extremes such as
//! [`Max`] and [`Smallest`].
//!
//! In the source, `api` is the user's interface. `core` is one rank's state machine, without threads or clocks. `exec` is
//! its threads, or one thread and a seed.

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
