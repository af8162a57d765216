//! The `caribou` command: studies traces and running programs, and balancing strategies offline, with the code that production
//! runs.
//!
//! ```text
//! caribou strategies                                                 what there is, and what can be set
//! caribou balance --chunks 100000 --ranks 1000 --workload ramp       every strategy, one synthetic snapshot
//! caribou balance --trace traces --lb refine,greedy                  what they would have decided in a recorded run
//! caribou balance --snapshot phase-7.json --lb refine,greedy         some strategies on a recorded one
//! caribou simulate pool --scenario F7 --compare static,leases        pools on a cluster in virtual time
//! caribou checkpoint list checkpoints                                what a restart can go on from
//! caribou top localhost:9977                                         a run, while it runs
//! ```
//!
//! It never runs a program and never changes what one does. Bad options and bad files are one line on standard error
//! and exit code 2; a simulated run that left work undone, and an output that was lost on the way (a full disk), one line and
//! exit code 1; a reader that closes the pipe early is not an error.
#![forbid(unsafe_code)]

mod balance;
mod checkpoint;
mod input;
mod output;
mod report;
mod resize;
mod simulate;
mod snapshot_file;
mod top;
mod trace;

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
    /// Run strategies on one snapshot and compare what they make of it.
    Balance(balance::Options),
    /// Run programs on a cluster in virtual time, and compare what policies make of it.
    Simulate(simulate::Options),
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

/// Reasons that the command did not do what was asked.
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
        /// Its fault.
        source: ParseError,
    },
    /// Correct the specification of a policy for pools.
    #[error("--compare {spec:?}: {source}")]
    Policy {
        /// The specification as written.
        spec: String,
        /// Its fault.
        source: ParseError,
    },
    /// Correct the file of host traces.
    #[error(transparent)]
    HostTrace(#[from] simulate::TraceError),
    /// Name a file that can be written.
    #[error("{}: cannot be written: {source}", file.display())]
    Unwritable {
        /// The file named.
        file: std::path::PathBuf,
        /// Message of the system or a library.
        source: io::Error,
    },
    /// Correct the snapshot file.
    #[error(transparent)]
    Snapshot(#[from] snapshot_file::Error),
    /// Choose other policies: these left some of the work undone, as the table says.
    #[error("{incomplete} of {runs} runs are incomplete, first {first}")]
    Incomplete {
        /// Number of them.
        incomplete: usize,
        /// Of how many.
        runs: usize,
        /// The first of them, and its fault.
        first: String,
    },
    /// Name a trace, or one that can be read.
    #[error(transparent)]
    Trace(#[from] trace_reader::TraceError),
    /// Start the program with CARIBOU_MONITOR, or name the address that it has.
    #[error("{address}: {why}")]
    Unreachable {
        /// Address that was asked.
        address: String,
        /// Reason that there was no answer, or not the right one.
        why: String,
    },
    /// Wait, or see what holds the program up.
    #[error("{0}")]
    Unfinished(String),
    /// Do not trust this trace: its faults were reported.
    #[error("{}: {wrong} {} wrong with it", trace.display(), if *wrong == 1 { "thing is" } else { "things are" })]
    Unsound {
        /// The trace named.
        trace: std::path::PathBuf,
        /// Number of them.
        wrong: u64,
    },
    /// The run does not meet the condition that the command checks.
    #[error("{0}")]
    Failed(String),
    /// Nothing was wrong with the input; the output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    /// 1 if there was nothing wrong with the command line or a file named there, but it failed or an output was lost (a full
    /// disk); 2 otherwise.
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

/// The command, with the arguments and the output of this process.
pub fn main() -> ExitCode {
    ended(run(std::env::args_os(), &mut io::stdout().lock())).into()
}

/// Says what went wrong, if anything did; the exit code.
fn ended(ran: Result<(), Error>) -> u8 {
    match ran {
        Ok(()) => 0,
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            // If standard error is closed as well, the exit code is all that is left.
            let _ = writeln!(io::stderr(), "{}", escape_control(&format!("caribou: {error}")));
            error.exit_code()
        }
    }
}

/// A line on standard error for each old name of a parameter in `spec`: the command goes on.
fn warn_of_old_names<P: ?Sized>(table: &Table<P>, spec: &str) {
    for renamed in table.old_names(spec) {
        // If standard error is closed, the error cannot be reported.
        let _ = writeln!(io::stderr(), "caribou: {renamed}");
    }
}

/// The findings of `caribou trace check` in a trace, a line each. It keeps at most `messages_max` messages under way.
pub fn check(trace: &Trace, messages_max: usize) -> Vec<String> {
    trace::check::lines(trace, messages_max)
}

/// Reads a snapshot in JSON as `caribou balance --snapshot` does; or says in a line why it is none.
///
/// # Errors
/// The place in the text, and what was expected there.
pub fn snapshot(json: &[u8]) -> Result<Snapshot, String> {
    snapshot_file::parse(json)
}

/// The number of hosts in a trace as `--hosts-trace` reads it, and the lines that it has to say of them.
///
/// # Errors
/// The number of a line, and its fault.
pub fn hosts(csv: &str) -> Result<(usize, Vec<String>), (u64, String)> {
    simulate::hosts(csv)
}

/// The whole command, with its arguments and output as values.
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
        Command::Balance(options) => balance::run(&options, out),
        Command::Simulate(options) => simulate::run(&options, out),
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

/// A number below 0 is a wrong value of an option, rather than an unknown option.
fn with_negatives(command: clap::Command) -> clap::Command {
    let options = |argument: Arg| {
        let negative = argument.get_action().takes_values() && !argument.is_positional();
        argument.allow_negative_numbers(negative)
    };
    command.mut_args(options).mut_subcommands(with_negatives)
}

/// The commands that have an option, as a person types them.
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

/// Message of clap, without the usage that follows it.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // It is the help, of the command that was not told what to do.
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
    let lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
