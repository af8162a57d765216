//! Particles in cells, whose hot spot travels: see `pic --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou_apps::harness::{self, CommandLine, Comparison};
use caribou_apps::pic::run::Pic;
use caribou_apps::pic::sweep::Sweep;

fn main() -> ExitCode {
    harness::start(std::env::args_os(), |line: CommandLine<Pic>, launch| match line.own.sweep_speed {
        Some(_) => Sweep::prepare(line, launch)?.tell(),
        None => Comparison::prepare(line, false)?.tell(),
    })
}
