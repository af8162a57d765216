//! Implements `caribou advise`: replays a recorded run with other strategies, periods, chunk sizes and ranks, and says
//! which change would save time, how much, and how certain that is.
//!
//! | module | purpose |
//! |---|---|
//! | `usable` | tells which traces can be replayed |
//! | `steps`, `recording` | read the work of chunks, their messages and the shares of vCPUs out of a trace |
//! | `program` | divides or joins chunks |
//! | `change`, `command_line` | list what is tried, and how to type it |
//! | `replay`, `costs` | run the program in virtual time, with the costs of the runtime |
//! | `judge` | compares the replays, and checks one of them against the recorded run |
//! | `words`, `files` | write the advice |

mod change;
mod command_line;
mod costs;
mod files;
mod judge;
mod program;
mod recording;
mod replay;
mod steps;
mod usable;
mod words;

use std::io::Write;
use std::path::PathBuf;

use crate::calibrate::MachineCosts;
use crate::trace::open::Input;
use crate::{Error, output};

/// The run, and where its advice goes.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("json", |json| json.help(files::JSON_HELP)))]
#[command(mut_arg("csv", |csv| csv.help(files::CSV_HELP)))]
#[command(mut_arg("plot", |plot| plot.help(files::PLOT_HELP)))]
pub(crate) struct Options {
    #[command(flatten)]
    input: Input,
    /// Costs of the runtime on the machine of the run, as `caribou calibrate` writes them; without it, those in the trace
    #[arg(long, value_name = "FILE.toml")]
    costs: Option<PathBuf>,
    #[command(flatten)]
    files: output::Files,
}

const AFTER_HELP: &str = "\
The run must be of an array, and recorded with all messages. CARIBOU_LB_REPORTS=on adds the sizes of chunks, and which
of them may move.

Record a run, and ask what would make it faster
  CARIBOU_TRACE=traces CARIBOU_LB_REPORTS=on stencil2d --grid 1024 --iterations 200 --lb none
  caribou advise traces/run-1
The figures for a script, and a plot of the best changes
  caribou advise traces/run-1 --json advice.json --plot advice.svg";

/// Reads the run, replays it, and writes the advice.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    options.files.check()?;
    let trace = options.input.open()?;
    let costs = options.costs.as_deref().map(MachineCosts::read).transpose()?;
    let recording = recording::Recording { costs, ..recording::read(&trace)? };
    let judgement = judge::judge(&recording)?;
    let out = &mut output::UntilClosed::new(out, options.files.any());
    words::paragraph(&recording, &judgement, out)?;
    writeln!(out)?;
    words::table(&recording, &judgement, out)?;
    files::write(&options.files, &recording, &judgement)
}

#[cfg(test)]
mod tests;
