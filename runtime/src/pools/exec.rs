//! The work of a pool's workers and monitors, in threads or by seed, and the parts of all ranks put together.

mod log;
mod meeting;
mod monitor;
pub(crate) mod rank;
pub(crate) mod simulation;
mod steps;
mod whole;
mod worker;
