//! Does the work of one chunk: relaxes a block of the plate in place, and holds its four rims.
//!
//! A rim is one vector per side. Before a step it holds the *halo*: the cells just outside that side. The step reads
//! each halo cell and writes the block's own new *edge* cell in its place, which the neighbour on that side needs next.
//! So the vector of a received message is sent in the next message: nothing is copied in or out, nothing is allocated,
//! and the left and right rims are read and written while their row is in the cache.
//!
//! `plate` has the place of the block and its neighbours, `rows` the storage of its rows.

use serde::{Deserialize, Serialize};

use super::plate::{Part, Side, initial};
use super::rows::SlidingRows;

/// A rectangle of cells, row by row, with a rim on each side.
///
/// ```
/// use caribou_apps::stencil2d::kernel::Block;
/// use caribou_apps::stencil2d::plate::{Part, Side};
/// let mut block = Block::from_cells(1, 1, &[8.0]);
/// for side in Side::ALL {
///     block.set_halo(side, vec![side.border()]); // 100 in the north, 0 elsewhere
/// }
/// block.step();
/// assert_eq!(block.rows().next(), Some(&[25.0][..]));
/// assert_eq!(block.take_edge(Side::West), [25.0]);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Block {
    rows: SlidingRows,
    /// Halo before a step, edge after it; in the order of [`Side::ALL`].
    rims: [Vec<f64>; 4],
}

impl Block {
    /// The block of `part` before the first iteration, its rims holding its edges.
    #[must_use]
    pub fn initial(part: Part) -> Self {
        let rows = part.top..part.top + part.height;
        let cells =
            rows.flat_map(|row| (part.left..part.left + part.width).map(move |column| initial(row, column)));
        Self::from_cells(part.height, part.width, &cells.collect::<Vec<_>>())
    }

    /// A block of the given cells, row by row, its rims holding its edges.
    ///
    /// # Panics
    /// If `cells` is not `height * width` long, or either is zero.
    #[must_use]
    pub fn from_cells(height: usize, width: usize, cells: &[f64]) -> Self {
        assert!(height > 0 && width > 0, "a block has at least one cell");
        assert_eq!(cells.len(), height * width, "a block's cells fill its rows");
        let column = |at: usize| cells.chunks_exact(width).map(|row| row[at]).collect();
        let rims =
            [cells[..width].to_vec(), cells[cells.len() - width..].to_vec(), column(0), column(width - 1)];
        Self { rows: SlidingRows::new(height, width, cells), rims }
    }

    /// The rows of cells, in order.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.rows.height()).map(|row| self.rows.row(row))
    }

    /// Bytes of state when the block migrates: its rows and its rims.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        let (height, width) = (self.rows.height(), self.rows.width());
        (((height + 1) * width + 2 * (height + width)) * size_of::<f64>()) as u64
    }

    /// Takes the edge on `side`. The rim is empty until the next [`set_halo`](Self::set_halo).
    pub fn take_edge(&mut self, side: Side) -> Vec<f64> {
        std::mem::take(&mut self.rims[side as usize])
    }

    /// Stores the cells just outside `side`.
    ///
    /// # Panics
    /// If `halo` is not as long as that side.
    pub fn set_halo(&mut self, side: Side, halo: Vec<f64>) {
        let length =
            if matches!(side, Side::North | Side::South) { self.rows.width() } else { self.rows.height() };
        assert_eq!(halo.len(), length, "the {side:?} halo is as long as the side");
        self.rims[side as usize] = halo;
    }

    /// Stores the border of the plate as the halo of a side without a neighbour, in the same rim.
    pub fn set_border(&mut self, side: Side) {
        self.rims[side as usize].fill(side.border());
    }

    /// One Jacobi iteration, from halos to new cells and edges.
    ///
    /// # Panics
    /// If a halo is missing.
    pub fn step(&mut self) {
        let height = self.rows.height();
        let [north, south, west, east] = &mut self.rims;
        assert_eq!([west.len(), east.len()], [height; 2], "both side halos are there");
        self.rows.spare().copy_from_slice(north);
        for (row, (west, east)) in west.iter_mut().zip(east.iter_mut()).enumerate() {
            let (above, here, below) = self.rows.around(row);
            (*west, *east) = relax(above, *west, here, *east, below.unwrap_or(south));
        }
        self.rows.slide();
        north.copy_from_slice(self.rows.row(0));
        south.copy_from_slice(self.rows.row(height - 1));
    }
}

/// A new cell: the mean of its four old neighbours.
///
/// The serial reference uses this expression, too. It has a fixed order of additions, so results can be compared bit
/// for bit.
#[inline(always)]
pub(super) fn relaxed(north: f64, south: f64, west: f64, east: f64) -> f64 {
    0.25 * (north + south + west + east)
}

/// Replaces the row above `here` by the new row, and returns its two ends.
///
/// The slices are cut to one length first, so that the loop has no bounds check and the compiler vectorises it.
fn relax(north: &mut [f64], west: f64, here: &[f64], east: f64, south: &[f64]) -> (f64, f64) {
    let last = here.len() - 1;
    let (north, south) = (&mut north[..=last], &south[..=last]);
    if last == 0 {
        north[0] = relaxed(north[0], south[0], west, east);
        return (north[0], north[0]);
    }
    north[0] = relaxed(north[0], south[0], west, here[1]);
    north[last] = relaxed(north[last], south[last], here[last - 1], east);
    let (to_west, to_east) = (&here[..last - 1], &here[2..]);
    let (inner, south) = (&mut north[1..last], &south[1..last]);
    for j in 0..inner.len() {
        inner[j] = relaxed(inner[j], south[j], to_west[j], to_east[j]);
    }
    (north[0], north[last])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 x 3 cells, halos numbered so that each new cell can be worked out by hand.
    fn small() -> Block {
        let mut block = Block::from_cells(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        block.set_halo(Side::North, vec![10.0, 20.0, 30.0]);
        block.set_halo(Side::South, vec![40.0, 50.0, 60.0]);
        block.set_halo(Side::West, vec![70.0, 80.0]);
        block.set_halo(Side::East, vec![90.0, 100.0]);
        block
    }

    fn cells(block: &Block) -> Vec<f64> {
        block.rows().flatten().copied().collect()
    }

    #[test]
    fn each_cell_becomes_the_mean_of_its_old_neighbours() {
        let mut block = small();
        block.step();
        let four_times = [10. + 4. + 70. + 2., 20. + 5. + 1. + 3., 30. + 6. + 2. + 90.].into_iter().chain([
            1. + 40. + 80. + 5.,
            2. + 50. + 4. + 6.,
            3. + 60. + 5. + 100.,
        ]);
        assert_eq!(cells(&block), four_times.map(|sum: f64| 0.25 * sum).collect::<Vec<_>>());
    }

    #[test]
    fn a_step_leaves_the_new_edges_where_the_halos_were() {
        let mut block = small();
        block.step();
        let cells = cells(&block);
        assert_eq!(block.take_edge(Side::North), cells[..3]);
        assert_eq!(block.take_edge(Side::South), cells[3..]);
        assert_eq!(block.take_edge(Side::West), [cells[0], cells[3]]);
        assert_eq!(block.take_edge(Side::East), [cells[2], cells[5]]);
    }

    #[test]
    fn a_step_allocates_nothing_for_its_rims() {
        let mut block = small();
        let before: Vec<*const f64> = block.rims.iter().map(Vec::as_ptr).collect();
        block.step();
        let after: Vec<*const f64> = block.rims.iter().map(Vec::as_ptr).collect();
        assert_eq!(before, after);
    }

    #[test]
    fn a_block_that_was_encoded_and_decoded_steps_like_the_original() {
        let mut block = small();
        let bytes = serde_json::to_vec(&block).unwrap();
        let mut copy: Block = serde_json::from_slice(&bytes).unwrap();
        block.step();
        copy.step();
        assert_eq!(cells(&block), cells(&copy));
    }

    #[test]
    #[should_panic(expected = "West halo")]
    fn a_halo_of_the_wrong_length_is_refused() {
        small().set_halo(Side::West, vec![0.0; 3]);
    }
}
