//! The cost of a message: tokens that travel around a ring of chunks which do nothing else.
//!
//! `options` says what can be varied and what comes out, `chunk` is the program. Unless asked for, no work is done on
//! purpose: a hop is one `send` and one `receive`, so the time per hop is the cost of the runtime and nothing else. With
//! some (`kernel`) the ring tells what tasks of a given grain cost, beside a busy neighbour above all.
//!
//! The command line: `ring --help`.
#![forbid(unsafe_code)]

mod chunk;
mod kernel;
mod options;

use std::process::ExitCode;

use caribou::Launch;
use chunk::run;
use harness::output::{Output, print};
use harness::{Error, launch};
use options::Options;

fn main() -> ExitCode {
    harness::start(std::env::args_os(), measure)
}

fn measure(options: Options, launch: Launch) -> Result<(), Error> {
    let options = options.settle(launch)?;
    let json = options.json.as_deref().filter(|_| launch.speaks()).map(Output::open).transpose()?;
    let outcome = run(launch::config()?.lb("none")?, &options)?;
    // The file may find no room: the figure is told all the same.
    let said = if launch.speaks() { print(&outcome.to_string()) } else { Ok(()) };
    said.and(json.map_or(Ok(()), |json| json.write_json(&outcome)))
}
