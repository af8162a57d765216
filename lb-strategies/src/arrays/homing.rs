//! Replaces moves of a plan by equally useful moves that return chunks home, to the rank on which they began. The
//! balancer applies this to each plan that it makes in balancing windows.
//!
//! Programs place chunks that exchange messages on the same rank. Without this rule, moves that follow another process
//! or noise would shuffle all chunks in the long run, and most messages would cross ranks. No record of messages is
//! needed.

use std::collections::BTreeMap;

use super::snapshot::{Assignment, ChunkId, Snapshot};
use crate::rank::Rank;

/// Loads that differ by at most this part count as equal.
const ALIKE: f64 = 0.1;

/// Replaces moves of a plan by moves home. A chunk that goes home replaces one with the same source and destination, at
/// least as many bytes and about the same load.
///
/// O(n + m log n) for n chunks and m moves.
pub(super) fn homeward(
    snapshot: &Snapshot,
    plan: &Assignment,
    home: impl Fn(ChunkId) -> Option<Rank>,
) -> Assignment {
    let mut homeward = plan.clone();
    // By rank and home: chunks that stay in the plan and could go home, by their loads.
    let mut displaced: BTreeMap<(Rank, Rank), BTreeMap<(u64, usize), u64>> = BTreeMap::new();
    let placed = || snapshot.chunks.iter().zip(&plan.ranks).enumerate();
    for (at, (chunk, &to)) in placed() {
        let could_go = chunk.migratable && to == chunk.rank;
        if let Some(home) = home(chunk.id).filter(|&home| could_go && home != chunk.rank) {
            displaced.entry((chunk.rank, home)).or_default().insert((chunk.ticks, at), chunk.bytes);
        }
    }
    if displaced.is_empty() {
        return homeward;
    }
    for (at, (chunk, &to)) in placed() {
        if to == chunk.rank || home(chunk.id) == Some(to) {
            continue;
        }
        let Some(candidates) = displaced.get_mut(&(chunk.rank, to)) else { continue };
        let apart = (ALIKE * chunk.ticks as f64) as u64;
        let alike = (chunk.ticks.saturating_sub(apart), 0)..=(chunk.ticks.saturating_add(apart), usize::MAX);
        let found = candidates.range(alike).filter(|&(_, &bytes)| bytes <= chunk.bytes);
        let nearest =
            found.min_by_key(|&(&(ticks, _), _)| ticks.abs_diff(chunk.ticks)).map(|(&found, _)| found);
        if let Some(found) = nearest {
            candidates.remove(&found);
            homeward.ranks[at] = chunk.rank;
            homeward.ranks[found.1] = to;
        }
    }
    homeward
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::synthetic::Workload;

    /// Eight chunks of 100 ticks on two ranks, and a plan that moves the first two of rank 0 to rank 1.
    fn two_leave() -> (Snapshot, Assignment) {
        let mut snapshot = Workload::Equal.snapshot(8, 2, 1);
        snapshot.chunks.sort_by_key(|chunk| chunk.rank);
        snapshot.chunks.iter_mut().for_each(|chunk| (chunk.ticks, chunk.bytes) = (100, 10));
        let mut plan = Assignment::current(&snapshot);
        plan.ranks[..2].fill(Rank(1));
        (snapshot, plan)
    }

    /// Positions of the chunks that move, where only the chunk at `displaced` did not begin where it is.
    fn moved(snapshot: &Snapshot, plan: &Assignment, displaced: usize) -> Vec<usize> {
        let id = snapshot.chunks[displaced].id;
        let here =
            |chunk: ChunkId| snapshot.chunks.iter().find(|other| other.id == chunk).map(|chunk| chunk.rank);
        let home = |chunk| if chunk == id { here(chunk).map(|rank| Rank(1 - rank.0)) } else { here(chunk) };
        let homeward = homeward(snapshot, plan, home);
        let moves = |&at: &usize| homeward.ranks[at] != snapshot.chunks[at].rank;
        (0..snapshot.chunks.len()).filter(moves).collect()
    }

    #[test]
    fn a_chunk_goes_home_in_the_place_of_another() {
        let (snapshot, plan) = two_leave();
        assert_eq!(moved(&snapshot, &plan, 3), [1, 3]);
        assert_eq!(moved(&snapshot, &plan, 1), [0, 1], "it goes home anyway");
        assert_eq!(moved(&snapshot, &plan, 5), [0, 1], "nothing leaves its rank");
    }

    #[test]
    fn a_chunk_of_another_load_or_with_more_bytes_stays() {
        for (ticks, bytes, migratable, moves) in [
            (100, 10, true, [1, 3]),
            (109, 10, true, [1, 3]),
            (120, 10, true, [0, 1]),
            (80, 10, true, [0, 1]),
            (100, 11, true, [0, 1]),
            (100, 10, false, [0, 1]),
        ] {
            let (mut snapshot, plan) = two_leave();
            let chunk = &mut snapshot.chunks[3];
            (chunk.ticks, chunk.bytes, chunk.migratable) = (ticks, bytes, migratable);
            assert_eq!(moved(&snapshot, &plan, 3), moves, "{ticks} {bytes} {migratable}");
        }
    }
}
