//! The same blocks without a runtime: what over-decomposition itself costs.
//!
//! Neighbouring blocks swap their rims by pointer, threads own bands of blocks and meet at a barrier after each half of an
//! iteration. No messages, no measurement, no balancing: the least anyone could spend on the same kernel in the same
//! blocks, and so the line against which the runtime is held.

use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use super::kernel::Block;
use super::plate::{Shape, Side};
use super::serial::Field;

/// A plate of blocks, row by row.
#[derive(Debug)]
pub struct HandBlocked {
    shape: Shape,
    /// A lock each only because safe code needs one: every block is taken by one thread at a time.
    blocks: Vec<Mutex<Block>>,
}

impl HandBlocked {
    /// The plate before the first iteration.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let blocks = indices(shape).map(|index| Mutex::new(Block::initial(shape.part(index)))).collect();
        Self { shape, blocks }
    }

    /// Runs `iterations` on `threads` threads, which each take a band of blocks.
    ///
    /// # Panics
    /// If `threads` is zero.
    pub fn run(&mut self, threads: usize, iterations: u32) {
        assert!(threads > 0, "somebody has to do the work");
        let this = &*self;
        let band = this.blocks.len().div_ceil(threads);
        let meeting = Barrier::new(threads);
        let work = |thread: usize| {
            let mine = || indices(this.shape).skip(thread * band).take(band);
            for _ in 0..iterations {
                mine().for_each(|index| this.exchange(index));
                meeting.wait();
                mine().for_each(|index| this.block(index).step());
                meeting.wait();
            }
        };
        std::thread::scope(|scope| {
            for thread in 1..threads {
                scope.spawn(move || work(thread));
            }
            work(0);
        });
    }

    /// The cells of the whole plate.
    #[must_use]
    pub fn field(&self) -> Field {
        let mut field = Field::unfilled(self.shape);
        for index in indices(self.shape) {
            field.fill(self.shape.part(index), self.block(index).rows());
        }
        field
    }

    /// Swaps rims with the neighbours in the south and east, so that each pair is served once, and fills the borders.
    fn exchange(&self, index: [u16; 2]) {
        // South and east come later in the order of blocks: locks are always taken upwards, never in a circle.
        let mut here = self.block(index);
        for side in Side::ALL {
            match self.shape.neighbour(index, side) {
                None => here.set_border(side),
                Some(other) if matches!(side, Side::South | Side::East) => {
                    let mut there = self.block(other);
                    let (ours, theirs) = (here.take_edge(side), there.take_edge(side.opposite()));
                    here.set_halo(side, theirs);
                    there.set_halo(side.opposite(), ours);
                }
                Some(_) => {}
            }
        }
    }

    fn block(&self, [row, column]: [u16; 2]) -> MutexGuard<'_, Block> {
        let at = usize::from(row) * self.shape.chunks_per_side() + usize::from(column);
        self.blocks[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of every block, row by row.
fn indices(shape: Shape) -> impl Iterator<Item = [u16; 2]> {
    let [rows, columns] = shape.extent();
    (0..rows).flat_map(move |row| (0..columns).map(move |column| [row, column]))
}

#[cfg(test)]
mod tests {
    use super::super::serial;
    use super::*;

    #[test]
    fn blocks_equal_the_serial_reference_bit_for_bit() {
        for (grid, chunk) in [(1, 1), (7, 7), (16, 4), (17, 4), (19, 1), (33, 32)] {
            for threads in [1, 2, 3] {
                let shape = Shape::new(grid, chunk).unwrap();
                let mut blocks = HandBlocked::new(shape);
                blocks.run(threads, 13);
                let difference = blocks.field().difference(&serial::run(shape, 13));
                assert_eq!(difference, None, "grid {grid}, chunk {chunk}, {threads} threads");
            }
        }
    }
}
