//! Photons through slabs of matter: see `montecarlo --help`.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program talks to the person who started it"
)]

use std::process::ExitCode;

use caribou::Launch;
use caribou_apps::cli;
use caribou_apps::error::Error;
use caribou_apps::launch;
use caribou_apps::log;
use caribou_apps::montecarlo::options::Options;
use caribou_apps::montecarlo::{results, run};
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
    let problem = options.problem()?;
    let runs = options.pooling.prepare()?;
    if !launch.speaks() {
        return run::run(&runs, &problem, options.histories, false).map(|_| ());
    }
    let (profile, numbers) =
        (options.output.as_deref().map(Output::open).transpose()?, options.pooling.output()?);
    let (tally, reports) = run::run(&runs, &problem, options.histories, options.check)?;
    print!("{}{}", results::table(&problem, &tally), pooling::table(&reports));
    if options.check {
        println!("Every run ended with the serial program's result, number by number.");
    }
    if let Some(profile) = profile {
        profile.write(&results::depth_profile_csv(&problem, &tally))?;
    }
    numbers.map_or(Ok(()), |numbers| {
        numbers.write(&pooling::json("montecarlo", options.description(), &reports))
    })
}
