//! The tree of ranks: what rank 0 says to all goes down in it, what all say to rank 0 comes up and is put together on the
//! way.
//!
//! Rank 0 is the root, and each rank has up to [`ARITY`] children. So no rank sends or receives more than that many packets
//! where all have something to say, however many ranks there are, and it takes as long as the tree is deep.
//!
//! Links keep the order of packets, so every rank hears what rank 0 says to all in the order in which it was said; and what
//! a child says about something it has heard of comes after its parent has heard of it. What is said by way of the tree is
//! not ordered with what ranks tell each other directly.

use crate::heap;
use crate::ids::Rank;

/// Children of a rank, but in simulations, which have deep trees of few ranks.
pub(crate) const ARITY: u32 = 8;

/// A rank's place in the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    pub(crate) rank: Rank,
    pub(crate) ranks: u32,
    pub(crate) arity: u32,
}

impl Tree {
    /// The rank above; none for rank 0.
    pub(crate) fn parent(&self) -> Option<Rank> {
        heap::parent(self.rank, self.arity)
    }

    /// The ranks right below.
    pub(crate) fn children(&self) -> impl Iterator<Item = Rank> + use<> {
        heap::children(self.rank, self.ranks, self.arity)
    }

    /// Parent and children.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = Rank> + use<> {
        self.parent().into_iter().chain(self.children())
    }

    /// The child on the way down to `to`, or that itself; none if it is not below.
    pub(crate) fn child_towards(&self, to: Rank) -> Option<Rank> {
        let mut below = to;
        loop {
            match heap::parent(below, self.arity)? {
                above if above == self.rank => return Some(below),
                above => below = above,
            }
        }
    }
}

/// What a rank and each of its children say once, put together until all of them have.
#[derive(Debug, Default)]
pub(crate) struct Convergecast<T> {
    heard: usize,
    sum: T,
}

impl<T: Default> Convergecast<T> {
    /// One more has spoken: `join` puts what it says to the rest. Returns all of it after the last one.
    pub(crate) fn add(&mut self, tree: &Tree, join: impl FnOnce(&mut T)) -> Option<T> {
        join(&mut self.sum);
        self.heard += 1;
        (self.heard == tree.children().count() + 1).then(|| std::mem::take(self).sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trees(ranks: u32, arity: u32) -> impl Iterator<Item = Tree> {
        (0..ranks).map(move |rank| Tree { rank: Rank(rank), ranks, arity })
    }

    #[test]
    fn every_rank_is_the_child_of_its_parent_and_of_nobody_else() {
        for (ranks, arity) in [(1, 8), (2, 8), (9, 8), (10, 8), (1000, 8), (20, 2), (7, 3)] {
            let mut parents = vec![None; ranks as usize];
            for tree in trees(ranks, arity) {
                tree.children().for_each(|child| {
                    assert_eq!(parents[child.index()].replace(tree.rank), None, "{child} of {ranks}");
                });
            }
            assert!(trees(ranks, arity).all(|tree| tree.parent() == parents[tree.rank.index()]));
        }
    }

    #[test]
    fn the_way_down_leads_there_and_there_is_none_to_others() {
        for start in trees(60, 3) {
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
    fn all_have_spoken_when_each_has_and_then_it_begins_again() {
        let tree = Tree { rank: Rank(1), ranks: 12, arity: 8 };
        let mut all = Convergecast::<u32>::default();
        for _ in 0..2 {
            let said: Vec<_> = [1, 2, 4, 8].map(|one| all.add(&tree, |sum| *sum += one)).into();
            assert_eq!(said, [None, None, None, Some(15)]);
        }
    }
}
