//! Laplace's equation on a square by red-black successive over-relaxation: a program in supersteps whose units are rows.
//!
//! `problem` is the square and what holds on its border, `row` the work on a row, `serial` the reference, `solver` the steps,
//! `options` the command line, `run` the program as the harness sees it.
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
