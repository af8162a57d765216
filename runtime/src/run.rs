//! Starts a run: its ranks as threads of this process, or this process as one of the ranks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread;

use crate::api::setup::Setup;
use crate::config::Config;
use crate::core::erased::Described;
use crate::error::Error;
use crate::exec::build::{NewChunk, create_chunks};
use crate::exec::clock::Clock;
use crate::exec::gate::Gate;
use crate::exec::guarded::Badge;
use crate::exec::shared::{Crew, Outcome};
use crate::exec::start::{Start, thread_refused};
use crate::exec::{simulation, threads};
use crate::ids::Rank;
use crate::launch::Launch;
use crate::measure::topology;
use crate::measure::topology::layout::layout;
use crate::measure::topology::plan::{Place, Plan, plan};
use crate::report::Report;
use crate::transport::Transport;
use crate::transport::local::{Local, Wake};

/// Runs a program until one of its chunks calls [`Ctx::exit`](crate::Ctx::exit).
///
/// `setup` is called once on every rank and must do the same on all of them. Started by `mpirun` or `srun`, and built with
/// the feature `mpi`, this process is one rank of the run: every process must call `run` with the same configuration, on
/// its main thread. All return together; what else differs is said at [`Report`].
///
/// # Errors
/// A handler that panicked, a run that has stalled, a message or chunk that does not survive encoding, contributions that
/// do not agree, a process that was killed: see [`Error`]. The first one ends the run on all ranks.
#[expect(clippy::needless_pass_by_value, reason = "a configuration is built where it is used")]
pub fn run(config: Config, setup: impl Fn(&mut Setup) + Send + Sync) -> Result<Report, Error> {
    let describe = describing(setup);
    match (config.simulate, config.launch()) {
        (Some(seed), _) => simulation::run(&config, seed, &describe),
        (None, Launch::Alone) => run_threads(&config, &describe),
        (None, Launch::Together { process, processes }) => {
            run_process(&config, process, processes, &describe)
        }
    }
}

/// What a setup function describes.
pub(crate) fn describing(setup: impl Fn(&mut Setup) + Send + Sync) -> impl Fn() -> Described + Send + Sync {
    move || {
        let mut described = Setup::default();
        setup(&mut described);
        described.finish()
    }
}

#[cfg(feature = "mpi")]
fn run_process(
    config: &Config,
    _process: u32,
    _processes: u32,
    describe: &(dyn Fn() -> Described + Sync),
) -> Result<Report, Error> {
    crate::job::run_in_world(config, describe)
}

#[cfg(not(feature = "mpi"))]
fn run_process(
    _config: &Config,
    process: u32,
    processes: u32,
    _describe: &(dyn Fn() -> Described + Sync),
) -> Result<Report, Error> {
    let why = format!(
        "this is process {process} of {processes}, but the program was built without MPI: build it with \
         `--features mpi`, or set `threads` to run each process by itself"
    );
    Err(Error::Config { setting: "CARIBOU_PROCESSES".into(), why })
}

/// What a rank sets up before the run begins.
pub(crate) fn set_up(
    rank: Rank,
    ranks: u32,
    describe: &(dyn Fn() -> Described + Sync),
) -> Result<(Described, Vec<NewChunk>), Error> {
    let built = catch_unwind(AssertUnwindSafe(|| {
        let described = describe();
        let chunks = create_chunks(&described.arrays, rank, ranks);
        (described, chunks)
    }));
    built.map_err(|panic| setup_panicked(rank, &*panic))
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
struct Process<'p> {
    config: &'p Config,
    describe: &'p (dyn Fn() -> Described + Sync),
    plan: Plan,
    ranks: u32,
    /// All ranks are set up: the run begins.
    begin: Gate,
    clock: OnceLock<Clock>,
    outcome: Arc<Outcome>,
}

fn run_threads(config: &Config, describe: &(dyn Fn() -> Described + Sync)) -> Result<Report, Error> {
    let (ranks, workers) = (config.rank_count(), config.worker_count());
    let vcpus = layout(&topology::allowed_vcpus());
    let place = Place { host: topology::host_name(), vcpus, workers: Some(workers) };
    let process = Process {
        config,
        describe,
        plan: plan(&vec![place; ranks as usize], config.pin)?,
        ranks,
        begin: Gate::new(ranks),
        clock: OnceLock::new(),
        outcome: Arc::default(),
    };
    tracing::info!(lb = config.lb_spec(), "{}", process.plan);
    let crews: Vec<Arc<Crew>> = (0..ranks).map(|_| Arc::new(Crew::new(workers))).collect();
    let wake = |crew: &Arc<Crew>| {
        let crew = crew.clone();
        Arc::new(move || {
            crew.sleepers[0].wake();
        }) as Wake
    };
    let transports = Local::connect(&crews.iter().map(wake).collect::<Vec<_>>());
    thread::scope(|scope| {
        for ((rank, crew), transport) in (0..).map(Rank).zip(crews).zip(transports) {
            let process = &process;
            let builder = thread::Builder::new().name(format!("caribou {rank}.0"));
            let started = builder.spawn_scoped(scope, move || process.run_rank(rank, crew, transport));
            if let Err(why) = started {
                process.fail(thread_refused(rank, &why));
            }
        }
    });
    process.outcome.result().map(|report| process.plan.described_in(report))
}

impl Process<'_> {
    /// The main function of a rank: worker 0.
    fn run_rank(&self, rank: Rank, crew: Arc<Crew>, transport: Local) {
        // Chunks are made with the badge on: what they are kept in asks for it.
        let badge = Badge::new();
        badge.wear();
        let (described, chunks) = match set_up(rank, self.ranks, self.describe) {
            Ok(set_up) => set_up,
            Err(error) => return self.fail(error),
        };
        if !self.begin.pass() {
            return;
        }
        let start = Start {
            config: self.config,
            rank,
            plan: &self.plan,
            described,
            chunks,
            crew,
            clock: self.clock.get_or_init(Clock::machine).clone(),
            outcome: self.outcome.clone(),
            transport: (self.ranks > 1).then(|| Box::new(transport) as Box<dyn Transport>),
        };
        start.run();
    }

    /// The run does not begin.
    fn fail(&self, error: Error) {
        self.outcome.fail(error);
        self.begin.fail();
    }
}
