//! Runs programs of the shape *arrays of chunks*: the function [`run`], and [`ArrayProgram`], which implements
//! [`Shape`].

use std::sync::Arc;

use lb_strategies::Strategy;

use super::api::setup::Setup;
#[cfg(feature = "mpi")]
use super::core::codec::ArrayCodec;
use super::core::lifecycle::erased::RankSetup;
use super::core::packet::Packet;
use super::exec::build::{Beginning, set_up};
use super::exec::simulation;
use super::exec::start::Start;
use super::report::{Figures, Report};
use crate::config::Config;
use crate::error::Error;
use crate::ids::Rank;
use crate::run::context::RankContext;
#[cfg(feature = "mpi")]
use crate::run::job::Runtime;
use crate::run::run_shape;
use crate::run::shape::{ReadyRank, Shape};
use crate::threads::elided_mutex::Owner;
use crate::warn::warn;

/// Runs a program until one of its chunks ends it: by [`Ctx::exit`](crate::Ctx::exit) or
/// [`exit_with`](crate::Ctx::exit_with), a reduction to [`Target::Exit`](crate::Target::Exit), a reply to
/// [`ReplyTo::run`](crate::ReplyTo::run), or with an error by [`Ctx::fail`](crate::Ctx::fail).
///
/// `setup` is called once on every rank and must do the same on all of them. If the program is started by `mpirun` or
/// `srun` and built with the feature `mpi`, this process is one rank of the run. Every process must then call `run`
/// with the same configuration, on its main thread. All calls return together, but each process has its own memory.
/// Data that a handler stores outside its chunk is only in the process of the chunk, see [`Config::launch`]. The
/// differences between processes are in [`Report`].
///
/// # Errors
/// A handler that panicked, a run that has stalled, a message or chunk that cannot be encoded and decoded,
/// contributions that do not agree, a process that was killed: see [`Error`]. The first error ends the run on all
/// ranks.
#[expect(clippy::needless_pass_by_value, reason = "a configuration is built where it is used")]
pub fn run(config: Config, setup: impl Fn(&mut Setup) + Send + Sync) -> Result<Report, Error> {
    run_arrays(&config, &ArrayProgram::new(&config, setup)?)
}

/// As [`run`], for a program of another shape that is built on arrays. Such a program has its own policy, and its
/// arrays do not sync. All processes must run the program with the same `text`.
pub(crate) fn run_layered(
    config: &Config,
    shape: lb_strategies::Shape,
    text: String,
    setup: impl Fn(&mut Setup) + Send + Sync,
) -> Result<Report, Error> {
    let strategy = lb_strategies::ARRAYS.default_policy().into();
    // Such a program saves itself.
    let own = config.clone().without_checkpoints();
    run_arrays(config, &ArrayProgram { describe: setup_function(setup), shape, text, strategy, config: own })
}

fn run_arrays<D>(config: &Config, arrays: &ArrayProgram<D>) -> Result<Report, Error>
where
    D: Fn(Rank, u32) -> Described + Send + Sync,
{
    let report = match config.simulates()? {
        Some(seed) => {
            simulation::run(&arrays.config, &arrays.strategy, seed, arrays.lb(config), &arrays.describe)
        }
        None => run_shape(config, arrays).map(|(run, ranks)| Report::new(run, ranks)),
    }?;
    arrays.config.finish_checkpoints();
    if config.launch().speaks() {
        warn_of_undelivered(&report);
    }
    Ok(report)
}

/// Warns once if messages were not delivered.
fn warn_of_undelivered(report: &Report) {
    if report.undelivered.messages > 0 {
        warn(&report.undelivered.to_string());
    }
}

#[cfg(feature = "mpi")]
impl Runtime {
    /// As [`caribou::run`](crate::run()), with the processes of the communicator as ranks. Collective.
    ///
    /// # Errors
    /// As [`caribou::run`](crate::run()).
    pub fn run(
        &mut self,
        config: &Config,
        setup: impl Fn(&mut Setup) + Send + Sync,
    ) -> Result<Report, Error> {
        let arrays = ArrayProgram::new(config, setup)?;
        let (run, ranks) = self.run_shape(config, &arrays)?;
        arrays.config.finish_checkpoints();
        let report = Report::new(run, ranks);
        if self.rank() == 0 {
            warn_of_undelivered(&report);
        }
        Ok(report)
    }
}

/// The setup of a rank, or the error in it.
type Described = Result<RankSetup, Error>;

/// The setup of a program of arrays, with its shape and strategy.
pub(crate) struct ArrayProgram<D> {
    describe: D,
    /// The shape of the program, which may be another shape that is built on arrays.
    shape: lb_strategies::Shape,
    /// A description of the program, which must be the same in all processes.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "only processes compare what they run"))]
    text: String,
    strategy: Arc<dyn Strategy>,
    /// The part of the configuration that the setup needs.
    config: Config,
}

impl ArrayProgram<()> {
    pub(crate) fn new(
        config: &Config,
        setup: impl Fn(&mut Setup) + Send + Sync,
    ) -> Result<ArrayProgram<impl Fn(Rank, u32) -> Described + Send + Sync>, Error> {
        let (shape, strategy) = (lb_strategies::Shape::Arrays, config.balance_arrays()?);
        let config = config.with_chosen_checkpoint()?;
        let text = config.going_on(shape.programs().into());
        Ok(ArrayProgram { describe: setup_function(setup), shape, text, strategy, config })
    }
}

impl<D: Fn(Rank, u32) -> Described + Sync> Shape for ArrayProgram<D> {
    type Packet = Packet;
    type Figures = Figures;
    type Rank<'s>
        = ReadyArrays
    where
        Self: 's;

    fn recorded(&self) -> lb_strategies::Shape {
        self.shape
    }

    #[cfg(feature = "mpi")]
    fn text(&self) -> String {
        self.text.clone()
    }

    fn lb<'c>(&self, config: &'c Config) -> &'c str {
        config.lb_spec(self.shape)
    }

    fn size(&self, config: &Config) -> (u32, u32) {
        (config.rank_count(), config.worker_count())
    }

    fn sleepers(&self, workers: u32) -> u32 {
        workers
    }

    /// The thread that drives the rank is also its worker 0.
    fn driver_thread_name(&self, rank: Rank) -> String {
        format!("caribou {rank}.0")
    }

    fn set_up(&self, rank: Rank, ranks: u32) -> Result<ReadyArrays, Error> {
        // Enter before chunks are made, because the elided locks of their containers get the tag of this owner.
        let owner = Owner::new();
        owner.enter();
        let (described, beginning) = set_up(rank, ranks, &self.config, &*self.strategy, &self.describe)?;
        Ok(ReadyArrays { described, beginning, strategy: self.strategy.clone() })
    }
}

/// The arrays of one rank, and the chunks that start there.
pub(crate) struct ReadyArrays {
    described: RankSetup,
    beginning: Beginning,
    strategy: Arc<dyn Strategy>,
}

impl ReadyRank for ReadyArrays {
    type Packet = Packet;
    type Figures = Figures;
    #[cfg(feature = "mpi")]
    type Codec = ArrayCodec;

    #[cfg(feature = "mpi")]
    fn codec(&self, rank: Rank) -> ArrayCodec {
        ArrayCodec::new(rank, self.described.arrays.clone())
    }

    fn run(self, seat: RankContext<'_, Packet>) -> Figures {
        let ReadyArrays { described, beginning, strategy } = self;
        Start { seat, described, beginning, strategy }.run()
    }
}

/// A function that calls `setup` for a rank and a number of ranks, and returns the setup that it describes.
fn setup_function(setup: impl Fn(&mut Setup) + Send + Sync) -> impl Fn(Rank, u32) -> Described + Send + Sync {
    move |rank, ranks| {
        let mut described = Setup::new(rank, ranks);
        setup(&mut described);
        described.finish()
    }
}
