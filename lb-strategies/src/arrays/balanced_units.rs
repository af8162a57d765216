//! Builds the snapshot that a strategy sees from *units*: single chunks, and groups of chunks that go to the same rank.
//!
//! A group counts as one chunk, with the sum of the loads and bytes of its chunks. A chunk that its program moves by
//! `Ctx::migrate_to` counts as pinned to its new rank.

use rustc_hash::FxHashMap;

use super::edges::between_groups;
use super::report::{ChunkReport, PhaseReport};
use super::snapshot::{ArrayId, ChunkId, ChunkLoad, Snapshot};
use crate::rank::Rank;

/// The position of each chunk in the snapshot that the strategy sees.
#[derive(Clone, Debug, Default)]
pub(crate) struct BalancedUnits {
    /// For each array, the array whose chunks it follows; empty where no array follows another.
    leaders: Vec<ArrayId>,
    /// The rank that the program wants for each group, by the leader of the group. Looked up, never iterated.
    requested_ranks: FxHashMap<ChunkId, Rank>,
    /// For each measured chunk, the position of its unit in the strategy's snapshot; none if each chunk is a unit.
    unit_of_chunk: Option<Vec<usize>>,
}

impl BalancedUnits {
    /// Reads groups and wishes from the reports of a phase. Of several wishes for one group, the wish for the first
    /// chunk counts. A wish for an inactive rank is ignored.
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

    /// The snapshot for the strategy. The first chunk of a group represents the group. The group's rank is the one that
    /// the program wants, else the rank of its first pinned chunk, else of its first chunk. It may move if all chunks
    /// may.
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
            let seats: Vec<usize> = all.into_iter().map(seat).collect();
            expected.edges = between_groups(&expected.edges, &seats);
            self.unit_of_chunk = Some(seats);
        }
        expected
    }

    /// The chunk that this chunk follows, which need not exist; the chunk itself if it follows none.
    fn leader(&self, chunk: ChunkId) -> ChunkId {
        ChunkId { array: self.leaders.get(chunk.array.index()).copied().unwrap_or(chunk.array), ..chunk }
    }

    /// True if each chunk is a unit.
    pub(crate) fn are_chunks(&self) -> bool {
        self.unit_of_chunk.is_none()
    }

    /// The rank of each measured chunk, from the ranks of the units.
    pub(crate) fn expand(&self, seen: &[Rank]) -> Vec<Rank> {
        match &self.unit_of_chunk {
            Some(seats) => seats.iter().map(|&seat| seen[seat]).collect(),
            None => seen.into(),
        }
    }
}

/// Adds a chunk to the chunk that represents its group.
fn merge_into(first: &mut ChunkLoad, chunk: &ChunkLoad) {
    first.ticks = first.ticks.saturating_add(chunk.ticks);
    first.bytes = first.bytes.saturating_add(chunk.bytes);
    if first.migratable && !chunk.migratable {
        first.rank = chunk.rank;
    }
    first.migratable &= chunk.migratable;
}
