//! [`Setup`] describes a run: its arrays, their placement, and its services.

use std::any::Any;
use std::hash::Hasher;
use std::marker::PhantomData;
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::chunk::Chunk;
use super::ctx::Array;
use super::index::{Extent, Index};
use super::keys::{KeyPosition, Keys};
use super::seed::is_given_at_start;
use super::slot::ArrayOf;
use crate::arrays::core::lifecycle::erased::{ErasedArray, RankSetup};
use crate::error::Error;
use crate::ids::{ArrayId, Rank};

/// The rank on which each chunk starts: an initial chunk of an array, or one that is [inserted](crate::Ctx::insert)
/// later. Every rank computes the same result for every index.
///
/// | | initial chunks | inserted chunks |
/// |---|---|---|
/// | `Block` | equal runs of consecutive indices | between two initial indices: on the rank of the nearer; else scattered |
/// | `RoundRobin` | in turn | scattered |
/// | `Hash`, `Function` | by the hash or the function | by the hash or the function |
///
/// *Scattered* indices are placed by hash, as by [`Hash`](Self::Hash). `Block` scatters indices below the first initial
/// index, above the last, and in a wide gap between two. A gap is wide if it exceeds the range from the first to the
/// last index divided by the number of ranks: one rank would get too many inserted chunks. For example, if an array of
/// `[kind, i, j]` begins with kind 0, indices of kind 1 are scattered.
///
/// ```
/// use caribou::{Placement, Index};
/// // Odd columns on the last rank.
/// let odd = Placement::by(|[_, column]: [u16; 2], ranks| if column % 2 == 1 { ranks - 1 } else { 0 });
/// # let _ = odd;
/// ```
#[derive(Clone)]
pub enum Placement {
    /// Equal runs of consecutive indices. An inserted index goes to the rank of the nearest initial one, or is
    /// scattered.
    Block,
    /// Initial indices in turn, one per rank. Inserted indices are scattered.
    RoundRobin,
    /// Scattered by a hash of the index, always in the same way.
    Hash,
    /// A function of the packed index and the number of ranks; see [`Placement::by`].
    Function(Arc<dyn Fn(u64, u32) -> u32 + Send + Sync>),
}

impl std::fmt::Debug for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Placement::Block => "Block",
            Placement::RoundRobin => "RoundRobin",
            Placement::Hash => "Hash",
            Placement::Function(_) => "Function",
        })
    }
}

impl Placement {
    /// Places chunks by a function of index and number of ranks. Results are taken modulo the number of ranks.
    pub fn by<I: Index>(place: impl Fn(I, u32) -> u32 + Send + Sync + 'static) -> Placement {
        Placement::Function(Arc::new(move |key, ranks| place(I::unpack(key), ranks)))
    }

    pub(crate) fn home(&self, key: u64, keys: &Keys, ranks: u32) -> Rank {
        let block = |position: u64| position * u64::from(ranks) / keys.len();
        let rank = match self {
            Placement::Block => match keys.position(key) {
                KeyPosition::Member { position } => block(position),
                KeyPosition::Gap { nearest, width } if width <= keys.span() / u64::from(ranks) => {
                    block(nearest)
                }
                KeyPosition::Gap { .. } | KeyPosition::Outside => hashed_rank(key, ranks),
            },
            Placement::RoundRobin => match keys.position(key) {
                KeyPosition::Member { position } => position % u64::from(ranks),
                KeyPosition::Gap { .. } | KeyPosition::Outside => hashed_rank(key, ranks),
            },
            Placement::Hash => hashed_rank(key, ranks),
            Placement::Function(place) => u64::from(place(key, ranks) % ranks),
        };
        Rank(rank as u32)
    }
}

fn hashed_rank(key: u64, ranks: u32) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(key);
    hasher.finish() % u64::from(ranks)
}

/// Describes a run. The setup function is called once on every rank and must do the same on all of them. Chunks are
/// made on the rank on which they start.
///
/// A run with different arrays on its ranks ends with [`Error::SetupDiffers`]: other number, types, indices, placement
/// or part in syncs. A placement by a function is compared by the ranks of at most 1000 indices, including the first
/// and the last. Services and the functions that make chunks are not compared.
///
/// ```
/// # use caribou::{Chunk, Config, Ctx, Placement};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Cell;
/// # impl Chunk for Cell {
/// #     type Index = [u16; 2]; type Message = ();
/// #     fn start(&mut self, ctx: &mut Ctx<'_, Self>) { if ctx.index() == [0, 0] { ctx.exit() } }
/// #     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
/// # }
/// caribou::run(Config::default().ranks(2), |setup| {
///     setup.service(String::from("every rank has one"));
///     setup.array_with([4, 4], Placement::RoundRobin, |_: [u16; 2]| Cell);
/// })?;
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Default)]
pub struct Setup {
    pub(crate) rank: Rank,
    ranks: u32,
    pub(crate) arrays: Vec<Arc<dyn ErasedArray>>,
    pub(crate) services: Vec<Box<dyn Any + Send + Sync>>,
    /// The first fault in an array, if there is one.
    error: Option<Error>,
}

/// The way in which an array takes part in syncs.
#[derive(Clone, Copy, PartialEq)]
enum SyncMode {
    No,
    Yes,
    /// The chunks move at syncs only.
    Only,
    /// The chunks stay with the chunks of another array.
    With(ArrayId),
    /// There is one chunk on each rank.
    Group,
}

impl Setup {
    /// The setup of `rank`, one of `ranks`.
    pub(crate) fn new(rank: Rank, ranks: u32) -> Setup {
        Setup { rank, ranks, ..Setup::default() }
    }

    /// Adds an array of chunks, placed in blocks. Its chunks take part in every sync.
    pub fn array<C: Chunk>(
        &mut self,
        extent: impl Extent<C::Index>,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        self.array_with(extent, Placement::Block, make)
    }

    /// Adds an array of chunks with a given placement.
    pub fn array_with<C: Chunk>(
        &mut self,
        extent: impl Extent<C::Index>,
        placement: Placement,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        self.add(extent, placement, SyncMode::Yes, make)
    }

    /// Adds an array that takes no part in syncs: no sync waits for its chunks, and they do not migrate.
    pub fn array_without_sync<C: Chunk>(
        &mut self,
        extent: impl Extent<C::Index>,
        placement: Placement,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        self.add(extent, placement, SyncMode::No, make)
    }

    /// Adds an array whose chunks move at syncs only, where they call `at_sync`. For chunks that must not move at other
    /// times, such as chunks that have sent their rank to others.
    ///
    /// With one such array, `CARIBOU_LB_PERIOD=auto` means syncs for all arrays of the program, every 20 steps. If a
    /// time is given for windows, chunks of this array stay where they are.
    pub fn array_at_syncs<C: Chunk>(
        &mut self,
        extent: impl Extent<C::Index>,
        placement: Placement,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        self.add(extent, placement, SyncMode::Only, make)
    }

    /// Adds a group: an array with one chunk on each rank, with the number of the rank as index. Its chunks take no
    /// part in syncs and never migrate. For resources of a process, such as a file, a cache or a connection.
    ///
    /// A [checkpoint](crate::checkpoint) does not contain these chunks. A restarted run makes new ones on its own
    /// number of ranks, and calls their [`start`](Chunk::start). Messages and contributions of the old ones are not
    /// resent.
    ///
    /// ```
    /// use caribou::{Chunk, Config, Ctx, Reducer, Target};
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Log { lines: u64 }
    /// impl Chunk for Log {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         assert_eq!(ctx.index(), ctx.rank().0);
    ///         ctx.contribute(0, Reducer::Sum, vec![1_u64], Target::Exit);
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) { self.lines += 1; }
    /// }
    /// let report = caribou::run(Config::default().ranks(3), |setup| {
    ///     setup.group(|_| Log { lines: 0 });
    /// })?;
    /// assert_eq!(report.value::<Vec<u64>>()?, [3]);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    pub fn group<C: Chunk<Index = u32>>(
        &mut self,
        make: impl Fn(u32) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        let placement = Placement::Function(Arc::new(|rank, ranks| (rank % u64::from(ranks)) as u32));
        self.add(self.ranks, placement, SyncMode::Group, make)
    }

    /// Adds an array whose chunks stay with the chunks of the same index in another array: they start on the same rank,
    /// and the balancer moves them as one. For chunks that send to each other more than to all others, such as a block
    /// of cells and its particles: their messages seldom leave the rank.
    ///
    /// A chunk without a counterpart is placed and moved alone. A chunk that is inserted later starts on the rank that
    /// the placement gives its index, and joins its counterpart at the next sync.
    ///
    /// ```
    /// use caribou::{Array, Chunk, Config, Ctx, Reducer, Target};
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Block;
    /// /// A block's particles, on the rank of the block; it counts those that are there.
    /// #[derive(Serialize, Deserialize)]
    /// struct Swarm { blocks: Array<Block> }
    ///
    /// impl Chunk for Block {
    ///     type Index = u32;
    ///     type Message = (Array<Swarm>, u32);
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) { ctx.at_sync(); }
    ///     fn resume(&mut self, _: &mut Ctx<'_, Self>) {}
    ///     fn receive(&mut self, (swarms, rank): Self::Message, ctx: &mut Ctx<'_, Self>) {
    ///         ctx.send_to(swarms, ctx.index(), rank == ctx.rank().0);
    ///     }
    /// }
    /// impl Chunk for Swarm {
    ///     type Index = u32;
    ///     type Message = bool;
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) { ctx.at_sync(); }
    ///     fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         ctx.send_to(self.blocks, ctx.index(), (ctx.array(), ctx.rank().0));
    ///     }
    ///     fn receive(&mut self, together: bool, ctx: &mut Ctx<'_, Self>) {
    ///         ctx.contribute(0, Reducer::Sum, vec![u64::from(together)], Target::Exit);
    ///     }
    /// }
    ///
    /// let report = caribou::run(Config::default().ranks(2).lb("rotate")?, |setup| {
    ///     let blocks = setup.array(8, |_| Block);
    ///     setup.array_beside(blocks, 8, move |_| Swarm { blocks });
    /// })?;
    /// assert_eq!(report.value::<Vec<u64>>()?, [8]);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    pub fn array_beside<C: Chunk, D: Chunk<Index = C::Index>>(
        &mut self,
        other: Array<D>,
        extent: impl Extent<C::Index>,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        let leader = self.arrays.get(other.id.index()).cloned();
        let why = match &leader {
            None => Some(", which is not an array of this setup".to_owned()),
            Some(leader) if !leader.syncs() => Some(format!(
                " `{}`, which takes no part in syncs, so its chunks do not migrate",
                leader.name()
            )),
            Some(_) => None,
        };
        if let Some(why) = why {
            let setting = format!("array {}", self.arrays.len());
            let why = format!("it cannot be beside array {}{why}", other.id);
            self.error.get_or_insert(Error::Config { setting, why });
        }
        let Some(leader) = leader else { return self.array(extent, make) };
        let id = leader.leader().unwrap_or(other.id);
        let placement = Placement::Function(Arc::new(move |key, ranks| leader.home(key, ranks).0));
        self.add(extent, placement, SyncMode::With(id), make)
    }

    fn add<C: Chunk>(
        &mut self,
        extent: impl Extent<C::Index>,
        placement: Placement,
        syncs: SyncMode,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        let array = Array::new(ArrayId(self.arrays.len() as u32));
        let keys: Keys = extent.keys().collect();
        let first_unordered = keys.first_unordered();
        let leader = if let SyncMode::With(leader) = syncs { Some(leader) } else { None };
        let group = syncs == SyncMode::Group;
        let (syncs, at_syncs) = (!group && syncs != SyncMode::No, syncs == SyncMode::Only);
        let new = ArrayOf { make, keys, placement, syncs, at_syncs, group, leader, chunk: PhantomData };
        if let Some((before, key)) = first_unordered {
            let setting = format!("the extent of array {} `{}`", self.arrays.len(), new.name());
            let (earlier, index) = (new.index_text(before), new.index_text(key));
            let why = match before == key {
                true => format!("it contains index {index} twice"),
                false => format!("index {index} comes after {earlier}, expected ascending indices"),
            };
            self.error.get_or_insert(Error::Config { setting, why });
        }
        let last = new.keys.len().checked_sub(1).map(|last| new.keys.nth(last));
        if let Some(key) = last.filter(|&key| is_given_at_start::<C::Index>(key)) {
            let setting = format!("the extent of array {} `{}`", self.arrays.len(), new.name());
            let why = format!(
                "only spawned chunks have index {}, expected indices of `Seed::first`",
                new.index_text(key)
            );
            self.error.get_or_insert(Error::Config { setting, why });
        }
        self.arrays.push(Arc::new(new));
        array
    }

    /// Adds a value that all chunks on this rank can read through [`Ctx::service`](crate::Ctx::service), by its type.
    pub fn service<T: Send + Sync + 'static>(&mut self, service: T) {
        self.services.push(Box::new(service));
    }

    /// Prevents the run from beginning, with this error.
    pub(crate) fn refuse(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    pub(crate) fn finish(self) -> Result<RankSetup, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        Ok(RankSetup { arrays: self.arrays.into(), services: self.services, checkpoints: None })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::arrays::api::ctx::Ctx;

    #[derive(Serialize, Deserialize)]
    struct Idle;

    impl Chunk for Idle {
        type Index = u32;
        type Message = ();
        fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    }

    #[test]
    fn an_array_is_beside_one_of_the_same_setup_that_takes_part_in_syncs() {
        let refused = |setup: Setup| setup.finish().map(|_| ()).expect_err("it is refused").to_string();
        let mut setup = Setup::default();
        let still = setup.array_without_sync(2, Placement::Block, |_| Idle);
        setup.array_beside(still, 2, |_| Idle);
        let why = "array 1: it cannot be beside array 0 `Idle`, which takes no part in syncs, so its \
                   chunks do not migrate";
        assert!(refused(setup).contains(why));
        let mut setup = Setup::default();
        setup.array_beside(still, 2, |_| Idle);
        assert!(
            refused(setup)
                .contains("array 0: it cannot be beside array 0, which is not an array of this setup")
        );
    }

    #[test]
    fn who_is_beside_a_follower_follows_its_leader() {
        let mut setup = Setup::default();
        let first = setup.array_with(6, Placement::RoundRobin, |_| Idle);
        let second = setup.array_beside(first, 6, |_| Idle);
        setup.array_beside(second, 4, |_| Idle);
        let arrays =
            setup.finish().map(|described| described.arrays).unwrap_or_else(|error| panic!("{error}"));
        assert!(arrays.iter().map(|array| array.leader()).eq([None, Some(ArrayId(0)), Some(ArrayId(0))]));
        assert!((0..4).all(|key| arrays[2].home(key, 3) == arrays[0].home(key, 3)));
    }

    fn homes(placement: &Placement, keys: &[u64]) -> Vec<u32> {
        let all: Keys = keys.iter().copied().collect();
        keys.iter().map(|&key| placement.home(key, &all, 3).0).collect()
    }

    #[test]
    fn blocks_are_equal_runs_and_round_robin_takes_turns_also_for_sparse_indices() {
        for keys in [[0, 1, 2, 3, 4, 5], [2, 3, 7, 100, 1 << 40, 1 << 41]] {
            assert_eq!(homes(&Placement::Block, &keys), [0, 0, 1, 1, 2, 2]);
            assert_eq!(homes(&Placement::RoundRobin, &keys), [0, 1, 2, 0, 1, 2]);
        }
    }

    /// Per rank, the number of indices `[kind, row, column]` with a kind from 1 to 3 that are at home there.
    fn chunks_by_rank(placement: &Placement, initial: &Keys, ranks: u32) -> Vec<u32> {
        let mut chunks = vec![0; ranks as usize];
        let kinds =
            <[u16; 3] as Extent<[u16; 3]>>::keys([4, 8, 8]).filter(|&key| <[u16; 3]>::unpack(key)[0] > 0);
        kinds.for_each(|key| chunks[placement.home(key, initial, ranks).index()] += 1);
        chunks
    }

    #[test]
    fn indices_beyond_the_initial_ones_are_spread_over_all_ranks() {
        let first_kind: Keys = Extent::<[u16; 3]>::keys([1, 8, 8]).collect();
        let last_kind: Keys = (0..4).map(|row| [9u16, row, 0].pack()).collect();
        for initial in [first_kind, last_kind, Keys::default()] {
            for placement in [Placement::Block, Placement::RoundRobin, Placement::Hash] {
                for ranks in 2..=8 {
                    let chunks = chunks_by_rank(&placement, &initial, ranks);
                    let fair = 3 * 64 / ranks;
                    let even = chunks.iter().all(|count| (fair / 2..=2 * fair).contains(count));
                    assert!(even, "{placement:?}, {ranks} ranks: {chunks:?}");
                }
            }
        }
    }

    #[test]
    fn an_index_between_two_initial_ones_goes_to_the_rank_of_the_nearer() {
        let tens: Keys = (0..8).map(|nth| 10 * nth).collect();
        let home = |key| Placement::Block.home(key, &tens, 2);
        assert_eq!([28, 30, 34].map(home), [Rank(0); 3]);
        assert_eq!([36, 40, 69].map(home), [Rank(1); 3]);
    }

    #[test]
    fn indices_in_a_gap_wider_than_the_share_of_a_rank_are_spread() {
        let ends: Keys = (0..8).chain(1000..1008).collect();
        let homes: BTreeSet<Rank> = (8..1000).map(|key| Placement::Block.home(key, &ends, 4)).collect();
        assert_eq!(homes.len(), 4);
    }
}
