//! Arrays of chunks: migratable objects that send each other messages. [`run`](self::run) starts a program of arrays.
//!
//! | module | content |
//! |---|---|
//! | [`api`] | what users write; the only generic code |
//! | [`core`](self::core) | the control plane of a rank, without threads, clocks or sockets |
//! | [`exec`] | the executor: threads and clocks for the core, or one thread and a seed |

pub(crate) mod api;
pub(crate) mod core;
pub(crate) mod exec;
pub(crate) mod report;
pub(crate) mod run;
