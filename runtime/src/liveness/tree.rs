//! The tree of ranks, which defines which ranks watch each other.

use crate::heap;
use crate::ids::Rank;

/// Maximum number of children per rank. A process may usually have 1024 files open, of which MPI and the program need
/// some. Up to 257 ranks the tree is a star. Up to 65 793 ranks no rank is more than two connections from rank 0.
pub(super) const FAN_OUT: u32 = 256;

/// The ranks of a job as a tree with root 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    pub(super) ranks: u32,
    pub(super) fan_out: u32,
}

impl Tree {
    pub(crate) fn of(ranks: u32) -> Tree {
        Tree { ranks, fan_out: FAN_OUT }
    }

    /// The parent; none for rank 0.
    pub(crate) fn parent(&self, rank: Rank) -> Option<Rank> {
        heap::parent(rank, self.fan_out)
    }

    /// The children.
    pub(crate) fn children(&self, rank: Rank) -> impl Iterator<Item = Rank> + use<> {
        heap::children(rank, self.ranks, self.fan_out)
    }

    /// Tells whether the rank has children.
    pub(crate) fn is_inner(&self, rank: Rank) -> bool {
        self.children(rank).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of connections between a rank and rank 0.
    fn depth(tree: Tree, rank: Rank) -> usize {
        std::iter::successors(Some(rank), |&rank| tree.parent(rank)).count() - 1
    }

    #[test]
    fn every_rank_but_0_is_the_child_of_its_parent_alone() {
        for (ranks, fan_out) in [(1, 2), (2, 1), (7, 2), (600, 2), (600, 256), (257, 256), (70_000, 256)] {
            let tree = Tree { ranks, fan_out };
            let mut born: Vec<Rank> = Vec::new();
            for rank in (0..ranks).map(Rank) {
                let children: Vec<Rank> = tree.children(rank).collect();
                assert!(children.iter().all(|&child| tree.parent(child) == Some(rank)));
                assert!(children.len() <= fan_out as usize && tree.is_inner(rank) != children.is_empty());
                born.extend(children);
            }
            assert_eq!(born, (1..ranks).map(Rank).collect::<Vec<_>>());
        }
    }

    #[test]
    fn usual_jobs_are_a_star_and_no_job_is_deep() {
        for (ranks, deepest) in [(1, 0), (2, 1), (257, 1), (258, 2), (65_793, 2), (65_794, 3)] {
            assert_eq!(depth(Tree::of(ranks), Rank(ranks - 1)), deepest, "of {ranks} ranks");
        }
    }
}
