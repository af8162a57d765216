//! Photons through slabs of matter: see `montecarlo --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou::Launch;
use caribou_apps::harness::error::Error;
use caribou_apps::harness::experiment::Total;
use caribou_apps::harness::output::{Output, print};
use caribou_apps::harness::{pooling, program};
use caribou_apps::montecarlo::options::Options;
use caribou_apps::montecarlo::{results, run};

fn main() -> ExitCode {
    program::main(std::env::args_os(), |options, launch| simulate(&options, launch))
}

fn simulate(options: &Options, launch: Launch) -> Result<(), Error> {
    let problem = options.problem()?;
    let runs = options.pooling.prepare(Total { count: options.histories, unit: "histories" })?;
    if !launch.speaks() {
        return run::run(&runs, &problem, options.histories, false).map(|_| ());
    }
    let (profile, numbers) =
        (options.output.as_deref().map(Output::open).transpose()?, options.pooling.outputs()?);
    let (tally, summary) = run::run(&runs, &problem, options.histories, options.check)?;
    let checked = if options.check { pooling::CHECKED } else { "" };
    let text = format!("{}{}{checked}", results::table(&problem, &tally), summary.table());
    if let Some(profile) = profile {
        profile.write(&results::depth_profile_csv(&problem, &tally))?;
    }
    numbers.write(&summary.of("montecarlo", options.description(&problem)))?;
    print(&text)
}
