//! The options that every program here has (strategies, ranks, disturbances, files), and the whole of a command line.

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

/// The options of all programs. What is not given comes from `CARIBOU_*`, then from the program. Where a default is of the
/// shape, [`Shape::HELP`] tells it.
#[derive(Clone, Debug, Default, Args)]
// A program's options may have this name too.
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
    /// A busy process on the vCPU of that rank's first worker, for the iterations FROM to TO (of a pool: from
    /// percent to percent of it), asking for DUTY of that vCPU (0.5 or 50%), or as RANK:random:SEED: busy and quiet
    /// in turns, for 0.2 to 3 seconds each, at random by seed; repeatable
    #[arg(long, value_name = "RANK[:FROM-TO][:DUTY]", value_parser = NeighbourSpec::parse)]
    pub neighbour: Vec<NeighbourSpec>,
    /// Limit that rank's workers to PERCENT of their vCPUs, where control groups are writable; repeatable
    #[arg(long, value_name = "RANK:PERCENT", value_parser = QuotaSpec::parse)]
    pub quota: Vec<QuotaSpec>,
    /// Write checkpoints to DIR, one every TIME (ms, s, m or h), and keep the last COUNT; SIGTERM and SIGUSR1 make one
    /// at once and end the run with exit code 75 [default: CARIBOU_CHECKPOINT]
    #[arg(long, value_name = "DIR[,every=TIME][,keep=COUNT]", value_parser = str::parse::<Checkpoints>)]
    pub checkpoint: Option<Checkpoints>,
    /// Go on from the newest checkpoint in DIR, or from DIR if it is one; `auto`: from the newest of --checkpoint, or
    /// from the beginning if there is none [default: CARIBOU_RESTART]
    #[arg(long, value_name = "DIR|auto")]
    pub restart: Option<PathBuf>,
    /// With --checkpoint: end as at SIGTERM when the metadata service of this cloud says that it takes the machine back;
    /// `auto`: of the first that answers [default: CARIBOU_SPOT]
    #[arg(long, value_name = "none|auto|aws|gcp|azure", value_parser = str::parse::<Spot>)]
    pub spot: Option<Spot>,
    /// Plot the time of each iteration (of a pool: of each percent of it)
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write the numbers of the table, and all that they are made of
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
}

impl Options {
    /// `config`, which comes from the environment, with the options applied.
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

    /// The error, with the options that were given in the place of their variables.
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

    /// Disturbances of each run, but for slow ranks.
    #[must_use]
    pub fn disturbances(&self) -> Disturbances {
        let (neighbours, quotas) = (self.neighbour.clone(), self.quota.clone());
        Disturbances { neighbours, quotas, slowed: Vec::new() }
    }

    /// The files for the plot and the numbers, open.
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
    /// Of this program.
    pub own: P::Options,
    /// Of its shape.
    pub of_shape: <P::Shape as Shape>::Options,
    /// Of all programs.
    pub shared: Options,
}

impl<P: Program> Parser for CommandLine<P> {}

impl<P: Program> CommandFactory for CommandLine<P> {
    fn command() -> Command {
        let own = P::Options::command().name(P::NAME);
        let (about, long_about) = (own.get_about().cloned(), own.get_long_about().cloned());
        let whole = Options::augment_args(<P::Shape as Shape>::Options::augment_args(own));
        // Options bring descriptions of their own, which are not the program's.
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
