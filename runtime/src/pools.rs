//! Pools of iterations: independent work by index, handed out in ranges.
//!
//! `api` is what users write; `core` is one rank's state machine, without threads or clocks; `exec` is its threads, or
//! one thread and a seed.

pub(crate) mod api;
pub(crate) mod core;
pub(crate) mod exec;
pub(crate) mod report;
pub(crate) mod run;
