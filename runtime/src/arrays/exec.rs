//! The executor: runs handlers and the commands of the core, with threads and clocks. One [`Worker`](worker::Worker) is
//! one thread. Worker 0 of a rank also calls its transport ([`polling`]). The [simulation](simulation) steps the same
//! workers in one thread, in virtual time.

pub(crate) mod build;
pub(crate) mod cells;
mod checkpoints;
pub(crate) mod commands;
pub(crate) mod control_plane;
pub(crate) mod deciding;
pub(crate) mod edges;
mod effects;
pub(crate) mod ending;
mod facts;
pub(crate) mod instruments;
pub(crate) mod local_delivery;
pub(crate) mod mailbox;
pub(crate) mod membership;
pub(crate) mod polling;
pub(crate) mod queue_order;
pub(crate) mod ready;
pub(crate) mod record;
pub(crate) mod remote_sender;
mod restart;
pub(crate) mod scheduler;
pub(crate) mod seeds;
pub(crate) mod sending;
pub(crate) mod shared;
pub(crate) mod simulated;
pub(crate) mod simulation;
pub(crate) mod spin_policy;
pub(crate) mod start;
pub(crate) mod syncs;
pub(crate) mod timers;
pub(crate) mod watermarks;
pub(crate) mod worker;
pub(crate) mod worker_loop;
