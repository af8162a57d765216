//! Task Bench (Slaughter et al., SC 2020): graphs of tasks of any grain, and the smallest grain that a runtime bears.
//!
//! A graph has a number of *timesteps* and *points*. A *task* is a point at a timestep: it checks what tasks of the timestep
//! before have put out, works, and puts out something itself. `graph` has the dependences, `kernel` the work, and
//! `task` the checks; so far they are Task Bench's own core. `point` is the program on the runtime, and all that a user would
//! write; `run`, `report` and `options` are around it. `metg` looks for the smallest grain, and `eighth` moves points for the
//! sake of moving.
//!
//! The command line: `task_bench --help`.
#![forbid(unsafe_code)]

mod eighth;
mod graph;
mod kernel;
mod metg;
mod options;
mod point;
#[cfg(feature = "mpi")]
mod raw;
mod report;
mod run;
mod task;
#[cfg(test)]
mod tests;
mod uniform;

use std::process::ExitCode;

use options::{Options, arguments};

fn main() -> ExitCode {
    harness::start(arguments(std::env::args_os()), |options: Options, _| run::main(&options))
}
