//! The work of a pool's workers and monitors, in threads or by seed, and the parts of all ranks put together.

mod comm_thread;
mod merge;
pub(crate) mod rank;
mod shared_driver;
pub(crate) mod simulation;
mod task;
mod worker;
mod worker_log;
