//! Computes the same blocks without a runtime, to measure what over-decomposition itself costs.
//!
//! Neighbouring blocks swap their rims by pointer. Each thread has a band of blocks, and all threads meet at a barrier
//! after each half of an iteration. There are no messages, no measurement and no balancing. So the time is a limit for
//! the same kernel in the same blocks, and the runtime is compared with it.

use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use super::kernel::Block;
use super::plate::{Shape, Side};
use super::serial::Field;

/// A plate of blocks, row by row.
#[derive(Debug)]
pub struct HandBlocked {
    shape: Shape,
    /// Each block has a lock only because safe code needs one: one thread at a time takes a block.
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

    /// Swaps rims with the neighbours in the south and east, so that each pair is swapped once, and fills the borders.
    fn exchange(&self, index: [u16; 2]) {
        // South and east are later in the order of blocks. Locks are taken only in this order, so never in a circle.
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
