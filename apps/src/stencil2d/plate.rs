//! Describes the plate: its size, its division into chunks, and its state before the first iteration.
//!
//! All of it is a function of the cell's row and column on the whole plate. So every chunk builds its own part, and no
//! process holds, or sends, the whole plate.

use caribou::Grid;
use harness::error::Error;

/// The temperature held along the north side of the plate; the three other sides are held at zero.
pub const HOT: f64 = 100.0;

/// A square plate of `grid` x `grid` cells, cut into chunks of at most `chunk` x `chunk` cells.
///
/// The chunks of the last row and column are smaller when `chunk` does not divide `grid`.
///
/// ```
/// use caribou_apps::stencil2d::plate::Shape;
/// let shape = Shape::new(1000, 256).expect("a chunk smaller than the grid");
/// assert_eq!(shape.chunks_per_side(), 4);
/// assert_eq!(shape.part([0, 3]).width, 1000 - 3 * 256);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shape {
    grid: usize,
    chunk: usize,
}

/// The rectangle of the plate that one chunk holds, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First row on the plate.
    pub top: usize,
    /// First column on the plate.
    pub left: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// One of the four sides of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Side {
    /// Towards row 0, the hot side of the plate.
    North,
    /// Towards the last row.
    South,
    /// Towards column 0.
    West,
    /// Towards the last column.
    East,
}

impl Side {
    /// All four, in the order in which a block stores its rims: the order of the slots of [`Grid::faces`].
    pub const ALL: [Self; 4] = [Self::North, Self::South, Self::West, Self::East];

    /// The side of the neighbour that touches this side.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::North => Self::South,
            Self::South => Self::North,
            Self::West => Self::East,
            Self::East => Self::West,
        }
    }

    /// The steps to the neighbour on this side, in rows and columns of chunks.
    #[must_use]
    pub fn direction(self) -> [i8; 2] {
        match self {
            Self::North => [-1, 0],
            Self::South => [1, 0],
            Self::West => [0, -1],
            Self::East => [0, 1],
        }
    }

    /// The value of the plate's border on this side, which never changes.
    #[must_use]
    pub fn border(self) -> f64 {
        if self == Self::North { HOT } else { 0.0 }
    }
}

impl Shape {
    /// Checks both sizes.
    ///
    /// # Errors
    /// [`Error::Usage`] when either side is zero, the chunk is larger than the grid, or an index would not fit 16 bits.
    pub fn new(grid: usize, chunk: usize) -> Result<Self, Error> {
        for (option, cells) in [("--grid", grid), ("--chunk", chunk)] {
            if cells == 0 {
                return Err(Error::Usage(format!("{option} 0: expected at least 1 cell")));
            }
        }
        if chunk > grid {
            return Err(Error::Usage(format!(
                "--chunk {chunk} is larger than --grid {grid}: a chunk is a part of the grid"
            )));
        }
        let shape = Self { grid, chunk };
        if shape.chunks_per_side() > usize::from(u16::MAX) {
            return Err(Error::Usage(format!(
                "--grid {grid} in chunks of {chunk} makes more than {} chunks a side: use larger chunks",
                u16::MAX
            )));
        }
        Ok(shape)
    }

    /// Cells along one side of the plate.
    #[must_use]
    pub fn grid(self) -> usize {
        self.grid
    }

    /// Cells along one side of a full chunk.
    #[must_use]
    pub fn chunk(self) -> usize {
        self.chunk
    }

    /// Chunks along one side of the plate.
    #[must_use]
    pub fn chunks_per_side(self) -> usize {
        self.grid.div_ceil(self.chunk)
    }

    /// Chunks in all.
    #[must_use]
    pub fn chunks(self) -> u64 {
        (self.chunks_per_side() as u64).pow(2)
    }

    /// The extent of the array of chunks, as rows and columns.
    #[must_use]
    pub fn extent(self) -> [u16; 2] {
        let side = u16::try_from(self.chunks_per_side()).expect("checked when the shape was made");
        [side, side]
    }

    /// The rectangle of chunk `[row, column]`.
    #[must_use]
    pub fn part(self, [row, column]: [u16; 2]) -> Part {
        let (top, left) = (usize::from(row) * self.chunk, usize::from(column) * self.chunk);
        Part { top, left, height: self.chunk.min(self.grid - top), width: self.chunk.min(self.grid - left) }
    }

    /// The chunk on the other side of `side`, or `None` where the plate ends.
    #[must_use]
    pub fn neighbour(self, index: [u16; 2], side: Side) -> Option<[u16; 2]> {
        self.chunk_grid().neighbour(index, side.direction())
    }

    /// The grid of chunks.
    #[must_use]
    pub fn chunk_grid(self) -> Grid<[u16; 2]> {
        Grid::new(self.extent())
    }
}

/// The temperature of a cell before the first iteration.
///
/// The field is a lattice of uneven bumps. Neighbouring cells and chunks differ, so that a halo at the wrong place or
/// time changes the result. It is never zero, so that no run slows down on denormals. It is in thirds, so that every
/// addition rounds, and another order of additions shows.
#[must_use]
pub fn initial(row: usize, column: usize) -> f64 {
    let bump = (row * 37 + column * 101 + row * column % 53) % 89;
    1.0 + f64::from(u8::try_from(bump).expect("a remainder below 89")) / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_tile_the_plate_when_the_chunk_does_not_divide_it() {
        let shape = Shape::new(10, 4).unwrap();
        let mut seen = vec![0; 100];
        for row in 0..3 {
            for column in 0..3 {
                let part = shape.part([row, column]);
                for i in 0..part.height {
                    for j in 0..part.width {
                        seen[(part.top + i) * 10 + part.left + j] += 1;
                    }
                }
            }
        }
        assert_eq!(seen, vec![1; 100]);
    }

    #[test]
    fn neighbours_agree_from_both_sides_and_end_with_the_plate() {
        let shape = Shape::new(12, 4).unwrap();
        let mut borders = 0;
        for index in (0..3).flat_map(|row| (0..3).map(move |column| [row, column])) {
            for side in Side::ALL {
                let face = shape.chunk_grid().faces(index).find(|face| face.slot == side as u32);
                assert_eq!(face.map(|face| face.index), shape.neighbour(index, side));
                match shape.neighbour(index, side) {
                    Some(other) => assert_eq!(shape.neighbour(other, side.opposite()), Some(index)),
                    None => borders += 1,
                }
            }
        }
        assert_eq!(borders, 12);
    }

    #[test]
    fn impossible_shapes_are_refused_in_words() {
        assert!(Shape::new(8, 9).unwrap_err().to_string().contains("larger than --grid 8"));
        assert!(Shape::new(0, 1).is_err() && Shape::new(8, 0).is_err());
        assert!(Shape::new(70_000, 1).unwrap_err().to_string().contains("larger chunks"));
    }
}
