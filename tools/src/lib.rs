//! Implements the command `caribou`. It analyses recorded runs, watches and resizes running ones, and tries
//! load-balancing strategies offline with the code that production runs.
//!
//! ```text
//! caribou strategies                                                 list strategies and their parameters
//! caribou balance --chunks 100000 --ranks 1000 --workload ramp       all strategies on a synthetic snapshot
//! caribou balance --snapshot phase-7.json --lb refine,greedy         two strategies on a recorded snapshot
//! caribou balance --lbdata lbaf/data --phase all --svg front.svg     all strategies on the loads that vt recorded
//! caribou balance --trace traces --lb refine,greedy                  decide the syncs of a recorded run again
//! caribou calibrate                                                  measure what the runtime costs, for simulations
//! caribou advise traces/run-1                                        what would make a recorded run faster
//! caribou simulate pool --scenario F7 --compare static,leases        pools on a cluster in virtual time
//! caribou simulate file cloud.toml                                   what a file describes, in virtual time
//! caribou paper caa                                                  the experiments of a paper again, with verdicts
//! caribou checkpoint list checkpoints                                the checkpoints from which a run can restart
//! caribou top localhost:9977                                         watch a running program
//! ```
//!
//! The command starts no program, and only `resize` changes a running program. An error is one line on standard error.
//!
//! | exit code | when |
//! |---|---|
//! | 0 | success, or the reader of the output closed its pipe early |
//! | 1 | lost output (a full disk), an incomplete simulated run, a failed check, or a resize not done in time |
//! | 2 | bad options, or a file or address that cannot be used |
#![forbid(unsafe_code)]

mod advise;
mod balance;
mod calibrate;
mod checkpoint;
mod input;
mod output;
mod paper;
mod recorded;
mod report;
mod resize;
mod room;
mod simulate;
mod snapshot_file;
mod statistics;
mod toml_file;
mod top;
mod trace;

pub use calibrate::{Machine, MachineCosts, RuntimeCosts};

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use lb_strategies::{ARRAYS, POOLS, ParseError, SUPERSTEPS, Snapshot, Table};
use presentation::format::escape_control;
use trace_reader::Trace;

/// Study runs by their traces or while they go on, and load-balancing strategies offline.
#[derive(Parser)]
#[command(name = "caribou", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the strategies and their parameters.
    Strategies,
    /// Say what would make a recorded run faster, by replays with other settings.
    Advise(advise::Options),
    /// Run strategies on snapshots of loads and compare their placements.
    Balance(balance::Options),
    /// Measure on this machine what the runtime costs, for simulations.
    Calibrate(calibrate::Options),
    /// Simulate programs on a cluster in virtual time, and compare policies.
    Simulate(simulate::Options),
    /// Repeat the experiments of the papers in virtual time, and write a page on each.
    Paper(paper::Options),
    /// See what happened in a run that was recorded with CARIBOU_TRACE.
    #[command(subcommand)]
    Trace(trace::Command),
    /// List, inspect and verify the checkpoints of a run that has CARIBOU_CHECKPOINT set.
    #[command(subcommand)]
    Checkpoint(checkpoint::Command),
    /// Watch a run that has CARIBOU_MONITOR set, while it runs.
    Top(top::Options),
    /// Shrink or expand a run that has CARIBOU_MONITOR set: the first N ranks get all its work.
    Resize(resize::Options),
}

/// Errors of the command. Each comment states what the user can do.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// Correct the command line.
    #[error("{0}")]
    Usage(String),
    /// Correct the strategy specification.
    #[error("--lb {spec:?}: {source}")]
    Strategy {
        /// The specification as written.
        spec: String,
        /// The fault in the specification.
        source: ParseError,
    },
    /// Correct the specification of a policy for pools.
    #[error("--compare {spec:?}: {source}")]
    Policy {
        /// The specification as written.
        spec: String,
        /// The fault in the specification.
        source: ParseError,
    },
    /// Correct the file, or name another.
    #[error("{0}")]
    File(String),
    /// Name a file that can be written.
    #[error("{}: cannot be written: {source}", file.display())]
    Unwritable {
        /// The file named.
        file: std::path::PathBuf,
        /// Message of the system or a library.
        source: io::Error,
    },
    /// Choose other policies: the table shows which policies left work undone.
    #[error("{incomplete} of {runs} runs are incomplete, first {first}")]
    Incomplete {
        /// Number of incomplete runs.
        incomplete: usize,
        /// Number of all runs.
        runs: usize,
        /// The first incomplete run and its fault.
        first: String,
    },
    /// Name a trace that can be read.
    #[error(transparent)]
    Trace(#[from] trace_reader::TraceError),
    /// Start the program with CARIBOU_MONITOR, or name its address.
    #[error("{address}: {why}")]
    Unreachable {
        /// The address of the program.
        address: String,
        /// Reason that there was no valid answer.
        why: String,
    },
    /// Wait, or find out what delays the program.
    #[error("{0}")]
    Unfinished(String),
    /// Do not rely on this trace: the command has printed its faults.
    #[error("{}: not sound, {wrong} {}", trace.display(), if *wrong == 1 { "fault" } else { "faults" })]
    Unsound {
        /// The trace named.
        trace: std::path::PathBuf,
        /// Number of faults.
        wrong: u64,
    },
    /// The run does not meet the condition that the command checks.
    #[error("{0}")]
    Failed(String),
    /// The input was valid, but the output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    /// 1 if the command line and its files are valid but the command failed or lost output (a full disk), else 2.
    fn exit_code(&self) -> u8 {
        let done = match self {
            Self::Output(_)
            | Self::Incomplete { .. }
            | Self::Unsound { .. }
            | Self::Failed(_)
            | Self::Unfinished(_) => true,
            Self::Unwritable { source, .. } => output::is_lost(source),
            _ => false,
        };
        if done { 1 } else { 2 }
    }
}

/// Runs the command with the arguments and the standard output of this process.
pub fn main() -> ExitCode {
    ended(run(std::env::args_os(), &mut io::stdout().lock())).into()
}

/// Prints the error, if there is one. Returns the exit code.
fn ended(ran: Result<(), Error>) -> u8 {
    match ran {
        Ok(()) => 0,
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            // If standard error is closed, only the exit code reports the error.
            let _ = writeln!(io::stderr(), "{}", escape_control(&format!("caribou: {error}")));
            error.exit_code()
        }
    }
}

/// Prints a warning for each deprecated parameter name in `spec`. The command goes on.
fn warn_of_old_names<P: ?Sized>(table: &Table<P>, spec: &str) {
    for renamed in table.old_names(spec) {
        // If standard error is closed, the warning is lost.
        let _ = writeln!(io::stderr(), "caribou: {renamed}");
    }
}

/// Returns the findings of `caribou trace check`, one line each. It keeps at most `messages_max` messages in flight.
pub fn check(trace: &Trace, messages_max: usize) -> Vec<String> {
    trace::check::lines(trace, messages_max)
}

/// Reads a snapshot in JSON, as `caribou balance --snapshot` does.
///
/// # Errors
/// The place in the text, and what was expected there.
pub fn snapshot(json: &[u8]) -> Result<Snapshot, String> {
    snapshot_file::parse(json)
}

/// Reads the costs of a machine, as `caribou calibrate` writes them.
///
/// # Errors
/// One line with the file, the line, the field, and what was expected.
pub fn machine_costs(file: &std::path::Path) -> Result<MachineCosts, String> {
    MachineCosts::read(file).map_err(|error| error.to_string())
}

/// Reads the text of a scenario file as `caribou simulate file` does, and returns the number of combinations of swept
/// values that it describes. Files that it names are not read.
///
/// # Errors
/// One line with the line of the text, the field, and what was expected.
pub fn scenario(text: &str) -> Result<usize, String> {
    simulate::scenario(text).map_err(|error| error.to_string())
}

/// Returns the number of hosts in a trace as `--hosts-trace` reads it, and notes about the trace, one line each.
///
/// # Errors
/// The number of a line, and its fault.
pub fn hosts(csv: &str) -> Result<(usize, Vec<String>), (u64, String)> {
    simulate::hosts(csv)
}

/// Runs the command with these arguments. Its output goes to `out`.
fn run(arguments: impl IntoIterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Error> {
    let options = match parse(arguments) {
        Ok(options) => options,
        Err(help) if matches!(help.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(write!(out, "{help}")?);
        }
        Err(error) => return Err(Error::Usage(one_line(&error))),
    };
    match options.command {
        Command::Strategies => {
            Ok(out.write_all(lb_strategies::help(&[&ARRAYS, &POOLS, &SUPERSTEPS]).as_bytes())?)
        }
        Command::Advise(options) => advise::run(&options, out),
        Command::Balance(options) => balance::run(&options, out),
        Command::Calibrate(options) => calibrate::run(&options, out),
        Command::Simulate(options) => simulate::run(&options, out),
        Command::Paper(options) => paper::run(&options, out),
        Command::Trace(command) => trace::run(&command, out),
        Command::Checkpoint(command) => checkpoint::run(&command, out),
        Command::Top(options) => top::run(&options, out),
        Command::Resize(options) => resize::run(&options, out),
    }
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Options, clap::Error> {
    let mut command = with_negatives(Options::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    Options::from_arg_matches(&matches)
}

/// Makes clap report a negative number as a wrong value of an option instead of as an unknown option.
fn with_negatives(command: clap::Command) -> clap::Command {
    let options = |argument: Arg| {
        let negative = argument.get_action().takes_values() && !argument.is_positional();
        argument.allow_negative_numbers(negative)
    };
    command.mut_args(options).mut_subcommands(with_negatives)
}

/// Returns the commands that have this option, as typed on the command line.
fn owners(option: &str, command: &clap::Command, path: &str) -> Vec<String> {
    let has = command
        .get_arguments()
        .any(|argument| argument.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long)));
    let below = command.get_subcommands().flat_map(|below| {
        let path = format!("{path} {}", below.get_name());
        owners(option, below, path.trim_start())
    });
    has.then(|| path.to_owned()).into_iter().chain(below).collect()
}

/// Returns the message of clap in one line, without the usage that follows the message.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // The text is the help of a command that needs a subcommand.
        let commands =
            text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let names = commands
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
        let names: Vec<&str> = names.filter(|name| *name != "help").collect();
        return format!("no command; expected one of {} (--help explains)", names.join(", "));
    }
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && let owners = owners(option, &Options::command(), "")
        && !owners.is_empty()
    {
        return format!("unexpected argument '{option}' found: it is an option of {}", owners.join(", "));
    }
    // The two lists of runs are positional, so clap takes a single one for the second list.
    if error.kind() == ErrorKind::MissingRequiredArgument && text.contains("<BEFORE>") {
        return "two runs are needed: caribou trace diff BEFORE AFTER".to_owned();
    }
    let lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
