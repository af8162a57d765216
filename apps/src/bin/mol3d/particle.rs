//! Defines a particle, what a cell does with its particles, and energies whose sums are exact.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::grid::{Grid, Offset, Vector, plus};

/// A particle of mass 1.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Particle {
    /// In coordinates near its cell, so beyond the border of the box until it is handed over.
    pub(crate) place: Vector,
    pub(crate) velocity: Vector,
    pub(crate) id: u64,
}

/// Energies of many particles in whole numbers of a small unit, so that their sum is the same in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Energy {
    pub(crate) kinetic: i64,
    pub(crate) potential: i64,
}

impl Energy {
    const UNIT: f64 = 1.0 / (1_u64 << 24) as f64;
    /// The largest energy.
    pub(crate) const MOST: f64 = i64::MAX as f64 * Self::UNIT;

    /// Converts from units of the depth of the potential.
    pub(crate) fn new(kinetic: f64, potential: f64) -> Self {
        let [kinetic, potential] = [kinetic, potential].map(|energy| (energy / Self::UNIT) as i64);
        Self { kinetic, potential }
    }

    /// Kinetic, potential, and their sum.
    pub(crate) fn parts(self) -> [f64; 3] {
        let total = self.kinetic.saturating_add(self.potential);
        [self.kinetic, self.potential, total].map(|energy| energy as f64 * Self::UNIT)
    }
}

/// Changes the velocities by these forces over half a time step.
pub(crate) fn kick(particles: &mut [Particle], forces: &[Vector], half_step: f64) {
    for (particle, &force) in particles.iter_mut().zip(forces) {
        particle.velocity = plus(particle.velocity, force, half_step);
    }
}

/// Moves particles for a time step.
pub(crate) fn drift(particles: &mut [Particle], step: f64) {
    for particle in particles {
        particle.place = plus(particle.place, particle.velocity, step);
    }
}

/// Takes out the particles that have left the cell, by direction, with positions in the coordinates of the neighbour.
pub(crate) fn take_outgoing(
    particles: &mut Vec<Particle>,
    grid: &Grid,
    cell: [u16; 3],
) -> [Vec<Particle>; 27] {
    let mut leavers = [const { Vec::new() }; 27];
    particles.retain(|&particle| {
        let way = grid.offset_to(cell, particle.place);
        if way == Offset::STAY {
            return true;
        }
        let (_, shift) = grid.beyond(cell, way);
        leavers[usize::from(way.0)].push(Particle { place: plus(particle.place, shift, -1.0), ..particle });
        false
    });
    leavers
}

/// The places of particles.
pub(crate) fn places(particles: &[Particle]) -> Vec<Vector> {
    particles.iter().map(|particle| particle.place).collect()
}

/// Kinetic energy.
pub(crate) fn kinetic(particles: &[Particle]) -> f64 {
    let squared = |velocity: Vector| velocity.iter().map(|length| length * length).sum::<f64>();
    particles.iter().map(|particle| 0.5 * squared(particle.velocity)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leavers_lie_in_the_neighbour_that_they_went_to() {
        let grid = Grid::new([6.0; 3], 2.0).unwrap();
        let particle = |id, place| Particle { place, velocity: [0.0; 3], id };
        let mut particles = vec![
            particle(0, [1.0, 5.0, 3.0]),
            particle(1, [-0.5, 5.0, 3.0]),
            particle(2, [1.0, 6.5, 1.5]),
            particle(3, [0.5, 4.0, 2.0]),
        ];
        let cell = [0, 2, 1];
        let leavers = take_outgoing(&mut particles, &grid, cell);
        assert_eq!(particles.iter().map(|particle| particle.id).collect::<Vec<_>>(), [0, 3]);
        for way in Offset::all() {
            let (there, _) = grid.beyond(cell, way);
            for particle in &leavers[usize::from(way.0)] {
                assert_eq!(grid.owner(particle.place), (there, particle.place), "{particle:?}");
            }
        }
        assert_eq!(leavers.iter().map(Vec::len).sum::<usize>(), 2);
    }

    #[test]
    fn energies_add_up_exactly() {
        let bits = |parts: [f64; 3]| parts.map(f64::to_bits);
        assert_eq!(bits(Energy::new(1.5, -5.25).parts()), bits([1.5, -5.25, -3.75]));
    }
}
