//! Programs written against Caribou, each over a serial reference kernel.
//!
//! A program is a folder: what it computes, its serial reference, its chunks, its options. It is here if tests or benchmarks
//! name its parts, and otherwise below `bin/`, where other programs need not compile it. What all programs share, from the
//! command line to the table, is the package [`harness`]; [`estimate`] has sums that merge exactly, and values with their errors.
//! The readers of input files are here too, where tests and the fuzz targets reach them: [`structure`] and [`matrix_market`].
//!
//! Only the chunks and the `run` of a program name the runtime; everything else is tested without it.
#![forbid(unsafe_code)]

mod decimal;
pub mod estimate;
pub mod matrix_market;
mod quoted;
pub mod stencil2d;
pub mod structure;
