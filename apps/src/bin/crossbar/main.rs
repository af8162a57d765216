//! A crossbar switch under many loads: a pool of a few thousand independent simulations, each of milliseconds to seconds.
//!
//! It is the workload by which the combined adaptive algorithm (CAA) was measured: 3072 simulations of a switch with 16
//! ports and buffers at its crosspoints. `traffic` says what arrives, `scheduler` what leaves first, `switch` simulates
//! both; `grid` lists the simulations, `tally` counts their results exactly, `results` prints them. `options`
//! is the command line, `run` the program as the harness sees it.
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
