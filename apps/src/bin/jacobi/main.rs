//! Solves a dense system of linear equations by Jacobi's method: a program in supersteps with rows as units. The system
//! is generated, or read from Matrix Market files.
//!
//! The command line: `jacobi --help`.
#![forbid(unsafe_code)]

mod kernel;
mod options;
mod run;
mod serial;
mod solver;
mod system;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use run::Jacobi;

fn main() -> ExitCode {
    harness::main::<Jacobi>(std::env::args_os())
}
