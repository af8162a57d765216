//! Implements `caribou calibrate`: measures on this machine what the runtime costs, for simulations.
//!
//! | module | purpose |
//! |---|---|
//! | `machine_costs` | the file of costs, and how a simulation takes them |
//! | `ring`, `nomads`, `sleeper` | small programs that load one part of the runtime each |
//! | `spent`, `clock` | the CPU time of these programs |
//! | `round` | measures each cost once |
//! | `summary` | medians and spreads of all rounds, the table, and warnings |

mod clock;
mod machine_costs;
mod nomads;
mod ring;
mod round;
mod sleeper;
mod spent;
mod summary;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use presentation::count_parser;

pub use self::machine_costs::{Machine, MachineCosts, RuntimeCosts};
use self::round::Round;
use self::summary::Summary;
use crate::{Error, output};

/// The options of the command.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// File for the costs.
    #[arg(long, value_name = "FILE.toml", default_value = "calibration.toml")]
    out: PathBuf,
    /// Time to measure; the round in progress is completed.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = count_parser(1..=3600u64))]
    seconds: u64,
    /// Ranks: 2 measure messages, moves and syncs between two ranks; 1 leaves these costs 0. If not given 2, or 1 where
    /// the process has one vCPU.
    #[arg(long, value_name = "COUNT", value_parser = count_parser(1..=2u32))]
    ranks: Option<u32>,
}

const AFTER_HELP: &str = "\
Runs small programs in turn, again and again, and prints the median of each cost, with its middle half as spread. Stop
other programs first: a line tells if the machine was busy.

Measure for 30 seconds
  caribou calibrate --out calibration.toml
Then simulate with these costs: ranks of one host, so threads of a process
  caribou simulate array --ranks 2 --workers 1 --ranks-per-host 2 --period 1,5,20,100 --costs calibration.toml";

/// Measures, prints a table, and writes the file.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    output::check(&options.out)?;
    let vcpus = caribou::machine::vcpus().len() as u32;
    let ranks = options.ranks.unwrap_or(vcpus.min(2));
    let rounds = rounds(ranks, Duration::from_secs(options.seconds))?;
    let summary = Summary::of(&rounds, vcpus, ranks);
    summary.write(out)?;
    summary.check()?;
    let machine = Machine {
        name: summary::machine_name(),
        vcpus,
        ranks,
        date: summary::today(),
        caribou: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let costs = MachineCosts { machine, costs: summary.costs() };
    output::write(&options.out, costs.to_toml())?;
    Ok(writeln!(out, "written to {}", options.out.display())?)
}

/// Measures until the time is over, at least one round.
#[expect(clippy::disallowed_methods, reason = "the command measures for a given time")]
fn rounds(ranks: u32, time: Duration) -> Result<Vec<Round>, Error> {
    let begin = Instant::now();
    let bar = bar(time);
    let mut rounds = Vec::new();
    while rounds.is_empty() || begin.elapsed() < time {
        let step = || bar.set_position(begin.elapsed().as_secs());
        let round =
            round::run(ranks, &step).map_err(|error| Error::Failed(format!("a run failed: {error}")))?;
        rounds.push(round);
    }
    bar.finish_and_clear();
    Ok(rounds)
}

/// A progress bar of seconds, on a terminal.
fn bar(time: Duration) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(time.as_secs()), target);
    if let Ok(style) = ProgressStyle::with_template("measuring {wide_bar} {pos} of {len} s") {
        bar.set_style(style);
    }
    bar
}
