//! The units that a strategy places: single chunks, and groups of chunks that go to the same rank.
//!
//! Most chunks are units by themselves. Chunks that are kept together count as one, with the sum of their loads and
//! bytes. A chunk that its program moves itself counts as moved already, and as pinned.

use rustc_hash::FxHashMap;

use super::report::{ChunkReport, PhaseReport};
use super::snapshot::{ArrayId, ChunkId, ChunkLoad, Snapshot};
use crate::rank::Rank;

/// The places of chunks in the snapshot that the strategy sees.
#[derive(Clone, Debug, Default)]
pub(crate) struct BalancedUnits {
    /// By the array of a chunk, the array whose chunks it follows; empty where no array follows another.
    leaders: Vec<ArrayId>,
    /// The ranks that the program wants chunks on, by the leader of each group. Looked up, never iterated.
    requested_ranks: FxHashMap<ChunkId, Rank>,
    /// By measured chunk, the position of its unit in the strategy's snapshot; none if each chunk is a unit.
    unit_of_chunk: Option<Vec<usize>>,
}

impl BalancedUnits {
    /// Notes the groups and wishes of a phase's reports. Of several wishes for chunks that are kept together the first
    /// chunk's counts; a wish for an inactive rank is ignored.
    pub(crate) fn new(PhaseReport { leaders, chunks, inactive, .. }: &PhaseReport) -> Self {
        let mut asked = Self { leaders: leaders.clone(), ..Self::default() };
        let wish = |chunk: &ChunkReport| {
            let to = chunk.wish.filter(|rank| !inactive.contains(rank))?;
            Some((chunk.load.id, to))
        };
        let mut wishes: Vec<(ChunkId, Rank)> = chunks.iter().filter_map(wish).collect();
        wishes.sort_unstable();
        for (chunk, to) in wishes {
            asked.requested_ranks.entry(asked.leader(chunk)).or_insert(to);
        }
        asked
    }

    /// The snapshot for the strategy. Of chunks that are kept together the first stands for all. Their rank is the one
    /// that the program wants, else the rank of the first pinned chunk, else the rank of the first chunk. They may move
    /// if all may.
    pub(crate) fn coarsen(&mut self, mut expected: Snapshot) -> Snapshot {
        for chunk in &mut expected.chunks {
            if let Some(&to) = self.requested_ranks.get(&self.leader(chunk.id)) {
                (chunk.rank, chunk.migratable) = (to, false);
            }
        }
        if !self.leaders.is_empty() {
            let all = std::mem::take(&mut expected.chunks);
            let mut seat_of: FxHashMap<ChunkId, usize> = FxHashMap::default();
            let seat = |chunk: ChunkLoad| {
                let seat = *seat_of.entry(self.leader(chunk.id)).or_insert(expected.chunks.len());
                match expected.chunks.get_mut(seat) {
                    Some(first) => merge_into(first, &chunk),
                    None => expected.chunks.push(chunk),
                }
                seat
            };
            let seats = all.into_iter().map(seat).collect();
            self.unit_of_chunk = Some(seats);
        }
        expected
    }

    /// The chunk that this one follows, which need not exist; itself if it follows none.
    fn leader(&self, chunk: ChunkId) -> ChunkId {
        ChunkId { array: self.leaders.get(chunk.array.index()).copied().unwrap_or(chunk.array), ..chunk }
    }

    /// The rank of each measured chunk, from the ranks of the units.
    pub(crate) fn expand(&self, seen: &[Rank]) -> Vec<Rank> {
        match &self.unit_of_chunk {
            Some(seats) => seats.iter().map(|&seat| seen[seat]).collect(),
            None => seen.into(),
        }
    }
}

/// Adds a chunk to the first one of its group.
fn merge_into(first: &mut ChunkLoad, chunk: &ChunkLoad) {
    first.ticks = first.ticks.saturating_add(chunk.ticks);
    first.bytes = first.bytes.saturating_add(chunk.bytes);
    if first.migratable && !chunk.migratable {
        first.rank = chunk.rank;
    }
    first.migratable &= chunk.migratable;
}
