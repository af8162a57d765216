//! Defines the cost of chunks over time: constant, drifting, alternating, ramps, spikes, a moving hot spot, or a table.

use std::f64::consts::TAU;

use super::cost_table::CostTable;
use super::costs::Costs;
use lb_strategies::virtual_time::splitmix::{SplitMix64, mix};

/// Columns of cells over which the hot spot moves, as in the PIC kernel of the Parallel Research Kernels.
const CELLS: f64 = 1000.0;
/// In a ramp, the cost of a chunk that does not grow. Chunks of the growing half reach twice this cost: the mean is 1.
const LEVEL: f64 = 0.8;
/// The cost that a spike adds, as a time slice of 4 ms to a chunk of 0.4 ms.
const SPIKE: f64 = 10.0;

/// Units of work of a chunk in an iteration. The mean over all chunks is 1, or about 1.
///
/// ```
/// use virtual_cluster::{ChunkCosts, Grid};
/// let grid = Grid::of(1024);
/// let spot = ChunkCosts::HotSpot { k: Some(2) };
/// let sum: f64 = (0..1024).map(|chunk| spot.work(grid, chunk, 7)).sum();
/// assert!((sum - 1024.0).abs() < 1e-6);
/// // It moves 2k + 1 = 5 of 1000 cells an iteration: after 200 of them it is where it was.
/// assert!((spot.work(grid, 0, 0) - 2.0).abs() < 0.01);
/// assert!((spot.work(grid, 0, 100) - 0.0).abs() < 0.01);
/// assert!((spot.work(grid, 0, 200) - 2.0).abs() < 0.01);
/// ```
#[derive(Clone, Debug)]
pub enum ChunkCosts {
    /// Each chunk costs the same in all iterations.
    Fixed(Costs),
    /// The cost of each chunk rises and falls by a half, as a sine with a phase of its own.
    Drift {
        /// Number of iterations from one maximum to the next.
        iterations: f64,
        /// Seed of the phases.
        seed: u64,
    },
    /// The chunks of one half cost 1.5, the others 0.5. The halves swap every `iterations`.
    Alternate {
        /// Number of iterations from one swap to the next.
        iterations: u64,
    },
    /// The chunks of one half grow from 0.8 to 1.6 within `iterations`, linearly, and drop back. The others cost 0.8.
    Ramp {
        /// Number of iterations from one drop to the next.
        iterations: u64,
    },
    /// Each chunk costs 1, but every `iterations` one chunk costs 10 more, as if it had been preempted.
    Spikes {
        /// Number of iterations from one spike to the next, and before the first.
        iterations: u64,
        /// Seed of the choice of chunks.
        seed: u64,
    },
    /// The costs of a table.
    Listed(CostTable),
    /// The cost of a column of the grid is `1 + cos` of its distance to the hot spot, a particle density that the PIC
    /// kernel calls sinusoidal. The spot moves `2k + 1` of 1000 columns of cells per iteration, or stands still.
    HotSpot {
        /// The `k` of its speed; none if it stands still.
        k: Option<u32>,
    },
}

impl ChunkCosts {
    /// The cost of a chunk of the grid in an iteration.
    pub fn work(&self, grid: Grid, chunk: u32, iteration: u64) -> f64 {
        match self {
            Self::Fixed(costs) => costs.work(u64::from(chunk)..u64::from(chunk) + 1),
            Self::Drift { iterations, seed } => {
                let phase = SplitMix64::new(seed ^ u64::from(chunk).wrapping_mul(0x9e37_79b9)).uniform();
                1.0 + 0.5 * (TAU * (iteration as f64 / iterations + phase)).sin()
            }
            Self::Alternate { iterations } => {
                let swapped = (iteration / iterations) % 2 == 1;
                if (chunk < grid.chunks() / 2) == swapped { 0.5 } else { 1.5 }
            }
            Self::Ramp { iterations } => {
                let grown = (iteration % iterations) as f64 / *iterations as f64;
                if chunk < grid.chunks() / 2 { LEVEL * (1.0 + grown) } else { LEVEL }
            }
            Self::Spikes { iterations, seed } => {
                let spike = (iteration + 1) / iterations;
                let is_due = (iteration + 1).is_multiple_of(*iterations);
                let chosen = mix(seed.wrapping_add(spike)) % u64::from(grid.chunks());
                if is_due && u64::from(chunk) == chosen { 1.0 + SPIKE } else { 1.0 }
            }
            Self::Listed(table) => table.cost(chunk, iteration),
            Self::HotSpot { k } => {
                let moved = k.map_or(0.0, |k| f64::from(2 * k + 1) * iteration as f64 / CELLS);
                let width = 1.0 / f64::from(grid.columns);
                let from = TAU * (f64::from(grid.column(chunk)) * width - moved.fract());
                let to = from + TAU * width;
                1.0 + (to.sin() - from.sin()) / (to - from)
            }
        }
    }

    /// The cost of all chunks in all iterations.
    pub fn total(&self, grid: Grid, iterations: u64) -> f64 {
        let all = || 0..grid.chunks();
        match self {
            Self::Fixed(costs) => costs.work(0..u64::from(grid.chunks())) * iterations as f64,
            // The sum over columns does not depend on the place of the spot.
            Self::HotSpot { .. } => f64::from(grid.chunks()) * iterations as f64,
            Self::Spikes { iterations: every, .. } => {
                f64::from(grid.chunks()) * iterations as f64 + SPIKE * (iterations / every) as f64
            }
            Self::Drift { .. } | Self::Alternate { .. } | Self::Ramp { .. } | Self::Listed(_) => {
                (0..iterations).map(|at| all().map(|chunk| self.work(grid, chunk, at)).sum::<f64>()).sum()
            }
        }
    }
}

/// Chunks in columns, the first column first. Rows and columns are rings.
///
/// ```
/// use virtual_cluster::Grid;
/// let grid = Grid::of(24);
/// assert_eq!((grid.columns, grid.rows), (6, 4));
/// assert_eq!(grid.beside(0), [4, 20, 1, 3]);
/// assert_eq!(Grid::of(7).beside(3), [4, 2], "a ring");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of columns.
    pub columns: u32,
    /// Number of chunks in each column.
    pub rows: u32,
}

impl Grid {
    /// The grid of `chunks` chunks that is nearest to a square, with at least as many columns as rows.
    pub fn of(chunks: u32) -> Self {
        let most = f64::from(chunks).sqrt() as u32;
        let rows = (1..=most).rev().find(|rows| chunks.is_multiple_of(*rows)).unwrap_or(1);
        Self { columns: chunks / rows, rows }
    }

    fn chunks(self) -> u32 {
        self.columns * self.rows
    }

    fn column(self, chunk: u32) -> u32 {
        chunk / self.rows
    }

    /// The chunks that share an edge with a chunk, each once.
    pub fn beside(self, chunk: u32) -> Vec<u32> {
        let (column, row) = (chunk / self.rows, chunk % self.rows);
        let at = |column: u32, row: u32| column % self.columns * self.rows + row % self.rows;
        let mut beside = Vec::with_capacity(4);
        for other in [
            at(column + 1, row),
            at(column + self.columns - 1, row),
            at(column, row + 1),
            at(column, row + self.rows - 1),
        ] {
            if other != chunk && !beside.contains(&other) {
                beside.push(other);
            }
        }
        beside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn a_ramp_grows_in_one_half_and_drops_back() {
        let (grid, ramp) = (Grid::of(8), ChunkCosts::Ramp { iterations: 100 });
        let growing = [0, 50, 99, 100].map(|iteration| ramp.work(grid, 3, iteration));
        assert!(growing.into_iter().zip([0.8, 1.2, 1.592, 0.8]).all(|(cost, expected)| near(cost, expected)));
        assert!(near(ramp.work(grid, 4, 99), 0.8), "the other half stays");
        assert!((ramp.total(grid, 100) / 800.0 - 1.0).abs() < 0.01, "the mean is 1");
    }

    #[test]
    fn a_spike_is_one_chunk_in_one_iteration_of_so_many() {
        let (grid, spikes) = (Grid::of(32), ChunkCosts::Spikes { iterations: 50, seed: 7 });
        let of_iteration = |iteration| (0..32).map(|chunk| spikes.work(grid, chunk, iteration)).sum::<f64>();
        let dear: Vec<u64> = (0..200).filter(|&iteration| of_iteration(iteration) > 32.5).collect();
        assert_eq!(dear, [49, 99, 149, 199]);
        assert!(dear.iter().all(|&iteration| near(of_iteration(iteration), 42.0)));
        let sum: f64 = (0..170).map(of_iteration).sum();
        assert!(near(spikes.total(grid, 170), sum), "{sum}");
    }
}
