//! A cluster in virtual time: vCPUs of changing speed, links with delays, and programs that run on them.
//!
//! Deterministic: the same cluster and program give the same history to the last event. It knows no clock, thread or
//! random number but those of its input, so that a run of hours on hundreds of vCPUs is a matter of seconds.
//!
//! | module | answers |
//! |---|---|
//! | [`vcpus`] | what each worker can give, and when that changes |
//! | [`run_pool`] | how long a pool takes there under a policy, and what was lost |
//! | [`crossbar_cluster`] | the tasks and the cluster of a paper |

pub mod crossbar_cluster;
pub mod run_pool;
pub mod vcpus;

pub use run_pool::{Links, PoolRun, RunPool, WorkerRun};
pub use vcpus::{Traces, Vcpus, Worker};
