//! A pool in one thread and virtual time, by seed: the production driver, workers, monitors and meetings; only time,
//! vCPUs and links are simulated.
//!
//! # Rules
//! 1. Who sleeps goes on only when its `Sleeper` was woken, or its timeout has passed, and after a seeded delay. So a
//!    wake-up that is forgotten is one that nobody makes up for: the run stalls, and says so.
//! 2. Between the step that finds nothing to do and the look with which a sleep begins others may act, in between as well.
//! 3. A range is executed for real when the time that it takes has passed.
//! 4. The seed draws: how fast each worker is, and when; ranks that stop for a while; whether ranks are woken for what
//!    arrives, or have to nap; how long packets, steps and wake-ups take. All packets cross the wire.

mod actor;
mod cluster;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lb_strategies::Shape;
use lb_strategies::pool::{Pool, PoolStrategy};
use lb_strategies::virtual_time::{Erratic, Events, Post, SplitMix64, Worker as Place};

use self::actor::{Act, Actor};
use self::cluster::Cluster;
use super::comm_thread::CommThread;
use super::rank::{Shared, asking_policy, machine};
use super::shared_driver::SharedDriver;
use super::worker::Worker;
use crate::config::Config;
use crate::error::Error;
use crate::ids::{Rank, WorkerId};
use crate::measure::counters::RankCounters;
use crate::pools::core::packet::{PoolPacket, PoolResult};
use crate::pools::core::work::{Accumulated, PoolWork};
use crate::run::context::panicked;
use crate::run::outcome::Outcome;
use crate::run::recording::SAMPLE_GAP_MAX_NS;
use crate::run::watchdog::Watchdog;
use crate::threads::clock::Clock;
use crate::threads::team::Team;
use crate::trace::activity_board::ActivitySampler;
use crate::trace::recording::Recording;
use crate::transport::handle::TransportHandle;
use crate::transport::sim::{SimEndpoint, SimTransport};

/// Sleep of a rank that is not woken for packets.
const NAP: Duration = Duration::from_micros(50);
/// A step or a wake-up takes up to this, and now and then a hundred times as long, ns.
const PAUSE_MAX_NS: f64 = 20e3;
const SLOW: f64 = 0.02;
/// Events in a row in which monitors only look whether there is something to do, while no worker acts and no packet is on
/// its way: after so many there never will be.
const IDLE_POLLS_MAX: u32 = 10_000;

/// Runs a pool under simulation.
///
/// # Errors
/// Those of a real run.
pub(crate) fn run(
    work: &dyn PoolWork,
    config: &Config,
    pool: &Pool,
    policy: &dyn PoolStrategy,
    seed: u64,
) -> Result<(Accumulated, PoolResult), Error> {
    let config = &config.clone().wire_always(true);
    let now_ns = Arc::new(AtomicU64::new(0));
    let (clock, outcome) = (Clock::Virtual { now_ns: now_ns.clone() }, Arc::<Outcome>::default());
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
                meeting: SharedDriver::new(Arc::new(Team::new(workers + 1)), machine, workers),
                gauges: RankCounters::new(workers, config.background),
                asking: asking_policy(config),
            };
            (shared, refused)
        })
        .unzip();
    let result = Mutex::new(None);
    let deliver = |accumulated, whole| {
        result.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((accumulated, whole));
    };
    // In the machine's time: it is an iteration that does not return.
    let recordings: Vec<_> = ranks.iter().map(|shared| shared.recording.clone()).collect();
    let (machine_clock, mut sightings) = (Clock::machine(), ActivitySampler::default());
    let look = move || sightings.look(&recordings, machine_clock.now_ns(), SAMPLE_GAP_MAX_NS);
    let _watchdog = Watchdog::start(config, &outcome, look);
    let mut simulation = Simulation::new(pool, seed, &now_ns);
    for (shared, refused) in ranks.iter().zip(refused) {
        let (transport, mail) = SimTransport::connect(simulation.naps.then_some(NAP));
        let transport = (ranks.len() > 1).then(|| TransportHandle::boxed(transport));
        let mut monitor = CommThread::new(shared, transport, ranks.len() as u32, config, &deliver);
        monitor.begin(refused);
        simulation.enter(shared, mail, monitor);
    }
    if !simulation.run() {
        let (live, policy) = (simulation.live(), config.lb_spec(Shape::Pools));
        let why = format!(
            "nothing will ever happen again, but {live} not ended: the policy `{policy}` is at fault"
        );
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
    /// An actor does what it is about to do.
    Acts(usize),
    /// It has slept long enough, if it is that night.
    TimesOut {
        actor: usize,
        night: u64,
    },
    Arrives {
        from: Rank,
        to: Rank,
    },
}

struct Simulation<'r> {
    now_ns: &'r AtomicU64,
    events: Events<Event>,
    /// Of these, packets and what workers do.
    pending: usize,
    /// Monitors' looks since there were any.
    idle_polls: u32,
    cluster: Cluster,
    rng: SplitMix64,
    naps: bool,
    post: Post<Erratic, PoolPacket>,
    mail: Vec<SimEndpoint<PoolPacket>>,
    /// Of each rank the monitor, then its workers.
    actors: Vec<Actor<'r>>,
    /// Of each rank its monitor.
    monitors: Vec<usize>,
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
            monitors: Vec::new(),
        }
    }

    /// A rank takes part.
    fn enter(&mut self, shared: &'r Shared<'r>, mail: SimEndpoint<PoolPacket>, monitor: CommThread<'r>) {
        let place = |number| Place { rank: shared.rank, number };
        self.mail.push(mail);
        self.monitors.push(self.actors.len());
        self.actors.push(Actor::new(shared, place(0), None, Box::new(monitor)));
        for number in 0..shared.recording.workers() {
            let worker = Worker::new(shared, WorkerId(number));
            self.actors.push(Actor::new(shared, place(number), Some(WorkerId(number)), Box::new(worker)));
        }
        (self.monitors[shared.rank.index()]..self.actors.len()).for_each(|actor| self.acts_soon(actor));
    }

    /// Lets everything happen; false if it ends before all have.
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
                Event::TimesOut { actor, night } => {
                    if self.actors[actor].times_out(night) {
                        self.acts_soon(actor);
                    }
                }
                Event::Arrives { from, to } => self.arrives(from, to),
            }
        }
        true
    }

    /// The actors that have not ended, in words.
    fn live(&self) -> String {
        let live: Vec<String> =
            self.actors.iter().filter(|actor| actor.act != Act::Over).map(ToString::to_string).collect();
        format!("{} {}", live.join(", "), if live.len() == 1 { "has" } else { "have" })
    }

    fn arrives(&mut self, from: Rank, to: Rank) {
        self.pending -= 1;
        let packet = self.post.take(from, to).expect("it is on its way");
        let monitor = self.monitors[to.index()];
        // Who has ended hears nothing any more.
        if self.actors[monitor].act == Act::Over {
            return;
        }
        self.mail[to.index()].arrives(from, packet);
        if !self.naps {
            self.actors[monitor].sleeper.wake();
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
            Act::Sleep { timeout: Some(timeout), sleep_number: night } => {
                let at_ns = now_ns.saturating_add(timeout.as_nanos() as u64);
                self.events.at(at_ns, Event::TimesOut { actor: index, night });
            }
            Act::Sleep { timeout: None, .. } | Act::Over => {}
        }
        for (to, packet) in self.mail[rank.index()].take_sent() {
            let arrival_ns = self.post.send(rank, to, packet, now_ns);
            self.pending += 1;
            self.events.at(arrival_ns, Event::Arrives { from: rank, to });
        }
        self.schedule_woken(rank);
    }

    /// Whoever of a rank was woken acts soon.
    fn schedule_woken(&mut self, rank: Rank) {
        for actor in self.monitors[rank.index()].. {
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
