//! A crossbar switch under many loads: see `crossbar --help`.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program talks to the person who started it"
)]

use std::process::ExitCode;

use caribou::Launch;
use caribou_apps::cli;
use caribou_apps::crossbar::options::Options;
use caribou_apps::crossbar::{results, run};
use caribou_apps::error::Error;
use caribou_apps::launch;
use caribou_apps::log;
use caribou_apps::output::Output;
use caribou_apps::pooling;

fn main() -> ExitCode {
    log::start();
    let launch = launch::this();
    let options = match cli::parse::<Options>(std::env::args_os()) {
        Ok(options) => options,
        Err(refusal) => return refusal.report(launch),
    };
    match simulate(&options, launch) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if launch::tells(launch, &error) {
                // In one piece: other processes may be speaking too.
                let text = format!("error: {error}\n");
                eprint!("{text}");
            } else {
                launch::give_way();
            }
            error.exit_code().into()
        }
    }
}

fn simulate(options: &Options, launch: Launch) -> Result<(), Error> {
    let grid = options.grid()?;
    let runs = options.pooling.prepare()?;
    if !launch.speaks() {
        return run::run(&runs, &grid, options.tasks, false).map(|_| ());
    }
    let (file, numbers) =
        (options.output.as_deref().map(Output::open).transpose()?, options.pooling.output()?);
    let (tally, reports) = run::run(&runs, &grid, options.tasks, options.check)?;
    print!("{}{}", results::table(&grid, &tally), pooling::table(&reports));
    if options.check {
        println!("Every run ended with the serial program's result, number by number.");
    }
    if let Some(file) = file {
        file.write(&results::grid_csv(&grid, &tally))?;
    }
    numbers
        .map_or(Ok(()), |numbers| numbers.write(&pooling::json("crossbar", options.description(), &reports)))
}
