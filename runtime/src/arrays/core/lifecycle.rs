//! Chunks: what the runtime knows of one, what its handlers may do, how it is set up, inserted, spawned and removed.

pub(crate) mod activity;
pub(crate) mod erased;
pub(crate) mod handler;
pub(crate) mod seeds;
pub(crate) mod signature;
