//! What workers and monitors of a pool do, in threads or by seed, and the whole of what all ranks have done.

mod log;
mod meeting;
mod monitor;
pub(crate) mod rank;
pub(crate) mod simulation;
mod steps;
mod whole;
mod worker;
