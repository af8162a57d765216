//! Computes the forces between particles by the Lennard-Jones potential, in units of its depth, its length and their
//! mass.
//!
//! The potential is 4 (1/r^12 - 1/r^6), minus a line in r^2 that takes energy and force to 0 at the cut-off. Without
//! that line, energy would jump whenever two particles pass the cut-off, and its conservation could not be checked.

use serde::{Deserialize, Serialize};

use super::grid::{Vector, plus};

/// The potential, cut off at a distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LennardJones {
    cutoff_squared: f64,
    /// The bare potential at the cut-off, and its derivative by the square of the distance.
    energy: f64,
    slope: f64,
}

/// The forces on the particles of two cells, and the energy between them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Interaction {
    pub(crate) on_first: Vec<Vector>,
    pub(crate) on_second: Vec<Vector>,
    pub(crate) energy: f64,
}

/// The bare potential, and its derivative by the square of the distance.
#[inline]
fn bare(squared: f64) -> (f64, f64) {
    let inverse = 1.0 / squared;
    let sixth = inverse * inverse * inverse;
    (4.0 * sixth * (sixth - 1.0), 12.0 * inverse * sixth * (1.0 - 2.0 * sixth))
}

impl LennardJones {
    /// The potential with this cut-off.
    pub(crate) fn new(cutoff: f64) -> Self {
        let cutoff_squared = cutoff * cutoff;
        let (energy, slope) = bare(cutoff_squared);
        Self { cutoff_squared, energy, slope }
    }

    /// The energy of two particles at a squared distance within the cut-off, and their force over the distance.
    #[inline]
    fn at(&self, squared: f64) -> (f64, f64) {
        let (energy, slope) = bare(squared);
        (energy - self.energy - (squared - self.cutoff_squared) * self.slope, 2.0 * (self.slope - slope))
    }

    /// The interaction of the particles of one cell with each other.
    pub(crate) fn within(&self, cell: &[Vector]) -> Interaction {
        let (mut forces, mut near) = (vec![[0.0; 3]; cell.len()], vec![0; cell.len()]);
        let mut energy = 0.0;
        for (i, &place) in cell.iter().enumerate() {
            let (before, rest) = forces.split_at_mut(i + 1);
            let (force, each) = self.on_one(place, &cell[i + 1..], rest, &mut near);
            before[i] = plus(before[i], force, 1.0);
            energy += each;
        }
        Interaction { on_first: forces, on_second: Vec::new(), energy }
    }

    /// The interaction of the particles of two cells. `shift` moves the second cell beside the first.
    ///
    /// Only particles within the cut-off of the space that the other cell's particles take up can interact.
    pub(crate) fn between(&self, first: &[Vector], second: &[Vector], shift: Vector) -> Interaction {
        let all = |cell: &[Vector], shift| -> Vec<(usize, Vector)> {
            cell.iter().map(|&place| plus(place, shift, 1.0)).enumerate().collect()
        };
        let (all_first, all_second) = (all(first, [0.0; 3]), all(second, shift));
        let near_second = self.near(&all_second, &all_first);
        let near_first = self.near(&all_first, &near_second);
        let places: Vec<Vector> = near_second.iter().map(|&(_, place)| place).collect();
        let (mut forces, mut near) = (vec![[0.0; 3]; places.len()], vec![0; places.len()]);
        let mut interaction = Interaction {
            on_first: vec![[0.0; 3]; first.len()],
            on_second: vec![[0.0; 3]; second.len()],
            energy: 0.0,
        };
        for &(i, place) in &near_first {
            let (force, energy) = self.on_one(place, &places, &mut forces, &mut near);
            interaction.on_first[i] = force;
            interaction.energy += energy;
        }
        for (&(i, _), force) in near_second.iter().zip(forces) {
            interaction.on_second[i] = force;
        }
        interaction
    }

    /// The particles of `some` that are within the cut-off of the smallest box around `others`.
    fn near(&self, some: &[(usize, Vector)], others: &[(usize, Vector)]) -> Vec<(usize, Vector)> {
        let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for (_, place) in others {
            for axis in 0..3 {
                low[axis] = low[axis].min(place[axis]);
                high[axis] = high[axis].max(place[axis]);
            }
        }
        let is_near = |(_, place): &&(usize, Vector)| {
            let outside = |axis: usize| (low[axis] - place[axis]).max(place[axis] - high[axis]).max(0.0);
            let squared: f64 = (0..3).map(|axis| outside(axis) * outside(axis)).sum();
            squared < self.cutoff_squared
        };
        some.iter().filter(is_near).copied().collect()
    }

    /// The force of `others` on the particle at `place`, and their energy. The opposite forces are added to `forces`.
    ///
    /// The indices of particles within the cut-off are first collected in `near`. The test cannot be predicted, and a
    /// mispredicted branch takes longer than all the rest.
    #[inline]
    fn on_one(
        &self,
        place: Vector,
        others: &[Vector],
        forces: &mut [Vector],
        near: &mut [usize],
    ) -> (Vector, f64) {
        let squared = |way: Vector| way[0] * way[0] + way[1] * way[1] + way[2] * way[2];
        let mut count = 0;
        for (i, &other) in others.iter().enumerate() {
            near[count] = i;
            count += usize::from(squared(plus(place, other, -1.0)) < self.cutoff_squared);
        }
        let (mut force, mut energy) = ([0.0; 3], 0.0);
        for &i in &near[..count] {
            let way = plus(place, others[i], -1.0);
            let (each, strength) = self.at(squared(way));
            energy += each;
            force = plus(force, way, strength);
            forces[i] = plus(forces[i], way, -strength);
        }
        (force, energy)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Forces and energy by definition: each particle with the nearest image of each other particle.
    pub(crate) fn by_definition(law: &LennardJones, places: &[Vector], extent: Vector) -> (Vec<Vector>, f64) {
        let mut forces = vec![[0.0; 3]; places.len()];
        let mut energy = 0.0;
        for (i, &place) in places.iter().enumerate() {
            for (j, &other) in places.iter().enumerate() {
                let mut way = plus(place, other, -1.0);
                for axis in 0..3 {
                    way[axis] -= extent[axis] * (way[axis] / extent[axis]).round();
                }
                let squared: f64 = way.iter().map(|length| length * length).sum();
                if i != j && squared < law.cutoff_squared {
                    let (each, strength) = law.at(squared);
                    forces[i] = plus(forces[i], way, strength);
                    energy += each / 2.0;
                }
            }
        }
        (forces, energy)
    }

    #[test]
    fn energy_and_force_end_at_the_cut_off_without_a_jump() {
        let law = LennardJones::new(2.5);
        let (energy, strength) = law.at(2.5_f64.powi(2) * (1.0 - 1e-9));
        assert!(energy.abs() < 1e-12 && strength.abs() < 1e-9, "{energy} {strength}");
        // The minimum of the potential, which the cut-off changes little.
        let (energy, strength) = law.at(2.0_f64.cbrt());
        assert!((energy + 1.0).abs() < 0.1 && strength.abs() < 0.1, "{energy} {strength}");
    }

    #[test]
    fn the_force_is_the_slope_of_the_energy() {
        let law = LennardJones::new(2.5);
        for distance in [0.9, 1.0, 1.3, 2.0, 2.4] {
            let energy = |distance: f64| law.at(distance * distance).0;
            let slope = (energy(distance + 1e-6) - energy(distance - 1e-6)) / 2e-6;
            let force = distance * law.at(distance * distance).1;
            assert!((force + slope).abs() < 1e-6 * force.abs().max(1.0), "{distance}: {force} and {slope}");
        }
    }

    #[test]
    fn what_two_cells_do_to_each_other_cancels_out() {
        let first = [[0.1, 0.2, 0.3], [0.9, 0.8, 0.4], [-3.0, 0.0, 0.0]];
        let second = [[-8.1, 0.3, 0.2], [-6.0, 0.0, 0.0]];
        let Interaction { on_first, on_second, energy } =
            LennardJones::new(2.5).between(&first, &second, [10.0, 0.0, 0.0]);
        let total = on_first.iter().chain(&on_second).fold([0.0; 3], |sum, &force| plus(sum, force, 1.0));
        assert!(total.iter().all(|length| length.abs() < 1e-12) && energy < 0.0, "{total:?} {energy}");
        assert_eq!((on_first[2], on_second[1]), ([0.0; 3], [0.0; 3]), "too far away");
    }
}
