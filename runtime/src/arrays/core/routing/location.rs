//! The location table of one rank: the current rank of each chunk. Workers look up the table for each message.
//!
//! Every rank receives every move, of a sync or a balancing window. So a message always takes one hop and is never
//! forwarded. The order of steps in the [migration](crate::arrays::core::sync::migration) protocol makes that safe. A
//! message that reaches a rank before its chunk waits among the *pending messages*. A message to an index without a
//! chunk waits there too, for the next chunk that is inserted under the index.
//!
//! # What stays of a removed chunk
//!
//! | removed on | what stays |
//! |---|---|
//! | its home rank | nothing: 10^6 chunks with ever new indices leave the memory unchanged |
//! | another rank | on every rank, an entry with the rank where it was: 20 to 40 bytes, until the run ends |
//!
//! The entry is needed because the next chunk of the index is inserted on that rank, and all ranks send its messages
//! there. A rank that dropped its entry alone would send these messages to the home rank. All ranks could drop the
//! entry together, by a move of the index to its home rank. They do so only for a chunk that is removed while it is
//! about to move (rule 5 of the [migration](crate::arrays::core::sync::migration)). No rank reports free indices yet. A
//! program that inserts chunks without end avoids entries if it reuses indices, or removes chunks before they migrate.
//!
//! The tables are hash maps for speed. Iterations are over sorted copies.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::envelope::Delivery;
use super::residents::Residents;
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::ids::{ArrayId, CellId, ChunkId, RUNTIME, Rank};

/// The next hop of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Here(CellId),
    There(Rank),
    /// This rank is the chunk's rank, but the chunk has not arrived.
    Pending,
}

#[derive(Default)]
struct ArrayLocations {
    here: Residents,
    /// Ranks of chunks that are not on their home rank, including removed chunks (see the head of the module).
    moved: FxHashMap<u64, Rank>,
}

/// Number of pending messages of one chunk that causes a warning: if the chunk never comes, they fill the memory.
const PENDING_WARNING: usize = 1 << 16;

/// The location tables of one rank.
pub(crate) struct Location {
    rank: Rank,
    ranks: u32,
    arrays: Arc<[Arc<dyn ErasedArray>]>,
    tables: Vec<ArrayLocations>,
    /// The latest receivers on other ranks, each at its [`cache_slot`]. Empty before the first such receiver.
    cache: Vec<(ChunkId, Rank)>,
    pending: BTreeMap<ChunkId, Vec<Delivery>>,
}

const CACHE_BITS: u32 = 6;

/// The place of a chunk in the cache.
#[inline]
fn cache_slot(chunk: ChunkId) -> usize {
    let mixed = (chunk.key ^ u64::from(chunk.array.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - CACHE_BITS)) as usize
}

impl Location {
    pub(crate) fn new(rank: Rank, ranks: u32, arrays: Arc<[Arc<dyn ErasedArray>]>) -> Location {
        let places = arrays.iter().map(|_| ArrayLocations::default()).collect();
        Location { rank, ranks, arrays, tables: places, cache: Vec::new(), pending: BTreeMap::new() }
    }

    /// The route of a message to `chunk`. O(1), except for a home that the user's function or list computes.
    #[inline]
    pub(crate) fn route(&self, chunk: ChunkId) -> Route {
        let places = &self.tables[chunk.array.index()];
        if let Some(cell) = places.here.get(chunk.key) {
            return Route::Here(cell);
        }
        match self.rank_of(chunk) {
            rank if rank == self.rank => Route::Pending,
            rank => Route::There(rank),
        }
    }

    /// [`route`](Location::route) for a chunk that is probably on another rank. The rank is cached until the chunk
    /// moves, because computing it takes a virtual call and one or two divisions.
    #[inline]
    pub(crate) fn route_cached(&mut self, chunk: ChunkId) -> Route {
        match self.cache.get(cache_slot(chunk)) {
            Some(&(known, rank)) if known == chunk => Route::There(rank),
            _ => self.route_and_cache(chunk),
        }
    }

    #[inline(never)]
    fn route_and_cache(&mut self, chunk: ChunkId) -> Route {
        let route = self.route(chunk);
        if let Route::There(rank) = route {
            self.cache.resize(1 << CACHE_BITS, (RUNTIME, self.rank));
            self.cache[cache_slot(chunk)] = (chunk, rank);
        }
        route
    }

    /// The rank that holds `chunk`, or will hold it.
    pub(crate) fn rank_of(&self, chunk: ChunkId) -> Rank {
        match self.tables[chunk.array.index()].moved.get(&chunk.key) {
            Some(&rank) => rank,
            None => self.arrays[chunk.array.index()].home(chunk.key, self.ranks),
        }
    }

    /// The cell of a chunk of this rank. O(1).
    #[inline]
    pub(crate) fn cell(&self, chunk: ChunkId) -> Option<CellId> {
        self.tables[chunk.array.index()].here.get(chunk.key)
    }

    /// Number of chunks of `array` on this rank.
    pub(crate) fn count(&self, array: ArrayId) -> u64 {
        self.tables[array.index()].here.len() as u64
    }

    /// The chunks of `array` on this rank, ascending.
    pub(crate) fn residents(&self, array: ArrayId) -> Vec<(ChunkId, CellId)> {
        let here = self.tables[array.index()].here.sorted();
        here.into_iter().map(|(key, cell)| (ChunkId { array, key }, cell)).collect()
    }

    /// A chunk has come to this rank. Returns its pending messages, in the order of their arrival.
    pub(crate) fn arrived(&mut self, chunk: ChunkId, cell: CellId) -> Vec<Delivery> {
        let before = self.tables[chunk.array.index()].here.insert(chunk.key, cell);
        assert!(before.is_none(), "an index that is in use is refused before: {chunk:?}");
        self.pending.remove(&chunk).unwrap_or_default()
    }

    /// A chunk has left this rank, or was removed from its array.
    pub(crate) fn departed(&mut self, chunk: ChunkId) {
        self.tables[chunk.array.index()].here.remove(chunk.key);
    }

    /// From now on messages to `chunk` go to `rank`.
    pub(crate) fn moved(&mut self, chunk: ChunkId, rank: Rank) {
        if let Some(known) = self.cache.get_mut(cache_slot(chunk)) {
            *known = (RUNTIME, self.rank);
        }
        let home = self.arrays[chunk.array.index()].home(chunk.key, self.ranks);
        let moved = &mut self.tables[chunk.array.index()].moved;
        if rank == home {
            moved.remove(&chunk.key);
        } else {
            moved.insert(chunk.key, rank);
        }
    }

    /// Adds a pending message, which waits until its chunk arrives.
    pub(crate) fn add_pending(&mut self, to: ChunkId, delivery: Delivery) {
        let waiting = self.pending.entry(to).or_default();
        waiting.push(delivery);
        if waiting.len() == PENDING_WARNING {
            let (array, index) = (to.array, self.arrays[to.array.index()].index_text(to.key));
            tracing::warn!(
                rank = self.rank.0,
                %array,
                index,
                PENDING_WARNING,
                "messages wait for a chunk that is not here"
            );
        }
    }

    pub(crate) fn take_pending_of(&mut self, to: ChunkId) -> Vec<Delivery> {
        self.pending.remove(&to).unwrap_or_default()
    }

    /// Puts messages before the pending messages of a chunk.
    pub(crate) fn prepend_pending(&mut self, to: ChunkId, mut first: Vec<Delivery>) {
        if !first.is_empty() {
            let pending = self.pending.entry(to).or_default();
            first.append(pending);
            *pending = first;
        }
    }

    /// The bytes of the pending messages of a chunk.
    pub(crate) fn pending_bytes(&self, to: ChunkId) -> u64 {
        self.pending.get(&to).into_iter().flatten().map(|delivery| delivery.bytes).sum()
    }

    /// The pending messages, by chunk.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (ChunkId, &[Delivery])> {
        self.pending.iter().map(|(&chunk, waiting)| (chunk, &waiting[..]))
    }

    pub(crate) fn take_pending(&mut self) -> BTreeMap<ChunkId, Vec<Delivery>> {
        std::mem::take(&mut self.pending)
    }
}
