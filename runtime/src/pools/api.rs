//! What users write: a pool, what it accumulates, and random streams for its iterations.

pub(crate) mod pool;
pub(crate) mod stream;
