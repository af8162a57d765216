//! Stores the rows of a block in a buffer with room for one more, so that a sweep needs no second buffer.
//!
//! A new row is computed from the old row above it, the old row itself, and the old row below. After that the old row
//! above is free, and the new row is written there, cell by cell. The first new row goes to the spare place. So every
//! step moves the block up by one place, and the buffer is a ring.
//!
//! A second buffer would be simpler. But this loop is bound by memory: it would add half again to the traffic, and
//! double what a migration carries. Sweeps down and up in turn would need no ring, but a sweep against the order of
//! memory takes twice as long.

use serde::{Deserialize, Serialize};

/// `height` rows of `width` cells that move up by one place at a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SlidingRows {
    height: usize,
    width: usize,
    /// `height + 1` places of a row each.
    #[serde(with = "caribou::bulk")]
    cells: Vec<f64>,
    /// The place of the first row. The spare place is before it, around the end of the ring.
    first: usize,
}

impl SlidingRows {
    /// The given cells, row by row.
    pub(super) fn new(height: usize, width: usize, cells: &[f64]) -> Self {
        let mut places = vec![0.0; width];
        places.extend_from_slice(cells);
        Self { height, width, cells: places, first: 1 }
    }

    pub(super) fn height(&self) -> usize {
        self.height
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// One row.
    pub(super) fn row(&self, row: usize) -> &[f64] {
        &self.cells[self.place(self.first + row)]
    }

    /// The spare place, above the first row.
    pub(super) fn spare(&mut self) -> &mut [f64] {
        let place = self.place(self.first + self.height);
        &mut self.cells[place]
    }

    /// The place above a row, to be written, the row itself, and the row below unless it is the last.
    pub(super) fn around(&mut self, row: usize) -> (&mut [f64], &[f64], Option<&[f64]>) {
        let place_above = if self.first + row == 0 { self.height } else { self.first + row - 1 };
        let [above, here, below] =
            [place_above, self.first + row, self.first + row + 1].map(|at| self.place(at));
        let distinct = "the ring has one place more than the block has rows";
        if row + 1 == self.height {
            let [above, here] = self.cells.get_disjoint_mut([above, here]).expect(distinct);
            return (above, here, None);
        }
        let [above, here, below] = self.cells.get_disjoint_mut([above, here, below]).expect(distinct);
        (above, here, Some(below))
    }

    /// Moves the block up by one place, when every row has been written there.
    pub(super) fn slide(&mut self) {
        self.first = if self.first == 0 { self.height } else { self.first - 1 };
    }

    /// The cells of a place. `at` counts from the begin of the ring, and at most once around it.
    fn place(&self, at: usize) -> std::ops::Range<usize> {
        let at = if at > self.height { at - (self.height + 1) } else { at };
        at * self.width..(at + 1) * self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_in_order_wherever_they_have_moved() {
        let mut rows = SlidingRows::new(3, 2, &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        for _ in 0..10 {
            for row in 0..3 {
                let (above, here, below) = rows.around(row);
                above.copy_from_slice(here);
                assert_eq!(below.is_none(), row == 2);
            }
            rows.slide();
            assert_eq!([0, 1, 2].map(|row| rows.row(row)[0] as u32), [1, 2, 3]);
        }
    }

    #[test]
    fn a_single_row_has_a_place_to_go() {
        let mut rows = SlidingRows::new(1, 1, &[4.0]);
        for _ in 0..3 {
            let (above, here, below) = rows.around(0);
            above[0] = here[0] + 1.0;
            assert!(below.is_none());
            rows.slide();
        }
        assert_eq!(rows.row(0), [7.0]);
    }
}
