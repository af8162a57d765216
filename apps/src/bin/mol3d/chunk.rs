//! Computes molecular dynamics in two arrays of chunks: cells, and pairs of neighbouring cells.
//!
//! 1. A cell sends the positions of its particles to its 27 pairs.
//! 2. A pair that has the positions of both cells answers each with the forces of the other.
//! 3. A cell that has 27 answers adds them in the order of directions, so that the sum has the same bits in any order
//!    of arrival. Then it completes its step and begins the next.
//! 4. At regular steps a cell first sends its 26 neighbours the particles that moved there, and waits for theirs.
//!
//! There is no barrier. The energies of a step are reduced to one cell, which logs them. Positions and forces carry no
//! step number: a cell sends no positions before all answers to the last ones have come, and no pair answers before it
//! has both. A neighbour may hand over particles before this cell has all its answers; they wait for `ready`.

use std::sync::{Arc, Mutex, PoisonError};

use caribou::{Array, Chunk, Ctx, Halo, Halos, Reducer, ReplyTo, Target, Values};
use harness::arrays::Observers;
use harness::disturbance::slow::stretched;
use serde::{Deserialize, Serialize};

use super::grid::{Offset, Vector};
use super::lennard_jones::Interaction;
use super::particle::{self, Energy, Particle};
use super::problem::{Pair, Problem, Rules};

/// The cell that logs the energies. It stays on rank 0.
const LOGGER: [u16; 3] = [0, 0, 0];

/// The energies of each step, filled after the last step; a service. Only the one on rank 0 is used.
#[derive(Clone, Debug, Default)]
pub(crate) struct EnergyLog(Arc<Mutex<Vec<Energy>>>);

impl EnergyLog {
    /// Takes the energies out.
    pub(crate) fn take(&self) -> Vec<Energy> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Vectors, one for each particle of a cell.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Vectors(#[serde(with = "caribou::bulk")] Arc<Vec<Vector>>);

impl Vectors {
    fn new(vectors: Vec<Vector>) -> Self {
        Self(Arc::new(vectors))
    }
}

impl AsRef<[Vector]> for Vectors {
    fn as_ref(&self) -> &[Vector] {
        &self.0
    }
}

/// Particles: all of a cell, or the ones that change cells.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Particles(#[serde(with = "caribou::bulk")] pub(crate) Vec<Particle>);

/// One cell of the box, and the state of its computation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    rules: Rules,
    /// Particles of all cells.
    count: u64,
    logs_energy: bool,
    /// In the cell that logs: the energies of each complete step.
    energies: Vec<Energy>,
    pairs: Array<PairCompute>,
    particles: Particles,
    /// Steps that are complete or under way.
    step: u32,
    /// The answers of this step: potential energy and forces.
    answers: Halos<(f64, Vectors)>,
    incoming: Halos<Particles>,
}

/// Messages to cells.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The answer of a pair.
    Forces {
        /// The direction of the other cell.
        way: Offset,
        /// The energy between both cells, sent to the first; the second gets 0.
        energy: f64,
        forces: Vectors,
    },
    /// Particles of a neighbour that are now here.
    Arrivals(Halo<Particles>),
    /// All cells have done `step` steps.
    Complete { step: u32, cells: i64, particles: i64, energy: Energy },
}

impl Cell {
    /// The cell `index` before the first step.
    pub(crate) fn new(problem: &Problem, index: [u16; 3], pairs: Array<PairCompute>) -> Self {
        Self {
            rules: problem.rules,
            count: problem.count(),
            logs_energy: index == LOGGER,
            energies: Vec::new(),
            pairs,
            particles: Particles(problem.initial[problem.rules.grid.position(index)].clone()),
            step: 0,
            answers: Halos::new(27),
            incoming: Halos::new(26),
        }
    }

    /// Sends the positions to all pairs.
    fn ask(&self, ctx: &mut Ctx<'_, Self>) {
        let places = Arc::new(particle::places(&self.particles.0));
        for (pair, is_second) in Pair::of(&self.rules.grid, ctx.index()) {
            let places = Vectors(Arc::clone(&places));
            ctx.send_to(self.pairs, pair, Positions { is_second, answer_to: ctx.reply_to_self(), places });
        }
    }

    /// Completes the step with the forces of all pairs, and begins the next.
    fn go_on(&mut self, answers: Vec<(f64, Vectors)>, ctx: &mut Ctx<'_, Self>) {
        let (rules, particles) = (self.rules, &mut self.particles.0);
        let potential = answers.iter().map(|(energy, _)| energy).sum();
        let forces = answers.into_iter().map(|(_, forces)| forces);
        let sum = stretched(ctx.slowness(), || rules.complete(particles, forces, self.step == 0));
        let Energy { kinetic, potential } = match rules.energy(particle::kinetic(particles), potential) {
            Ok(energy) => energy,
            Err(why) => return ctx.fail(why),
        };
        let values = vec![1, particles.len() as i64, kinetic, potential];
        if self.step == rules.iterations {
            ctx.service::<Observers<Particles>>().deliver(ctx, || Particles(particles.clone()));
        }
        ctx.contribute(self.step, Reducer::Sum, values, Target::Chunk(LOGGER));
        if self.step == rules.iterations {
            return;
        }
        if ctx.sync_due(self.step.into()) {
            ctx.at_sync_nowait();
        }
        self.step += 1;
        let here = ctx.index();
        if let Err(lost) = stretched(ctx.slowness(), || rules.advance(particles, &sum, here)) {
            return ctx.fail(lost);
        }
        if rules.exchanges(self.step) { self.hand_over(ctx) } else { self.ask(ctx) }
    }

    /// True from the handover of particles until the particles of all neighbours have come.
    fn awaits_incoming(&self) -> bool {
        u64::from(self.step / self.rules.exchange) > self.incoming.step()
    }

    /// Sends each neighbour the particles that moved into it.
    fn hand_over(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (grid, here) = (self.rules.grid, ctx.index());
        let leavers = particle::take_outgoing(&mut self.particles.0, &grid, here);
        for (way, leavers) in Offset::all().zip(leavers).filter(|&(way, _)| way != Offset::STAY) {
            let halo = self.incoming.halo(way.back().0.into(), Particles(leavers));
            ctx.send(grid.beyond(here, way).0, Message::Arrivals(halo));
        }
    }
}

impl Chunk for Cell {
    type Index = [u16; 3];
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.ask(ctx);
    }

    fn ready(&self, message: &Message) -> bool {
        match message {
            // A neighbour may hand over before this cell does.
            Message::Arrivals(arrivals) => self.awaits_incoming() && self.incoming.expects(arrivals),
            Message::Forces { .. } | Message::Complete { .. } => true,
        }
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Forces { way, energy, forces } => {
                let answer = self.answers.halo(way.0.into(), (energy, forces));
                let Some(answers) = self.answers.add(answer).map(Vec::from_iter) else { return };
                self.go_on(answers, ctx);
            }
            Message::Arrivals(arrivals) => {
                let Some(all) = self.incoming.add(arrivals) else { return };
                all.for_each(|Particles(mut particles)| self.particles.0.append(&mut particles));
                self.ask(ctx);
            }
            Message::Complete { step, cells, particles, energy } => {
                let expected = (self.rules.grid.count() as i64, self.count as i64);
                assert_eq!((cells, particles), expected, "no cell and no particle is lost in step {step}");
                self.energies.push(energy);
                if step == self.rules.iterations {
                    let mut log = ctx.service::<EnergyLog>().0.lock().unwrap_or_else(PoisonError::into_inner);
                    *log = std::mem::take(&mut self.energies);
                }
                let observers = ctx.service::<Observers<Particles>>();
                match step {
                    0 => observers.begin(ctx),
                    iterations => observers.complete(ctx, iterations),
                }
            }
        }
    }

    /// The chunk did not wait at the sync, so nothing has to start again.
    fn resume(&mut self, _ctx: &mut Ctx<'_, Self>) {}

    fn reduced(tag: u32, values: Values) -> Message {
        let Values::I64(sums) = values else { panic!("cells contribute whole numbers") };
        let energy = Energy { kinetic: sums[2], potential: sums[3] };
        Message::Complete { step: tag, cells: sums[0], particles: sums[1], energy }
    }

    fn migratable(&self) -> bool {
        !self.logs_energy
    }

    fn state_bytes(&self) -> u64 {
        (size_of::<Self>() + self.particles.0.len() * size_of::<Particle>()) as u64
    }
}

/// Two cells that interact, or one with itself.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PairCompute {
    rules: Rules,
    /// The positions that came in this step: the first cell's, then the second's.
    received: Halos<(ReplyTo<Message>, Vectors)>,
    /// Steps that are done.
    step: u32,
}

/// The positions of a cell's particles, and the cell to answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Positions {
    is_second: bool,
    answer_to: ReplyTo<Message>,
    places: Vectors,
}

impl PairCompute {
    /// The pair `index` before the first step.
    pub(crate) fn new(rules: Rules, index: Pair) -> Self {
        let cells = if index.offset == Offset::STAY { 1 } else { 2 };
        Self { rules, received: Halos::new(cells), step: 0 }
    }
}

impl Chunk for PairCompute {
    type Index = Pair;
    type Message = Positions;

    fn receive(&mut self, Positions { is_second, answer_to, places }: Positions, ctx: &mut Ctx<'_, Self>) {
        let halo = self.received.halo(is_second.into(), (answer_to, places));
        let Some(mut come) = self.received.add(halo) else { return };
        let (pair, (first, places)) = (ctx.index(), come.next().expect("a pair has one cell or two"));
        let second = come.next();
        let others = second.as_ref().map_or(&[][..], |(_, places)| places.as_ref());
        let interact = || self.rules.interact(pair, places.as_ref(), others);
        let Interaction { on_first, on_second, energy } = stretched(ctx.slowness(), interact);
        ctx.reply(&first, Message::Forces { way: pair.offset, energy, forces: Vectors::new(on_first) });
        if let Some((second, _)) = second {
            let (way, forces) = (pair.offset.back(), Vectors::new(on_second));
            ctx.reply(&second, Message::Forces { way, energy: 0.0, forces });
        }
        let step = self.step;
        self.step += 1;
        if step < self.rules.iterations && ctx.sync_due(step.into()) {
            ctx.at_sync_nowait();
        }
    }

    /// The chunk did not wait at the sync, so nothing has to start again.
    fn resume(&mut self, _ctx: &mut Ctx<'_, Self>) {}
}
