//! A dense system of linear equations by Jacobi's method: a program in supersteps whose units are rows.
//!
//! `system` is the problem, read with `caribou_apps::matrix_market` or generated, `kernel` the work on a row,
//! `serial` the reference, `solver` the steps, `options` the command line, `run`
//! the program as the harness sees it.
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
