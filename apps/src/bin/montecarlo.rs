//! Photons through slabs of matter: see `montecarlo --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou_apps::harness;
use caribou_apps::montecarlo::run::Photons;

fn main() -> ExitCode {
    harness::main::<Photons>(std::env::args_os())
}
