//! Ranks as a heap: rank 0 is the root of a tree in which each rank has up to `arity` children, numbered level by level.
//!
//! The users of such a tree state its purpose and its arity.

use crate::ids::{ROOT, Rank};

/// The rank above; none for rank 0.
pub(crate) fn parent(rank: Rank, arity: u32) -> Option<Rank> {
    (rank != ROOT).then(|| Rank((rank.0 - 1) / arity))
}

/// The ranks right below, of `ranks`.
pub(crate) fn children(rank: Rank, ranks: u32, arity: u32) -> impl Iterator<Item = Rank> + use<> {
    let first = rank.0.saturating_mul(arity).saturating_add(1);
    let end = first.saturating_add(arity).min(ranks);
    (first..end).map(Rank)
}
