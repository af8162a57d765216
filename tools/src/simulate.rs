//! `caribou simulate`: programs on a cluster in virtual time, under the policies that production runs.
//!
//! | file | what |
//! |---|---|
//! | `pool` | pools of independent iterations: what can be asked, and who answers |
//! | `cluster`, `neighbour`, `host_trace`, `values` | a cluster as described on the command line, and its input |
//! | `compare` | runs scenarios under policies |
//! | `outcome` | the figures of one run |
//! | `table`, `files`, `plot` | outcomes for people, programs and eyes |
//! | `sweep`, `figures` | many runs in few lines; figures 6 to 9 of the RUPER-LB paper |
//! | `caa_figures` | figures 3 to 5 of the CAA paper |
//!
//! The cluster itself is a library: `lb_strategies::cluster`.

mod caa_figures;
mod cluster;
mod compare;
mod figures;
mod files;
mod host_trace;
mod neighbour;
mod outcome;
mod plot;
mod pool;
mod sweep;
mod table;
mod values;

use std::io::Write;

use clap::Subcommand;

use crate::Error;

pub(crate) use host_trace::Error as TraceError;

/// What to simulate.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    program: Program,
}

#[derive(Subcommand)]
enum Program {
    /// A pool of independent iterations.
    Pool(Box<pool::Options>),
}

/// Simulates it and writes what came of it.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    match &options.program {
        Program::Pool(options) => pool::run(options, out),
    }
}

#[cfg(test)]
mod tests;
