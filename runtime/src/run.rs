//! Starts a run: its ranks as threads of this process, or this process as one of the ranks.

pub(crate) mod pool;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread;

use lb_strategies::Strategy;

use crate::api::setup::Setup;
use crate::config::Config;
#[cfg(feature = "mpi")]
use crate::core::codec::ArrayCodec;
use crate::core::erased::Described;
use crate::core::packet::Packet;
use crate::error::Error;
use crate::exec::build::{NewChunk, create_chunks};
use crate::exec::clock::Clock;
use crate::exec::crew::Crew;
use crate::exec::gate::Gate;
use crate::exec::guarded::Badge;
use crate::exec::room::find_room;
use crate::exec::shared::Outcome;
use crate::exec::start::{Seat, Start, thread_refused};
use crate::exec::watchdog::Watchdog;
use crate::exec::{simulation, threads};
use crate::ids::Rank;
use crate::launch::Launch;
use crate::measure::topology;
use crate::measure::topology::plan::{Plan, plan};
use crate::measure::watch::Watch;
use crate::report::Report;
use crate::trace::End;
use crate::trace::session::{RunName, Session};
use crate::transport::Transport;
use crate::transport::local::{Local, Wake};
use crate::warn::warn;
#[cfg(feature = "mpi")]
use crate::wire::codec::Codec;

/// Runs a program until one of its chunks calls [`Ctx::exit`](crate::Ctx::exit).
///
/// `setup` is called once on every rank and must do the same on all of them. Started by `mpirun` or `srun`, and built with
/// the feature `mpi`, this process is one rank of the run: every process must call `run` with the same configuration, on
/// its main thread. All return together, but each has its own memory: what handlers stored for the program is in the
/// process of their chunk alone, see [`Config::launch`]; what else differs is said at [`Report`].
///
/// A run on two ranks takes some 1.2<!-- start.run-2-ranks --> ms to start and to end, one on many ranks more.
///
/// # Errors
/// A handler that panicked, a run that has stalled, a message or chunk that does not survive encoding, contributions that
/// do not agree, a process that was killed: see [`Error`]. The first one ends the run on all ranks.
#[expect(clippy::needless_pass_by_value, reason = "a configuration is built where it is used")]
pub fn run(config: Config, setup: impl Fn(&mut Setup) + Send + Sync) -> Result<Report, Error> {
    let arrays = Arrays::new(&config, setup)?;
    let report = match config.simulates()? {
        Some(seed) => simulation::run(&config, &arrays.strategy, seed, &arrays.describe),
        None => run_shape(&config, &arrays),
    }?;
    if config.launch().speaks() {
        warn_of_undelivered(&report);
    }
    Ok(report)
}

/// Says once that messages reached nobody, if there were any.
pub(crate) fn warn_of_undelivered(report: &Report) {
    if report.undelivered.messages > 0 {
        warn(&report.undelivered.to_string());
    }
}

/// One shape of program, as its ranks run it.
pub(crate) trait Shape: Sync {
    /// What its ranks say to each other.
    type Packet: Send;

    /// A rank that is set up.
    type Rank<'s>: ReadyRank<Packet = Self::Packet>
    where
        Self: 's;

    /// Its name in records.
    fn name(&self) -> &'static str;

    /// What it is, in one line: the same on every rank.
    #[cfg(feature = "mpi")]
    fn text(&self) -> String;

    /// The strategy that balances it, as it was given.
    fn lb<'c>(&self, config: &'c Config) -> &'c str;

    /// Ranks in one process, and the workers of each.
    fn size(&self, config: &Config) -> (u32, u32);

    /// Threads of a rank that sleep and are woken; the first of them drives its transport.
    fn sleepers(&self, workers: u32) -> u32;

    /// The name of the thread that drives a rank's transport.
    fn name_of_driver(&self, rank: Rank) -> String;

    /// What a rank makes before the run begins, on the thread that will run it.
    fn set_up(&self, rank: Rank, ranks: u32) -> Result<Self::Rank<'_>, Error>;
}

/// A rank that is set up.
pub(crate) trait ReadyRank {
    type Packet;

    #[cfg(feature = "mpi")]
    type Codec: Codec<Packet = Self::Packet>;

    /// Encodes and decodes what it says to other processes and hears of them.
    #[cfg(feature = "mpi")]
    fn codec(&self, rank: Rank) -> Self::Codec;

    /// Runs it, with the calling thread as the one that drives its transport.
    fn run(self, seat: Seat<'_, Self::Packet>);
}

/// Runs a program with the ranks that the configuration and the launcher say.
pub(crate) fn run_shape(config: &Config, shape: &impl Shape) -> Result<Report, Error> {
    match config.launch() {
        Launch::Alone => run_threads(config, shape),
        Launch::Together { process, processes } => run_process(config, process, processes, shape),
    }
}

/// Arrays of chunks.
pub(crate) struct Arrays<D> {
    describe: D,
    strategy: Arc<dyn Strategy>,
}

impl Arrays<()> {
    pub(crate) fn new(
        config: &Config,
        setup: impl Fn(&mut Setup) + Send + Sync,
    ) -> Result<Arrays<impl Fn() -> Result<Described, Error> + Send + Sync>, Error> {
        Ok(Arrays { describe: describing(setup), strategy: config.balance_arrays()? })
    }
}

impl<D: Fn() -> Result<Described, Error> + Sync> Shape for Arrays<D> {
    type Packet = Packet;
    type Rank<'s>
        = ArraysOfRank
    where
        Self: 's;

    fn name(&self) -> &'static str {
        "arrays"
    }

    #[cfg(feature = "mpi")]
    fn text(&self) -> String {
        "arrays of chunks".into()
    }

    fn lb<'c>(&self, config: &'c Config) -> &'c str {
        config.lb_spec(lb_strategies::Shape::Arrays)
    }

    fn size(&self, config: &Config) -> (u32, u32) {
        (config.rank_count(), config.worker_count())
    }

    fn sleepers(&self, workers: u32) -> u32 {
        workers
    }

    /// It is worker 0 as well.
    fn name_of_driver(&self, rank: Rank) -> String {
        format!("caribou {rank}.0")
    }

    fn set_up(&self, rank: Rank, ranks: u32) -> Result<ArraysOfRank, Error> {
        // Chunks are made with the badge on: what they are kept in asks for it.
        let badge = Badge::new();
        badge.wear();
        let (described, chunks) = set_up(rank, ranks, &self.describe)?;
        Ok(ArraysOfRank { described, chunks, strategy: self.strategy.clone() })
    }
}

/// The arrays of one rank, and the chunks that start there.
pub(crate) struct ArraysOfRank {
    described: Described,
    chunks: Vec<NewChunk>,
    strategy: Arc<dyn Strategy>,
}

impl ReadyRank for ArraysOfRank {
    type Packet = Packet;
    #[cfg(feature = "mpi")]
    type Codec = ArrayCodec;

    #[cfg(feature = "mpi")]
    fn codec(&self, rank: Rank) -> ArrayCodec {
        ArrayCodec::new(rank, self.described.arrays.clone())
    }

    fn run(self, seat: Seat<'_, Packet>) {
        let ArraysOfRank { described, chunks, strategy } = self;
        Start { seat, described, chunks, strategy }.run();
    }
}

/// What a setup function describes.
fn describing(
    setup: impl Fn(&mut Setup) + Send + Sync,
) -> impl Fn() -> Result<Described, Error> + Send + Sync {
    move || {
        let mut described = Setup::default();
        setup(&mut described);
        described.finish()
    }
}

#[cfg(feature = "mpi")]
fn run_process(config: &Config, _process: u32, _processes: u32, shape: &impl Shape) -> Result<Report, Error> {
    crate::job::run_in_world(config, shape)
}

#[cfg(not(feature = "mpi"))]
fn run_process(_config: &Config, process: u32, processes: u32, _shape: &impl Shape) -> Result<Report, Error> {
    let why = format!(
        "this is process {process} of {processes}, but the program was built without MPI: build it with \
         `--features mpi` (in a crate of your own after `[features] mpi = [\"caribou/mpi\"]`), or set `threads` to run \
         each process by itself"
    );
    Err(Error::Config { setting: "CARIBOU_PROCESSES".into(), why })
}

/// The chunks of a rank and what they belong to.
fn set_up(
    rank: Rank,
    ranks: u32,
    describe: &(dyn Fn() -> Result<Described, Error> + Sync),
) -> Result<(Described, Vec<NewChunk>), Error> {
    let built = catch_unwind(AssertUnwindSafe(|| {
        let described = describe()?;
        let chunks = create_chunks(&described.arrays, rank, ranks);
        Ok((described, chunks))
    }));
    built.unwrap_or_else(|panic| Err(setup_panicked(rank, &*panic)))
}

/// A panic in the setup function, or where a chunk was made.
fn setup_panicked(rank: Rank, panic: &(dyn std::any::Any + Send)) -> Error {
    Error::HandlerPanicked {
        rank: rank.0,
        chunk: "none yet".into(),
        message: "setup".into(),
        phase: 0,
        panic: threads::text_of(panic),
    }
}

/// What all ranks of a process share while they start.
struct Process<'p, S> {
    config: &'p Config,
    shape: &'p S,
    plan: Plan,
    watch: Watch,
    ranks: u32,
    /// All ranks are set up: the run begins.
    begin: Gate,
    clock: OnceLock<Clock>,
    outcome: Arc<Outcome>,
    session: Arc<Session>,
}

fn run_threads<S: Shape>(config: &Config, shape: &S) -> Result<Report, Error> {
    let (ranks, workers) = shape.size(config);
    find_room(ranks, workers)?;
    let plan = plan(&vec![topology::place(Some(workers)); ranks as usize], config.pin)?;
    let process = Process {
        config,
        shape,
        session: Session::begin(config, shape.name(), shape.lb(config), &plan, RunName::new(config)),
        plan,
        watch: Watch::start(),
        ranks,
        begin: Gate::new(ranks),
        clock: OnceLock::new(),
        outcome: Arc::default(),
    };
    tracing::info!(lb = shape.lb(config), "{}", process.plan);
    let _monitor = process.session.monitored(config, 0)?;
    let watched = process.session.clone();
    let _watchdog = Watchdog::start(config, &process.outcome, move || watched.running());
    let crews: Vec<Arc<Crew>> = (0..ranks).map(|_| Arc::new(Crew::new(shape.sleepers(workers)))).collect();
    let wake = |crew: &Arc<Crew>| {
        let crew = crew.clone();
        Arc::new(move || {
            crew.sleepers[0].wake();
        }) as Wake
    };
    let all = &crews[..];
    let transports = Local::connect(&crews.iter().map(wake).collect::<Vec<_>>());
    thread::scope(|scope| {
        for ((rank, crew), transport) in (0..).map(Rank).zip(all).zip(transports) {
            let process = &process;
            let builder = thread::Builder::new().name(process.shape.name_of_driver(rank));
            let run = move || process.run_rank(rank, crew.clone(), transport);
            let started = builder.spawn_scoped(scope, move || {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                    let why = format!("its thread panicked: {}", threads::text_of(&*panic));
                    process.fail(Error::System { what: format!("rank {rank}"), why });
                    // Nobody is left who could tell them in order.
                    all.iter().for_each(|crew| crew.stop());
                }
            });
            if let Err(why) = started {
                process.fail(thread_refused(rank, &why));
            }
        }
    });
    let result = process.outcome.result();
    let end = End {
        elapsed_ns: process.outcome.elapsed_ns(),
        failed: result.as_ref().err().map(ToString::to_string),
        ..End::default()
    };
    let profiles = process.session.end(&end);
    let run = process.session.run().clone();
    result.map(|report| process.plan.described_in(Report { run, profiles, ..report }))
}

impl<S: Shape> Process<'_, S> {
    /// The main function of a rank, on the thread that drives its transport.
    fn run_rank(&self, rank: Rank, crew: Arc<Crew>, transport: Local<S::Packet>) {
        let ready = match self.shape.set_up(rank, self.ranks) {
            Ok(ready) => ready,
            Err(error) => return self.fail(error),
        };
        if !self.begin.pass() {
            return;
        }
        ready.run(Seat {
            config: self.config,
            rank,
            plan: &self.plan,
            watch: &self.watch,
            crew,
            clock: self.clock.get_or_init(Clock::machine).clone(),
            outcome: self.outcome.clone(),
            session: &self.session,
            transport: (self.ranks > 1).then(|| Box::new(transport) as Box<dyn Transport<_>>),
        });
    }

    /// The run does not begin.
    fn fail(&self, error: Error) {
        self.outcome.fail(error);
        self.begin.fail();
    }
}
