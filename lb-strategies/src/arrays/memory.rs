//! Accounts for the memory of ranks, so that no strategy puts more chunks on a rank than fit.
//!
//! The memory of a rank is the sum over its chunks, one copy of each block that they use, and the largest working
//! memory of a chunk ([`Memory`](crate::Memory)).

use std::collections::BTreeMap;

use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Memory, Snapshot};
use crate::arrays::strategy::Background;
use crate::rank::Rank;

/// The memory that each rank uses under a placement that changes.
#[derive(Clone)]
pub(crate) struct MemoryUse<'a> {
    snapshot: &'a Snapshot,
    memory: &'a Memory,
    /// By chunk, the positions of its blocks.
    blocks_of: Vec<Vec<u32>>,
    /// By block: all its chunks exist.
    is_sound: Vec<bool>,
    ranks: Vec<RankUse>,
}

/// The memory that one rank uses.
#[derive(Clone, Default)]
struct RankUse {
    bytes: u64,
    /// By block on the rank: the number of chunks that use it.
    blocks: BTreeMap<u32, u32>,
    /// By working memory of chunks on the rank: the number of such chunks.
    working: BTreeMap<u64, u32>,
}

impl RankUse {
    fn total(&self) -> u64 {
        self.bytes.saturating_add(self.working.last_key_value().map_or(0, |(&bytes, _)| bytes))
    }
}

impl<'a> MemoryUse<'a> {
    /// The use of memory under a placement; none if no rank has a limit. O(chunks log chunks).
    pub(crate) fn placed(snapshot: &'a Snapshot, assignment: &Assignment) -> Option<Self> {
        let memory = snapshot.memory.as_ref()?;
        if memory.limits.iter().all(|&limit| limit == u64::MAX) {
            return None;
        }
        let mut blocks_of = vec![Vec::new(); snapshot.chunks.len()];
        for (block, number) in memory.blocks.iter().zip(0..) {
            for &chunk in &block.chunks {
                if let Some(blocks) = blocks_of.get_mut(chunk)
                    && blocks.last() != Some(&number)
                {
                    blocks.push(number);
                }
            }
        }
        let ranks = vec![RankUse::default(); snapshot.ranks.len()];
        let exists = |chunk: &usize| *chunk < snapshot.chunks.len();
        let is_sound = memory.blocks.iter().map(|block| block.chunks.iter().all(exists)).collect();
        let mut used = Self { snapshot, memory, blocks_of, is_sound, ranks };
        assignment.ranks.iter().enumerate().for_each(|(chunk, &rank)| used.add(chunk, rank));
        Some(used)
    }

    /// The memory that a rank uses, bytes.
    pub(crate) fn bytes(&self, rank: Rank) -> u64 {
        self.ranks.get(rank.index()).map_or(0, RankUse::total)
    }

    /// The limit of a rank, bytes.
    pub(crate) fn limit(&self, rank: Rank) -> u64 {
        self.memory.limits.get(rank.index()).copied().unwrap_or(u64::MAX)
    }

    /// The bytes by which a rank exceeds its limit.
    pub(crate) fn excess(&self, rank: Rank) -> u64 {
        self.bytes(rank).saturating_sub(self.limit(rank))
    }

    /// True if the chunk fits on a rank that does not hold it.
    pub(crate) fn fits(&self, chunk: usize, rank: Rank) -> bool {
        let Some(on_rank) = self.ranks.get(rank.index()) else { return true };
        let is_new = |block: &&u32| !on_rank.blocks.contains_key(block);
        let blocks = self.blocks_of[chunk].iter().filter(is_new).map(|&block| self.block_bytes(block));
        let more = blocks.fold(self.footprint(chunk), u64::saturating_add);
        let most = on_rank.working.last_key_value().map_or(0, |(&bytes, _)| bytes).max(self.working(chunk));
        on_rank.bytes.saturating_add(more).saturating_add(most) <= self.limit(rank)
    }

    /// The chunks that use the first block of this chunk; none if it uses no block.
    pub(crate) fn sharers(&self, chunk: usize) -> Option<&'a [usize]> {
        let block = *self.blocks_of[chunk].first()?;
        self.is_sound[block as usize].then_some(&self.memory.blocks[block as usize].chunks)
    }

    /// Moves a chunk.
    pub(crate) fn transfer(&mut self, chunk: usize, from: Rank, to: Rank) {
        self.remove(chunk, from);
        self.add(chunk, to);
    }

    fn add(&mut self, chunk: usize, rank: Rank) {
        let (footprint, working) = (self.footprint(chunk), self.working(chunk));
        let Some(on_rank) = self.ranks.get_mut(rank.index()) else { return };
        let mut more = footprint;
        for &block in &self.blocks_of[chunk] {
            let users = on_rank.blocks.entry(block).or_insert(0);
            *users += 1;
            if *users == 1 {
                more = more.saturating_add(self.memory.blocks[block as usize].bytes);
            }
        }
        on_rank.bytes = on_rank.bytes.saturating_add(more);
        *on_rank.working.entry(working).or_insert(0) += 1;
    }

    fn remove(&mut self, chunk: usize, rank: Rank) {
        let (footprint, working) = (self.footprint(chunk), self.working(chunk));
        let Some(on_rank) = self.ranks.get_mut(rank.index()) else { return };
        let mut less = footprint;
        for &block in &self.blocks_of[chunk] {
            if release(&mut on_rank.blocks, &block) {
                less = less.saturating_add(self.memory.blocks[block as usize].bytes);
            }
        }
        on_rank.bytes = on_rank.bytes.saturating_sub(less);
        release(&mut on_rank.working, &working);
    }

    fn block_bytes(&self, block: u32) -> u64 {
        self.memory.blocks[block as usize].bytes
    }

    fn footprint(&self, chunk: usize) -> u64 {
        self.memory.footprints.get(chunk).copied().unwrap_or(self.snapshot.chunks[chunk].bytes)
    }

    fn working(&self, chunk: usize) -> u64 {
        self.memory.working.get(chunk).copied().unwrap_or(0)
    }
}

/// Takes one user off an entry. Returns true if it was the last one.
fn release<K: Ord>(users: &mut BTreeMap<K, u32>, key: &K) -> bool {
    let Some(count) = users.get_mut(key) else { return false };
    *count -= 1;
    if *count == 0 {
        users.remove(key);
        return true;
    }
    false
}

/// The rank that exceeds its limit of memory by most under a placement, with the memory that it uses and its limit,
/// bytes.
pub(crate) fn fullest(snapshot: &Snapshot, assignment: &Assignment) -> Option<(Rank, u64, u64)> {
    let used = MemoryUse::placed(snapshot, assignment)?;
    let ranks = (0..snapshot.ranks.len() as u32).map(Rank);
    let rank = ranks.max_by_key(|&rank| (used.excess(rank), std::cmp::Reverse(rank)))?;
    (used.excess(rank) > 0).then(|| (rank, used.bytes(rank), used.limit(rank)))
}

/// True if ranks exceed their limits of memory by less than under the present placement.
pub(crate) fn relieves(snapshot: &Snapshot, assignment: &Assignment) -> bool {
    let excess = |placement: &Assignment| {
        let used = MemoryUse::placed(snapshot, placement)?;
        Some((0..snapshot.ranks.len() as u32).map(|rank| u128::from(used.excess(Rank(rank)))).sum::<u128>())
    };
    excess(assignment) < excess(&Assignment::current(snapshot))
}

/// The memory that each rank uses under a placement, bytes. Empty if no rank has a limit.
///
/// ```
/// use lb_strategies::{Assignment, Memory, metrics::memory_bytes, synthetic::Workload};
/// let mut snapshot = Workload::Equal.snapshot(4, 2, 1);
/// snapshot.chunks.iter_mut().for_each(|chunk| chunk.bytes = 10);
/// assert!(memory_bytes(&snapshot, &Assignment::current(&snapshot)).is_empty());
/// snapshot.memory = Some(Memory { limits: vec![25; 2], ..Memory::default() });
/// assert_eq!(memory_bytes(&snapshot, &Assignment::current(&snapshot)), [20, 20]);
/// ```
pub fn memory_bytes(snapshot: &Snapshot, assignment: &Assignment) -> Vec<u64> {
    let used = MemoryUse::placed(snapshot, assignment);
    used.map_or_else(Vec::new, |used| used.ranks.iter().map(RankUse::total).collect())
}

impl Assignment {
    /// This assignment without the moves that exceed the memory limit of a rank.
    ///
    /// Moves are made rank by rank. A move that does not fit waits until a chunk has left its new rank. What
    /// then still does not fit stays; a chunk on an unavailable rank goes to the available rank with the most free memory.
    /// A rank that is above its limit from the start receives nothing until it is below it. O(chunks log chunks), and the
    /// waiting moves of a rank each time that a chunk leaves it.
    #[must_use]
    pub(crate) fn within_memory(mut self, snapshot: &Snapshot) -> Self {
        let current = Self::current(snapshot);
        let Some(mut used) = MemoryUse::placed(snapshot, &current) else { return self };
        let moves = snapshot.chunks.iter().zip(&self.ranks).enumerate();
        let mut waiting: BTreeMap<Rank, Vec<usize>> = BTreeMap::new();
        for (chunk, _) in moves.filter(|(_, (chunk, to))| chunk.rank != **to) {
            waiting.entry(self.ranks[chunk]).or_default().push(chunk);
        }
        let mut retried: Vec<Rank> = waiting.keys().copied().collect();
        while let Some(rank) = retried.pop() {
            let Some(chunks) = waiting.get_mut(&rank) else { continue };
            chunks.retain(|&chunk| {
                let fits = used.fits(chunk, rank);
                if fits {
                    used.transfer(chunk, snapshot.chunks[chunk].rank, rank);
                    retried.push(snapshot.chunks[chunk].rank);
                }
                !fits
            });
        }
        let mut waiting: Vec<usize> = waiting.into_values().flatten().collect();
        waiting.sort_unstable();
        for chunk in waiting {
            let from = snapshot.chunks[chunk].rank;
            self.ranks[chunk] = from;
            if !snapshot.ranks.get(from.index()).is_some_and(|rank| rank.available) {
                let ranks = (0..).map(Rank).zip(&snapshot.ranks).filter(|(_, rank)| rank.available);
                let free = |rank: Rank| used.limit(rank).saturating_sub(used.bytes(rank));
                let roomiest = ranks
                    .map(|(rank, _)| (used.fits(chunk, rank), free(rank), std::cmp::Reverse(rank)))
                    .max();
                if let Some((_, _, std::cmp::Reverse(to))) = roomiest {
                    used.transfer(chunk, from, to);
                    self.ranks[chunk] = to;
                }
            }
        }
        self
    }

    /// This assignment with chunks taken off ranks that exceed their limit of memory, the largest first, each to the rank
    /// that then finishes first of those with room. A rank stays above its limit if its chunks fit nowhere.
    /// O(chunks log chunks), and O(ranks) for each chunk of a rank above its limit.
    #[must_use]
    pub(crate) fn relieved(mut self, snapshot: &Snapshot, model: Background) -> Self {
        let Some(mut used) = MemoryUse::placed(snapshot, &self) else { return self };
        let ranks = (0..snapshot.ranks.len() as u32).map(Rank);
        let over: Vec<Rank> = ranks.filter(|&rank| used.excess(rank) > 0).collect();
        if over.is_empty() {
            return self;
        }
        let mut loads = Loads::placed(snapshot, &self, model);
        for rank in over {
            let chunks = self.ranks.iter().enumerate().filter(|(_, on)| **on == rank);
            let may_leave = chunks.filter(|(chunk, _)| snapshot.chunks[*chunk].migratable);
            let mut held: Vec<usize> = may_leave.map(|(chunk, _)| chunk).collect();
            held.sort_by_key(|&chunk| (std::cmp::Reverse(used.footprint(chunk)), chunk));
            for chunk in held {
                if used.excess(rank) == 0 {
                    break;
                }
                let ticks = loads.clamp_load(snapshot.chunks[chunk].ticks);
                let until = |to: Rank| (loads.ticks[to.index()] + ticks) as f64 / loads.capacity[to.index()];
                let with_room = loads.available.iter().filter(|&&to| to != rank && used.fits(chunk, to));
                let first = with_room.min_by(|one, other| until(**one).total_cmp(&until(**other)));
                let Some(&to) = first else { continue };
                used.transfer(chunk, rank, to);
                loads.ticks[rank.index()] -= ticks;
                loads.ticks[to.index()] += ticks;
                self.ranks[chunk] = to;
            }
        }
        self
    }

    /// This assignment [within memory](Self::within_memory), or the current placement if the moves that fit make no
    /// sense without the others: if the last rank then finishes later than now.
    #[must_use]
    pub(crate) fn within_memory_or_stay(self, snapshot: &Snapshot, model: Background) -> Self {
        if snapshot.memory.is_none() {
            return self;
        }
        let kept = self.within_memory(snapshot);
        let loads = Loads::placed(snapshot, &kept, model);
        kept.unless_worse(snapshot, &loads, model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::snapshot::Block;
    use crate::arrays::synthetic::Workload;

    /// Six chunks on three ranks, of 10 bytes each. Chunks 0 and 2 share a block of 100 bytes; chunk 5 needs 7 bytes
    /// while it runs.
    fn snapshot(limits: [u64; 3]) -> Snapshot {
        let mut snapshot = Workload::Equal.snapshot(6, 3, 1);
        snapshot.memory = Some(Memory {
            limits: limits.into(),
            footprints: vec![10; 6],
            working: vec![0, 0, 0, 0, 0, 7],
            blocks: vec![Block { bytes: 100, chunks: vec![0, 2] }],
        });
        snapshot
    }

    #[test]
    fn a_block_counts_once_per_rank_and_the_largest_working_memory_once() {
        let snapshot = snapshot([1_000; 3]);
        let now = Assignment::current(&snapshot);
        assert_eq!(memory_bytes(&snapshot, &now), [120, 120, 27]);
        let mut together = now;
        together.ranks[2] = Rank(0);
        assert_eq!(memory_bytes(&snapshot, &together), [130, 10, 27]);
        let mut used = MemoryUse::placed(&snapshot, &together).expect("there are limits");
        used.transfer(0, Rank(0), Rank(2));
        used.transfer(5, Rank(2), Rank(1));
        assert_eq!([0, 1, 2].map(|rank| used.bytes(Rank(rank))), [120, 27, 120]);
    }

    #[test]
    fn moves_that_do_not_fit_wait_or_stay() {
        // Chunk 1 fits on rank 2 only after chunk 4 has left it for rank 1; chunk 5 fits nowhere.
        let snapshot = snapshot([120, 130, 28]);
        let mut plan = Assignment::current(&snapshot);
        (plan.ranks[1], plan.ranks[4], plan.ranks[5]) = (Rank(2), Rank(1), Rank(0));
        let kept = plan.within_memory(&snapshot);
        assert_eq!(kept.ranks, [0, 2, 1, 1, 1, 2].map(Rank));
    }

    #[test]
    fn chunks_leave_a_rank_above_its_limit_for_one_with_room() {
        // Rank 0 is 10 bytes above its limit; rank 1 is full, and chunks 0 and 1 fit on rank 2 alone.
        let mut snapshot = snapshot([110, 120, 1_000]);
        let now = Assignment::current(&snapshot);
        assert_eq!(fullest(&snapshot, &now), Some((Rank(0), 120, 110)));
        let relieved = now.clone().relieved(&snapshot, Background::Share);
        assert_eq!(relieved.ranks, [2, 0, 1, 1, 2, 2].map(Rank));
        assert!(relieves(&snapshot, &relieved) && !relieves(&snapshot, &now));
        assert_eq!(fullest(&snapshot, &relieved), None);
        snapshot.chunks[0].migratable = false;
        let relieved = now.clone().relieved(&snapshot, Background::Share);
        assert_eq!(relieved.ranks, [0, 2, 1, 1, 2, 2].map(Rank), "a pinned chunk stays");
        snapshot.memory.as_mut().expect("it has limits").limits[2] = 0;
        assert_eq!(now.clone().relieved(&snapshot, Background::Share).ranks, now.ranks, "no room");
        for name in ["refine", "comm"] {
            snapshot.memory.as_mut().expect("it has limits").limits = vec![110, 120, 1_000];
            let plan = crate::ARRAYS.parse(name).expect("listed").assign(&snapshot);
            assert_eq!(fullest(&snapshot, &plan), None, "{name}, although all ranks finish at once");
        }
    }

    #[test]
    fn an_unavailable_rank_is_emptied_where_there_is_most_room() {
        let mut snapshot = snapshot([150, 125, 5]);
        snapshot.ranks[2].available = false;
        let mut plan = Assignment::current(&snapshot);
        (plan.ranks[4], plan.ranks[5]) = (Rank(1), Rank(1));
        assert_eq!(plan.within_memory(&snapshot).ranks, [0, 0, 1, 1, 0, 0].map(Rank));
    }
}
