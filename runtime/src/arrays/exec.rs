//! Threads and clocks: carries out what the core decides, and runs handlers.
//!
//! One [`Worker`](worker::Worker) is one thread; worker 0 of a rank also drives its transport
//! ([`progress`]). The [simulation](simulation) steps the same workers in one thread, in virtual time.

pub(crate) mod backlog;
pub(crate) mod build;
pub(crate) mod cells;
pub(crate) mod deciding;
pub(crate) mod ending;
pub(crate) mod gateway;
pub(crate) mod instruments;
pub(crate) mod mailbox;
pub(crate) mod mailroom;
pub(crate) mod membership;
pub(crate) mod order;
pub(crate) mod patience;
pub(crate) mod plane;
pub(crate) mod progress;
pub(crate) mod ready;
pub(crate) mod record;
pub(crate) mod scheduler;
pub(crate) mod seeds;
pub(crate) mod sending;
pub(crate) mod shared;
pub(crate) mod simulated;
pub(crate) mod simulation;
pub(crate) mod start;
pub(crate) mod syncs;
pub(crate) mod threads;
pub(crate) mod timers;
pub(crate) mod worker;
