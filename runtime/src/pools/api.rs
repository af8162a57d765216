//! The interface for users: a pool, the types that accumulate, and random streams for its iterations.

pub(crate) mod pool;
pub(crate) mod stream;
