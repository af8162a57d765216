//! Programs written against Caribou, each over a serial reference kernel.
//!
//! A program is a folder here: what it computes, its serial reference, its chunks, its options. What all programs share,
//! from the command line to the table, is the [`harness`]; [`estimate`] has sums that merge exactly, and values with
//! their errors.
//!
//! Only the chunks and the `run` of a program name the runtime; everything else is tested without it.
#![forbid(unsafe_code)]

pub mod crossbar;
pub mod estimate;
pub mod harness;
pub mod montecarlo;
pub mod pic;
pub mod ring;
pub mod stencil2d;
pub mod task_bench;
