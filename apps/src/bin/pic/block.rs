//! Does the work of one tile: moves its particles, and hands over the particles that leave it.

use std::iter::zip;

use serde::{Deserialize, Serialize};

use crate::particle::Particle;
use crate::problem::Problem;
use crate::tiling::OFFSETS;
use crate::verification::Verification;

/// The particles of one tile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Block {
    #[serde(with = "caribou::bulk")]
    particles: Vec<Particle>,
}

impl Block {
    /// The particles that begin in a tile, without IDs.
    #[must_use]
    pub(crate) fn new(problem: &Problem, tile: [u16; 2]) -> Self {
        Self { particles: problem.initial_particles(problem.tiling.part(tile)).collect() }
    }

    /// Particles.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.particles.len()
    }

    /// Gives the particles the IDs from `first` on.
    pub(crate) fn assign_ids(&mut self, first: u64) {
        for (particle, id) in zip(&mut self.particles, first..) {
            *particle = particle.with_id(id);
        }
    }

    /// One step. Returns the particles that left the tile, by their [offset](OFFSETS).
    pub(crate) fn step(&mut self, problem: &Problem, tile: [u16; 2]) -> [Vec<Particle>; OFFSETS.len()] {
        let (tiling, side) = (problem.tiling, problem.side());
        let part = tiling.part(tile);
        let mut leavers: [Vec<Particle>; OFFSETS.len()] = Default::default();
        let stays = |particle: &mut Particle| {
            particle.step(side);
            let cell = particle.cell();
            let stays = part.contains(cell) || tiling.owner(cell) == tile;
            if !stays {
                leavers[tiling.offset_index(tile, tiling.owner(cell))].push(*particle);
            }
            stays
        };
        self.particles.retain_mut(stays);
        leavers
    }

    /// Adds particles that came from a neighbour.
    pub(crate) fn insert(&mut self, mut arrivals: Vec<Particle>) {
        self.particles.append(&mut arrivals);
    }

    /// Frees memory that is not needed after a hot spot has passed.
    pub(crate) fn shrink(&mut self) {
        let count = self.particles.len();
        if self.particles.capacity() > 4 * count {
            self.particles.shrink_to(2 * count);
        }
    }

    /// Verifies every particle.
    #[must_use]
    pub(crate) fn tally(&self, problem: &Problem) -> Verification {
        Verification::of(&self.particles, problem.steps(), problem.side())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::tests::problem;

    #[test]
    fn leavers_go_to_the_tile_that_they_are_in_now() {
        let problem = Problem { k: 1, m: -3, ..problem(20, 4, 2000, "sinusoidal") };
        let here = [3, 0];
        let mut block = Block::new(&problem, here);
        let before = block.len();
        let leavers = block.step(&problem, here);
        assert_eq!(block.len() + leavers.iter().map(Vec::len).sum::<usize>(), before);
        assert!(leavers.iter().filter(|particles| !particles.is_empty()).count() == 3);
        for (way, particles) in zip(OFFSETS, &leavers) {
            let there = problem.tiling.torus().neighbour(here, way);
            assert!(particles.iter().all(|particle| Some(problem.tiling.owner(particle.cell())) == there));
        }
        assert!(block.particles.iter().all(|particle| problem.tiling.owner(particle.cell()) == here));
    }

    #[test]
    fn a_tile_that_the_hot_spot_has_left_keeps_little_memory() {
        let problem = problem(20, 1, 2000, "sinusoidal");
        let mut block = Block::new(&problem, [0, 0]);
        block.particles.truncate(10);
        block.shrink();
        assert!(block.particles.capacity() <= 40);
    }
}
