//! Programs written against Caribou, each with a serial reference.
//!
//! The folder of a program has its computation, its serial reference, its chunks and its options. A program is in this
//! library if tests or benchmarks use its parts, and otherwise below `bin/`, so that other programs do not compile it.
//! The package [`harness`] has all that programs share. [`estimate`] has sums that merge exactly, and values with their
//! errors. [`structure`] and [`matrix_market`] read input files; they are here so that tests and fuzzers reach them.
//!
//! Only the chunks and the `run` of a program use the runtime; everything else is tested without it.
#![forbid(unsafe_code)]

mod decimal;
pub mod estimate;
pub mod matrix_market;
mod quoted;
pub mod stencil2d;
pub mod structure;
