//! What the `main` of every program here does around its own part.

use std::ffi::OsString;
use std::io::{Write, stderr};
use std::process::ExitCode;

use caribou::Launch;

use crate::harness::cli;
use crate::harness::disturbance::{neighbour, quota};
use crate::harness::error::Error;
use crate::harness::{launch, log};

/// Reads the command line, runs the program, and says what went wrong, if anything did.
///
/// Of several processes one speaks for all; the others are silent but for errors that they alone may know. If the process
/// was started to be a busy neighbour or to keep a control group, that is all it does.
pub fn main<O: clap::Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    run: impl FnOnce(O, Launch) -> Result<(), Error>,
) -> ExitCode {
    let helps = neighbour::become_one_if_asked().or_else(|| quota::keep_one_if_asked(std::env::args_os()));
    if let Some(code) = helps {
        return code;
    }
    log::start();
    let launch = launch::this();
    let options = match cli::parse::<O>(arguments) {
        Ok(options) => options,
        Err(refusal) => return refusal.report(launch),
    };
    match run(options, launch) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            launch.refuse(&format!("error: {error}"), error.exit_code());
            if launch::tells(launch, &error) {
                complain(&error);
            } else {
                launch::give_way();
            }
            error.exit_code().into()
        }
    }
}

fn complain(error: &Error) {
    // In one piece: other processes may be speaking too. A closed stream leaves nobody to tell.
    let _ = stderr().write_all(format!("error: {error}\n").as_bytes());
}
