//! Waves on a square: the two-dimensional wave equation by finite differences, the second benchmark of the refinement paper.
//!
//! `pulses` has the field at the start, `block` does the work of one chunk, `serial` is the reference it must equal
//! bit for bit, `picture` draws the field, `options` is the command line. `chunk` is the program as the runtime sees it,
//! `run` as the harness does. How the grid is cut, and how fields are compared, is stencil2d's.
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
