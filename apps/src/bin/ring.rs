//! What a message costs, for anyone to measure: see `ring --help`.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program talks to the person who started it"
)]

use std::process::ExitCode;

use caribou::{Config, Launch};
use caribou_apps::cli;
use caribou_apps::error::Error;
use caribou_apps::launch;
use caribou_apps::log;
use caribou_apps::output::Output;
use caribou_apps::ring::chunk::run;
use caribou_apps::ring::options::Options;

fn main() -> ExitCode {
    log::start();
    let launch = launch::this();
    let options = match cli::parse::<Options>(std::env::args_os()) {
        Ok(options) => options,
        Err(refusal) => return refusal.report(launch),
    };
    match measure(options, launch) {
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

fn measure(options: Options, launch: Launch) -> Result<(), Error> {
    let options = options.settle(launch)?;
    let json = options.json.as_deref().filter(|_| launch.speaks()).map(Output::open).transpose()?;
    let outcome = run(Config::from_env()?.lb("none")?, &options)?;
    if launch.speaks() {
        println!("{outcome}");
    }
    if let Some(json) = json {
        json.write(
            &(serde_json::to_string_pretty(&outcome).expect("an outcome has only names as keys") + "\n"),
        )?;
    }
    Ok(())
}
