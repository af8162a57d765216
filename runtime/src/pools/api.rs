//! The user interface of pools: the pool, accumulators, and random streams for iterations.

pub(crate) mod accumulator;
pub(crate) mod extremes;
pub(crate) mod histogram;
pub(crate) mod pool;
pub(crate) mod stream;
