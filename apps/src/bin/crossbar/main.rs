//! Simulates a crossbar switch under many loads: a pool of a few thousand independent simulations, each of milliseconds
//! to seconds. The combined adaptive algorithm (CAA) was measured by this workload: 3072 simulations of a switch with
//! 16 ports and buffers at its crosspoints.
//!
//! The command line: `crossbar --help`.
#![forbid(unsafe_code)]

mod grid;
mod grid_results;
mod options;
mod results;
mod run;
mod scheduler;
mod switch;
mod traffic;
#[cfg(test)]
mod validation;

use std::process::ExitCode;

use run::Crossbar;

fn main() -> ExitCode {
    harness::main::<Crossbar>(std::env::args_os())
}
