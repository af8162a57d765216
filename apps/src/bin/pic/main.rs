//! Simulates particles in cells: the PIC kernel of the Parallel Research Kernels. Its hot spot travels at a chosen
//! speed.
//!
//! Charges of alternating sign in the columns of a periodic grid push particles. Each particle has a charge that makes
//! it move exactly 2k+1 columns and m rows per step. So its final position is known, and every particle is verified.
//! `sweep` runs the program at many speeds.
//!
//! Source: Georganas, Van der Wijngaart, Mattson, "Design and implementation of a parallel research kernel for
//! assessing dynamic load-balancing capabilities", IPDPS 2016, and the kernel's reference program, in its parallel
//! version.
//!
//! The command line: `pic --help`.
#![forbid(unsafe_code)]

mod block;
mod chunk;
mod distribution;
mod options;
mod particle;
mod problem;
mod random;
mod run;
mod serial;
mod sweep;
#[cfg(test)]
mod tests;
mod tiling;
mod verification;

use std::process::ExitCode;

use harness::{CommandLine, Comparison};
use run::Pic;
use sweep::Sweep;

fn main() -> ExitCode {
    harness::start(std::env::args_os(), |line: CommandLine<Pic>, launch| match line.own.sweep_speed {
        Some(_) => Sweep::prepare(line, launch)?.run_and_report(),
        None => Comparison::prepare(line, false)?.run_and_report(),
    })
}
