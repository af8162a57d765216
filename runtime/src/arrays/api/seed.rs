//! Spawned chunks, which start on a rank that has nothing else to do: their index [`Seed`], and [`Ctx::spawn`].

use std::any::TypeId;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::chunk::Chunk;
use super::ctx::Ctx;
use super::index::{Extent, Index};
use super::slot::spawning;
use crate::arrays::core::lifecycle::seeds::split_key;

/// The index of chunks that can be [spawned](Ctx::spawn): the rank that starts a chunk gives it its index. For searches
/// and for divide and conquer, where a chunk makes others of unknown number and size, without a placement.
///
/// An array of such chunks begins with indices [`first(0)`](Seed::first), [`first(1)`](Seed::first) and so on, placed
/// as in any array. Only these indices are known from the beginning. A chunk gets its own index from [`Ctx::index`],
/// and a parent stores its own index in the chunks that it spawns.
///
/// A chunk can be [inserted](Ctx::insert) under `first(n)`, but not under an index that a rank gave, even if that chunk
/// has been removed. A message to such an index without a chunk waits until the run ends, and is then reported.
///
/// ```
/// use caribou::{Chunk, Config, Ctx, Seed};
/// use serde::{Deserialize, Serialize};
///
/// /// Counts the ways to write a number as a sum of ones, twos and threes, in order.
/// #[derive(Serialize, Deserialize)]
/// struct Sum { left: u32, parent: Option<Seed>, missing: usize, ways: u64 }
///
/// impl Sum {
///     fn new(left: u32, parent: Option<Seed>) -> Sum { Sum { left, parent, missing: 0, ways: 0 } }
///
///     fn answer(&self, ctx: &mut Ctx<'_, Self>) {
///         match self.parent {
///             Some(parent) => {
///                 ctx.send(parent, self.ways);
///                 ctx.remove();
///             }
///             None => ctx.exit_with(&self.ways),
///         }
///     }
/// }
///
/// impl Chunk for Sum {
///     type Index = Seed;
///     type Message = u64;
///
///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
///         if self.left == 0 {
///             self.ways = 1;
///             return self.answer(ctx);
///         }
///         for part in 1..=self.left.min(3) {
///             ctx.spawn(Sum::new(self.left - part, Some(ctx.index())));
///             self.missing += 1;
///         }
///     }
///
///     fn receive(&mut self, ways: u64, ctx: &mut Ctx<'_, Self>) {
///         self.ways += ways;
///         self.missing -= 1;
///         if self.missing == 0 { self.answer(ctx); }
///     }
/// }
///
/// let report = caribou::run(Config::default().ranks(2), |setup| {
///     setup.array(1, |_: Seed| Sum::new(10, None));
/// })?;
/// assert_eq!(report.value::<u64>()?, 274);
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seed(u64);

impl Seed {
    /// The index of the `number`th chunk that an array begins with, counted from 0.
    ///
    /// ```
    /// use caribou::{Extent, Index, Seed};
    /// assert!(Extent::<Seed>::keys(2).eq([Seed::first(0), Seed::first(1)].map(Seed::pack)));
    /// ```
    pub fn first(number: u32) -> Seed {
        Seed(number.into())
    }
}

/// The number of an initial chunk. For a spawned chunk, the rank that started it, and a number: `2.17`.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match split_key(self.0) {
            (None, number) => write!(f, "{number}"),
            (Some(rank), number) => write!(f, "{rank}.{number}"),
        }
    }
}

impl Index for Seed {
    fn pack(self) -> u64 {
        self.0
    }
    fn unpack(key: u64) -> Seed {
        Seed(key)
    }
}

/// True if the chunks of an array with such indices can be spawned.
pub(super) fn is_seed<I: Index>() -> bool {
    TypeId::of::<I>() == TypeId::of::<Seed>()
}

/// True if only a rank that starts a spawned chunk gives such an index.
pub(super) fn is_given_at_start<I: Index>(key: u64) -> bool {
    is_seed::<I>() && split_key(key).0.is_some()
}

/// Refuses to insert a chunk under an index that a spawned chunk has, or may yet get.
#[track_caller]
pub(super) fn assert_insertable<I: Index>(index: I) {
    assert!(
        !is_given_at_start::<I>(index.pack()),
        "a chunk cannot be inserted under {index:?}, because only spawned chunks have such an index: insert it under \
         `Seed::first`, or spawn it"
    );
}

impl Extent<Seed> for u32 {
    fn keys(self) -> impl Iterator<Item = u64> {
        0..u64::from(self)
    }
}

impl<C: Chunk<Index = Seed>> Ctx<'_, C> {
    /// Adds a chunk to this array. It starts on some rank that has nothing else to do, and gets its [index](Seed)
    /// there.
    ///
    /// Until then the chunk waits on this rank, or on a rank that has requested work. A rank without a ready chunk
    /// starts the newest chunk that waits there. If none waits, the rank sends one request to each of its neighbours in
    /// a hypercube of the ranks. Each neighbour sends up to half of its waiting chunks, the oldest first, as soon as it
    /// has two or more. So a chunk should be worth a message to another rank: 10 us or longer.
    ///
    /// The new chunk takes part in the reduction and the sync that this chunk comes to next, as an
    /// [inserted](Ctx::insert) chunk does. It receives broadcasts from its start on. Messages for
    /// [quiescence](Ctx::send_at_quiescence) are sent when no chunk waits to be started; [`exit`](Ctx::exit) drops the
    /// chunks that wait. After its start a chunk moves like any other chunk.
    ///
    /// Takes O(1).
    ///
    /// # Panics
    /// If this chunk has removed itself.
    #[track_caller]
    pub fn spawn(&mut self, chunk: C) {
        self.assert_not_removed("spawn");
        self.handler.outbox.push(spawning(chunk));
    }
}
