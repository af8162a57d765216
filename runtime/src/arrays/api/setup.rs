//! The parts of a run: arrays, placed, and services.

use std::any::Any;
use std::hash::Hasher;
use std::marker::PhantomData;
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::chunk::Chunk;
use super::ctx::Array;
use super::index::{Extent, Index};
use super::slot::ArrayOf;
use crate::arrays::core::erased::{Described, ErasedArray};
use crate::error::Error;
use crate::ids::{ArrayId, Rank};

/// The ranks that chunks start on. Every rank computes the same answer for every index.
///
/// ```
/// use caribou::{Placement, Index};
/// // Odd columns on the last rank.
/// let odd = Placement::by(|[_, column]: [u16; 2], ranks| if column % 2 == 1 { ranks - 1 } else { 0 });
/// # let _ = odd;
/// ```
#[derive(Clone)]
pub enum Placement {
    /// Equal runs of consecutive indices. Inserted indices go where they would fall between the initial ones.
    Block,
    /// One after the other in turn.
    RoundRobin,
    /// Scattered, but always the same.
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
    /// The rank as a function of index and number of ranks. A result that is no rank is taken modulo the number of ranks.
    pub fn by<I: Index>(place: impl Fn(I, u32) -> u32 + Send + Sync + 'static) -> Placement {
        Placement::Function(Arc::new(move |key, ranks| place(I::unpack(key), ranks)))
    }

    pub(crate) fn home(&self, key: u64, keys: &[u64], ranks: u32) -> Rank {
        // The position among the initial indices; for most arrays those are 0..n and no search is needed.
        let position = || match keys.get(key as usize) {
            Some(&found) if found == key => key,
            _ => keys.partition_point(|&other| other < key) as u64,
        };
        let rank = match self {
            Placement::Block => {
                let chunks = keys.len().max(1) as u64;
                position().min(chunks - 1) * u64::from(ranks) / chunks
            }
            Placement::RoundRobin => position() % u64::from(ranks),
            Placement::Hash => {
                let mut hasher = FxHasher::default();
                hasher.write_u64(key);
                hasher.finish() % u64::from(ranks)
            }
            Placement::Function(place) => u64::from(place(key, ranks) % ranks),
        };
        Rank(rank as u32)
    }
}

/// Describes a run. The setup function is called once on every rank and must do the same on all of them; chunks are made
/// on the rank they start on.
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
    pub(crate) arrays: Vec<Arc<dyn ErasedArray>>,
    pub(crate) services: Vec<Box<dyn Any + Send + Sync>>,
    /// The fault in an array, if there is one.
    refused: Option<Error>,
}

impl Setup {
    /// An array of chunks, placed in blocks. Chunks that it consists of take part in every sync.
    pub fn array<C: Chunk>(
        &mut self,
        extent: impl Extent<C::Index>,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        self.array_with(extent, Placement::Block, make)
    }

    /// An array of chunks, placed as you say.
    pub fn array_with<C: Chunk>(
        &mut self,
        extent: impl Extent<C::Index>,
        placement: Placement,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        self.add(extent, placement, true, make)
    }

    /// An array that takes no part in syncs: nobody waits for its chunks to call `at_sync`, and they do not migrate.
    pub fn array_without_sync<C: Chunk>(
        &mut self,
        extent: impl Extent<C::Index>,
        placement: Placement,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        self.add(extent, placement, false, make)
    }

    fn add<C: Chunk>(
        &mut self,
        extent: impl Extent<C::Index>,
        placement: Placement,
        syncs: bool,
        make: impl Fn(C::Index) -> C + Send + Sync + 'static,
    ) -> Array<C> {
        let array = Array::new(ArrayId(self.arrays.len() as u32));
        let keys: Arc<[u64]> = extent.keys().into();
        let disordered = keys.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| (pair[0], pair[1]));
        let new = ArrayOf { make, keys, placement, syncs, chunk: PhantomData };
        if let Some((before, key)) = disordered {
            let setting = format!("the extent of array {} `{}`", self.arrays.len(), new.name());
            let (earlier, index) = (new.index_text(before), new.index_text(key));
            let why = match before == key {
                true => format!("the index {index} is there twice"),
                false => format!(
                    "the index {index} comes after {earlier}: an extent has its indices in rising order"
                ),
            };
            self.refused.get_or_insert(Error::Config { setting, why });
        }
        self.arrays.push(Arc::new(new));
        array
    }

    /// A value that all chunks on this rank can see through [`Ctx::service`](crate::Ctx::service), by its type.
    pub fn service<T: Send + Sync + 'static>(&mut self, service: T) {
        self.services.push(Box::new(service));
    }

    pub(crate) fn finish(self) -> Result<Described, Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let mut hasher = FxHasher::default();
        for array in &self.arrays {
            hasher.write(array.name().as_bytes());
            hasher.write_u64(array.population());
        }
        Ok(Described { arrays: self.arrays.into(), services: self.services, checksum: hasher.finish() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(placement: &Placement, keys: &[u64]) -> Vec<u32> {
        keys.iter().map(|&key| placement.home(key, keys, 3).0).collect()
    }

    #[test]
    fn blocks_are_equal_runs_and_round_robin_takes_turns_also_for_sparse_indices() {
        for keys in [[0, 1, 2, 3, 4, 5], [2, 3, 7, 100, 1 << 40, 1 << 41]] {
            assert_eq!(homes(&Placement::Block, &keys), [0, 0, 1, 1, 2, 2]);
            assert_eq!(homes(&Placement::RoundRobin, &keys), [0, 1, 2, 0, 1, 2]);
        }
    }

    #[test]
    fn an_index_beyond_the_initial_ones_has_a_home_too() {
        assert_eq!(Placement::Block.home(99, &[0, 1, 2], 3), Rank(2));
        assert_eq!(Placement::Block.home(99, &[], 3), Rank(0));
    }
}
