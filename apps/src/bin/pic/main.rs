//! Particles in cells: the PIC kernel of the Parallel Research Kernels, whose hot spot travels at a chosen speed.
//!
//! Charges of alternating sign sit in the columns of a periodic grid and push particles, each so charged that it moves
//! exactly 2k+1 columns and m rows a step: where it is at the end is known, and every single particle is verified.
//!
//! `distribution` and `random` say where particles begin, `particle` how one moves, `tiling` how the grid is cut, `problem`
//! is all that together; `block` does the work of one tile, `tally` verifies, `serial` is the reference, `options` its
//! command line. `chunk` is the program as the runtime sees it, `run` as the harness does, and `sweep` runs it at many speeds.
//!
//! Source: Georganas, Van der Wijngaart, Mattson, "Design and implementation of a parallel research kernel for assessing
//! dynamic load-balancing capabilities", IPDPS 2016, and the kernel's reference program, in its parallel version.
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
