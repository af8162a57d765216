//! Arranges ranks as a tree, numbered level by level like a heap: rank 0 is the root, and each rank has up to `arity`
//! children. The modules that use such a tree state its purpose and its arity.

use crate::ids::{ROOT, Rank};

/// The parent of a rank; none for rank 0.
pub(crate) fn parent(rank: Rank, arity: u32) -> Option<Rank> {
    (rank != ROOT).then(|| Rank((rank.0 - 1) / arity))
}

/// The children of a rank, if there are `ranks` ranks.
pub(crate) fn children(rank: Rank, ranks: u32, arity: u32) -> impl Iterator<Item = Rank> + use<> {
    let first = rank.0.saturating_mul(arity).saturating_add(1);
    let end = first.saturating_add(arity).min(ranks);
    (first..end).map(Rank)
}
