//! Grids of chunks: computes the neighbours of an index, along the axes or diagonally, with open or periodic borders. A
//! grid stores no chunk and sends nothing. A chunk sends to the computed neighbours by [`Ctx::send`](crate::Ctx::send).

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use self::axes::Axes;
use super::index::{Extent, Index};

/// The neighbours of each index in a grid of one, two or three dimensions, as in a Cartesian topology of MPI. Along
/// each axis the grid ends at its borders, or is periodic and wraps around.
///
/// Each neighbour has a *slot*: a number for its direction. A slot means the same side for every chunk, also at a
/// border, where some slots are missing. Slots fit [`Halos`](crate::Halos). A chunk sends a value to the neighbour's
/// [`their_slot`](Neighbour::their_slot). A value that comes in a [`slot`](Neighbour::slot) is from the neighbour on
/// that side.
///
/// | | slots | opposite |
/// |---|---|---|
/// | [`faces`](Self::faces) | 2 x axis towards lower indices, 2 x axis + 1 towards higher ones | `slot ^ 1` |
/// | [`neighbours`](Self::neighbours) | directions in lexicographic order, without the chunk itself | last slot - slot |
///
/// So the faces of `[row, column]` are: slot 0 the row before, 1 the row after, 2 the column before, 3 the column
/// after. In one dimension, faces and neighbours are the same.
///
/// A short periodic axis gives one index several times, each time in another slot. On an axis of two chunks, each is
/// the neighbour of the other on both sides. On an axis of one chunk, the chunk is its own neighbour and sends messages
/// to itself. A single chunk in a grid that is not periodic receives no halo, so it counts its steps itself.
///
/// A grid is also an [`Extent`] for its array. It takes at most 16 bytes and is copied. Each call takes constant time.
///
/// ```
/// use caribou::{Chunk, Config, Ctx, Grid, Halo, Halos, Reducer, Target};
/// use serde::{Deserialize, Serialize};
///
/// /// A tile of a cylinder: its columns go around, its first row is kept hot, its last one cold.
/// #[derive(Serialize, Deserialize)]
/// struct Tile { heat: f64, grid: Grid<[u16; 2]>, halos: Halos<f64> }
///
/// impl Tile {
///     fn new(grid: Grid<[u16; 2]>, index: [u16; 2]) -> Tile {
///         Tile { heat: 0.0, grid, halos: Halos::of(grid.faces(index)) }
///     }
/// }
///
/// impl Chunk for Tile {
///     type Index = [u16; 2];
///     type Message = Halo<f64>;
///
///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
///         for neighbour in self.grid.faces(ctx.index()) {
///             ctx.send(neighbour.index, self.halos.halo(neighbour.their_slot, self.heat));
///         }
///     }
///
///     fn ready(&self, halo: &Halo<f64>) -> bool { self.halos.expects(halo) }
///
///     fn receive(&mut self, halo: Halo<f64>, ctx: &mut Ctx<'_, Self>) {
///         let Some(heats) = self.halos.add_with_slots(halo) else { return };
///         // Above, below, left, right; the border has no neighbour, and keeps these values.
///         let mut around = [100.0, 0.0, 0.0, 0.0];
///         heats.for_each(|(slot, heat)| around[slot as usize] = heat);
///         self.heat = around.iter().sum::<f64>() / 4.0;
///         match self.halos.step() {
///             200 => ctx.contribute(0, Reducer::Max, vec![self.heat], Target::Exit),
///             _ => self.start(ctx),
///         }
///     }
/// }
///
/// let grid = Grid::new([3, 8]).periodic_along(1);
/// let report = caribou::run(Config::default().ranks(2), |setup| {
///     setup.array(grid, move |index| Tile::new(grid, index));
/// })?;
/// assert!((report.value::<Vec<f64>>()?[0] - 75.0).abs() < 1e-9, "three quarters of the way up");
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid<I> {
    extent: I,
    /// A bit for each axis, set if the axis is periodic.
    periods: u8,
}

impl<I: GridIndex> Grid<I> {
    /// A grid of this extent (`n`, `[rows, columns]` or `[planes, rows, columns]`), not periodic.
    pub const fn new(extent: I) -> Grid<I> {
        Grid { extent, periods: 0 }
    }

    /// The same grid, periodic along all axes: a ring or a torus.
    pub const fn periodic(self) -> Grid<I> {
        Grid { periods: (1 << I::AXES) - 1, ..self }
    }

    /// The same grid, also periodic along this axis. Axes are counted from 0.
    ///
    /// # Panics
    /// If the grid has no such axis.
    #[track_caller]
    pub const fn periodic_along(self, axis: usize) -> Grid<I> {
        assert!(axis < I::AXES, "the grid has no such axis: axes are counted from 0");
        Grid { periods: self.periods | 1 << axis, ..self }
    }

    /// Number of indices along each axis.
    pub const fn extent(self) -> I {
        self.extent
    }

    /// True if the index is in the grid.
    pub fn contains(self, index: I) -> bool {
        (0..I::AXES).all(|axis| index.coordinate(axis) < self.extent.coordinate(axis))
    }

    /// The neighbours along the axes, in the order of their slots: up to 2, 4 or 6.
    ///
    /// # Panics
    /// If the index is not in the grid.
    #[track_caller]
    pub fn faces(self, index: I) -> impl Iterator<Item = Neighbour<I>> + Clone {
        self.assert_contains(index);
        (0..2 * I::AXES as u32).filter_map(move |slot| {
            let mut direction = I::Direction::default();
            direction.as_mut()[slot as usize / 2] = if slot % 2 == 0 { -1 } else { 1 };
            self.towards(index, direction, slot, slot ^ 1)
        })
    }

    /// The neighbours along the axes and diagonally, in the order of their slots: up to 2, 8 or 26.
    ///
    /// # Panics
    /// If the index is not in the grid.
    #[track_caller]
    pub fn neighbours(self, index: I) -> impl Iterator<Item = Neighbour<I>> + Clone {
        self.assert_contains(index);
        let last = 3_u32.pow(I::AXES as u32) - 2;
        (0..=last).filter_map(move |slot| {
            // The chunk itself is in the middle, and has no slot.
            let mut digits = if slot > last / 2 { slot + 1 } else { slot };
            let mut direction = I::Direction::default();
            for step in direction.as_mut().iter_mut().rev() {
                *step = (digits % 3) as i8 - 1;
                digits /= 3;
            }
            self.towards(index, direction, slot, last - slot)
        })
    }

    /// The index at a distance of `direction`, in steps along each axis, perhaps more than one. `None` beyond a border.
    ///
    /// # Panics
    /// If the index is not in the grid.
    ///
    /// ```
    /// let ring = caribou::Grid::new(10_u32).periodic();
    /// assert_eq!((ring.neighbour(9, [1]), ring.neighbour(1, [-2])), (Some(0), Some(9)));
    /// assert_eq!(caribou::Grid::new(10_u32).neighbour(9, [1]), None);
    /// ```
    #[track_caller]
    pub fn neighbour(self, index: I, direction: I::Direction) -> Option<I> {
        self.assert_contains(index);
        self.beyond(index, direction)
    }

    fn towards(self, index: I, direction: I::Direction, slot: u32, their_slot: u32) -> Option<Neighbour<I>> {
        Some(Neighbour { index: self.beyond(index, direction)?, slot, their_slot, direction })
    }

    fn beyond(self, index: I, direction: I::Direction) -> Option<I> {
        let mut steps = direction.as_ref().iter().enumerate();
        steps.try_fold(index, |there, (axis, &step)| {
            Some(there.with(axis, self.along(axis, index.coordinate(axis), step)?))
        })
    }

    /// The coordinate after this number of steps along an axis; none beyond a border.
    fn along(self, axis: usize, from: u64, steps: i8) -> Option<u64> {
        let extent = self.extent.coordinate(axis);
        match from.checked_add_signed(steps.into()) {
            Some(to) if to < extent => Some(to),
            _ if self.periods >> axis & 1 == 0 => None,
            _ => {
                let around = (i128::from(from) + i128::from(steps)).rem_euclid(extent.into());
                Some(around as u64)
            }
        }
    }

    #[track_caller]
    fn assert_contains(self, index: I) {
        assert!(
            self.contains(index),
            "{index:?} has no neighbours, because it is outside the grid of extent {:?}",
            self.extent
        );
    }
}

impl<I: GridIndex> Extent<I> for Grid<I> {
    fn keys(self) -> impl Iterator<Item = u64> {
        self.extent.keys()
    }
}

/// A neighbour of a chunk in a [`Grid`].
///
/// ```
/// use caribou::Grid;
/// let below = Grid::new([4u16, 4]).faces([0, 0]).next().expect("a corner has two");
/// assert_eq!((below.index, below.direction), ([1, 0], [1, 0]));
/// assert_eq!((below.slot, below.their_slot), (1, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour<I: GridIndex> {
    /// The index of the neighbour.
    pub index: I,
    /// The side of this chunk on which the neighbour is: the slot of the values that come from the neighbour.
    pub slot: u32,
    /// The side of the neighbour on which this chunk is: the slot for the [`halo`](crate::Halos::halo) of a value to
    /// it.
    pub their_slot: u32,
    /// The steps from this chunk to the neighbour: -1, 0 or 1 along each axis.
    pub direction: I::Direction,
}

/// An index in a grid: `u32` and `u64` in one dimension, `[u16; 2]` and `[u32; 2]` in two, `[u16; 3]` in three. Other
/// types cannot implement this trait.
///
/// ```
/// use caribou::{Grid, GridIndex};
/// fn corner<I: GridIndex>(grid: Grid<I>, first: I) -> bool { grid.neighbours(first).count() < 3 }
/// assert!(corner(Grid::new(9_u32), 0));
/// ```
pub trait GridIndex: Index + Extent<Self> + Axes {
    /// Steps along each axis, such as `[0, -1]`: one to the left.
    type Direction: Copy + Debug + Default + PartialEq + AsRef<[i8]> + AsMut<[i8]> + Send + Sync + 'static;
}

mod axes {
    /// The coordinates of an index.
    pub trait Axes {
        const AXES: usize;
        fn coordinate(self, axis: usize) -> u64;
        /// The index with another coordinate, which is less than the extent of its axis.
        fn with(self, axis: usize, coordinate: u64) -> Self;
    }
}

macro_rules! line {
    ($($number:ty),*) => {$(
        impl Axes for $number {
            const AXES: usize = 1;
            fn coordinate(self, _axis: usize) -> u64 {
                self.into()
            }
            fn with(self, _axis: usize, coordinate: u64) -> Self {
                coordinate as $number
            }
        }
        impl GridIndex for $number {
            type Direction = [i8; 1];
        }
    )*};
}

macro_rules! plane_or_space {
    ($([$number:ty; $axes:literal]),*) => {$(
        impl Axes for [$number; $axes] {
            const AXES: usize = $axes;
            fn coordinate(self, axis: usize) -> u64 {
                self[axis].into()
            }
            fn with(mut self, axis: usize, coordinate: u64) -> Self {
                self[axis] = coordinate as $number;
                self
            }
        }
        impl GridIndex for [$number; $axes] {
            type Direction = [i8; $axes];
        }
    )*};
}

line!(u32, u64);
plane_or_space!([u16; 2], [u32; 2], [u16; 3]);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grid_of<I: GridIndex>(extent: I, periodic: [bool; 3]) -> Grid<I> {
        (0..I::AXES).filter(|&axis| periodic[axis]).fold(Grid::new(extent), Grid::periodic_along)
    }

    fn indices<I: GridIndex>(grid: Grid<I>) -> impl Iterator<Item = I> {
        grid.keys().map(I::unpack)
    }

    /// Choices along an axis: the neighbour before, and the one after.
    fn choices<I: GridIndex>(grid: Grid<I>, index: I, periodic: [bool; 3], axis: usize) -> usize {
        let (at, extent) = (index.coordinate(axis), grid.extent().coordinate(axis));
        if periodic[axis] { 2 } else { usize::from(at > 0) + usize::from(at + 1 < extent) }
    }

    /// Each neighbour has this chunk as its neighbour, on the opposite side.
    fn assert_mutual<I, N>(grid: Grid<I>, index: I, around: impl Fn(Grid<I>, I) -> N)
    where
        I: GridIndex + PartialEq,
        N: Iterator<Item = Neighbour<I>> + Clone,
    {
        let slots: Vec<u32> = around(grid, index).map(|neighbour| neighbour.slot).collect();
        assert!(slots.is_sorted_by(|a, b| a < b), "{slots:?}");
        for neighbour in around(grid, index) {
            let back = around(grid, neighbour.index).find(|back| back.slot == neighbour.their_slot);
            let back = back.unwrap_or_else(|| panic!("nothing leads back from {neighbour:?} of {index:?}"));
            assert_eq!((back.index, back.their_slot), (index, neighbour.slot), "{neighbour:?}");
            let opposite = neighbour.direction.as_ref().iter().map(|step| -step);
            assert!(back.direction.as_ref().iter().copied().eq(opposite), "{neighbour:?} and {back:?}");
        }
    }

    fn assert_laws<I: GridIndex + PartialEq>(extent: I, periodic: [bool; 3]) {
        let grid = grid_of(extent, periodic);
        for index in indices(grid) {
            assert_mutual(grid, index, Grid::faces);
            assert_mutual(grid, index, Grid::neighbours);
            let each = |axis| choices(grid, index, periodic, axis);
            assert_eq!(grid.faces(index).count(), (0..I::AXES).map(each).sum::<usize>());
            assert_eq!(
                grid.neighbours(index).count() + 1,
                (0..I::AXES).map(each).map(|n| n + 1).product::<usize>()
            );
            for neighbour in grid.neighbours(index).chain(grid.faces(index)) {
                assert_eq!(neighbour.index, reached(grid, index, neighbour.direction), "{neighbour:?}");
            }
        }
    }

    /// The index that lies in that direction, once around if need be.
    fn reached<I: GridIndex>(grid: Grid<I>, from: I, direction: I::Direction) -> I {
        direction.as_ref().iter().enumerate().fold(from, |at, (axis, &step)| {
            let extent = grid.extent().coordinate(axis);
            let to = at.coordinate(axis) + extent;
            at.with(axis, if step < 0 { to - 1 } else { to + step as u64 } % extent)
        })
    }

    proptest! {
        #[test]
        fn to_be_neighbours_is_mutual(extent: [u8; 3], periodic: [bool; 3]) {
            let [x, y, z] = extent.map(|extent| u16::from(extent % 5));
            assert_laws(u32::from(x), periodic);
            assert_laws(u64::from(x), periodic);
            assert_laws([x, y], periodic);
            assert_laws([x, y].map(u32::from), periodic);
            assert_laws([x, y, z], periodic);
        }

        #[test]
        fn as_many_steps_back_lead_home_around_any_border(from: [u16; 2], steps: [i8; 2]) {
            let torus = Grid::new([7, 300]).periodic();
            let from = [from[0] % 7, from[1] % 300];
            let there = torus.neighbour(from, steps).expect("a torus has no border");
            let back = steps.map(|step| step.checked_neg());
            let [Some(rows), Some(columns)] = back else { return Ok(()) };
            prop_assert_eq!(torus.neighbour(there, [rows, columns]), Some(from));
        }
    }

    fn slots<I: GridIndex>(neighbours: impl Iterator<Item = Neighbour<I>>) -> Vec<(u32, I)> {
        neighbours.map(|neighbour| (neighbour.slot, neighbour.index)).collect()
    }

    #[test]
    fn a_slot_is_the_same_side_at_a_border_as_inside() {
        let plate = Grid::new([3u16, 3]);
        let all = [(0, [0, 1]), (1, [2, 1]), (2, [1, 0]), (3, [1, 2])];
        assert_eq!(slots(plate.faces([1, 1])), all);
        assert_eq!(slots(plate.faces([0, 2])), [(1, [1, 2]), (2, [0, 1])]);
        assert_eq!(slots(plate.neighbours([0, 2])), [(3, [0, 1]), (5, [1, 1]), (6, [1, 2])]);
    }

    #[test]
    fn two_chunks_of_a_ring_are_neighbours_on_both_sides_and_one_is_its_own() {
        assert_eq!(slots(Grid::new(2u32).periodic().faces(0)), [(0, 1), (1, 1)]);
        assert_eq!(slots(Grid::new(1u32).periodic().faces(0)), [(0, 0), (1, 0)]);
        assert_eq!(slots(Grid::new([1u16, 1]).neighbours([0, 0])), []);
        let band = Grid::new([1u16, 3]).periodic_along(1);
        assert_eq!(slots(band.faces([0, 0])), [(2, [0, 2]), (3, [0, 1])]);
    }

    #[test]
    fn the_longest_axes_end_where_indices_do() {
        let line = Grid::new(u64::MAX);
        assert_eq!(slots(line.faces(u64::MAX - 1)), [(0, u64::MAX - 2)]);
        assert_eq!(line.periodic().neighbour(0, [-1]), Some(u64::MAX - 1));
        assert_eq!(line.periodic().neighbour(u64::MAX - 1, [127]), Some(126));
    }

    #[test]
    #[should_panic(expected = "[100, 0] has no neighbours, because it is outside the grid of extent [4, 5]")]
    fn an_index_outside_has_no_neighbours() {
        let _ = Grid::new([4u16, 5]).faces([100, 0]);
    }
}
