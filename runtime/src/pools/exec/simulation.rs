//! Simulates a pool in one thread and virtual time, by seed. Driver, workers, communication threads and locks are the
//! production code. Only time, vCPUs and links are simulated.
//!
//! # Rules
//! 1. A sleeping *actor* (a worker or a communication thread) goes on only after its `Sleeper` was woken or its timeout
//!    has passed, and after a random delay. If a wake-up is missing, the run stalls, and the simulation reports that.
//! 2. A step without work and the last check before the sleep are separate events. Other actors may act in between.
//! 3. A range is executed when the virtual time that it takes has passed.
//! 4. All packets are encoded and decoded.
//!
//! | the seed draws | details |
//! |---|---|
//! | speeds | of each worker, changing with time |
//! | stops | which ranks stop for a while, and when |
//! | active ranks | whether their number changes, when, and to what |
//! | naps | whether a rank is woken for packets that arrive, or has to nap |
//! | durations | of packets, steps and wake-ups |

mod actor;
mod cluster;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lb_strategies::Shape;
use lb_strategies::pool::{Pool, PoolStrategy};
use lb_strategies::virtual_time::{Erratic, Events, Post, SplitMix64, Worker as Place};

use self::actor::{Act, Actor};
use self::cluster::Cluster;
use super::checkpoint::RankCheckpoints;
use super::comm_thread::CommThread;
use super::rank::{Shared, asking_policy, machine};
use super::shared_driver::SharedDriver;
use super::worker::Worker;
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ROOT, Rank, WorkerId};
use crate::measure::counters::RankCounters;
use crate::pools::core::packet::{PoolPacket, PoolResult};
use crate::pools::core::work::{Accumulated, PoolWork};
use crate::run::context::panicked;
use crate::run::outcome::Outcome;
use crate::run::recording::SAMPLE_GAP_MAX_NS;
use crate::run::resize::ResizeRequests;
use crate::run::watchdog::Watchdog;
use crate::threads::clock::Clock;
use crate::threads::team::Team;
use crate::trace::activity_board::ActivitySampler;
use crate::trace::recording::Recording;
use crate::transport::handle::TransportHandle;
use crate::transport::sim::{SimEndpoint, SimTransport};

/// How long a rank sleeps that is not woken for packets.
const NAP: Duration = Duration::from_micros(50);
/// Longest duration of a step or a wake-up, ns.
const PAUSE_MAX_NS: f64 = 20e3;
/// Part of the steps and wake-ups that take a hundred times as long.
const SLOW: f64 = 0.02;
/// Part of the acts after which the number of active ranks changes, in runs that are shrunk and expanded.
const RESIZED: f64 = 0.02;
/// Number of consecutive events that are only polls of communication threads, without any other event pending, after
/// which the run counts as stalled.
const IDLE_POLLS_MAX: u32 = 10_000;

/// Runs a pool under simulation.
///
/// # Errors
/// The errors of a real run.
pub(crate) fn run(
    work: &dyn PoolWork,
    config: &Config,
    pool: &Pool,
    policy: &dyn PoolStrategy,
    checkpoints: impl Fn(Rank) -> Result<Option<RankCheckpoints>, Error>,
    seed: u64,
) -> Result<(Accumulated, PoolResult), Error> {
    let config = &config.clone().wire_always(true);
    let now_ns = Arc::new(AtomicU64::new(0));
    let (clock, outcome) = (Clock::Virtual { now_ns: now_ns.clone() }, Arc::<Outcome>::default());
    let mut checkpoints: VecDeque<_> =
        (0..pool.ranks()).map(|rank| checkpoints(Rank(rank))).collect::<Result<_, _>>()?;
    let resizes = policy.resizes().then(|| Arc::new(ResizeRequests::new(pool.ranks())));
    let (ranks, refused): (Vec<_>, Vec<_>) = (0..)
        .map(Rank)
        .zip(&pool.workers)
        .map(|(rank, &workers)| {
            let (machine, refused) = machine(&|| policy.rank(pool, rank));
            let shared = Shared {
                work,
                rank,
                clock: &clock,
                outcome: &outcome,
                recording: Arc::new(Recording::disabled_for(rank, workers)),
                shared_driver: SharedDriver::new(Arc::new(Team::new(workers + 1)), machine, workers),
                gauges: RankCounters::new(workers, config.background),
                asking: asking_policy(config),
                checkpoints: checkpoints.pop_front().flatten(),
                resizes: resizes.clone().filter(|_| rank == ROOT),
            };
            (shared, refused)
        })
        .unzip();
    let result = Mutex::new(None);
    let deliver = |accumulated, pool_result| {
        result.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((accumulated, pool_result));
    };
    // The watchdog runs in real time, and warns of an iteration that does not return.
    let recordings: Vec<_> = ranks.iter().map(|shared| shared.recording.clone()).collect();
    let (machine_clock, mut sampler) = (Clock::machine(), ActivitySampler::default());
    let look = move || sampler.look(&recordings, machine_clock.now_ns(), SAMPLE_GAP_MAX_NS);
    let _watchdog = Watchdog::start(config, &outcome, look);
    let mut simulation = Simulation::new(pool, seed, &now_ns);
    simulation.resizes = resizes.filter(|_| config.simulate_disturbed);
    for (shared, refused) in ranks.iter().zip(refused) {
        let (transport, mail) = SimTransport::connect(simulation.naps.then_some(NAP));
        let transport = (ranks.len() > 1).then(|| TransportHandle::boxed(transport));
        let mut comm_thread = CommThread::new(shared, transport, ranks.len() as u32, config, &deliver);
        comm_thread.begin(refused);
        simulation.enter(shared, mail, comm_thread);
    }
    if !simulation.run() {
        let (live, policy) = (simulation.live(), config.lb_spec(Shape::Pools));
        let why = format!("no event is left, but {live} not ended: the policy `{policy}` is at fault");
        outcome.fail(Error::System { what: format!("simulation by seed {seed}"), why });
    }
    drop(simulation);
    for shared in ranks {
        let rank = shared.rank;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(shared))) {
            outcome.fail(panicked(rank, &*panic));
        }
    }
    match outcome.error() {
        Some(error) => Err(error),
        None => Ok(result.into_inner().unwrap_or_else(PoisonError::into_inner).expect("it has not failed")),
    }
}

enum Event {
    /// An actor does its next act.
    Acts(usize),
    /// The timeout of the actor's sleep number `sleep_number` has passed.
    TimesOut { actor: usize, sleep_number: u64 },
    /// A packet arrives.
    Arrives { from: Rank, to: Rank },
}

struct Simulation<'r> {
    now_ns: &'r AtomicU64,
    events: Events<Event>,
    /// Number of scheduled events that are arrivals of packets or acts of workers.
    pending: usize,
    /// Number of events since `pending` was last above 0.
    idle_polls: u32,
    cluster: Cluster,
    rng: SplitMix64,
    /// True if ranks are not woken for packets.
    naps: bool,
    post: Post<Erratic, PoolPacket>,
    mail: Vec<SimEndpoint<PoolPacket>>,
    /// All actors. Of each rank first the communication thread, then the workers.
    actors: Vec<Actor<'r>>,
    /// The index of each rank's communication thread among the actors.
    comm_threads: Vec<usize>,
    /// The requests to shrink or expand the run, if the seed makes some.
    resizes: Option<Arc<ResizeRequests>>,
}

impl<'r> Simulation<'r> {
    fn new(pool: &Pool, seed: u64, now_ns: &'r AtomicU64) -> Simulation<'r> {
        let mut rng = SplitMix64::new(seed);
        Simulation {
            now_ns,
            events: Events::default(),
            pending: 0,
            idle_polls: 0,
            cluster: Cluster::new(pool, rng.number()),
            naps: rng.uniform() < 0.25,
            post: Post::new(pool.ranks(), Erratic::new(rng.number())),
            rng,
            mail: Vec::new(),
            actors: Vec::new(),
            comm_threads: Vec::new(),
            resizes: None,
        }
    }

    /// Adds a rank.
    fn enter(&mut self, shared: &'r Shared<'r>, mail: SimEndpoint<PoolPacket>, comm_thread: CommThread<'r>) {
        let place = |number| Place { rank: shared.rank, number };
        self.mail.push(mail);
        self.comm_threads.push(self.actors.len());
        self.actors.push(Actor::new(shared, place(0), None, Box::new(comm_thread)));
        for number in 0..shared.recording.workers() {
            let worker = Worker::new(shared, WorkerId(number));
            self.actors.push(Actor::new(shared, place(number), Some(WorkerId(number)), Box::new(worker)));
        }
        (self.comm_threads[shared.rank.index()]..self.actors.len()).for_each(|actor| self.acts_soon(actor));
    }

    /// Runs until all actors have ended. Returns false if the run stalls before that.
    fn run(&mut self) -> bool {
        while self.actors.iter().any(|actor| actor.act != Act::Over) {
            let Some((now_ns, event)) = self.events.pop() else { return false };
            self.now_ns.store(now_ns, Ordering::Relaxed);
            self.idle_polls = if self.pending > 0 { 0 } else { self.idle_polls + 1 };
            if self.idle_polls > IDLE_POLLS_MAX {
                return false;
            }
            match event {
                Event::Acts(actor) => self.acts(actor),
                Event::TimesOut { actor, sleep_number } => {
                    if self.actors[actor].times_out(sleep_number) {
                        self.acts_soon(actor);
                    }
                }
                Event::Arrives { from, to } => self.arrives(from, to),
            }
        }
        true
    }

    /// The actors that have not ended, as text.
    fn live(&self) -> String {
        let live: Vec<String> =
            self.actors.iter().filter(|actor| actor.act != Act::Over).map(ToString::to_string).collect();
        format!("{} {}", live.join(", "), if live.len() == 1 { "has" } else { "have" })
    }

    fn arrives(&mut self, from: Rank, to: Rank) {
        self.pending -= 1;
        let packet = self.post.take(from, to).expect("it is on its way");
        let comm_thread = self.comm_threads[to.index()];
        // A rank that has ended receives nothing.
        if self.actors[comm_thread].act == Act::Over {
            return;
        }
        self.mail[to.index()].arrives(from, packet);
        if !self.naps {
            self.actors[comm_thread].sleeper.wake();
        }
        self.schedule_woken(to);
    }

    fn acts(&mut self, index: usize) {
        let actor = &mut self.actors[index];
        let rank = actor.place.rank;
        self.pending -= usize::from(actor.worker.is_some());
        let now_ns = self.now_ns.load(Ordering::Relaxed);
        match actor.act() {
            Act::Execute(iterations) => {
                let at_ns = self.cluster.through_at(actor.place, iterations, now_ns);
                self.acts_at(index, at_ns);
            }
            Act::Step | Act::PrepareSleep(_) => self.acts_soon(index),
            Act::Sleep { timeout: Some(timeout), sleep_number } => {
                let at_ns = now_ns.saturating_add(timeout.as_nanos() as u64);
                self.events.at(at_ns, Event::TimesOut { actor: index, sleep_number });
            }
            Act::Sleep { timeout: None, .. } | Act::Over => {}
        }
        for (to, packet) in self.mail[rank.index()].take_sent() {
            let arrival_ns = self.post.send(rank, to, packet, now_ns);
            self.pending += 1;
            self.events.at(arrival_ns, Event::Arrives { from: rank, to });
        }
        self.schedule_woken(rank);
        self.resize();
    }

    /// Requests a different number of active ranks from time to time, if the seed has drawn that.
    fn resize(&mut self) {
        let Some(requests) = &self.resizes else { return };
        if self.rng.uniform() < RESIZED {
            let active = 1 + self.rng.number() % self.comm_threads.len() as u64;
            requests.ask(active as u32).expect("the policy resizes, and there are these ranks");
            self.schedule_woken(ROOT);
        }
    }

    /// Schedules the actors of a rank that were woken.
    fn schedule_woken(&mut self, rank: Rank) {
        for actor in self.comm_threads[rank.index()].. {
            let of_rank = self.actors.get(actor).is_some_and(|actor| actor.place.rank == rank);
            if !of_rank {
                break;
            }
            if self.actors[actor].wake_if_woken() {
                self.acts_soon(actor);
            }
        }
    }

    fn acts_soon(&mut self, actor: usize) {
        let slow = if self.rng.uniform() < SLOW { 100.0 } else { 1.0 };
        let pause_ns = (self.rng.uniform() * PAUSE_MAX_NS * slow) as u64;
        let at_ns = self.now_ns.load(Ordering::Relaxed) + pause_ns;
        let at_ns = self.cluster.goes_on_at(self.actors[actor].place, at_ns);
        self.acts_at(actor, at_ns);
    }

    fn acts_at(&mut self, actor: usize, at_ns: u64) {
        self.pending += usize::from(self.actors[actor].worker.is_some());
        self.events.at(at_ns, Event::Acts(actor));
    }
}
