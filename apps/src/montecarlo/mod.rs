//! Photons through slabs: a pool of independent histories, as in codes for radiation transport (PENELOPE and its kin).
//!
//! `medium` and `compton` are the physics of a collision, `slabs` the places, `transport` the histories over both; `tally`
//! counts in the whole `energy` units that make merging exact. `cost` makes histories heavier without changing a result.
//! `results` turns a tally into numbers with errors, `options` is the command line, `run` the
//! program as the harness sees it.

pub mod compton;
pub mod cost;
pub mod energy;
pub mod medium;
pub mod options;
pub mod results;
pub mod run;
pub mod slabs;
pub mod tally;
pub mod transport;
#[cfg(test)]
mod validation;
