//! Makes the initial field: a pressure of 1 everywhere, and some round pulses.
//!
//! The field is a function of the cell's row and column on the whole grid. So every chunk fills its own part, and no
//! process holds, or sends, the whole field.

use caribou::random::stream;
use caribou_apps::stencil2d::plate::Part;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// The pressure where there is no wave, and at all times on the border.
///
/// Not zero: numbers that approach zero ahead of a wave become denormal, and a chunk full of these is many times
/// slower.
pub(crate) const REST: f64 = 1.0;

/// Pulses at random places that depend only on the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pulses {
    /// The number of pulses.
    pub(crate) count: u32,
    /// Decides the places, widths and heights of the pulses.
    pub(crate) seed: u64,
}

/// One pulse, in cells.
struct Pulse {
    row: f64,
    column: f64,
    width: f64,
    height: f64,
}

impl Pulse {
    /// The part of its height at a distance along one axis. A Gaussian is the product of these parts.
    fn share(&self, distance: f64) -> f64 {
        (-0.5 * (distance / self.width).powi(2)).exp()
    }
}

impl Pulses {
    /// The cells of a part of a grid of `grid` cells per side, row by row.
    pub(crate) fn fill(self, grid: usize, part: Part) -> Vec<f64> {
        let mut cells = vec![REST; part.height * part.width];
        for pulse in (0..self.count).map(|number| self.pulse(number, grid as f64)) {
            let along = |first: usize, count: usize, middle: f64| -> Vec<f64> {
                (first..first + count).map(|at| pulse.share(at as f64 - middle)).collect()
            };
            let columns = along(part.left, part.width, pulse.column);
            let rows = along(part.top, part.height, pulse.row);
            for (row, share) in cells.chunks_exact_mut(part.width).zip(rows) {
                row.iter_mut()
                    .zip(&columns)
                    .for_each(|(cell, column)| *cell += pulse.height * share * column);
            }
        }
        cells
    }

    /// A pulse of 1 to 3 % of the grid, but at least 1.5 cells wide: narrower ones would not stay round.
    fn pulse(self, number: u32, grid: f64) -> Pulse {
        let mut random = stream(self.seed, number.into());
        let mut between = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
        let [row, column] = [(); 2].map(|()| grid * between(0.1, 0.9));
        let width = (grid * between(0.01, 0.03)).max(1.5);
        let height = between(0.2, 0.5);
        let sign = if number.is_multiple_of(2) { 1.0 } else { -1.0 };
        Pulse { row, column, width, height: sign * height }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou_apps::stencil2d::plate::Shape;
    use caribou_apps::stencil2d::serial::Field;

    #[test]
    fn parts_are_filled_as_the_whole_is() {
        let (shape, whole) = (Shape::new(43, 8).unwrap(), Shape::new(43, 43).unwrap());
        let pulses = Pulses { count: 3, seed: 7 };
        let field = |shape: Shape| {
            let mut field = Field::unfilled(shape);
            let [rows, columns] = shape.extent();
            for index in (0..rows).flat_map(|row| (0..columns).map(move |column| [row, column])) {
                let part = shape.part(index);
                field.fill(part, pulses.fill(43, part).chunks_exact(part.width));
            }
            field
        };
        assert_eq!(field(shape).difference(&field(whole)), None);
    }

    #[test]
    fn a_seed_decides_all_and_pulses_are_as_high_as_promised() {
        let part = Part { top: 0, left: 0, height: 100, width: 100 };
        let cells = |count, seed| Pulses { count, seed }.fill(100, part);
        assert_eq!(cells(2, 1), cells(2, 1));
        assert_ne!(cells(2, 1), cells(2, 2));
        let highest = cells(1, 1).into_iter().fold(0.0, f64::max);
        assert!((REST + 0.15..REST + 0.5).contains(&highest), "{highest}");
        assert!(cells(0, 1).iter().all(|cell| cell.to_bits() == REST.to_bits()));
    }
}
