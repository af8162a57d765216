//! Implements the `main` of every program: reads the command line, makes the runs, prints errors.

use std::ffi::OsString;
use std::io::{Write, stderr};
use std::process::ExitCode;

use caribou::Launch;
use presentation::format::escape_control;

use super::cli;
use super::comparison::Comparison;
use super::disturbance::{neighbour, quota};
use super::error::Error;
use super::options::CommandLine;
use super::output::print;
use super::program::Program;
use super::{launch, log};

/// Runs a program with each strategy that a command line names, and compares the runs.
pub fn main<P: Program>(arguments: impl IntoIterator<Item: Into<OsString>>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let bare = arguments.len() == 1;
    start(arguments, |line: CommandLine<P>, _| Comparison::prepare(line, bare)?.run_and_report())
}

/// Reads the command line, calls `run`, prints its error, if any, and returns the exit code.
///
/// In a job one process prints for all; the others print only errors that they alone may have. A process that was
/// started as a busy neighbour or as the keeper of a control group does only that.
pub fn start<O: clap::Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    run: impl FnOnce(O, Launch) -> Result<(), Error>,
) -> ExitCode {
    let helps = neighbour::run_as_neighbour_if_requested()
        .or_else(|| quota::run_as_keeper_if_requested(std::env::args_os()));
    if let Some(code) = helps {
        return code;
    }
    log::start();
    let launch = launch::current();
    let ended = cli::parse::<O>(arguments).and_then(|options| run(options, launch));
    let ended = match ended {
        Err(Error::Listed(text)) => launch::agree_to_print(launch).and(Err(Error::Listed(text))),
        ended => ended,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Listed(text)) => {
            if launch.speaks() {
                // A closed stream is no error.
                let _ = print(&text);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            let line = escape_control(&format!("error: {error}"));
            launch.refuse(&line, error.exit_code());
            if launch::prints(launch, &error) {
                complain(&line);
            } else {
                launch::wait_for_printer();
            }
            error.exit_code().into()
        }
    }
}

fn complain(line: &str) {
    // One write, because other processes may also print. A closed stream is no error.
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}
