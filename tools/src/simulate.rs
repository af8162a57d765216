//! Implements `caribou simulate`: runs programs on a cluster in virtual time, with the policies that production uses.
//! The cluster itself is the library `virtual_cluster`. These modules parse options, build scenarios and print results.
//!
//! | modules | purpose |
//! |---|---|
//! | `description` | describes a cluster, a program and policies, and builds scenarios from that |
//! | `file`, `combinations` | run what a file describes, once for each combination of swept fields |
//! | `options`, `cluster`, `neighbour`, `overheads` | have the options that are converted to a description |
//! | `pool`, `array`, `steps` | have the options of a shape of program |
//! | `values`, `chunk_cost` | parse values of options and fields, and named costs of chunks |
//! | `host_trace` | reads traces of measured hosts |
//! | `compare` | runs scenarios under policies in parallel |
//! | `pool_metrics`, `array_metrics`, `step_metrics` | compute the figures of one run |
//! | `table`, `files` | write comparisons as a table, JSON, CSV or SVG |
//! | `recording` | writes what a simulated array did as a trace |
//! | `periods`, `sweep` | one array under several balancing periods, a pool policy over many scenarios |

mod array;
mod array_metrics;
mod chunk_cost;
mod cluster;
mod combinations;
mod compare;
mod description;
mod file;
mod files;
mod host_trace;
mod neighbour;
mod options;
mod overheads;
mod periods;
mod pool;
mod pool_metrics;
mod recording;
mod step_metrics;
mod steps;
mod sweep;
mod table;
mod values;

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use virtual_cluster::Series;

pub(crate) use self::compare::in_parallel;
pub(crate) use self::recording::SIMULATED;
use crate::{Error, input, output};

/// The program to simulate.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    program: Program,
}

#[derive(Subcommand)]
enum Program {
    /// A pool of independent iterations.
    Pool(Box<pool::Options>),
    /// An array of chunks, moved by the same balancer as in a run.
    Array(Box<array::Options>),
    /// A program in supersteps, whose units are divided anew or computed in copies.
    Steps(Box<steps::Options>),
    /// A cluster, a program and policies described in a file, and sweeps over any of its fields.
    File(Box<file::Options>),
}

impl Program {
    /// True if results also go to files.
    fn has_files(&self) -> bool {
        match self {
            Self::Pool(options) => options.has_files(),
            Self::Array(options) => options.has_files(),
            Self::Steps(options) => options.has_files(),
            Self::File(options) => options.has_files(),
        }
    }
}

/// Runs the simulations and writes their results.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let out = &mut output::UntilClosed::new(out, options.program.has_files());
    match &options.program {
        Program::Pool(options) => pool::run(options, out),
        Program::Array(options) => array::run(options, out),
        Program::Steps(options) => steps::run(options, out),
        Program::File(options) => file::run(options, out),
    }
}

/// Reads the text of a scenario file, and returns the number of combinations that it describes.
pub(crate) fn scenario(text: &str) -> Result<usize, Error> {
    file::read(text)
}

/// Returns the number of hosts in a trace of hosts, and notes about the trace, one line each.
pub(crate) fn hosts(csv: &str) -> Result<(usize, Vec<String>), (u64, String)> {
    host_trace::parse(csv, None).map(|hosts| (hosts.parts.len(), hosts.notes))
}

/// The share of its vCPU that each host in these traces has left; none without a trace. Prints notes about the traces on
/// standard error.
pub(crate) fn measured_hosts(traces: &[PathBuf]) -> Result<Vec<Series>, Error> {
    let hosts = host_trace::read(traces, None, None).map_err(Error::File)?;
    hosts.notes.iter().for_each(|note| input::note(note));
    Ok(hosts.parts)
}

#[cfg(test)]
mod tests;
