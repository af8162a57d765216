//! The cost of a message, for anyone to measure: see `ring --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou::Launch;
use caribou_apps::harness::output::{Output, print};
use caribou_apps::harness::{self, Error, launch};
use caribou_apps::ring::chunk::run;
use caribou_apps::ring::options::Options;

fn main() -> ExitCode {
    harness::start(std::env::args_os(), measure)
}

fn measure(options: Options, launch: Launch) -> Result<(), Error> {
    let options = options.settle(launch)?;
    let json = options.json.as_deref().filter(|_| launch.speaks()).map(Output::open).transpose()?;
    let outcome = run(launch::config()?.lb("none")?, &options)?;
    if let Some(json) = json {
        json.write(
            &(serde_json::to_string_pretty(&outcome).expect("an outcome has only names as keys") + "\n"),
        )?;
    }
    if launch.speaks() { print(&outcome.to_string()) } else { Ok(()) }
}
