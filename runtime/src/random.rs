//! Random numbers that depend on a seed and an index alone: equal on every rank, worker and placement.

pub use crate::pools::api::stream::{Stream, stream};
