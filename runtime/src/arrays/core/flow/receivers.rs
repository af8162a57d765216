//! How many chunks of one rank hear a broadcast at most: each takes up a node there, however short the message is.
//!
//! Who broadcasts has to know that of all ranks, see [`flow`](crate::arrays::core::flow). All start from what each has where an
//! array is shared out evenly. A rank with twice as many, because it was set up so or because chunks are inserted or migrate
//! there, says so to its parent, and rank 0 to all; and again when it has twice as many as that. So of an array a rank is told
//! some twenty times in a run, however many chunks come.

use crate::ids::ArrayId;

/// What a rank knows of it: of each array the most chunks that a rank has, or more than half of that.
#[derive(Debug)]
pub(crate) struct Receivers {
    max: Box<[u64]>,
}

impl Receivers {
    /// Of arrays that start with so many chunks.
    pub(crate) fn new(populations: &[u64], ranks: u32) -> Receivers {
        let most = |&population: &u64| population.div_ceil(u64::from(ranks)).max(1);
        Receivers { max: populations.iter().map(most).collect() }
    }

    pub(crate) fn max(&self, array: ArrayId) -> u64 {
        self.max[array.index()]
    }

    /// A rank has so many chunks of an array. True if that is news: twice as many as any was known to have. What is known
    /// doubles each time, so that whoever passes it on has the same in the end.
    pub(crate) fn grow(&mut self, array: ArrayId, chunks: u64) -> bool {
        let most = &mut self.max[array.index()];
        let times = chunks / *most;
        *most <<= times.max(1).ilog2();
        times > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_tells_when_it_has_twice_as_many_as_any() {
        let mut receivers = Receivers::new(&[10, 0], 4);
        let [spread, empty] = [0, 1].map(ArrayId);
        assert_eq!([spread, empty].map(|array| receivers.max(array)), [3, 1]);
        let told: Vec<u64> = (1..=40).filter(|&chunks| receivers.grow(spread, chunks)).collect();
        assert_eq!(told, [6, 12, 24]);
        assert_eq!([spread, empty].map(|array| receivers.max(array)), [24, 1]);
        assert!(!receivers.grow(spread, 1), "others have more");
        assert!(receivers.grow(spread, 100));
        assert_eq!(receivers.max(spread), 96, "as if it had doubled twice");
    }
}
