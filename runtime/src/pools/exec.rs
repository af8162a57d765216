//! The threads of a pool's rank, and the whole of what all ranks have done.

mod diary;
mod meeting;
mod monitor;
pub(crate) mod rank;
pub(crate) mod simulation;
mod whole;
