//! Describes the problem: all that decides the result.

use caribou_apps::stencil2d::plate::{Part, Shape};
use serde::{Deserialize, Serialize};

use super::pulses::Pulses;

/// Waves that travel over a grid for a number of steps.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Problem {
    /// The grid, and how it is cut.
    pub(crate) shape: Shape,
    /// Steps.
    pub(crate) iterations: u32,
    /// Cells that a wave travels per step.
    pub(crate) speed: f64,
    /// The pulses that the field consists of before the first step.
    pub(crate) pulses: Pulses,
}

impl Problem {
    /// The square of the Courant number, c dt / dx.
    pub(crate) fn courant(&self) -> f64 {
        self.speed * self.speed
    }

    /// The grid in one part.
    pub(crate) fn whole(&self) -> Part {
        let grid = self.shape.grid();
        Part { top: 0, left: 0, height: grid, width: grid }
    }

    /// The parts of all chunks, in the order of their indices.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let (shape, [rows, columns]) = (self.shape, self.shape.extent());
        (0..rows).flat_map(move |row| (0..columns).map(move |column| shape.part([row, column])))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Three pulses on a small grid, which 25 steps carry everywhere.
    pub(crate) fn problem(grid: usize, chunk: usize) -> Problem {
        let pulses = Pulses { count: 3, seed: 1 };
        Problem { shape: Shape::new(grid, chunk).unwrap(), iterations: 25, speed: 0.5, pulses }
    }
}
