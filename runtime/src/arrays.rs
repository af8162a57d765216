//! Arrays of chunks: migratable objects that send each other messages.
//!
//! `api` is what users write, and the only generic code; `core` is the control plane of a rank, without threads, clocks
//! or sockets; `exec` gives it threads and clocks, or one thread and a seed.

pub(crate) mod api;
pub(crate) mod core;
pub(crate) mod exec;
pub(crate) mod report;
pub(crate) mod run;
