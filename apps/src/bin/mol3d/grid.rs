//! Cuts the periodic box into cells, and finds the neighbours of a cell and the cell of a position.

use serde::{Deserialize, Serialize};

/// A position, a velocity or a force.
pub(crate) type Vector = [f64; 3];

/// The sum of a vector and `times` another.
#[inline]
pub(crate) fn plus(one: Vector, other: Vector, times: f64) -> Vector {
    [0, 1, 2].map(|axis| one[axis] + times * other[axis])
}

/// One of the 27 directions from a cell to a neighbour or to itself, ordered by x, then y, then z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Offset(pub(crate) u8);

impl Offset {
    /// The direction to the cell itself.
    pub(crate) const STAY: Self = Self(13);

    /// All 27.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..27).map(Self)
    }

    /// One of each two opposite directions, and the cell itself: 14, so that each two neighbours form one pair.
    pub(crate) fn half() -> impl Iterator<Item = Self> {
        (Self::STAY.0..27).map(Self)
    }

    /// The opposite direction.
    pub(crate) fn back(self) -> Self {
        Self(26 - self.0)
    }

    /// The direction with steps of -1, 0 or 1 along each axis.
    pub(crate) fn of([x, y, z]: [i8; 3]) -> Self {
        Self((9 * (x + 1) + 3 * (y + 1) + z + 1) as u8)
    }

    fn steps(self) -> [i8; 3] {
        let Self(way) = self;
        [way / 9, way / 3 % 3, way % 3].map(|step| step as i8 - 1)
    }
}

/// A box with periodic borders, and equal cells in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Grid {
    /// Cells along each axis.
    pub(crate) cells: [u16; 3],
    /// The sides of a cell.
    pub(crate) sides: Vector,
}

impl Grid {
    /// The finest grid of a box with no cell narrower than `narrowest`; `None` if the box itself is narrower.
    pub(crate) fn new(sides: Vector, narrowest: f64) -> Option<Self> {
        let cells = sides.map(|side| (side / narrowest) as u16);
        let sides = [0, 1, 2].map(|axis| sides[axis] / f64::from(cells[axis]));
        cells.iter().all(|&count| count > 0).then_some(Self { cells, sides })
    }

    /// The sides of the box.
    pub(crate) fn extent(&self) -> Vector {
        [0, 1, 2].map(|axis| self.sides[axis] * f64::from(self.cells[axis]))
    }

    /// Cells in all.
    pub(crate) fn count(&self) -> u64 {
        self.cells.iter().map(|&count| u64::from(count)).product()
    }

    /// All cells, in rising order.
    pub(crate) fn all(&self) -> impl Iterator<Item = [u16; 3]> {
        let [planes, rows, columns] = self.cells;
        (0..planes).flat_map(move |x| (0..rows).flat_map(move |y| (0..columns).map(move |z| [x, y, z])))
    }

    /// The position of a cell in the order of all cells.
    pub(crate) fn position(&self, [x, y, z]: [u16; 3]) -> usize {
        let [_, rows, columns] = self.cells.map(usize::from);
        (usize::from(x) * rows + usize::from(y)) * columns + usize::from(z)
    }

    /// The neighbour in a direction, and the shift that puts its positions beside `cell`, across the border of the box.
    pub(crate) fn beyond(&self, cell: [u16; 3], way: Offset) -> ([u16; 3], Vector) {
        let (steps, extent) = (way.steps(), self.extent());
        let (mut there, mut shift) = (cell, [0.0; 3]);
        for axis in 0..3 {
            let last = self.cells[axis] - 1;
            (there[axis], shift[axis]) = match steps[axis] {
                -1 if cell[axis] == 0 => (last, -extent[axis]),
                1 if cell[axis] == last => (0, extent[axis]),
                step => (cell[axis].wrapping_add_signed(step.into()), 0.0),
            };
        }
        (there, shift)
    }

    /// The direction from a cell to the cell of `place`.
    pub(crate) fn offset_to(&self, cell: [u16; 3], place: Vector) -> Offset {
        let step = |axis: usize| match self.borders(cell, axis) {
            [low, _] if place[axis] < low => -1,
            [_, high] if place[axis] >= high => 1,
            _ => 0,
        };
        Offset::of([step(0), step(1), step(2)])
    }

    /// True if `place` is in the cell, or at most `margin` outside of it along each axis.
    pub(crate) fn is_near(&self, cell: [u16; 3], place: Vector, margin: f64) -> bool {
        (0..3).all(|axis| {
            let [low, high] = self.borders(cell, axis);
            // False for NaN.
            low - margin <= place[axis] && place[axis] <= high + margin
        })
    }

    fn borders(&self, cell: [u16; 3], axis: usize) -> [f64; 2] {
        [cell[axis], cell[axis] + 1].map(|border| f64::from(border) * self.sides[axis])
    }

    /// The cell of `place`, and `place` moved into the box.
    pub(crate) fn owner(&self, place: Vector) -> ([u16; 3], Vector) {
        let extent = self.extent();
        let inside = [0, 1, 2].map(|axis| place[axis].rem_euclid(extent[axis]));
        let cell = |axis: usize| ((inside[axis] / self.sides[axis]) as u16).min(self.cells[axis] - 1);
        ([cell(0), cell(1), cell(2)], inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        Grid::new([6.0, 4.5, 2.0], 1.5).unwrap()
    }

    #[test]
    fn cells_are_as_narrow_as_they_may_be() {
        assert_eq!((grid().cells, grid().sides), ([4, 3, 1], [1.5, 1.5, 2.0]));
        assert_eq!(grid().all().map(|cell| grid().position(cell)).collect::<Vec<_>>(), Vec::from_iter(0..12));
        assert_eq!(Grid::new([6.0, 1.4, 2.0], 1.5), None);
    }

    #[test]
    fn fourteen_ways_and_the_ways_back_lead_everywhere_once() {
        let back = Offset::half().map(Offset::back).filter(|&way| way != Offset::STAY);
        let mut both: Vec<_> = Offset::half().chain(back).collect();
        both.sort_unstable();
        assert_eq!(both, Vec::from_iter(Offset::all()));
        assert!(Offset::all().all(|way| Offset::of(way.steps()) == way));
    }

    #[test]
    fn an_offset_and_its_opposite_lead_back() {
        for cell in grid().all() {
            for way in Offset::all() {
                let (there, shift) = grid().beyond(cell, way);
                assert_eq!(grid().beyond(there, way.back()), (cell, shift.map(|length| 0.0 - length)));
            }
        }
        assert_eq!(grid().beyond([0, 2, 0], Offset::of([-1, 1, 0])), ([3, 0, 0], [-6.0, 4.5, 0.0]));
    }

    #[test]
    fn a_place_is_in_its_cell_and_a_little_outside_is_a_neighbours() {
        assert_eq!(grid().owner([1.6, -0.5, 7.9]), ([1, 2, 0], [1.6, 4.0, 7.9_f64.rem_euclid(2.0)]));
        let (cell, outside) = ([1, 2, 0], [1.4, 4.0, 2.25]);
        assert_eq!(grid().offset_to(cell, outside), Offset::of([-1, 0, 1]));
        assert_eq!(grid().offset_to(cell, [1.5, 4.5, 1.0]), Offset::of([0, 1, 0]));
        assert!(grid().is_near(cell, outside, 0.25) && !grid().is_near(cell, outside, 0.24));
        assert!(!grid().is_near(cell, [f64::NAN, 4.0, 1.0], 9.0));
    }
}
