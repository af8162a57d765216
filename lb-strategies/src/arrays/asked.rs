//! What a strategy is asked about: the chunks that it may place, each with those that go where it goes.
//!
//! Most chunks are asked about as they are. Chunks that are kept together count as one, with the sum of their loads and
//! bytes; and one that its program moves itself counts as there already, and as pinned.

use rustc_hash::FxHashMap;

use super::balancer::ChunkReport;
use super::snapshot::{ArrayId, ChunkId, ChunkLoad, Snapshot};
use crate::rank::Rank;

/// The places of chunks in the snapshot that the strategy sees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// By the array of a chunk the one whose chunks it keeps to; empty where all arrays are by themselves.
    leaders: Vec<ArrayId>,
    /// The ranks that chunks are to go to because their program says so. Looked up by name, never iterated.
    wishes: FxHashMap<ChunkId, Rank>,
    /// By measured chunk the position of the one that the strategy sees; none if it sees them all.
    seats: Option<Vec<usize>>,
}

impl Asked {
    /// Notes what a phase's reports say of chunks besides their loads.
    pub(crate) fn new(leaders: &[ArrayId], chunks: &[ChunkReport]) -> Self {
        let wish = |chunk: &ChunkReport| Some((chunk.load.id, chunk.wish?));
        Self { leaders: leaders.into(), wishes: chunks.iter().filter_map(wish).collect(), seats: None }
    }

    /// The snapshot for the strategy. Of chunks that are kept together the first stands for all. Their rank is the first that
    /// the program wants for one of them, else that of the first that is pinned, else that of the first; they may move if all
    /// may.
    pub(crate) fn of(&mut self, mut expected: Snapshot) -> Snapshot {
        for chunk in &mut expected.chunks {
            if let Some(&to) = self.wishes.get(&chunk.id) {
                (chunk.rank, chunk.migratable) = (to, false);
            }
        }
        if !self.leaders.is_empty() {
            let all = std::mem::take(&mut expected.chunks);
            let mut seat_of: FxHashMap<ChunkId, usize> = FxHashMap::default();
            let mut are_wanted = Vec::new();
            let mut seat = |chunk: ChunkLoad| {
                let leader = ChunkId { array: self.leader(chunk.id.array), key: chunk.id.key };
                let seat = *seat_of.entry(leader).or_insert(expected.chunks.len());
                match expected.chunks.get_mut(seat) {
                    Some(first) => self.join(first, &mut are_wanted[seat], &chunk),
                    None => {
                        are_wanted.push(self.wishes.contains_key(&chunk.id));
                        expected.chunks.push(chunk);
                    }
                }
                seat
            };
            let seats = all.into_iter().map(&mut seat).collect();
            self.seats = Some(seats);
        }
        expected
    }

    fn leader(&self, array: ArrayId) -> ArrayId {
        self.leaders.get(array.index()).copied().unwrap_or(array)
    }

    /// Adds a chunk to the first of those that it is kept with; tells if the program wants one of them somewhere.
    fn join(&self, first: &mut ChunkLoad, is_wanted: &mut bool, chunk: &ChunkLoad) {
        first.ticks = first.ticks.saturating_add(chunk.ticks);
        first.bytes = first.bytes.saturating_add(chunk.bytes);
        let wanted = self.wishes.contains_key(&chunk.id) && !*is_wanted;
        if wanted || first.migratable && !chunk.migratable {
            first.rank = chunk.rank;
        }
        *is_wanted |= wanted;
        first.migratable &= chunk.migratable;
    }

    /// The rank of each measured chunk, from the ranks of those that the strategy saw.
    pub(crate) fn ranks(&self, seen: &[Rank]) -> Vec<Rank> {
        match &self.seats {
            Some(seats) => seats.iter().map(|&seat| seen[seat]).collect(),
            None => seen.into(),
        }
    }
}
