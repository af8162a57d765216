//! A table of the costs of chunks, from recorded loads or random walks.

use std::sync::Arc;

use lb_strategies::virtual_time::splitmix::SplitMix64;

/// The bounds of a random walk. The mean over many walks is 1.
const WALK: (f64, f64) = (0.25, 1.75);

/// Costs of chunks, one row per iteration. After the last row, the first row follows again.
///
/// ```
/// use virtual_cluster::CostTable;
/// let table = CostTable::new(2, vec![1.0, 2.0, 3.0, 4.0]);
/// assert_eq!((table.rows(), table.cost(1, 0), table.cost(0, 1), table.cost(1, 2)), (2, 2.0, 3.0, 2.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CostTable {
    chunks: usize,
    costs: Arc<[f64]>,
}

impl CostTable {
    /// A table for this number of chunks, from its rows one after another.
    ///
    /// # Panics
    /// If there is no chunk or no row, or the last row is incomplete.
    pub fn new(chunks: u32, costs: Vec<f64>) -> Self {
        let chunks = chunks as usize;
        assert!(chunks > 0 && !costs.is_empty(), "a table has a chunk and a row");
        assert!(costs.len().is_multiple_of(chunks), "each row has a cost for each of {chunks} chunks");
        Self { chunks, costs: costs.into() }
    }

    /// A random walk for each chunk. It begins at 1, and takes a normal step with this sigma in each iteration, but
    /// stays between 0.25 and 1.75. O(chunks x iterations) time and memory.
    ///
    /// # Panics
    /// If there is no chunk or no iteration.
    pub fn walk(chunks: u32, iterations: u64, sigma: f64, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let mut at = vec![1.0_f64; chunks as usize];
        let mut costs = Vec::new();
        for _ in 0..iterations {
            costs.extend_from_slice(&at);
            at.iter_mut().for_each(|cost| *cost = (*cost + sigma * rng.normal()).clamp(WALK.0, WALK.1));
        }
        Self::new(chunks, costs)
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        (self.costs.len() / self.chunks) as u64
    }

    /// The cost of a chunk in an iteration.
    pub fn cost(&self, chunk: u32, iteration: u64) -> f64 {
        let row = (iteration % self.rows()) as usize;
        self.costs[row * self.chunks + chunk as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_stays_in_its_bounds_and_depends_on_the_seed_alone() {
        let walk = CostTable::walk(8, 2000, 0.1, 3);
        assert_eq!((walk.rows(), walk.cost(5, 0)), (2000, 1.0));
        assert!(walk.costs.iter().all(|cost| (WALK.0..=WALK.1).contains(cost)));
        assert!(walk.costs.contains(&WALK.0) && walk.costs.contains(&WALK.1), "steps of 0.1 reach both");
        assert_eq!(walk, CostTable::walk(8, 2000, 0.1, 3));
        assert_ne!(walk, CostTable::walk(8, 2000, 0.1, 4));
        let mean = walk.costs.iter().sum::<f64>() / 16_000.0;
        assert!((mean - 1.0).abs() < 0.1, "{mean}");
    }
}
