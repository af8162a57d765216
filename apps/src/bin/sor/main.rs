//! Solves Laplace's equation on a square by red-black successive over-relaxation: a program in supersteps with rows as
//! units.
//!
//! The command line: `sor --help`.
#![forbid(unsafe_code)]

mod options;
mod problem;
mod row;
mod run;
mod serial;
mod solver;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use run::Sor;

fn main() -> ExitCode {
    harness::main::<Sor>(std::env::args_os())
}
