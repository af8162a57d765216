//! A crossbar switch under many loads: see `crossbar --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou::Launch;
use caribou_apps::crossbar::options::Options;
use caribou_apps::crossbar::{results, run};
use caribou_apps::harness::error::Error;
use caribou_apps::harness::experiment::Total;
use caribou_apps::harness::output::{Output, print};
use caribou_apps::harness::{pooling, program};

fn main() -> ExitCode {
    program::main(std::env::args_os(), |options, launch| simulate(&options, launch))
}

fn simulate(options: &Options, launch: Launch) -> Result<(), Error> {
    let grid = options.grid()?;
    let runs = options.pooling.prepare(Total { count: options.tasks, unit: "tasks" })?;
    if !launch.speaks() {
        return run::run(&runs, &grid, options.tasks, false).map(|_| ());
    }
    let (file, numbers) =
        (options.output.as_deref().map(Output::open).transpose()?, options.pooling.outputs()?);
    let (tally, summary) = run::run(&runs, &grid, options.tasks, options.check)?;
    let checked = if options.check { pooling::CHECKED } else { "" };
    let text = format!("{}{}{checked}", results::table(&grid, &tally), summary.table());
    if let Some(file) = file {
        file.write(&results::grid_csv(&grid, &tally))?;
    }
    numbers.write(&summary.of("crossbar", options.description(&grid)))?;
    print(&text)
}
