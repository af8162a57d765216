//! Describes the problem: a square of side 1, 0 on three sides and a sine on the fourth. Its solution is known.

use std::f64::consts::PI;

/// A grid of points inside the square, and when to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem {
    /// Points along a side, without the border.
    pub(crate) grid: usize,
    /// The greatest change of a point in a sweep that is small enough.
    pub(crate) tolerance: f64,
    /// Maximum number of sweeps, of two steps each: one of the red points, one of the black.
    pub(crate) sweeps: u32,
}

impl Problem {
    /// The distance between two points.
    pub(crate) fn spacing(&self) -> f64 {
        1.0 / (self.grid + 1) as f64
    }

    /// The over-relaxation that converges fastest on a square (Young, 1954): 2 / (1 + sin(pi h)).
    pub(crate) fn relaxation(&self) -> f64 {
        2.0 / (1.0 + (PI * self.spacing()).sin())
    }

    /// The border beyond the last row: sin(pi x).
    pub(crate) fn border(&self) -> Vec<f64> {
        (1..=self.grid).map(|column| (PI * column as f64 * self.spacing()).sin()).collect()
    }

    /// The solution of the equation at a point of the grid, from 0: sin(pi x) sinh(pi y) / sinh(pi).
    pub(crate) fn solution(&self, row: usize, column: usize) -> f64 {
        let [y, x] = [row, column].map(|at| PI * (at + 1) as f64 * self.spacing());
        x.sin() * y.sinh() / PI.sinh()
    }

    /// The greatest difference between these rows, from the first on, and the solution.
    pub(crate) fn error(&self, rows: &[Vec<f64>]) -> f64 {
        let points = rows.iter().enumerate().flat_map(|(row, points)| {
            points.iter().enumerate().map(move |(column, value)| (row, column, *value))
        });
        let error = |(row, column, value): (usize, usize, f64)| (value - self.solution(row, column)).abs();
        points.map(error).fold(0.0, f64::max)
    }
}
