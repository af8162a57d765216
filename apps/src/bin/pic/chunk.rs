//! Runs the grid as an array of chunks, one per tile.
//!
//! A tile moves its particles and sends each neighbour the particles that went there, even if none. It goes on when all
//! eight neighbours have sent theirs. There is no barrier: a neighbour may be one step ahead, and its particles wait in
//! the runtime until this tile is `ready` for them. In each step all tiles add themselves and their particles to a sum.
//! Tile [0, 0] gets the sum, checks that no particle is missing, and reports to the observers.
//!
//! The index of a tile is its column and its row. So each rank begins with adjacent columns, which the hot spot
//! crosses.

use std::iter::zip;

use caribou::{Chunk, Ctx, Halo, Halos, Reducer, Target, Values};
use harness::arrays::Observers;
use harness::disturbance::slow::stretched;
use serde::{Deserialize, Serialize};

use crate::block::Block;
use crate::particle::Particle;
use crate::problem::Problem;
use crate::verification::Verification;

/// The tile that checks the sums and reports complete steps.
const TIMEKEEPER: [u16; 2] = [0, 0];

/// The tags of the reductions that come before the first step.
const BEFORE: u32 = 0;
const ALL: u32 = u32::MAX;

/// One tile of the grid, and the state of its computation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Tile {
    problem: Problem,
    block: Block,
    /// True if its particles have their IDs.
    numbered: bool,
    /// Number of particles in all tiles; only the timekeeper has it.
    all: Option<u64>,
    /// The particles that neighbours sent in this step.
    arrivals: Halos<ParticleBatch>,
}

/// Particles that go to another tile, or none.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ParticleBatch(#[serde(with = "caribou::bulk")] Vec<Particle>);

/// Messages between tiles.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Number of particles in the tiles with a smaller index.
    CountBefore(u64),
    /// Number of particles in all tiles.
    TotalCount(u64),
    /// Particles that came from a neighbour.
    Particles(Halo<ParticleBatch>),
    /// All tiles have done `step` steps.
    Complete {
        /// Steps done.
        step: u32,
        /// Tiles that have done them.
        tiles: u64,
        /// Particles that they hold.
        particles: u64,
    },
}

impl Tile {
    /// The tile `index` before the first step.
    #[must_use]
    pub(crate) fn new(problem: Problem, index: [u16; 2]) -> Self {
        let arrivals = Halos::of(problem.tiling.torus().neighbours(index));
        Self { problem, block: Block::new(&problem, index), numbered: false, all: None, arrivals }
    }

    /// Moves the particles, and sends each neighbour the particles that went there.
    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (problem, here) = (self.problem, ctx.index());
        let leavers = stretched(ctx.slowness(), || self.block.step(&problem, here));
        for (neighbour, particles) in zip(problem.tiling.torus().neighbours(here), leavers) {
            let halo = self.arrivals.halo(neighbour.their_slot, ParticleBatch(particles));
            ctx.send(neighbour.index, Message::Particles(halo));
        }
    }

    /// Completes a step when all its particles are here. Then ends, or calls a sync if one is due and begins the next
    /// step.
    fn complete(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.block.shrink();
        let step = self.arrivals.step() as u32;
        let is_last = step == self.problem.steps();
        if is_last {
            ctx.service::<Observers<Verification>>().deliver(ctx, || self.block.tally(&self.problem));
        }
        let values = vec![1, self.block.len() as u64];
        ctx.contribute(step, Reducer::Sum, values, Target::Chunk(TIMEKEEPER));
        if is_last {
            return;
        }
        if ctx.sync_due(u64::from(step - 1)) {
            ctx.at_sync_nowait();
        }
        self.advance(ctx);
    }
}

impl Chunk for Tile {
    type Index = [u16; 2];
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let count = vec![self.block.len() as u64];
        ctx.contribute(BEFORE, Reducer::Sum, count.clone(), Target::Scan);
        ctx.contribute(ALL, Reducer::Sum, count, Target::Chunk(TIMEKEEPER));
    }

    fn ready(&self, message: &Message) -> bool {
        match message {
            // A neighbour may get its IDs, and move, before this tile has its own.
            Message::Particles(arrivals) => self.numbered && self.arrivals.expects(arrivals),
            Message::Complete { .. } => self.all.is_some(),
            Message::CountBefore(_) | Message::TotalCount(_) => true,
        }
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::CountBefore(count) => {
                self.block.assign_ids(count + 1);
                self.numbered = true;
                self.advance(ctx);
            }
            Message::TotalCount(count) => self.all = Some(count),
            Message::Particles(arrivals) => {
                let Some(all) = self.arrivals.add(arrivals) else { return };
                all.for_each(|ParticleBatch(particles)| self.block.insert(particles));
                self.complete(ctx);
            }
            Message::Complete { step, tiles, particles } => {
                let expected = (self.problem.tiling.tiles(), self.all);
                assert_eq!(
                    (tiles, Some(particles)),
                    expected,
                    "no tile and no particle is lost in step {step}"
                );
                let observers = ctx.service::<Observers<Verification>>();
                // The first step is not timed.
                match step - 1 {
                    0 => observers.begin(ctx),
                    iterations => observers.complete(ctx, iterations),
                }
            }
        }
    }

    /// The chunk did not wait at the sync, so nothing has to start again.
    fn resume(&mut self, _ctx: &mut Ctx<'_, Self>) {}

    fn reduced(tag: u32, values: Values) -> Message {
        let Values::U64(sums) = values else { panic!("tiles contribute counts, not {values:?}") };
        match tag {
            BEFORE => Message::CountBefore(sums[0]),
            ALL => Message::TotalCount(sums[0]),
            step => Message::Complete { step, tiles: sums[0], particles: sums[1] },
        }
    }

    fn state_bytes(&self) -> u64 {
        (size_of::<Self>() + self.block.len() * size_of::<Particle>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::tests::problem;
    use crate::tiling::OFFSETS;
    use caribou::testing::{Effects, probe};

    const HERE: [u16; 2] = [0, 2];

    fn tile() -> Tile {
        Tile::new(problem(20, 4, 2000, "sinusoidal"), HERE)
    }

    /// A tile that has made its first step, and its effects.
    fn started() -> (Tile, Effects<Tile>) {
        let mut tile = tile();
        let effects = probe(&mut tile, HERE).receive(Message::CountBefore(100));
        (tile, effects)
    }

    /// The message of the neighbour in that slot, which has completed `step` steps.
    fn arrivals(step: u64, slot: u32, particles: Vec<Particle>) -> Message {
        let mut neighbour = Halos::new(1);
        for _ in 0..step {
            let _ = neighbour.add(neighbour.halo(0, ParticleBatch(Vec::new())));
        }
        Message::Particles(neighbour.halo(slot, ParticleBatch(particles)))
    }

    #[test]
    fn a_tile_says_how_many_begin_in_it_before_anybody_moves() {
        let mut tile = tile();
        let effects = probe(&mut tile, HERE).start();
        assert!(effects.messages.is_empty() && effects.contributions.len() == 2);
        assert!(!tile.ready(&arrivals(0, 0, Vec::new())));
    }

    #[test]
    fn ids_follow_those_of_the_tiles_before() {
        let (tile, effects) = started();
        let sent = effects.messages.iter().flat_map(|(_, message)| match message {
            Message::Particles(Halo { value: ParticleBatch(particles), .. }) => particles.clone(),
            other => panic!("{other:?}"),
        });
        let mut all = tile;
        all.block.insert(sent.collect());
        let count = all.block.len() as u64;
        assert_eq!(all.block.tally(&all.problem).id_sum, (101..=100 + count).sum::<u64>());
    }

    #[test]
    fn a_tile_sends_all_eight_neighbours_their_particles_and_be_it_none() {
        let (tile, effects) = started();
        let (torus, mut empty) = (tile.problem.tiling.torus(), 0);
        for (way, (to, message)) in zip(OFFSETS, &effects.messages) {
            assert_eq!(Some(*to), torus.neighbour(HERE, way));
            let Message::Particles(Halo { value: ParticleBatch(particles), .. }) = message else {
                panic!("{message:?}")
            };
            empty += usize::from(particles.is_empty());
        }
        // One column to the right and one row up: three neighbours get some.
        assert_eq!((effects.messages.len(), empty), (8, 5));
    }

    #[test]
    fn the_particles_of_a_neighbour_that_is_ahead_have_to_wait() {
        let (tile, _) = started();
        assert!(tile.ready(&arrivals(0, 0, Vec::new())));
        assert!(!tile.ready(&arrivals(1, 0, Vec::new())));
    }

    #[test]
    fn the_eighth_arrival_brings_the_contribution_and_the_next_step() {
        let (mut tile, _) = started();
        let before = tile.block.len() as u64;
        for slot in 0..7 {
            let particles = vec![Particle::new([3, 11], 0, 1)];
            let effects = probe(&mut tile, HERE).receive(arrivals(0, slot, particles));
            assert!(effects.messages.is_empty() && effects.contributions.is_empty());
        }
        let effects = probe(&mut tile, HERE).period(1).receive(arrivals(0, 7, Vec::new()));
        assert_eq!(effects.contributions, [(1, Values::U64(vec![1, before + 7]))]);
        assert_eq!(effects.messages.len(), 8);
        assert!(tile.ready(&arrivals(1, 0, Vec::new())) && !effects.at_sync, "the first step is not timed");
        for slot in 0..7 {
            probe(&mut tile, HERE).receive(arrivals(1, slot, Vec::new()));
        }
        assert!(probe(&mut tile, HERE).period(1).receive(arrivals(1, 7, Vec::new())).at_sync);
    }

    #[test]
    fn a_tile_is_as_large_as_its_particles() {
        let mut tile = tile();
        let before = tile.state_bytes();
        tile.block.insert(vec![Particle::new([3, 11], 0, 1); 5]);
        assert_eq!(tile.state_bytes() - before, 5 * 80);
    }

    #[test]
    #[should_panic(expected = "no particle is lost in step 3")]
    fn a_lost_particle_is_noticed_at_once() {
        let (mut tile, _) = started();
        let complete = |particles| Message::Complete { step: 3, tiles: 16, particles };
        assert!(!tile.ready(&complete(99)), "nobody knows how many there should be");
        probe(&mut tile, TIMEKEEPER).receive(Message::TotalCount(100));
        assert!(tile.ready(&complete(99)));
        probe(&mut tile, TIMEKEEPER).receive(complete(99));
    }
}
