//! Executes a pool: its workers and communication threads, in threads or by seed, and the merging of their results.

pub(crate) mod checkpoint;
mod comm_thread;
mod merge;
mod peers;
mod periodic;
mod progress;
pub(crate) mod rank;
mod shared_driver;
pub(crate) mod simulation;
mod task;
mod wait_detector;
mod worker;
mod worker_log;
