//! Does the work of one chunk. It holds two fields of a rectangle of cells, now and one step before, and four rims.
//!
//! A new cell needs its own past, and only the present of its neighbours. So the new field is written over the past
//! one, cell by cell, and two fields are enough. A rim is as in stencil2d: before a step it holds the *halo* (the cells
//! just outside), and after it, in the same vector, the *edge* that the neighbour needs next.

use serde::{Deserialize, Serialize};

use super::pulses::REST;
use caribou_apps::stencil2d::plate::{Part, Side};

/// A rectangle of cells now and one step before, with a rim on each side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Block {
    width: usize,
    #[serde(with = "caribou::bulk")]
    now: Vec<f64>,
    #[serde(with = "caribou::bulk")]
    before: Vec<f64>,
    /// Halo before a step, edge after it; in the order of [`Side::ALL`].
    rims: [Rim; 4],
}

/// The cells along a side, inside or outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rim(#[serde(with = "caribou::bulk")] pub(crate) Vec<f64>);

impl Block {
    /// A block of `cells` at rest, row by row: both fields are the same. Its rims hold its edges.
    pub(crate) fn new(part: Part, cells: Vec<f64>) -> Self {
        let Part { height, width, .. } = part;
        assert!(!cells.is_empty() && cells.len() == height * width, "a block's cells fill its rows");
        let column = |at: usize| cells.chunks_exact(width).map(|row| row[at]).collect();
        let rims =
            [cells[..width].to_vec(), cells[cells.len() - width..].to_vec(), column(0), column(width - 1)];
        Self { width, before: cells.clone(), now: cells, rims: rims.map(Rim) }
    }

    /// The cells now, row by row.
    pub(crate) fn cells(&self) -> &[f64] {
        &self.now
    }

    /// Bytes of state when the block migrates.
    pub(crate) fn state_bytes(&self) -> u64 {
        let rims: usize = self.rims.iter().map(|rim| rim.0.len()).sum();
        ((self.now.len() + self.before.len() + rims) * size_of::<f64>()) as u64
    }

    /// Takes the edge on `side`. The rim is empty until the next [`set_halo`](Self::set_halo).
    pub(crate) fn take_edge(&mut self, side: Side) -> Rim {
        std::mem::take(&mut self.rims[side as usize])
    }

    /// Stores the cells just outside `side`.
    pub(crate) fn set_halo(&mut self, side: Side, halo: Rim) {
        self.rims[side as usize] = halo;
    }

    /// Stores the border of the grid as the halo of a side without a neighbour, in the same rim.
    pub(crate) fn set_border(&mut self, side: Side) {
        self.rims[side as usize].0.fill(REST);
    }

    /// One step from halos to edges. `courant` is the square of the number of cells that a wave travels in a step.
    ///
    /// # Panics
    /// If a halo is missing.
    pub(crate) fn step(&mut self, courant: f64) {
        let Self { width, now, before, rims } = self;
        let width = *width;
        let last = now.len() / width - 1;
        let [Rim(north), Rim(south), Rim(west), Rim(east)] = rims;
        assert_eq!([west.len(), east.len()], [last + 1; 2], "both side halos are there");
        let row_at = |row: usize| &now[row * width..(row + 1) * width];
        for (row, target) in before.chunks_exact_mut(width).enumerate() {
            let above = if row == 0 { &north[..] } else { row_at(row - 1) };
            let below = if row == last { &south[..] } else { row_at(row + 1) };
            let ends = [&mut west[row], &mut east[row]];
            leap(target, row_at(row), [above, below], ends, courant);
        }
        std::mem::swap(now, before);
        north.copy_from_slice(&now[..width]);
        south.copy_from_slice(&now[last * width..]);
    }

    /// The energy of the block's cells, halfway between both fields. The rims must hold the halos.
    pub(crate) fn energy(&self, courant: f64) -> f64 {
        let (width, now) = (self.width, &self.now);
        let [Rim(north), Rim(south), Rim(west), Rim(east)] = &self.rims;
        let cell_energy = |at: usize| {
            let (row, column) = (at / width, at % width);
            let above = if row == 0 { north[column] } else { now[at - width] };
            let below = now.get(at + width).copied().unwrap_or_else(|| south[column]);
            let left = if column == 0 { west[row] } else { now[at - 1] };
            let right = if column + 1 == width { east[row] } else { now[at + 1] };
            energy(self.before[at], now[at], courant * laplace(now[at], [above, below, left, right]))
        };
        (0..now.len()).map(cell_energy).sum()
    }
}

/// The Laplace operator: the sum over four neighbours of their difference to a cell.
///
/// The serial reference uses this function and the two below. Each has a fixed order of additions, so results can be
/// compared bit for bit.
#[inline(always)]
pub(crate) fn laplace(here: f64, [north, south, west, east]: [f64; 4]) -> f64 {
    (north + south) + (west + east) - 4.0 * here
}

/// A new cell from its past, its present, and the pull of its neighbours (the leapfrog of second order).
#[inline(always)]
pub(crate) fn leapfrog(before: f64, now: f64, pull: f64) -> f64 {
    (2.0 * now - before) + pull
}

/// A cell's part of the energy: half the square of its motion, and half of the energy of its neighbours' pull. The sum
/// over all cells is constant, as the operator is symmetric and the border does not move.
#[inline(always)]
pub(crate) fn energy(before: f64, now: f64, pull: f64) -> f64 {
    0.5 * ((now - before).powi(2) - (before - REST) * pull)
}

/// Replaces a row of the past by the new row, and the cells west and east of it by the ends of the new row.
///
/// The slices are cut to one length first, so that the loop has no bounds check and the compiler vectorises it.
fn leap(
    before: &mut [f64],
    here: &[f64],
    [north, south]: [&[f64]; 2],
    [west, east]: [&mut f64; 2],
    courant: f64,
) {
    let last = here.len() - 1;
    let (before, north, south) = (&mut before[..=last], &north[..=last], &south[..=last]);
    let new = |before, here, around| leapfrog(before, here, courant * laplace(here, around));
    if last == 0 {
        before[0] = new(before[0], here[0], [north[0], south[0], *west, *east]);
    } else {
        before[0] = new(before[0], here[0], [north[0], south[0], *west, here[1]]);
        before[last] = new(before[last], here[last], [north[last], south[last], here[last - 1], *east]);
        let (to_west, to_east) = (&here[..last - 1], &here[2..]);
        let (middle, north, south) = (&here[1..last], &north[1..last], &south[1..last]);
        let inner = &mut before[1..last];
        for j in 0..inner.len() {
            inner[j] = new(inner[j], middle[j], [north[j], south[j], to_west[j], to_east[j]]);
        }
    }
    (*west, *east) = (before[0], before[last]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Part = Part { top: 0, left: 0, height: 2, width: 3 };

    /// 2 x 3 cells, halos numbered so that each new cell can be worked out by hand.
    fn small() -> Block {
        let mut block = Block::new(PART, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        block.before = vec![0.5, 1.5, 2.5, 3.5, 4.5, 5.5];
        for (side, halo) in Side::ALL.into_iter().zip([
            &[10.0, 20.0, 30.0][..],
            &[40.0, 50.0, 60.0],
            &[70.0, 80.0],
            &[90.0, 95.0],
        ]) {
            block.set_halo(side, Rim(halo.to_vec()));
        }
        block
    }

    #[test]
    fn each_cell_goes_on_as_it_moved_and_is_pulled_by_its_neighbours() {
        let mut block = small();
        block.step(0.25);
        let sums = [10. + 4. + 70. + 2., 20. + 5. + 1. + 3., 30. + 6. + 2. + 90.].into_iter().chain([
            1. + 40. + 80. + 5.,
            2. + 50. + 4. + 6.,
            3. + 60. + 5. + 95.,
        ]);
        let cells = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let expected: Vec<f64> = cells
            .into_iter()
            .zip(sums)
            .map(|(now, sum): (f64, f64)| now + 0.5 + 0.25 * (sum - 4.0 * now))
            .collect();
        assert_eq!((&block.now, &block.before), (&expected, &cells.to_vec()));
    }

    #[test]
    fn a_step_leaves_the_new_edges_where_the_halos_were_and_allocates_nothing() {
        let mut block = small();
        let places = |block: &Block| block.rims.each_ref().map(|rim| rim.0.as_ptr());
        let before = places(&block);
        block.step(0.25);
        assert_eq!(places(&block), before);
        let cells = block.now.clone();
        assert_eq!(block.take_edge(Side::North), Rim(cells[..3].to_vec()));
        assert_eq!(block.take_edge(Side::South), Rim(cells[3..].to_vec()));
        assert_eq!(block.take_edge(Side::West), Rim(vec![cells[0], cells[3]]));
        assert_eq!(block.take_edge(Side::East), Rim(vec![cells[2], cells[5]]));
    }

    #[test]
    fn a_block_that_was_encoded_and_decoded_steps_like_the_original() {
        let mut block = small();
        let mut copy: Block = serde_json::from_slice(&serde_json::to_vec(&block).unwrap()).unwrap();
        block.step(0.25);
        copy.step(0.25);
        assert_eq!((block.now, block.rims), (copy.now, copy.rims));
    }

    #[test]
    fn a_cell_without_neighbours_swings_and_keeps_its_energy() {
        let mut block = Block::new(Part { top: 0, left: 0, height: 1, width: 1 }, vec![1.5]);
        let mut energies = Vec::new();
        let mut lowest = 1.5_f64;
        for _ in 0..100 {
            Side::ALL.into_iter().for_each(|side| block.set_border(side));
            energies.push(block.energy(0.25));
            block.step(0.25);
            lowest = lowest.min(block.now[0]);
        }
        assert!((lowest - 0.5).abs() < 0.05, "{lowest}");
        assert!(energies.iter().all(|energy| (energy / energies[0] - 1.0).abs() < 1e-12), "{energies:?}");
    }

    #[test]
    #[should_panic(expected = "both side halos are there")]
    fn a_halo_that_is_missing_is_noticed() {
        let mut block = small();
        let _ = block.take_edge(Side::West);
        block.step(0.25);
    }
}
