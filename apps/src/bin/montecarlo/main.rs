//! Follows photons through slabs of matter: a pool of independent histories, as in codes for radiation transport such
//! as PENELOPE. A *history* is the path of one photon.
//!
//! The command line: `montecarlo --help`.
#![forbid(unsafe_code)]

mod compton;
mod cost;
mod energy;
mod medium;
mod options;
mod results;
mod run;
mod slabs;
mod tally;
mod transport;
#[cfg(test)]
mod validation;

use std::process::ExitCode;

use run::Photons;

fn main() -> ExitCode {
    harness::main::<Photons>(std::env::args_os())
}
