//! The tree of ranks: rank 0 broadcasts down it, and reports to rank 0 are aggregated on their way up (convergecast).
//!
//! Rank 0 is the root, and each rank has up to [`ARITY`] children. When all ranks report, no rank exchanges more than
//! [`ARITY`] + 1 packets, whatever the number of ranks. The time is proportional to the depth of the tree.
//!
//! # Order
//! 1. Transports keep the order of packets between two ranks. So every rank receives the broadcasts of rank 0 in the
//!    order in which rank 0 sent them.
//! 2. A child reports on a broadcast only after its parent has received that broadcast.
//! 3. Packets along the tree are not ordered with packets that ranks send each other directly.

use crate::heap;
use crate::ids::Rank;

/// The most children of a rank. Simulations use smaller numbers too, so that few ranks make a deep tree.
pub(crate) const ARITY: u32 = 8;

/// A rank's place in the tree.
///
/// Consecutive ranks may form groups, such as the ranks of a host. Then each group is a tree below its first rank, and
/// these first ranks form a tree. So a packet goes from group to group once only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    pub(crate) rank: Rank,
    pub(crate) ranks: u32,
    pub(crate) arity: u32,
    /// Number of ranks per group; 1 for one tree of all ranks.
    pub(crate) group: u32,
}

impl Tree {
    /// The rank above; none for rank 0.
    pub(crate) fn parent(&self) -> Option<Rank> {
        self.parent_of(self.rank)
    }

    fn parent_of(&self, rank: Rank) -> Option<Rank> {
        let (group, member) = (rank.0 / self.group, rank.0 % self.group);
        let first = group * self.group;
        match heap::parent(Rank(member), self.arity) {
            Some(above) => Some(Rank(first + above.0)),
            None => heap::parent(Rank(group), self.arity).map(|above| Rank(above.0 * self.group)),
        }
    }

    /// The ranks directly below: the first ranks of other groups, then ranks of the same group.
    pub(crate) fn children(&self) -> impl Iterator<Item = Rank> + use<> {
        let Tree { rank, ranks, arity, group: size } = *self;
        let (group, member) = (rank.0 / size, rank.0 % size);
        let first = group * size;
        let groups = if member == 0 { ranks.div_ceil(size) } else { 0 };
        let firsts = heap::children(Rank(group), groups, arity).map(move |below| Rank(below.0 * size));
        let members = heap::children(Rank(member), size.min(ranks - first), arity);
        firsts.chain(members.map(move |below| Rank(first + below.0)))
    }

    /// True if this rank is the first of a group.
    pub(crate) fn is_first(&self) -> bool {
        self.rank.0.is_multiple_of(self.group)
    }

    /// Number of ranks in the group of this rank.
    pub(crate) fn group_size(&self) -> u32 {
        let first = self.rank.0 - self.rank.0 % self.group;
        self.group.min(self.ranks - first)
    }

    /// Parent and children.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = Rank> + use<> {
        self.parent().into_iter().chain(self.children())
    }

    /// The child that is `to` or is above it; none if `to` is not below this rank.
    pub(crate) fn child_towards(&self, to: Rank) -> Option<Rank> {
        let mut below = to;
        loop {
            match self.parent_of(below)? {
                above if above == self.rank => return Some(below),
                above => below = above,
            }
        }
    }
}

/// Adds up the reports of a rank and of each of its children.
#[derive(Debug, Default)]
pub(crate) struct Convergecast<T> {
    heard: usize,
    sum: T,
}

impl<T: Default> Convergecast<T> {
    /// Adds one more report by `join`. Returns the sum after the last report.
    pub(crate) fn add(&mut self, tree: &Tree, join: impl FnOnce(&mut T)) -> Option<T> {
        join(&mut self.sum);
        self.heard += 1;
        (self.heard == tree.children().count() + 1).then(|| std::mem::take(self).sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trees(ranks: u32, arity: u32, group: u32) -> impl Iterator<Item = Tree> {
        (0..ranks).map(move |rank| Tree { rank: Rank(rank), ranks, arity, group })
    }

    #[test]
    fn every_rank_is_the_child_of_its_parent_and_of_no_other_rank() {
        let flat = [(1, 8), (2, 8), (9, 8), (10, 8), (1000, 8), (20, 2), (7, 3)]
            .map(|(ranks, arity)| (ranks, arity, 1));
        let grouped = [(1, 8, 4), (9, 2, 4), (1000, 8, 64), (20, 2, 3), (7, 3, 7), (7, 3, 100)];
        for (ranks, arity, group) in flat.into_iter().chain(grouped) {
            let mut parents = vec![None; ranks as usize];
            for tree in trees(ranks, arity, group) {
                tree.children().for_each(|child| {
                    assert_eq!(parents[child.index()].replace(tree.rank), None, "{child} of {ranks}");
                });
            }
            assert!(trees(ranks, arity, group).all(|tree| tree.parent() == parents[tree.rank.index()]));
        }
    }

    #[test]
    fn there_is_a_way_down_to_ranks_below_and_to_no_others() {
        for start in trees(60, 3, 1).chain(trees(60, 2, 7)) {
            for to in (0..60).map(Rank) {
                let mut way = vec![start.rank];
                while let Some(next) = (Tree { rank: way[way.len() - 1], ..start }).child_towards(to) {
                    way.push(next);
                }
                let is_above = |rank: Rank| Tree { rank, ..start }.parent();
                let mut up = std::iter::successors(Some(to), |&rank| is_above(rank));
                let below = up.any(|rank| rank == start.rank);
                assert_eq!(way.last() == Some(&to), below, "{} to {to}", start.rank);
            }
        }
    }

    #[test]
    fn a_group_has_one_way_to_the_other_groups() {
        for tree in trees(1000, 8, 64) {
            let group = |rank: Rank| rank.0 / 64;
            let crosses = tree.parent().is_some_and(|above| group(above) != group(tree.rank));
            assert_eq!(crosses, tree.is_first() && tree.rank.0 > 0, "{}", tree.rank);
        }
        let sizes: Vec<u32> = trees(10, 8, 4).filter(Tree::is_first).map(|tree| tree.group_size()).collect();
        assert_eq!(sizes, [4, 4, 2]);
    }

    #[test]
    fn a_convergecast_is_complete_after_the_last_report_and_starts_again() {
        let tree = Tree { rank: Rank(1), ranks: 12, arity: 8, group: 1 };
        let mut all = Convergecast::<u32>::default();
        for _ in 0..2 {
            let sums: Vec<_> = [1, 2, 4, 8].map(|one| all.add(&tree, |sum| *sum += one)).into();
            assert_eq!(sums, [None, None, None, Some(15)]);
        }
    }
}
