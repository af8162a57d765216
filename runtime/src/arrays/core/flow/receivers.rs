//! Receiver counts: per array, the largest number of chunks on one rank. [Flow control](crate::arrays::core::flow)
//! counts this number of nodes for a broadcast, because each receiver takes a node on its rank, however short the
//! message is.
//!
//! # Rules
//! 1. All ranks start from the number of chunks per rank of an evenly divided array.
//! 2. A rank that has at least twice the known number reports to its parent, and rank 0 sends the new number to all
//!    ranks. Chunks come to a rank by the setup, by insertion or by migration.
//! 3. The known number at least doubles each time. So a rank receives at most about twenty numbers per array and run.

use crate::ids::ArrayId;

/// The receiver counts of a rank: per array, a number that is more than half of the most chunks on one rank.
#[derive(Debug)]
pub(crate) struct Receivers {
    max: Box<[u64]>,
}

impl Receivers {
    /// `populations` is the initial number of chunks of each array.
    pub(crate) fn new(populations: &[u64], ranks: u32) -> Receivers {
        let most = |&population: &u64| population.div_ceil(u64::from(ranks)).max(1);
        Receivers { max: populations.iter().map(most).collect() }
    }

    pub(crate) fn max(&self, array: ArrayId) -> u64 {
        self.max[array.index()]
    }

    /// A rank has `chunks` chunks of an array. True if that is at least twice the known number. The known number only
    /// doubles, so that all ranks end with the same number, whatever the order of the reports.
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
    fn a_rank_reports_when_it_has_twice_the_known_number() {
        let mut receivers = Receivers::new(&[10, 0], 4);
        let [spread, empty] = [0, 1].map(ArrayId);
        assert_eq!([spread, empty].map(|array| receivers.max(array)), [3, 1]);
        let reported: Vec<u64> = (1..=40).filter(|&chunks| receivers.grow(spread, chunks)).collect();
        assert_eq!(reported, [6, 12, 24]);
        assert_eq!([spread, empty].map(|array| receivers.max(array)), [24, 1]);
        assert!(!receivers.grow(spread, 1), "others have more");
        assert!(receivers.grow(spread, 100));
        assert_eq!(receivers.max(spread), 96, "as if it had doubled twice");
    }
}
