//! Finds the rank that would finish first with one chunk more. Strategies such as `greedy` place each chunk with it.
//!
//! With equal capacities, this rank is the top of a min-heap by completion time. With unequal capacities, a fast busy
//! rank may finish a heavy chunk before a slow idle rank. Ranks are therefore divided into classes of about equal
//! capacity (steps of 2^(1/8), 9 %). Each class has a heap, and the tops of all heaps are compared.
//!
//! Loads only grow while chunks are placed, so an outdated heap entry has too early a time. The entry comes to the top
//! and is refreshed there. Cost per chunk: O(classes + log ranks), with at most [`CLASSES_MAX`] classes.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use crate::arrays::loads::Loads;
use crate::arrays::snapshot::Snapshot;
use crate::rank::Rank;

/// Capacities below 2^-8 of the largest share the last class.
const CLASSES_MAX: usize = 65;

/// Ranks by completion time, with one heap per class of capacity.
pub(crate) struct FinishFirst {
    classes: Vec<BinaryHeap<Reverse<CompletionKey>>>,
}

/// A completion time and a rank, in one integer: heaps spend their time comparing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CompletionKey(u128);

impl CompletionKey {
    fn new(completion_ns: u64, rank: Rank) -> Self {
        Self(u128::from(completion_ns) << 32 | u128::from(rank.0))
    }

    fn completion_ns(self) -> u64 {
        (self.0 >> 32) as u64
    }

    fn rank(self) -> Rank {
        Rank(self.0 as u32)
    }
}

impl FinishFirst {
    /// Starts with the available ranks and the loads that they have now.
    pub(crate) fn new(loads: &Loads) -> Self {
        let capacity = |rank: &Rank| loads.capacity[rank.index()];
        let largest = loads.available.iter().map(capacity).fold(0.0, f64::max);
        let mut members = vec![Vec::new(); CLASSES_MAX];
        for rank in &loads.available {
            let class = ((largest / capacity(rank)).log2() * 8.0) as usize;
            members[class.min(CLASSES_MAX - 1)]
                .push(Reverse(CompletionKey::new(loads.completion_ns(*rank), *rank)));
        }
        let classes = members.into_iter().filter(|class| !class.is_empty()).map(BinaryHeap::from).collect();
        Self { classes }
    }

    /// Puts `ticks` on the rank that would finish first with them, and returns it. Of equal ranks, the fastest wins.
    ///
    /// `None` where no rank is available.
    pub(crate) fn place(&mut self, loads: &mut Loads, ticks: u64) -> Option<Rank> {
        let mut best: Option<(u64, usize, Rank)> = None;
        for (class, heap) in self.classes.iter_mut().enumerate() {
            let rank = freshest(heap, loads);
            let candidate = (loads.completion_with(rank, ticks), class, rank);
            best = Some(best.map_or(candidate, |best| best.min(candidate)));
        }
        let (completion_ns, class, rank) = best?;
        loads.ticks[rank.index()] += ticks;
        if let Some(mut top) = self.classes[class].peek_mut() {
            *top = Reverse(CompletionKey::new(completion_ns, rank));
        }
        Some(rank)
    }
}

/// Refreshes the top of a class until its time is current. Returns the rank of the class that finishes first.
fn freshest(heap: &mut BinaryHeap<Reverse<CompletionKey>>, loads: &Loads) -> Rank {
    loop {
        let mut top = heap.peek_mut().expect("classes without a rank were dropped");
        let rank = top.0.rank();
        let completion_ns = loads.completion_ns(rank);
        if completion_ns == top.0.completion_ns() {
            return rank;
        }
        *top = Reverse(CompletionKey::new(completion_ns, rank));
        drop::<PeekMut<'_, _>>(top);
    }
}

/// All chunks that may move, as (position, ticks), by falling load and then rising position.
///
/// Load and position share one word, so the sort compares integers and touches no other memory. Where both do not fit
/// (loads above 2^44 ns with a million chunks), leading bits of the load decide the order. Returned loads are exact.
pub(crate) fn by_falling_load(snapshot: &Snapshot) -> Vec<(usize, u64)> {
    let position_bits = u64::BITS - (snapshot.chunks.len() as u64).leading_zeros();
    let largest = snapshot.chunks.iter().map(|chunk| chunk.ticks).max().unwrap_or(0);
    let load_bits = u64::BITS - largest.leading_zeros();
    let dropped = (load_bits + position_bits).saturating_sub(u64::BITS);
    let movable = snapshot.chunks.iter().enumerate().filter(|(_, chunk)| chunk.migratable);
    let key = |ticks: u64, position: usize| ((largest - ticks) >> dropped) << position_bits | position as u64;
    let mut keys: Vec<u64> = movable.map(|(position, chunk)| key(chunk.ticks, position)).collect();
    keys.sort_unstable();
    let mask = (1 << position_bits) - 1;
    let unpack = |key: u64| {
        let position = (key & mask) as usize;
        // The load is read out of the key, which saves one cache miss per chunk.
        let ticks =
            if dropped == 0 { largest - (key >> position_bits) } else { snapshot.chunks[position].ticks };
        (position, ticks)
    };
    keys.into_iter().map(unpack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::snapshot::RankLoad;
    use crate::arrays::strategy::Background;
    use crate::arrays::synthetic::Workload;

    #[test]
    fn a_heavy_chunk_prefers_the_fast_rank_even_when_it_is_busy() {
        let mut snapshot = Workload::Equal.snapshot(0, 2, 1);
        snapshot.ranks[0] = RankLoad { speed: 0.1, ..RankLoad::default() };
        let mut loads = Loads::background(&snapshot, Background::Share);
        loads.ticks[1] = 1_000;
        let mut finish_first = FinishFirst::new(&loads);
        assert_eq!(finish_first.place(&mut loads, 500), Some(Rank(1)));
        assert_eq!(finish_first.place(&mut loads, 100), Some(Rank(0)));
    }

    #[test]
    fn a_rank_loaded_behind_its_back_is_refreshed() {
        let snapshot = Workload::Equal.snapshot(0, 3, 1);
        let mut loads = Loads::background(&snapshot, Background::Share);
        let mut finish_first = FinishFirst::new(&loads);
        loads.ticks[0] = 10;
        assert_eq!(finish_first.place(&mut loads, 5), Some(Rank(1)));
        assert_eq!(finish_first.place(&mut loads, 4), Some(Rank(2)));
        assert_eq!(finish_first.place(&mut loads, 3), Some(Rank(2)));
    }

    #[test]
    fn chunks_come_by_falling_load_then_rising_position() {
        let mut snapshot = Workload::Equal.snapshot(4, 1, 1);
        snapshot.chunks[2].ticks += 1;
        snapshot.chunks[1].migratable = false;
        assert_eq!(by_falling_load(&snapshot), [(2, 1_000_001), (0, 1_000_000), (3, 1_000_000)]);
        snapshot.chunks[3].ticks = u64::MAX;
        let positions = by_falling_load(&snapshot).into_iter().map(|(position, _)| position);
        assert!(positions.eq([3, 0, 2]), "the difference of 0 and 2 is beyond the leading bits");
    }
}
