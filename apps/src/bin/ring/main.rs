//! Measures the cost of a message: tokens travel around a ring of chunks that do nothing else.
//!
//! A hop is one `send` and one `receive`, so the time per hop is the cost of the runtime. With `--work` the ring
//! measures the cost of tasks of a given grain, above all beside a busy process.
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
    // The result is printed even if the file cannot be written.
    let said = if launch.speaks() { print(&outcome.to_string()) } else { Ok(()) };
    said.and(json.map_or(Ok(()), |json| json.write_json(&outcome)))
}
