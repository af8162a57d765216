//! Computes how heat spreads over a plate, in balanced chunks. See `stencil2d --help`, or start it without options.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou_apps::stencil2d::run::Plate;

fn main() -> ExitCode {
    harness::main::<Plate>(std::env::args_os())
}
