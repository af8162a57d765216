//! Starts the ranks of a process, and ends them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;

use crate::api::setup::Setup;
use crate::config::{Config, Pin};
use crate::core::envelope::{Delivery, Payload};
use crate::core::handler::Facts;
use crate::core::rank::RankCore;
use crate::error::Error;
use crate::exec::cells::Cells;
use crate::exec::clock::Clock;
use crate::exec::guarded::{Badge, Guarded};
use crate::exec::ready::{Queues, Ready};
use crate::exec::shared::{Core, Crew, Outcome, RankShared, sharing};
use crate::exec::worker::Worker;
use crate::exec::{simulation, threads};
use crate::ids::{ChunkId, RUNTIME, Rank};
use crate::measure::sample::Gauges;
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
    match config.simulate {
        Some(seed) => simulation::run(&config, seed, &setup),
        None => run_threads(&config, &setup),
    }
}

/// What all ranks of a process share while they start.
struct Process<'p> {
    config: &'p Config,
    setup: &'p (dyn Fn(&mut Setup) + Send + Sync),
    vcpus: Vec<usize>,
    ranks: u32,
    /// All ranks are set up: the run begins.
    begin: Barrier,
    clock: OnceLock<Clock>,
    outcome: Arc<Outcome>,
}

fn run_threads(config: &Config, setup: &(dyn Fn(&mut Setup) + Send + Sync)) -> Result<Report, Error> {
    let (ranks, workers) = (config.rank_count(), config.workers);
    let process = Process {
        config,
        setup,
        vcpus: topology::allowed_vcpus(),
        ranks,
        begin: Barrier::new(ranks as usize),
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
                // The ranks that did start wait at the barrier for ever: there is no way back from here.
                panic!("the system refused thread {rank} of {}: {why}", process.ranks);
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
            let mut setup = Setup::default();
            (self.setup)(&mut setup);
            let chunks = create_chunks(&setup, rank, self.ranks);
            (setup, chunks)
        }));
        self.begin.wait();
        let (setup, chunks) = match built {
            Ok(built) => built,
            Err(panic) => return self.setup_failed(rank, &crew, transport, &*panic),
        };
        let clock = self.clock.get_or_init(Clock::machine).clone();
        let (queues, readies) = Queues::new(workers);
        let spins = if (self.ranks * workers) as usize <= self.vcpus.len() { SPINS } else { 0 };
        let shared = build_rank(
            self.config,
            rank,
            self.ranks,
            setup,
            &badge,
            RankParts { queues, crew, clock, outcome: self.outcome.clone(), spins },
        );
        let transport: Option<Box<dyn Transport>> = (self.ranks > 1).then(|| Box::new(transport) as _);
        let shared = &shared;
        thread::scope(|scope| {
            let mut readies = readies.into_iter();
            let ready = readies.next().expect("a rank has a worker");
            for (id, ready) in (1..).zip(readies) {
                let builder = thread::Builder::new().name(format!("caribou {rank}.{id}"));
                let started = builder.spawn_scoped(scope, move || {
                    self.take_seat(rank, id);
                    self.run_worker(shared, id, ready, None, Vec::new());
                });
                started.unwrap_or_else(|why| panic!("the system refused a thread for rank {rank}: {why}"));
            }
            self.run_worker(shared, 0, ready, transport, chunks);
        });
    }

    fn run_worker(
        &self,
        shared: &RankShared,
        id: u32,
        ready: Ready,
        transport: Option<Box<dyn Transport>>,
        chunks: Vec<NewChunk>,
    ) {
        shared.crew.sleepers[id as usize].occupy();
        shared.gauges.workers[id as usize].occupy(self.seat(shared.facts.rank, id));
        let mut worker = Worker::new(shared, id, ready, transport);
        if shared.measure {
            let speed = Speed::measured();
            shared.gauges.workers[id as usize].set_speed(speed.rounds_per_us());
            worker.speed = Some(speed);
        }
        worker.begin(chunks);
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

    /// A panic in the setup function, or where a chunk was made.
    fn setup_failed(
        &self,
        rank: Rank,
        crew: &Crew,
        mut transport: Local,
        panic: &(dyn std::any::Any + Send),
    ) {
        let error = Error::HandlerPanicked {
            rank: rank.0,
            chunk: "none yet".into(),
            message: "setup".into(),
            phase: 0,
            panic: threads::text_of(panic),
        };
        for other in (0..self.ranks).map(Rank).filter(|&other| other != rank) {
            transport.send(other, crate::core::packet::Packet::Abort(Box::new(error.clone())));
        }
        self.outcome.fail(error);
        crew.stop();
    }
}

/// What differs between a rank of threads and a simulated one.
pub(crate) struct RankParts {
    pub(crate) queues: Queues,
    pub(crate) crew: Arc<Crew>,
    pub(crate) clock: Clock,
    pub(crate) outcome: Arc<Outcome>,
    pub(crate) spins: u32,
}

/// Puts a rank together. Called by the thread that will be its worker 0.
pub(crate) fn build_rank(
    config: &Config,
    rank: Rank,
    ranks: u32,
    setup: Setup,
    badge: &Badge,
    parts: RankParts,
) -> RankShared {
    let checksum = setup.checksum();
    let arrays: Arc<[_]> = setup.arrays.into();
    let workers = config.workers;
    let tag = sharing(workers, badge.tag());
    let core = RankCore::new(rank, ranks, arrays.clone(), config.strategy.clone(), checksum);
    RankShared {
        facts: Facts { rank, ranks, period: config.period, services: setup.services },
        arrays,
        cells: Cells::new(tag),
        core: Guarded::new(tag, Core { rank: core, outbound: Vec::new() }),
        outbound_waits: AtomicBool::new(false),
        queues: parts.queues,
        crew: parts.crew,
        gauges: Gauges::new(workers, config.background),
        clock: parts.clock,
        outcome: parts.outcome,
        wire: config.wire,
        measure: config.measure && config.simulate.is_none(),
        spins: parts.spins,
        checksum,
    }
}

/// A chunk that was made and has no cell yet.
pub(crate) type NewChunk = (ChunkId, Box<dyn crate::core::erased::ErasedSlot>);

/// Makes the chunks that start on `rank`.
pub(crate) fn create_chunks(setup: &Setup, rank: Rank, ranks: u32) -> Vec<NewChunk> {
    let keys = setup.arrays.iter().map(|array| array.keys_on(rank, ranks));
    let chunks = (0..).zip(&setup.arrays).zip(keys);
    let made = chunks.flat_map(|((number, array), keys)| {
        keys.into_iter().map(move |key| (ChunkId { array: number, key }, array.create(key)))
    });
    made.collect()
}

impl Worker<'_> {
    /// The rank's first act: its chunks move in, ready to start, and rank 0 hears what was set up.
    pub(crate) fn begin(&mut self, chunks: Vec<NewChunk>) {
        let shared = self.shared;
        let (workers, count) = (shared.gauges.workers.len(), chunks.len());
        let settle = |(position, (chunk, slot))| {
            let start = Delivery { from: RUNTIME, payload: Payload::Start };
            let (cell, _) = shared.cells.settle(chunk, slot, [start].into());
            let worker = (position * workers / count) as u32;
            shared.cells.get(cell).last_worker.store(worker, std::sync::atomic::Ordering::Relaxed);
            shared.core.lock().rank.created(chunk, cell);
            cell
        };
        // Nobody starts before everybody is here: the first message of the first chunk may be to the last.
        let cells: Vec<_> = chunks.into_iter().enumerate().map(settle).collect();
        cells.into_iter().for_each(|cell| self.put(cell));
        if self.id == 0 {
            self.with_core(|core, _, out| core.hello(shared.checksum, out));
        }
        if self.id == 0 && shared.measure {
            // The first phase begins now: what was before is nobody's load.
            shared.gauges.sample(shared.clock.now_ns());
        }
    }
}
