//! Computes the reference without the runtime: the whole plate in two plain buffers, one thread, no chunks.
//!
//! It shares with the chunked program only the initial field and the expression for one cell. Parts, halos, the
//! in-place sweep and the runtime are absent, so a mistake in any of them shows as a difference.

use super::kernel::relaxed;
use super::plate::{HOT, Part, Shape, initial};

/// The cells of a plate, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    grid: usize,
    cells: Vec<f64>,
}

/// The first cell in which two fields differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Row on the plate.
    pub row: usize,
    /// Column on the plate.
    pub column: usize,
    /// The value found.
    pub found: f64,
    /// The value of the reference.
    pub expected: f64,
    /// Cells that differ in all.
    pub cells: usize,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { row, column, found, expected, cells } = self;
        write!(
            f,
            "{cells} cells differ, the first at row {row}, column {column}: {found:e} instead of {expected:e}"
        )
    }
}

impl Field {
    /// A field of the shape's size, to be filled part by part. A cell that is not filled is NaN.
    #[must_use]
    pub fn unfilled(shape: Shape) -> Self {
        Self { grid: shape.grid(), cells: vec![f64::NAN; shape.grid() * shape.grid()] }
    }

    /// Copies the rows of one part to their place.
    ///
    /// # Panics
    /// If a row is not as wide as `part`, or lies outside the field.
    pub fn fill<'a>(&mut self, part: Part, rows: impl Iterator<Item = &'a [f64]>) {
        for (i, row) in rows.enumerate() {
            let start = (part.top + i) * self.grid + part.left;
            self.cells[start..start + part.width].copy_from_slice(row);
        }
    }

    /// Compares bit for bit; `None` when nothing differs.
    ///
    /// # Panics
    /// If the two fields are of different size.
    #[must_use]
    pub fn difference(&self, reference: &Self) -> Option<Difference> {
        assert_eq!(self.grid, reference.grid, "both fields are of one size");
        let pairs = self.cells.iter().zip(&reference.cells);
        let mut differing =
            pairs.enumerate().filter(|(_, (found, expected))| found.to_bits() != expected.to_bits());
        let (at, (&found, &expected)) = differing.next()?;
        let cells = 1 + differing.count();
        Some(Difference { row: at / self.grid, column: at % self.grid, found, expected, cells })
    }
}

/// The plate after `iterations` Jacobi iterations.
#[must_use]
pub fn run(shape: Shape, iterations: u32) -> Field {
    let grid = shape.grid();
    let width = grid + 2;
    // One ring of border cells around the plate; it is never written again.
    let mut old = vec![0.0; width * width];
    old[..width].fill(HOT);
    for row in 0..grid {
        for column in 0..grid {
            old[(row + 1) * width + column + 1] = initial(row, column);
        }
    }
    let mut new = old.clone();
    for _ in 0..iterations {
        for (row, target) in new.chunks_exact_mut(width).enumerate().skip(1).take(grid) {
            let [north, here, south] =
                [row - 1, row, row + 1].map(|row| &old[row * width..(row + 1) * width]);
            let (north, south) = (&north[1..=grid], &south[1..=grid]);
            let (west, east) = (&here[..grid], &here[2..]);
            for (j, cell) in target[1..=grid].iter_mut().enumerate() {
                *cell = relaxed(north[j], south[j], west[j], east[j]);
            }
        }
        std::mem::swap(&mut old, &mut new);
    }
    let rows = old.chunks_exact(width).skip(1).take(grid);
    Field { grid, cells: rows.flat_map(|row| &row[1..=grid]).copied().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_cell_follows_the_formula() {
        let field = run(Shape::new(1, 1).unwrap(), 3);
        assert_eq!(field.cells, [0.25 * HOT]);
    }

    #[test]
    fn heat_spreads_from_the_hot_side() {
        let field = run(Shape::new(8, 8).unwrap(), 400);
        let column: Vec<f64> = (0..8).map(|row| field.cells[row * 8 + 4]).collect();
        assert!(column.windows(2).all(|pair| pair[0] > pair[1]), "{column:?}");
        assert!(column[0] < HOT && column[7] > 0.0);
    }

    #[test]
    fn one_wrong_bit_is_found_and_named() {
        let shape = Shape::new(5, 2).unwrap();
        let reference = run(shape, 4);
        let mut field = reference.clone();
        assert_eq!(field.difference(&reference), None);
        field.cells[13] = f64::from_bits(field.cells[13].to_bits() ^ 1);
        let difference = field.difference(&reference).unwrap();
        assert_eq!((difference.row, difference.column, difference.cells), (2, 3, 1));
    }

    #[test]
    fn a_part_that_was_never_filled_differs() {
        let shape = Shape::new(4, 2).unwrap();
        let reference = run(shape, 1);
        assert_eq!(Field::unfilled(shape).difference(&reference).unwrap().cells, 16);
    }
}
