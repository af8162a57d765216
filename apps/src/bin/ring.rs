//! What a message costs, for anyone to measure: see `ring --help`.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program talks to the person who started it"
)]

use std::process::ExitCode;

use caribou::Config;
use caribou_apps::cli;
use caribou_apps::error::Error;
use caribou_apps::log;
use caribou_apps::output::Output;
use caribou_apps::ring::chunk::run;
use caribou_apps::ring::options::Options;

fn main() -> ExitCode {
    log::start();
    let options = match cli::parse::<Options>(std::env::args_os()) {
        Ok(options) => options,
        Err(refusal) => return refusal.report(),
    };
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code().into()
        }
    }
}

fn measure(options: &Options) -> Result<(), Error> {
    options.check()?;
    let json = options.json.as_deref().map(Output::open).transpose()?;
    let outcome = run(Config::from_env()?.lb("none")?, options)?;
    println!("{outcome}");
    if let Some(json) = json {
        json.write(
            &(serde_json::to_string_pretty(&outcome).expect("an outcome has only names as keys") + "\n"),
        )?;
    }
    Ok(())
}
