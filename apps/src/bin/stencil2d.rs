//! A hot plate, balanced while it cools: see `stencil2d --help`, or start it without options for a demonstration.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program talks to the person who started it")]

use std::process::ExitCode;

use caribou::Launch;
use caribou_apps::error::Error;
use caribou_apps::program;
use caribou_apps::stencil2d::compare::Comparison;
use caribou_apps::stencil2d::options::Options;
use caribou_apps::table;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let bare = arguments.len() == 1;
    program::main(arguments, |options, launch| run(options, bare, launch))
}

fn run(options: Options, bare: bool, launch: Launch) -> Result<(), Error> {
    let comparison = Comparison::prepare(options, bare)?;
    if !launch.speaks() {
        return comparison.run().map(|_| ());
    }
    println!("{}", comparison.introduction());
    let outputs = comparison.outputs()?;
    let summary = comparison.run()?;
    print!("{}", table::table(&summary));
    println!("{}", table::sentence(&summary));
    if let Some(note) = comparison.afterword() {
        println!("{note}");
    }
    outputs.write(&summary)
}
