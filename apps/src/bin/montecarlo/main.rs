//! Photons through slabs: a pool of independent histories, as in codes for radiation transport (PENELOPE and its kin).
//!
//! `medium` and `compton` are the physics of a collision, `slabs` the places, `transport` the histories over both; `tally`
//! counts in the whole `energy` units that make merging exact. `cost` makes histories heavier without changing a result.
//! `results` turns a tally into numbers with errors, `options` is the command line, `run` the
//! program as the harness sees it.
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
