//! Computes waves on a square: the two-dimensional wave equation by finite differences, the second benchmark of the
//! refinement paper. The cutting of the grid and the comparison of fields are those of stencil2d.
//!
//! The command line: `wave2d --help`.
#![forbid(unsafe_code)]

mod block;
mod chunk;
mod options;
mod picture;
mod problem;
mod pulses;
mod run;
mod serial;
#[cfg(test)]
mod tests;
mod waves;

use std::process::ExitCode;

use run::Wave2d;

fn main() -> ExitCode {
    harness::main::<Wave2d>(std::env::args_os())
}
