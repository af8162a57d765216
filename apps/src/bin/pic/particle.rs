//! Moves one particle, and verifies its position at the end.
//!
//! Charges of one unit sit at the corners of the cells: +1 in even columns, -1 in odd ones. A particle begins in the
//! middle of a cell, with a charge by which the corners push it by 2(2k+1) to the right. One step later, in a column of
//! the other sign, the corners brake it by as much. So it moves 2k+1 columns in each step, and m rows, which nothing
//! changes.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

/// Half of a cell: particles begin, and stay, in the middle.
const HALF: f64 = 0.5;

/// A particle in a periodic grid. Positions are in cells, velocities in cells per step; the mass is 1.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Particle {
    x: f64,
    y: f64,
    velocity_x: f64,
    velocity_y: f64,
    charge: f64,
    first_x: f64,
    first_y: f64,
    k: f64,
    m: f64,
    id: f64,
}

/// A particle that is not where it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Astray {
    /// Its ID.
    pub(crate) id: u64,
    /// Where it is.
    pub(crate) at: [f64; 2],
    /// Where it has to be.
    pub(crate) expected: [f64; 2],
}

impl Particle {
    /// Largest distance, in cells, between a particle and the place where it has to be.
    const TOLERANCE: f64 = 1e-6;

    /// A particle at rest in the middle of the cell `[column, row]`. It moves `2k + 1` columns and `m` rows per step.
    #[must_use]
    pub(crate) fn new([column, row]: [u32; 2], k: u32, m: i32) -> Self {
        let [x, y] = [column, row].map(|at| f64::from(at) + HALF);
        // The force on a charge of 1 by a charge of 1 at each of the lower corners.
        let (push, _) = coulomb(1.0, HALF, HALF);
        let (k, m) = (f64::from(k), f64::from(m));
        let charge = sign(column) * (2.0 * k + 1.0) / (push + push);
        Self { x, y, velocity_x: 0.0, velocity_y: m, charge, first_x: x, first_y: y, k, m, id: 0.0 }
    }

    /// The same particle with an ID.
    #[must_use]
    pub(crate) fn with_id(self, id: u64) -> Self {
        Self { id: id as f64, ..self }
    }

    /// Its ID; 0 if it has none.
    #[must_use]
    pub(crate) fn id(&self) -> u64 {
        self.id as u64
    }

    /// The cell that it is in, as column and row.
    #[must_use]
    pub(crate) fn cell(&self) -> [u32; 2] {
        [self.x as u32, self.y as u32]
    }

    /// One step in a grid of `grid` cells per side: the force of the four corners, and the motion.
    #[inline]
    pub(crate) fn step(&mut self, grid: f64) {
        let (column, row) = (self.x.floor(), self.y.floor());
        let (right_of, above) = (self.x - column, self.y - row);
        let left = self.charge * sign(column as u32);
        let corners = [
            coulomb(left, right_of, above),
            coulomb(left, right_of, 1.0 - above),
            coulomb(-left, 1.0 - right_of, above),
            coulomb(-left, 1.0 - right_of, 1.0 - above),
        ];
        let force_x = corners[0].0 + corners[1].0 - corners[2].0 - corners[3].0;
        let force_y = corners[0].1 - corners[1].1 + corners[2].1 - corners[3].1;
        self.x = (self.x + self.velocity_x + 0.5 * force_x + grid) % grid;
        self.y = (self.y + self.velocity_y + 0.5 * force_y + grid) % grid;
        self.velocity_x += force_x;
        self.velocity_y += force_y;
    }

    /// Verifies the position after `steps` steps. Returns both positions if it is wrong.
    #[must_use]
    pub(crate) fn astray(&self, steps: u32, grid: f64) -> Option<Astray> {
        let to_the_right = self.charge * sign(self.first_x as u32) > 0.0;
        let columns = f64::from(steps) * (2.0 * self.k + 1.0) * if to_the_right { 1.0 } else { -1.0 };
        let rows = f64::from(steps) * self.m;
        let expected = [self.first_x + columns, self.first_y + rows].map(|at| at.rem_euclid(grid));
        let at = [self.x, self.y];
        let right = |(at, expected): (f64, f64)| (at - expected).abs() <= Self::TOLERANCE;
        let is_right = at.into_iter().zip(expected).all(right);
        (!is_right).then(|| Astray { id: self.id(), at, expected })
    }

    /// A hash of all its bits except those of the ID.
    #[must_use]
    pub(crate) fn digest(&self) -> u64 {
        let anonymous: [u64; 10] = bytemuck::cast(self.with_id(0));
        let mix =
            |digest: u64, bits: u64| (digest ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        anonymous.into_iter().fold(1, mix)
    }
}

/// The fixed charge at the corners of a column.
fn sign(column: u32) -> f64 {
    if column.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// The force along both axes between two charges with this product, at this distance along each axis.
#[inline]
fn coulomb(charges: f64, across: f64, along: f64) -> (f64, f64) {
    let square = across * across + along * along;
    let distance = square.sqrt();
    let force = charges / square;
    (force * across / distance, force * along / distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_particle_moves_by_its_columns_and_rows_and_stays_in_the_middle() {
        for (k, m) in [(0, 0), (1, 2), (20, -3), (3, -1)] {
            for column in [4, 5] {
                let mut particle = Particle::new([column, 9], k, m);
                for step in 1..=1000 {
                    particle.step(50.0);
                    assert_eq!(particle.astray(step, 50.0), None, "step {step}");
                }
                assert!((particle.x.fract() - HALF).abs() < 1e-9, "{particle:?}");
            }
        }
    }

    #[test]
    fn a_particle_that_missed_a_step_or_went_a_hair_too_far_is_astray() {
        let mut particle = Particle::new([3, 4], 2, 1).with_id(7);
        particle.step(20.0);
        assert_eq!(particle.astray(2, 20.0), Some(Astray { id: 7, at: [8.5, 5.5], expected: [13.5, 6.5] }));
        particle.y += 2e-6;
        assert!(particle.astray(1, 20.0).is_some());
    }

    #[test]
    fn the_digest_sees_the_last_bit_and_no_id() {
        let particle = Particle::new([3, 4], 2, 1);
        assert_eq!(particle.digest(), particle.with_id(9).digest());
        let mut other = particle;
        other.velocity_x = f64::from_bits(1);
        assert_ne!(particle.digest(), other.digest());
    }
}
