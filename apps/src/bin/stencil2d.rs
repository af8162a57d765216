//! A hot plate, balanced while it cools: see `stencil2d --help`, or start it without options for a demonstration.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou_apps::stencil2d::run::Plate;

fn main() -> ExitCode {
    harness::main::<Plate>(std::env::args_os())
}
