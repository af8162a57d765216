//! Cuts the grid into tiles: the cells of a tile, the tile of a cell, the neighbours of a tile.
//!
//! The grid is periodic, so every tile has eight neighbours. With few tiles, several neighbours may be the same tile,
//! or the tile itself.

use std::ops::Range;

use caribou::Grid;
use harness::Error;
use serde::{Deserialize, Serialize};

/// The direction from a tile to a neighbour, in columns and rows of tiles.
pub(crate) type Offset = [i8; 2];

/// The directions to all eight neighbours.
pub(crate) const OFFSETS: [Offset; 8] =
    [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]];

/// A square grid cut into `side` x `side` tiles. Their sides differ by a cell at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tiling {
    grid: u32,
    side: u16,
}

/// The cells of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its columns.
    pub(crate) columns: Range<u32>,
    /// Its rows.
    pub(crate) rows: Range<u32>,
}

impl Part {
    /// True if the cell `[column, row]` is in the tile.
    #[must_use]
    pub(crate) fn contains(&self, [column, row]: [u32; 2]) -> bool {
        self.columns.contains(&column) && self.rows.contains(&row)
    }
}

impl Tiling {
    /// Cuts a grid of `grid` cells per side into `side` tiles per side.
    ///
    /// # Errors
    /// [`Error::Usage`] if the grid is not even, or has fewer cells than tiles per side.
    pub(crate) fn new(grid: u32, side: u16) -> Result<Self, Error> {
        if grid < 2 || !grid.is_multiple_of(2) {
            return Err(Error::Usage(format!(
                "--grid {grid}: expected an even number of cells, as charges alternate"
            )));
        }
        if side == 0 || u32::from(side) > grid {
            return Err(Error::Usage(format!("--tiles {side}: expected from 1 to --grid {grid}")));
        }
        Ok(Self { grid, side })
    }

    /// Cells along one side of the grid.
    #[must_use]
    pub(crate) fn grid(self) -> u32 {
        self.grid
    }

    /// Tiles along one side of the grid.
    #[must_use]
    pub(crate) fn side(self) -> u16 {
        self.side
    }

    /// Cells along the shortest side of a tile.
    #[must_use]
    pub(crate) fn shortest_side(self) -> u32 {
        self.grid / u32::from(self.side)
    }

    /// Tiles in all.
    #[must_use]
    pub(crate) fn tiles(self) -> u64 {
        u64::from(self.side).pow(2)
    }

    /// The cells of the tile `[column, row]`.
    #[must_use]
    pub(crate) fn part(self, tile: [u16; 2]) -> Part {
        let first = |at: u32| (u64::from(at) * u64::from(self.grid) / u64::from(self.side)) as u32;
        let [columns, rows] = tile.map(|at| first(at.into())..first(u32::from(at) + 1));
        Part { columns, rows }
    }

    /// The tile that has the cell `[column, row]`.
    #[must_use]
    pub(crate) fn owner(self, cell: [u32; 2]) -> [u16; 2] {
        let (grid, side) = (u64::from(self.grid), u64::from(self.side));
        cell.map(|at| (((u64::from(at) + 1) * side - 1) / grid) as u16)
    }

    /// The grid of tiles. Its neighbours are in the order of [`OFFSETS`].
    #[must_use]
    pub(crate) fn torus(self) -> Grid<[u16; 2]> {
        Grid::new([self.side; 2]).periodic()
    }

    /// The number in [`OFFSETS`] of the offset from one tile to another.
    ///
    /// # Panics
    /// If the tiles are the same, or not neighbours.
    #[must_use]
    pub(crate) fn offset_index(self, from: [u16; 2], to: [u16; 2]) -> usize {
        let side = i32::from(self.side);
        let step = |at: usize| match (i32::from(to[at]) - i32::from(from[at])).rem_euclid(side) {
            0 => 0,
            1 => 1,
            by if by == side - 1 => -1,
            _ => panic!("a particle goes from tile {from:?} to {to:?}, which is no neighbour"),
        };
        let way = [step(0), step(1)];
        OFFSETS.iter().position(|&other| other == way).expect("it goes to another tile")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_of_the_tile_that_owns_it() {
        for (grid, side) in [(10, 1), (10, 3), (16, 4), (22, 7), (6, 6)] {
            let tiling = Tiling::new(grid, side).unwrap();
            let mut cells = 0;
            for tile in (0..side).flat_map(|column| (0..side).map(move |row| [column, row])) {
                let part = tiling.part(tile);
                for cell in
                    part.columns.clone().flat_map(|column| part.rows.clone().map(move |row| [column, row]))
                {
                    assert_eq!(tiling.owner(cell), tile);
                    assert!(part.contains(cell));
                    cells += 1;
                }
                assert!(part.columns.len() as u32 >= tiling.shortest_side());
            }
            assert_eq!(cells, grid * grid);
        }
    }

    #[test]
    fn sides_differ_by_a_cell_at_most() {
        let tiling = Tiling::new(1000, 16).unwrap();
        assert_eq!(tiling.part([1, 0]).columns, 62..125);
        assert!((0..16).all(|row| (62..=63).contains(&tiling.part([0, row]).rows.len())));
    }

    #[test]
    fn a_way_there_leads_to_the_neighbour_also_around_the_edge() {
        for side in [1, 2, 3, 5] {
            let tiling = Tiling::new(30, side).unwrap();
            let (here, torus) = ([0, side - 1], tiling.torus());
            assert!(torus.neighbours(here).map(|neighbour| neighbour.direction).eq(OFFSETS));
            for neighbour in torus.neighbours(here).filter(|neighbour| neighbour.index != here) {
                let found = OFFSETS[tiling.offset_index(here, neighbour.index)];
                assert_eq!(torus.neighbour(here, found), Some(neighbour.index));
                assert!(side < 3 || found == neighbour.direction);
            }
        }
    }

    #[test]
    #[should_panic(expected = "no neighbour")]
    fn nobody_skips_a_tile() {
        let _ = Tiling::new(10, 5).unwrap().offset_index([0, 0], [2, 0]);
    }

    #[test]
    fn impossible_grids_are_refused_in_words() {
        assert!(Tiling::new(7, 1).unwrap_err().to_string().contains("even number"));
        assert!(Tiling::new(0, 1).is_err());
        assert!(Tiling::new(8, 9).unwrap_err().to_string().contains("from 1 to --grid 8"));
        assert!(Tiling::new(8, 0).is_err());
    }
}
