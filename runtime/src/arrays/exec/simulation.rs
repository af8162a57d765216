//! Simulates a whole run in one thread and in virtual time, as a deterministic function of a seed. The core, the
//! mailboxes, the handlers and the flush are the production code.
//!
//! | simulated | how |
//! |---|---|
//! | network | seeded delays, see [`Erratic`] |
//! | scheduler | the seed picks the next ready chunk |
//! | order of messages | every order that is not guaranteed is broken |
//! | strategy | the seed picks the time of its decision |
//! | clock | virtual time |

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lb_strategies::Strategy;
use lb_strategies::balancer::RankPlace;
use lb_strategies::virtual_time::{Erratic, Events, Post};
use lb_strategies::window_policy::Look;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use rustc_hash::FxHasher;

use super::build::{Beginning, RankParts, build_rank, name_chunk, set_up};
use super::ready::{ReadyQueue, SharedQueues};
use super::scheduler::Scheduler;
use super::shared::RankShared;
use super::simulated::Simulated;
use super::watermarks;
use super::worker::Worker;
use crate::arrays::core::lifecycle::erased::RankSetup;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::message_list::FreeList;
use crate::arrays::report::{Figures, Report};
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ChunkId, ROOT, RUNTIME, Rank, WorkerId};
use crate::run::context::panicked;
use crate::run::outcome::Outcome;
use crate::run::recording::SAMPLE_GAP_MAX_NS;
use crate::run::report::RunReport;
use crate::run::resize::ResizeRequests;
use crate::run::watchdog::Watchdog;
use crate::threads::clock::Clock;
use crate::threads::elided_mutex::{Owner, Restore};
use crate::threads::team::Team;
use crate::trace::activity_board::ActivitySampler;
use crate::trace::recording::Recording;
use crate::transport::handle::TransportHandle;
use crate::transport::sim::{SimEndpoint, SimTransport};

/// Maximum time of a run of a chunk that declares no load, ns, before the chunk's seeded weight multiplies it.
const RUN_MAX_NS: u64 = 2_000;
const WEIGHT_MAX: u64 = 8;
/// A timed message that is due later than this after the present waits for a deferred decision, ns.
const DECISION_MAX_NS: u64 = 1_000_000;
/// One in this number of steps opens a window, where chunks are balanced in windows.
const WINDOW_EVERY: u32 = 10;
/// In a disturbed run, one in this many runs of a chunk changes the number of active ranks.
const RESIZE_EVERY: u32 = 30;
/// In a disturbed run, a rank stops for a while after one in this many runs of a chunk.
const STOP_EVERY: u32 = 100;
/// The longest of these stops, ns: an hour. The others are shorter by powers of two.
const STOP_MAX_NS: u64 = 3_600_000_000_000;
/// Maximum factor by which runs of chunks are longer on a slow rank.
const SLOWNESS_MAX: u64 = 1_000;
/// After this number of failed searches for quiescence in a row, the simulation itself is at fault.
const SEARCHES_MAX: u32 = 16;

/// Numbers of children per rank in the tree of ranks; the seed picks one. Small numbers make a deep tree of few ranks.
const ARITIES: [u32; 3] = [2, 3, 8];

struct SimRank {
    shared: RankShared,
    owner: Owner,
    now_ns: Arc<AtomicU64>,
}

/// Simulates a run of a program.
pub(crate) fn run(
    config: &Config,
    strategy: &Arc<dyn Strategy>,
    seed: u64,
    lb: &str,
    describe: &dyn Fn(Rank, u32) -> Result<RankSetup, Error>,
) -> Result<Report, Error> {
    // A handler may run another simulation.
    let _restore = Restore::later();
    let config = config.clone().workers(1);
    let count = config.rank_count();
    let run = RunReport::of_simulation(seed, (count, 1), lb);
    let outcome: Arc<Outcome> = Arc::default();
    let recordings: Vec<_> =
        (0..count).map(|rank| Arc::new(Recording::disabled_for(Rank(rank), 1))).collect();
    let build_one =
        |(rank, recording)| build(&config, strategy, Rank(rank), count, describe, &outcome, recording);
    let built: Result<Vec<(SimRank, Beginning)>, Error> = (0..).zip(&recordings).map(build_one).collect();
    let (ranks, beginnings): (Vec<SimRank>, Vec<Beginning>) = built?.into_iter().unzip();
    let mut simulation = Simulation {
        workers: Vec::new(),
        ranks: &ranks,
        idle: vec![true; count as usize],
        mail: Vec::new(),
        post: Post::new(count, Erratic::new(seed)),
        arrivals: Events::default(),
        rng: Pcg32::seed_from_u64(seed ^ 0x5eed),
        weights: config.measure.then_some(seed),
        resizes: config.simulate_disturbed && strategy.terms().moves,
        stops: config.simulate_disturbed.then(|| Stops::new(seed, ranks.len())),
    };
    for ((rank, own), number) in ranks.iter().zip(beginnings).zip(0_u64..) {
        rank.owner.enter();
        let (transport, mail) = SimTransport::connect(None);
        simulation.mail.push(mail);
        let ready = ReadyQueue::seeded(seed.wrapping_mul(31) + number);
        let mut worker =
            Worker::new(&rank.shared, WorkerId(0), ready, Some(TransportHandle::boxed(transport)));
        worker.simulated = Simulated::seeded(seed.wrapping_mul(37) + number);
        worker.begin(own);
        simulation.workers.push(worker);
    }
    // The watchdog uses real time, because it looks for a handler that does not return.
    let (clock, mut sightings) = (Clock::machine(), ActivitySampler::default());
    let look = move || sightings.look(&recordings, clock.now_ns(), SAMPLE_GAP_MAX_NS);
    let _watchdog = Watchdog::start(&config, &outcome, look);
    simulation.drive(&outcome);
    drop(simulation);
    let figures = |(number, rank): (Rank, SimRank)| {
        // Dropping the rank drops user values too, such as services.
        let end = AssertUnwindSafe(move || {
            let SimRank { shared, .. } = rank;
            shared.ending.into_figures()
        });
        catch_unwind(end).unwrap_or_else(|panic| {
            outcome.fail(panicked(number, &*panic));
            Figures::default()
        })
    };
    let figures = (0..).map(Rank).zip(ranks).map(figures).collect();
    if let Some(error) = outcome.error() {
        return Err(error);
    }
    let run = RunReport { wall_ns: outcome.elapsed_ns(), ..run };
    Ok(Report::new(run, figures))
}

fn build(
    config: &Config,
    strategy: &Arc<dyn Strategy>,
    rank: Rank,
    ranks: u32,
    describe: &dyn Fn(Rank, u32) -> Result<RankSetup, Error>,
    outcome: &Arc<Outcome>,
    recording: &Arc<Recording>,
) -> Result<(SimRank, Beginning), Error> {
    let owner = Owner::new();
    owner.enter();
    let (described, beginning) = set_up(rank, ranks, config, &**strategy, describe)?;
    let now_ns = Arc::new(AtomicU64::new(0));
    recording.describe(name_chunk(&described.arrays), strategy.name());
    let parts = RankParts {
        scheduler: Scheduler::new(SharedQueues::default(), Arc::new(Team::new(1)), 0),
        clock: Clock::Virtual { now_ns: now_ns.clone() },
        outcome: outcome.clone(),
        strategy: strategy.clone(),
        recording: recording.clone(),
        places: vec![RankPlace { host: 0, workers: 1 }; ranks as usize].into(),
        crowding: 1,
        resizes: (rank == ROOT).then(|| Arc::new(ResizeRequests::new(ranks))),
        is_layered: true,
        arity: ARITIES[config.simulate.unwrap_or_default() as usize % ARITIES.len()],
    };
    let shared = build_rank(config, rank, described, &owner, parts);
    Ok((SimRank { shared, owner, now_ns }, beginning))
}

struct Simulation<'r> {
    workers: Vec<Worker<'r>>,
    ranks: &'r [SimRank],
    /// By rank: true if the rank has been active since the core was last called for an idle rank.
    idle: Vec<bool>,
    /// The endpoint of each rank, which holds the packets that the rank has sent.
    mail: Vec<SimEndpoint<Packet>>,
    post: Post<Erratic, Packet>,
    /// Sender and receiver of each packet in flight.
    arrivals: Events<(Rank, Rank)>,
    rng: Pcg32,
    /// The seed of the chunks' weights, if loads are measured.
    weights: Option<u64>,
    /// True if the number of active ranks changes at random moments.
    resizes: bool,
    stops: Option<Stops>,
}

/// The slow rank and the stops of a disturbed run.
struct Stops {
    rng: Pcg32,
    /// A rank that is slow all the time, and its factor.
    slow: Option<(usize, u64)>,
}

impl Stops {
    fn new(seed: u64, ranks: usize) -> Stops {
        let mut rng = Pcg32::seed_from_u64(seed ^ 0x5109);
        let slow = rng.random_ratio(1, 2);
        let slow = slow.then(|| (rng.random_range(0..ranks), rng.random_range(2..=SLOWNESS_MAX)));
        Stops { rng, slow }
    }

    /// Time of a run of a chunk that takes `ns` ns undisturbed, with the stop of the rank after it.
    fn slowed_ns(&mut self, rank: usize, ns: u64) -> u64 {
        let times = self.slow.filter(|slow| slow.0 == rank).map_or(1, |slow| slow.1);
        let stop_ns = match self.rng.random_ratio(1, STOP_EVERY) {
            true => STOP_MAX_NS >> self.rng.random_range(0..40),
            false => 0,
        };
        ns * times + stop_ns
    }
}

/// One event of the simulation.
enum Event {
    Step(usize),
    Arrival,
    /// A timed message of this rank is due.
    Due(usize),
    /// The strategy makes the decision that this rank has deferred.
    Decision(usize),
    Idle(usize),
    /// The flow control backoff of this full rank expires at this time.
    Backoff(usize, u64),
    /// No event is left: rank 0 searches for quiescence.
    Nothing,
}

impl Simulation<'_> {
    fn drive(&mut self, outcome: &Outcome) {
        let mut searches = 0;
        while !self.ranks.iter().all(|rank| rank.shared.scheduler.stopped()) {
            match self.next() {
                Event::Step(rank) => {
                    searches = 0;
                    self.step(rank);
                }
                Event::Arrival => self.arrival(),
                Event::Due(rank) => {
                    searches = 0;
                    self.due(rank);
                }
                Event::Decision(rank) => {
                    searches = 0;
                    self.idle[rank] = true;
                    self.on(rank, |worker| worker.decide_at_last());
                }
                Event::Idle(rank) => {
                    self.idle[rank] = false;
                    self.on(rank, |worker| {
                        worker.report_bytes();
                        if !worker.has_chunks_to_run() {
                            let shared = worker.shared;
                            worker.with_core(|core, now_ns, out| watermarks::idle(shared, core, now_ns, out));
                        }
                    });
                }
                Event::Backoff(rank, until_ns) => {
                    self.ranks[rank].now_ns.fetch_max(until_ns, Ordering::Relaxed);
                    self.idle[rank] = true;
                }
                Event::Nothing => {
                    // While a decision is deferred any number of searches may fail.
                    searches += u32::from(self.undecided().is_none());
                    if searches > SEARCHES_MAX {
                        let why = "the search for quiescence does not end".into();
                        return outcome.fail(Error::System { what: "simulation".into(), why });
                    }
                    self.idle.fill(true);
                    self.on(0, |worker| worker.with_core(|core, _, out| core.suspect(out)));
                    continue;
                }
            }
        }
        (0..self.workers.len()).for_each(|rank| self.on(rank, |worker| worker.report_undelivered()));
        for worker in &self.workers {
            worker.shared.ending.add(|figures| figures.messages = worker.instruments.handled());
        }
        self.on(0, |worker| worker.record_syncs());
    }

    /// The rank that has deferred a decision.
    fn undecided(&self) -> Option<usize> {
        let live = |&rank: &usize| !self.ranks[rank].shared.scheduler.stopped();
        (0..self.workers.len()).filter(live).find(|&rank| self.workers[rank].has_question())
    }

    /// Chooses the earliest event. At any time the seed may make a rank idle, or make a deferred decision.
    fn next(&mut self) -> Event {
        let undecided = self.undecided();
        if let Some(rank) = undecided
            && self.rng.random_ratio(1, 8)
        {
            return Event::Decision(rank);
        }
        let live = |&rank: &usize| !self.ranks[rank].shared.scheduler.stopped();
        let all = 0..self.workers.len();
        let idle =
            all.clone().filter(live).find(|&rank| self.idle[rank] && !self.workers[rank].has_chunks_to_run());
        if let Some(rank) = idle
            && self.rng.random_ratio(1, 4)
        {
            return Event::Idle(rank);
        }
        let due_at = |rank: usize| self.workers[rank].timers.next_ns().map(|due_ns| (due_ns, rank));
        let now_ns = |rank: &usize| self.ranks[*rank].now_ns.load(Ordering::Relaxed);
        let decided_ns = undecided.map_or(u64::MAX, |rank| now_ns(&rank).saturating_add(DECISION_MAX_NS));
        let due =
            all.clone().filter(live).filter_map(due_at).min().filter(|&(due_ns, _)| due_ns <= decided_ns);
        let step = all.filter(live).filter(|&rank| self.workers[rank].has_chunks_to_run()).min_by_key(now_ns);
        let arrival_ns = self.arrivals.next_at();
        if let Some((due_ns, rank)) = due {
            let earlier = arrival_ns.into_iter().chain(step.as_ref().map(now_ns)).any(|ns| ns < due_ns);
            // The seed may delay a due message, so that rank 0 may search for quiescence meanwhile.
            if !earlier && self.rng.random_ratio(3, 4) {
                return Event::Due(rank);
            }
        }
        match (step, arrival_ns, idle) {
            (Some(rank), Some(arrival_ns), _) if arrival_ns <= now_ns(&rank) => Event::Arrival,
            (Some(rank), ..) => Event::Step(rank),
            (None, Some(_), _) => Event::Arrival,
            (None, None, Some(rank)) => Event::Idle(rank),
            (None, None, None) => self.next_backoff(decided_ns).unwrap_or(Event::Nothing),
        }
    }

    /// The first expiry of a backoff of flow control, if it is not after `latest_ns`.
    fn next_backoff(&self, latest_ns: u64) -> Option<Event> {
        let until_ns = |(rank, worker): (usize, &Worker<'_>)| {
            self.ranks[rank].owner.enter();
            Some((worker.shared.control_plane.lock().rank.backoff_until_ns()?, rank))
        };
        let live = self.workers.iter().enumerate().filter(|(_, worker)| !worker.shared.scheduler.stopped());
        let (until_ns, rank) = live.filter_map(until_ns).min()?;
        (until_ns <= latest_ns).then_some(Event::Backoff(rank, until_ns))
    }

    fn step(&mut self, rank: usize) {
        let default_ns = self.rng.random_range(100..=RUN_MAX_NS);
        let (weights, mut took_ns) = (self.weights, 0);
        self.on(rank, |worker| {
            worker.simulated.take_charged_ns();
            worker.run_ready(1, &mut worker.outbox());
            took_ns = worker.simulated.take_charged_ns();
            if took_ns == 0 {
                took_ns = default_ns;
                if let Some(seed) = weights {
                    took_ns *= weight(seed, worker.instruments.activity().chunk.get());
                    worker.measure_run(took_ns);
                }
            }
        });
        let slowed_ns = self.stops.as_mut().map_or(took_ns, |stops| stops.slowed_ns(rank, took_ns));
        self.ranks[rank].now_ns.fetch_add(slowed_ns, Ordering::Relaxed);
        self.idle[rank] = true;
        if self.resizes && self.rng.random_ratio(1, RESIZE_EVERY) {
            self.resize(rank);
        }
        let root = &self.ranks[0].shared;
        if root.info.by_windows && self.rng.random_ratio(1, WINDOW_EVERY) && !root.scheduler.stopped() {
            self.open_window();
        }
    }

    /// Requests another number of active ranks, on this rank.
    fn resize(&mut self, rank: usize) {
        let active = self.rng.random_range(1..=self.ranks.len() as u32);
        match &self.ranks[0].shared.resizes {
            // A program in supersteps takes the request itself.
            Some(requests) if !self.ranks[0].shared.info.takes_resizes => {
                requests.ask(active).expect("there are these ranks");
            }
            _ => {
                self.on(rank, |worker| {
                    worker.with_core(|core, now_ns, out| core.resize(active, now_ns, out));
                });
            }
        }
    }

    /// Opens a window at a random moment, or begins a checkpoint. Some windows decide nothing, or add to the next one.
    fn open_window(&mut self) {
        if self.ranks[0].shared.checkpoints.is_some() && self.rng.random_ratio(1, 2) {
            return self.on(0, |worker| {
                worker.with_core(|core, now_ns, out| {
                    core.begin_checkpoint(now_ns, out);
                });
            });
        }
        let look = match self.rng.random_range(0..6) {
            0 => Look::Begin,
            1 => Look::Collect,
            _ => Look::Decide,
        };
        self.on(0, |worker| worker.with_core(|core, now_ns, out| core.open_window(look, now_ns, out)));
    }

    fn arrival(&mut self) {
        let Some((arrival_ns, (from, to))) = self.arrivals.pop() else { return };
        let packet = self.post.take(from, to).expect("it is on its way");
        let to = to.0 as usize;
        if self.ranks[to].shared.scheduler.stopped() {
            return;
        }
        self.ranks[to].now_ns.fetch_max(arrival_ns, Ordering::Relaxed);
        self.idle[to] = true;
        self.on(to, |worker| worker.receive(from, packet, &mut FreeList::default()));
    }

    fn due(&mut self, rank: usize) {
        let due_ns = self.workers[rank].timers.next_ns().expect("it has been chosen for that");
        self.ranks[rank].now_ns.fetch_max(due_ns, Ordering::Relaxed);
        self.idle[rank] = true;
        self.on(rank, |worker| {
            worker.send_due(&mut FreeList::default());
        });
    }

    /// Calls `act` with the worker of a rank, as the owner of its elided mutexes. Puts the sent packets in flight.
    fn on(&mut self, rank: usize, act: impl FnOnce(&mut Worker<'_>)) {
        self.ranks[rank].owner.enter();
        self.workers[rank].catching(act);
        self.workers[rank].instruments.rest();
        let (from, now_ns) = (Rank(rank as u32), self.ranks[rank].now_ns.load(Ordering::Relaxed));
        for (to, packet) in self.mail[rank].take_sent() {
            self.arrivals.at(self.post.send(from, to, packet, now_ns), (from, to));
        }
    }
}

/// The weight of a chunk that declares no load. Weights differ because with equal chunks no strategy would move one.
fn weight(seed: u64, chunk: ChunkId) -> u64 {
    let mut hasher = FxHasher::default();
    (seed, chunk).hash(&mut hasher);
    Pcg32::seed_from_u64(hasher.finish()).random_range(1..=WEIGHT_MAX)
}

impl Worker<'_> {
    /// Charges the current chunk the simulated time of its run.
    fn measure_run(&mut self, took_ns: u64) {
        let (shared, chunk) = (self.shared, self.instruments.activity().chunk.get());
        // The ready entry belonged to a held chunk, and no chunk has run on this rank yet.
        if chunk == RUNTIME {
            return;
        }
        // A chunk that was removed has no load.
        let cell = shared.control_plane.lock().rank.routing.location.cell(chunk);
        cell.into_iter().for_each(|cell| shared.cells.get(cell).charge(took_ns, 1));
    }
}
