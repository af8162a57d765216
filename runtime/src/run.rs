//! Starts the ranks of a process, and ends them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread;

use crate::api::setup::Setup;
use crate::config::{Config, Pin};
use crate::core::erased::Described;
use crate::error::Error;
use crate::exec::build::{NewChunk, RankParts, build_rank, create_chunks};
use crate::exec::clock::Clock;
use crate::exec::gate::Gate;
use crate::exec::guarded::Badge;
use crate::exec::ready::{Queues, Ready};
use crate::exec::shared::{Crew, Outcome, RankShared};
use crate::exec::worker::Worker;
use crate::exec::{simulation, threads};
use crate::ids::Rank;
use crate::measure::speed::Speed;
use crate::measure::topology;
use crate::report::Report;
use crate::transport::Transport;
use crate::transport::local::{Local, Wake};

/// Turns an idle worker spins before it parks, where every worker has a vCPU of its own: about 20 us.
const SPINS: u32 = 800;

/// Runs a program until one of its chunks calls [`Ctx::exit`](crate::Ctx::exit).
///
/// `setup` is called once on every rank and must do the same on all of them.
///
/// # Errors
/// A handler that panicked, a run that has stalled, a message or chunk that does not survive encoding, contributions that
/// do not agree: see [`Error`]. The first one ends the run on all ranks.
#[expect(clippy::needless_pass_by_value, reason = "a configuration is built where it is used")]
pub fn run(config: Config, setup: impl Fn(&mut Setup) + Send + Sync) -> Result<Report, Error> {
    let describe = || {
        let mut described = Setup::default();
        setup(&mut described);
        described.finish()
    };
    match config.simulate {
        Some(seed) => simulation::run(&config, seed, &describe),
        None => run_threads(&config, &describe),
    }
}

/// What all ranks of a process share while they start.
struct Process<'p> {
    config: &'p Config,
    describe: &'p (dyn Fn() -> Described + Sync),
    vcpus: Vec<usize>,
    ranks: u32,
    /// All ranks are set up: the run begins.
    begin: Gate,
    clock: OnceLock<Clock>,
    outcome: Arc<Outcome>,
}

fn run_threads(config: &Config, describe: &(dyn Fn() -> Described + Sync)) -> Result<Report, Error> {
    let (ranks, workers) = (config.rank_count(), config.workers);
    let process = Process {
        config,
        describe,
        vcpus: topology::allowed_vcpus(),
        ranks,
        begin: Gate::new(ranks),
        clock: OnceLock::new(),
        outcome: Arc::default(),
    };
    if config.pin == Pin::On && (ranks * workers) as usize > process.vcpus.len() {
        let why = format!("{ranks} ranks x {workers} workers do not fit on {} vCPUs", process.vcpus.len());
        return Err(Error::Config { setting: "CARIBOU_PIN".into(), why });
    }
    tracing::info!(ranks, workers, vcpus = process.vcpus.len(), lb = config.lb_spec(), "in-process ranks");
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
                process
                    .fail(Error::System { what: format!("a thread for rank {rank}"), why: why.to_string() });
            }
        }
    });
    process.outcome.result()
}

impl Process<'_> {
    /// The main function of a rank: worker 0.
    fn run_rank(&self, rank: Rank, crew: Arc<Crew>, transport: Local) {
        let workers = self.config.workers;
        self.take_seat(rank, 0);
        let badge = Badge::new();
        badge.wear();
        let built = catch_unwind(AssertUnwindSafe(|| {
            let described = (self.describe)();
            let chunks = create_chunks(&described.arrays, rank, self.ranks);
            (described, chunks)
        }));
        let (described, chunks) = match built {
            Ok(built) => built,
            Err(panic) => return self.fail(setup_panicked(rank, &*panic)),
        };
        if !self.begin.pass() {
            return;
        }
        let clock = self.clock.get_or_init(Clock::machine).clone();
        let (queues, readies) = Queues::new(workers);
        let spins = if (self.ranks * workers) as usize <= self.vcpus.len() { SPINS } else { 0 };
        let shared = build_rank(
            self.config,
            rank,
            self.ranks,
            described,
            &badge,
            RankParts { queues, crew, clock, outcome: self.outcome.clone(), spins },
        );
        let transport: Option<Box<dyn Transport>> = (self.ranks > 1).then(|| Box::new(transport) as _);
        let shared = &shared;
        thread::scope(|scope| {
            let mut readies = readies.into_iter();
            let ready = readies.next().expect("a rank has a worker");
            let mut refused = None;
            for (id, ready) in (1..).zip(readies) {
                let builder = thread::Builder::new().name(format!("caribou {rank}.{id}"));
                let started = builder.spawn_scoped(scope, move || {
                    self.take_seat(rank, id);
                    self.run_worker(shared, id, ready, None, Vec::new(), None);
                });
                refused = started.err().map(|why| thread_refused(rank, &why)).or(refused);
            }
            self.run_worker(shared, 0, ready, transport, chunks, refused);
        });
    }

    fn run_worker(
        &self,
        shared: &RankShared,
        id: u32,
        ready: Ready,
        transport: Option<Box<dyn Transport>>,
        chunks: Vec<NewChunk>,
        refused: Option<Error>,
    ) {
        shared.crew.sleepers[id as usize].occupy();
        shared.gauges.workers[id as usize].occupy(self.seat(shared.facts.rank, id));
        let mut worker = Worker::new(shared, id, ready, transport);
        if shared.measure {
            let speed = Speed::measured();
            shared.gauges.workers[id as usize].set_speed(speed.rounds_per_us());
            worker.speed = Some(speed);
        }
        worker.catching(|worker| worker.begin(chunks));
        if let Some(error) = refused {
            worker.fail(error);
        }
        worker.work();
    }

    fn seat(&self, rank: Rank, worker: u32) -> Option<usize> {
        if self.config.pin == Pin::Off {
            return None;
        }
        topology::seat(rank.0, worker, self.ranks, self.config.workers, &self.vcpus)
    }

    fn take_seat(&self, rank: Rank, worker: u32) {
        if let Some(vcpu) = self.seat(rank, worker)
            && !topology::pin_to(vcpu)
        {
            tracing::warn!(rank = rank.0, worker, vcpu, "cannot be pinned");
        }
    }

    /// The run does not begin.
    fn fail(&self, error: Error) {
        self.outcome.fail(error);
        self.begin.fail();
    }
}

fn thread_refused(rank: Rank, why: &std::io::Error) -> Error {
    Error::System { what: format!("a thread for rank {rank}"), why: why.to_string() }
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
