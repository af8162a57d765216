//! Defines the options that all programs share (strategies, ranks, disturbances, files), and the whole command line.

use std::path::PathBuf;

use caribou::Config;
use caribou::checkpoint::Settings as Checkpoints;
use caribou::config::Spot;
use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser};
use presentation::count_parser;

use super::disturbance::{Disturbances, NeighbourSpec, QuotaSpec};
use super::error::Error;
use super::output::Output;
use super::program::Program;
use super::shape::Shape;

/// The options of all programs. An option that is not given comes from its `CARIBOU_*` variable, then from the program.
/// If a default depends on the shape of program, [`Shape::HELP`] holds the help text.
#[derive(Clone, Debug, Default, Args)]
// Clap names a group after its type, and a program's own options may also be named `Options`.
#[group(skip)]
pub struct Options {
    /// Compare every run bit for bit with the serial program; exit code 1 if one differs
    #[arg(long)]
    pub check: bool,
    /// The strategy and its parameters; `help` lists them
    #[arg(long, value_name = "NAME[,KEY=VALUE]", conflicts_with = "compare")]
    pub lb: Option<String>,
    /// Strategies to run one after the other and compare
    #[arg(long, value_name = "LIST")]
    pub compare: Option<String>,
    /// Ranks
    #[arg(long, value_name = "COUNT", value_parser = count_parser(1..=u32::MAX))]
    pub ranks: Option<u32>,
    /// Worker threads of each rank
    #[arg(long, value_name = "COUNT", value_parser = count_parser(1..=u32::MAX))]
    pub workers: Option<u32>,
    /// Run a busy process on the vCPU of that rank's first worker, from iteration FROM to TO (in a pool: from percent
    /// to percent), using DUTY of that vCPU (0.5 or 50%); RANK:random:SEED: busy and quiet in turns, for 0.2 to 3
    /// seconds each, at random by seed; repeatable
    #[arg(long, value_name = "RANK[:FROM-TO][:DUTY]", value_parser = NeighbourSpec::parse)]
    pub neighbour: Vec<NeighbourSpec>,
    /// Limit that rank's workers to PERCENT of their vCPUs, where control groups are writable; repeatable
    #[arg(long, value_name = "RANK:PERCENT", value_parser = QuotaSpec::parse)]
    pub quota: Vec<QuotaSpec>,
    /// Write a checkpoint to DIR every TIME (ms, s, m or h) and keep the last COUNT; SIGTERM and SIGUSR1 write one at
    /// once and end the run with exit code 75 [default: CARIBOU_CHECKPOINT]
    #[arg(long, value_name = "DIR[,every=TIME][,keep=COUNT]", value_parser = str::parse::<Checkpoints>)]
    pub checkpoint: Option<Checkpoints>,
    /// Restart from DIR if it is a checkpoint, else from the newest one in DIR; `auto`: from the newest of
    /// --checkpoint, or from the beginning if there is none [default: CARIBOU_RESTART]
    #[arg(long, value_name = "DIR|auto")]
    pub restart: Option<PathBuf>,
    /// With --checkpoint: end as at SIGTERM when the metadata service of this cloud announces the end of the machine;
    /// `auto`: the first service that answers [default: CARIBOU_SPOT]
    #[arg(long, value_name = "none|auto|aws|gcp|azure", value_parser = str::parse::<Spot>)]
    pub spot: Option<Spot>,
    /// Plot the time of each iteration (in a pool: of each percent)
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write the numbers of the table and the measurements behind them
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
}

impl Options {
    /// Applies the options to `config`, which comes from the environment.
    #[must_use]
    pub fn configure(&self, mut config: Config) -> Config {
        if let Some(workers) = self.workers {
            config = config.workers(workers);
        }
        if let Some(ranks) = self.ranks {
            config = config.ranks(ranks);
        }
        if let Some(settings) = &self.checkpoint {
            config = config.checkpoint(settings.clone());
        }
        if let Some(dir) = &self.restart {
            config = config.restart(dir);
        }
        if let Some(spot) = &self.spot {
            config = config.spot(spot.clone());
        }
        config
    }

    /// Replaces variables in the error by the options that were given instead of them.
    #[must_use]
    pub(super) fn naming_options(&self, error: Error) -> Error {
        let Error::Runtime(caribou::Error::Config { setting, why }) = error else { return error };
        let checkpoint = self.checkpoint.as_ref().map(|_| ("CARIBOU_CHECKPOINT", "--checkpoint"));
        let restart = self.restart.as_ref().map(|_| ("CARIBOU_RESTART", "--restart"));
        let naming = |text: String| {
            let given = checkpoint.into_iter().chain(restart);
            given.fold(text, |text, (variable, option)| text.replace(variable, option))
        };
        caribou::Error::Config { setting: naming(setting), why: naming(why) }.into()
    }

    /// Neighbours and quotas of each run. Slow ranks are options of arrays.
    #[must_use]
    pub fn disturbances(&self) -> Disturbances {
        let (neighbours, quotas) = (self.neighbour.clone(), self.quota.clone());
        Disturbances { neighbours, quotas, slowed: Vec::new() }
    }

    /// Opens the files for the plot and the numbers.
    ///
    /// # Errors
    /// [`Error::Unwritable`], naming the first that cannot be written.
    pub(super) fn files(&self) -> Result<[Option<Output>; 2], Error> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Output::open).transpose();
        Ok([open(&self.plot)?, open(&self.json)?])
    }
}

/// A whole command line: the options of the program, of its shape, of all programs.
pub struct CommandLine<P: Program> {
    /// The program's options.
    pub own: P::Options,
    /// The options of its shape.
    pub of_shape: <P::Shape as Shape>::Options,
    /// The options of all programs.
    pub shared: Options,
}

impl<P: Program> Parser for CommandLine<P> {}

impl<P: Program> CommandFactory for CommandLine<P> {
    fn command() -> Command {
        let own = P::Options::command().name(P::NAME);
        let (about, long_about) = (own.get_about().cloned(), own.get_long_about().cloned());
        let whole = Options::augment_args(<P::Shape as Shape>::Options::augment_args(own));
        // Adding options also sets the description of their struct, so this restores the program's own.
        let whole = whole.about(Resettable::from(about)).long_about(Resettable::from(long_about));
        <P::Shape as Shape>::HELP
            .iter()
            .fold(whole, |whole, &(id, text)| whole.mut_arg(id, |argument| argument.help(text)))
    }

    fn command_for_update() -> Command {
        Self::command()
    }
}

impl<P: Program> FromArgMatches for CommandLine<P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            own: P::Options::from_arg_matches(matches)?,
            of_shape: FromArgMatches::from_arg_matches(matches)?,
            shared: Options::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
