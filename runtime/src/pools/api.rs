//! The interface for users: a pool, the types that accumulate, and random streams for its iterations.

pub(crate) mod accumulator;
pub(crate) mod extremes;
pub(crate) mod histogram;
pub(crate) mod pool;
pub(crate) mod stream;
