//! A hot plate, balanced while it cools: see `stencil2d --help`, or start it without options for a demonstration.
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
use caribou_apps::neighbour;
use caribou_apps::stencil2d::compare::Comparison;
use caribou_apps::stencil2d::options::Options;
use caribou_apps::table;

fn main() -> ExitCode {
    if let Some(code) = neighbour::become_one_if_asked() {
        return code;
    }
    log::start();
    let launch = launch::this();
    let arguments: Vec<_> = std::env::args_os().collect();
    let bare = arguments.len() == 1;
    let options = match cli::parse::<Options>(arguments) {
        Ok(options) => options,
        Err(refusal) => return refusal.report(launch),
    };
    match run(options, bare, launch) {
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
