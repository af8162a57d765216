//! `caribou simulate`: programs on a cluster in virtual time, under the policies that production runs.
//!
//! | file | what |
//! |---|---|
//! | `pool`, `array`, `steps` | pools of independent iterations, arrays of chunks, programs in supersteps: their options and their simulations |
//! | `cluster`, `neighbour`, `host_trace`, `values` | a cluster as described on the command line, and its input |
//! | `chunk_cost`, `recorded` | the cost of chunks: shapes by their names, loads from files |
//! | `pool_described` | a pool on it |
//! | `compare` | runs scenarios under policies |
//! | `outcome`, `array_metrics`, `step_metrics` | the figures of one run |
//! | `periods` | one array under several periods |
//! | `table`, `files` | outcomes for people, programs and eyes |
//! | `sweep`, `figures` | many runs in few lines; figures 6 to 9 of the RUPER-LB paper |
//! | `caa_figures` | figures 3 to 5 of the CAA paper |
//! | `jacobi_figures`, `grid_figures` | figures of the papers on load factors, and on balancing and copies |
//!
//! The cluster itself is a library: `virtual_cluster`.

mod array;
mod array_metrics;
mod caa_figures;
mod chunk_cost;
mod cluster;
mod compare;
mod files;
mod grid_figures;
mod host_trace;
mod jacobi_figures;
mod neighbour;
mod periods;
mod pool;
mod pool_described;
mod pool_metrics;
mod recorded;
mod ruper_figures;
mod step_metrics;
mod steps;
mod sweep;
mod table;
mod values;

use std::io::Write;

use clap::Subcommand;

use crate::Error;

pub(crate) use host_trace::Error as TraceError;

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
}

/// Simulates it and writes what came of it.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    match &options.program {
        Program::Pool(options) => pool::run(options, out),
        Program::Array(options) => array::run(options, out),
        Program::Steps(options) => steps::run(options, out),
    }
}

/// The number of hosts in the text of a trace, and the lines to say of them.
pub(crate) fn hosts(csv: &str) -> Result<(usize, Vec<String>), (u64, String)> {
    host_trace::parse(csv, None).map(|hosts| (hosts.parts.len(), hosts.notes))
}

#[cfg(test)]
mod tests;
