//! Finds the pairs of chunks with the most traffic in bounded memory, by lossy counting (Manku and Motwani, 2002).
//!
//! Sums are exact up to a number of pairs. Beyond it the lighter half of the pairs is dropped, and the largest traffic
//! that a dropped pair can have had is recorded. Sums are never too high, and too low by at most that amount.

use caribou::trace::ChunkId;
use rustc_hash::FxHashMap;

use super::matrix::Volume;
use crate::trace::page::bytes;

/// Sender and receiver.
pub(super) type Pair = (ChunkId, ChunkId);

/// The ranks of sender and receiver at the last message.
pub(super) type Ranks = (u32, u32);

/// Traffic of pairs of chunks.
pub(super) struct Heaviest {
    pairs: FxHashMap<Pair, (Volume, Ranks)>,
    most: usize,
    /// Number of dropped pairs, and the most that one of them can have sent.
    forgotten: u64,
    error: Volume,
}

impl Heaviest {
    /// A table of at most `most` pairs at a time. `most` is at least 2.
    pub(super) fn new(most: usize) -> Heaviest {
        Heaviest { pairs: FxHashMap::default(), most, forgotten: 0, error: Volume::default() }
    }

    pub(super) fn add(&mut self, pair: Pair, ranks: Ranks, volume: Volume) {
        let (sum, last) = self.pairs.entry(pair).or_default();
        sum.add(volume);
        *last = ranks;
        if self.pairs.len() > self.most {
            self.forget();
        }
    }

    /// Returns whether there is a pair.
    pub(super) fn has_any(&self) -> bool {
        !self.pairs.is_empty()
    }

    fn forget(&mut self) {
        let light = |one: &Volume, other: &Volume| {
            one.bytes.total_cmp(&other.bytes).then(one.messages.total_cmp(&other.messages))
        };
        let mut volumes: Vec<(Volume, Pair)> =
            self.pairs.iter().map(|(&pair, &(volume, _))| (volume, pair)).collect();
        volumes.sort_unstable_by(|(one, a), (other, b)| light(one, other).then(a.cmp(b)));
        volumes.truncate(volumes.len() / 2);
        let most = |of: fn(&Volume) -> f64| volumes.iter().map(|(volume, _)| of(volume)).fold(0.0, f64::max);
        let (messages, bytes) = (most(|volume| volume.messages), most(|volume| volume.bytes));
        self.error.add(Volume { messages, bytes });
        for (_, pair) in &volumes {
            self.pairs.remove(pair);
        }
        self.forgotten += volumes.len() as u64;
    }

    /// The pairs with the most bytes; for equal bytes, the most messages.
    pub(super) fn top(&self, count: usize) -> Vec<(Pair, Ranks, Volume)> {
        let mut pairs: Vec<(Pair, Ranks, Volume)> =
            self.pairs.iter().map(|(&pair, &(volume, ranks))| (pair, ranks, volume)).collect();
        pairs.sort_unstable_by(|(a, _, one), (b, _, other)| {
            other.bytes.total_cmp(&one.bytes).then(other.messages.total_cmp(&one.messages)).then(a.cmp(b))
        });
        pairs.truncate(count);
        pairs
    }

    /// A note about the error of the sums.
    pub(super) fn note(&self) -> Option<String> {
        (self.forgotten > 0).then(|| {
            format!(
                "more than {} pairs of chunks: figures of a pair may be up to {:.0} messages and {} too low",
                self.most,
                self.error.messages,
                bytes(self.error.bytes as u64)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use caribou::trace::ArrayId;

    use super::*;

    fn pair(key: u64) -> Pair {
        (ChunkId { array: ArrayId(0), key }, ChunkId { array: ArrayId(0), key: key + 1 })
    }

    #[test]
    fn heavy_pairs_are_found_among_many_and_sums_are_as_wrong_as_it_says() {
        let mut heaviest = Heaviest::new(50);
        let mut exact = std::collections::BTreeMap::new();
        for round in 0..2000u64 {
            for (key, bytes) in [(3, 100), (1000 + round, 90), (4, 70)] {
                heaviest.add(pair(key), (0, 1), Volume::of(1.0, bytes));
                *exact.entry(key).or_insert(0.0) += bytes as f64;
            }
        }
        let top = heaviest.top(2);
        assert_eq!([top[0].0, top[1].0], [pair(3), pair(4)]);
        for ((from, _), _, volume) in heaviest.top(50) {
            let truth = exact[&from.key];
            assert!(
                volume.bytes <= truth && volume.bytes + heaviest.error.bytes >= truth,
                "{from:?}: {volume:?}"
            );
        }
        assert!(heaviest.note().is_some());
    }

    #[test]
    fn few_pairs_are_exact() {
        let mut heaviest = Heaviest::new(3);
        for (key, from) in [(1, 0), (2, 0), (3, 0), (1, 2)] {
            heaviest.add(pair(key), (from, 1), Volume::of(2.0, 10));
        }
        assert_eq!(heaviest.top(1), [(pair(1), (2, 1), Volume { messages: 4.0, bytes: 40.0 })]);
        assert_eq!(heaviest.note(), None);
    }
}
