//! A hot plate, balanced while it cools: see `stencil2d --help`, or start it without options for a demonstration.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou::Launch;
use caribou_apps::harness::error::Error;
use caribou_apps::harness::output::print;
use caribou_apps::harness::program;
use caribou_apps::harness::table;
use caribou_apps::stencil2d::compare::Comparison;
use caribou_apps::stencil2d::options::Options;

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
    print(&format!("{}\n", comparison.introduction()))?;
    let outputs = comparison.outputs()?;
    let summary = comparison.run()?;
    let note = comparison.afterword().map(|note| format!("{note}\n")).unwrap_or_default();
    outputs.write(&summary)?;
    print(&format!("{}{}\n{note}", table::table(&summary), table::sentence(&summary)))
}
