//! Runs Task Bench (Slaughter et al., SC 2020): graphs of tasks of any grain, and the search for the smallest grain at
//! which a runtime is still efficient.
//!
//! A graph has a number of *timesteps* and *points*. A *task* is a point at a timestep: it checks the outputs of tasks
//! of the timestep before, works, and makes an output. `graph`, `kernel` and `task` follow Task Bench's core library.
//! `point` is the program on the runtime, and all that a user would write.
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
