//! A crossbar switch under many loads: see `crossbar --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou_apps::crossbar::run::Crossbar;
use caribou_apps::harness;

fn main() -> ExitCode {
    harness::main::<Crossbar>(std::env::args_os())
}
