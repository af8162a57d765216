//! The acceptance test: the gain predicted for the coming period against the cost of moving.
//!
//! Pure arithmetic on a plan somebody else made. It does not choose between plans and knows nothing of what
//! really happened afterwards; the caller measures its own cost of moving and passes it in.

use crate::arrays::metrics::{Moved, max_ns};
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::Background;

/// The cost of moving chunks on this machine.
///
/// ```
/// use lb_strategies::MoveCost;
/// let over_mpi = MoveCost { per_chunk_ns: 5_000, bytes_per_second: 6e9 };
/// assert_eq!(over_mpi.cost_ns(10, 60_000_000), 50_000 + 10_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveCost {
    /// Fixed time for each chunk moved.
    pub per_chunk_ns: u64,
    /// Rate at which chunk state travels. Zero or no number makes bytes free, as between threads of one
    /// process.
    pub bytes_per_second: f64,
}

impl MoveCost {
    /// Time to move `chunks` chunks of `bytes` bytes together.
    pub fn cost_ns(&self, chunks: usize, bytes: u64) -> u64 {
        let fixed = self.per_chunk_ns.saturating_mul(chunks as u64);
        let travel =
            if self.bytes_per_second > 0.0 { bytes as f64 * 1e9 / self.bytes_per_second } else { 0.0 };
        fixed.saturating_add(travel as u64)
    }
}

/// The outcome of [`accept()`], with the two figures it was decided on.
///
/// ```
/// use lb_strategies::Verdict;
/// let verdict = Verdict { accepted: false, gain_ns: 1_000, cost_ns: 2_000 };
/// assert!(verdict.gain_ns < verdict.cost_ns);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// True if the assignment is to be carried out.
    pub accepted: bool,
    /// Time the assignment is predicted to save over the coming period.
    pub gain_ns: u64,
    /// Time it takes to get there.
    pub cost_ns: u64,
}

/// Judges an assignment: it is accepted if it saves more over the next `phases` phases than moving costs.
///
/// An assignment that takes a migratable chunk off an unavailable rank is always accepted: staying is not
/// possible.
///
/// ```
/// use lb_strategies::{Background, MoveCost, accept, ARRAYS, synthetic::Workload};
/// let snapshot = Workload::NoisyRank.snapshot(200, 2, 1);
/// let assignment = ARRAYS.parse("refine")?.assign(&snapshot);
/// let cheap = MoveCost { per_chunk_ns: 3_000, bytes_per_second: 4e9 };
/// assert!(accept(&snapshot, &assignment, Background::Share, 1, &cheap).accepted);
/// let dear = MoveCost { per_chunk_ns: 10_000_000, ..cheap };
/// assert!(!accept(&snapshot, &assignment, Background::Share, 1, &dear).accepted);
/// assert!(accept(&snapshot, &assignment, Background::Share, 100, &dear).accepted);
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub fn accept(
    snapshot: &Snapshot,
    assignment: &Assignment,
    model: Background,
    phases: u64,
    cost: &MoveCost,
) -> Verdict {
    let moved = Moved::of(snapshot, assignment);
    let before_ns = max_ns(snapshot, &Assignment::current(snapshot), model);
    let after_ns = max_ns(snapshot, assignment, model);
    let gain_ns = before_ns.saturating_sub(after_ns).saturating_mul(phases);
    let cost_ns = cost.cost_ns(moved.chunks, moved.bytes);
    Verdict {
        accepted: gain_ns > cost_ns || leaves_an_unavailable_rank(snapshot, assignment),
        gain_ns,
        cost_ns,
    }
}

fn leaves_an_unavailable_rank(snapshot: &Snapshot, assignment: &Assignment) -> bool {
    let usable = |index: usize| snapshot.ranks.get(index).is_some_and(|rank| rank.available);
    let mut placed = snapshot.chunks.iter().zip(&assignment.ranks);
    placed.any(|(chunk, rank)| chunk.rank != *rank && !usable(chunk.rank.index()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ARRAYS;
    use crate::arrays::synthetic::Workload;
    use crate::rank::Rank;

    #[test]
    fn leaving_an_unavailable_rank_is_worth_any_cost() {
        let mut snapshot = Workload::Equal.snapshot(20, 2, 1);
        snapshot.ranks[1].available = false;
        let assignment = ARRAYS.parse("greedy").expect("known").assign(&snapshot);
        assert!(assignment.ranks.iter().all(|rank| *rank == Rank(0)));
        let dear = MoveCost { per_chunk_ns: u64::MAX, bytes_per_second: 1.0 };
        let verdict = accept(&snapshot, &assignment, Background::Share, 1, &dear);
        assert!(verdict.accepted && verdict.gain_ns < verdict.cost_ns);
    }

    #[test]
    fn staying_is_not_a_move_to_accept() {
        let snapshot = Workload::Equal.snapshot(20, 2, 1);
        let free = MoveCost { per_chunk_ns: 0, bytes_per_second: 0.0 };
        let verdict = accept(&snapshot, &Assignment::current(&snapshot), Background::Share, 1, &free);
        assert_eq!(verdict, Verdict { accepted: false, gain_ns: 0, cost_ns: 0 });
    }
}
