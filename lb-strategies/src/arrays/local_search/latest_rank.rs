//! Finds the latest rank of a placement that changes: a complete binary tree whose inner nodes hold the later of their
//! two children.

/// The completion time of each rank, with the latest of all at hand. A change costs O(log ranks).
#[derive(Clone)]
pub(super) struct LatestRank {
    times: Vec<f64>,
    /// By node, the rank that finishes last below it. The root is node 1, rank r is leaf `leaves + r`.
    nodes: Vec<u32>,
    leaves: usize,
}

impl LatestRank {
    /// Ranks with these times, at least one.
    pub(super) fn new(times: Vec<f64>) -> Self {
        let leaves = times.len().max(1).next_power_of_two();
        let mut nodes = vec![0; 2 * leaves];
        let last = times.len().saturating_sub(1);
        (0..leaves).for_each(|leaf| nodes[leaves + leaf] = leaf.min(last) as u32);
        let mut tree = Self { times, nodes, leaves };
        (1..leaves).rev().for_each(|node| tree.nodes[node] = tree.later_below(node));
        tree
    }

    /// The latest rank; of equal ranks the lowest.
    pub(super) fn latest(&self) -> usize {
        self.nodes[1] as usize
    }

    /// The time of the latest rank.
    pub(super) fn latest_time(&self) -> f64 {
        self.times[self.latest()]
    }

    pub(super) fn time(&self, rank: usize) -> f64 {
        self.times[rank]
    }

    /// Changes the time of a rank.
    pub(super) fn set(&mut self, rank: usize, time: f64) {
        self.times[rank] = time;
        let mut node = (self.leaves + rank) / 2;
        while node > 0 {
            let before = self.nodes[node];
            self.nodes[node] = self.later_below(node);
            // A node that still names another rank, whose time did not change, ends the climb.
            if self.nodes[node] == before && before as usize != rank {
                break;
            }
            node /= 2;
        }
    }

    fn later_below(&self, node: usize) -> u32 {
        let [left, right] = [self.nodes[2 * node], self.nodes[2 * node + 1]];
        if self.times[right as usize] > self.times[left as usize] { right } else { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_rank_is_known_after_every_change() {
        for ranks in [1, 2, 3, 7, 8, 33] {
            let mut tree = LatestRank::new(vec![0.0; ranks]);
            let mut state = 1_u64;
            for _ in 0..500 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (rank, time) = ((state >> 33) as usize % ranks, (state >> 50 & 15) as f64);
                tree.set(rank, time);
                let last = (0..ranks).rev().max_by(|a, b| tree.time(*a).total_cmp(&tree.time(*b)));
                assert_eq!(Some(tree.latest()), last, "of {ranks}");
            }
        }
    }
}
