//! The units that a share holds, and the units that are moving to it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Consecutive units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Units<U> {
    /// The number of the first unit.
    pub(super) first: u64,
    pub(super) data: Vec<U>,
}

impl<U> Units<U> {
    pub(super) fn get(&self, number: u64) -> Option<&U> {
        self.data.get(number.checked_sub(self.first)? as usize)
    }

    /// The units with these numbers, which must be here.
    pub(super) fn slice(&self, numbers: &Range<u64>) -> &[U] {
        &self.data[self.indices(numbers)]
    }

    /// The units with these numbers, to change them.
    pub(super) fn slice_mut(&mut self, numbers: &Range<u64>) -> &mut [U] {
        let indices = self.indices(numbers);
        &mut self.data[indices]
    }

    /// Replaces the units with these numbers.
    pub(super) fn replace(&mut self, numbers: &Range<u64>, data: Vec<U>) {
        let indices = self.indices(numbers);
        self.data.splice(indices, data);
    }

    fn indices(&self, numbers: &Range<u64>) -> Range<usize> {
        (numbers.start - self.first) as usize..(numbers.end - self.first) as usize
    }
}

/// The units of a share for the next step, until all have arrived.
#[derive(Serialize, Deserialize)]
pub(super) struct Incoming<U> {
    first: u64,
    /// Number of units that have not arrived.
    pub(super) missing: u64,
    /// The units that have arrived, in any order.
    runs: Vec<Units<U>>,
}

impl<U> Incoming<U> {
    /// The units with these numbers, none of which has arrived.
    pub(super) fn new(numbers: Range<u64>) -> Incoming<U> {
        Incoming { first: numbers.start, missing: numbers.end - numbers.start, runs: Vec::new() }
    }

    pub(super) fn add(&mut self, run: Units<U>) {
        self.missing -= run.data.len() as u64;
        self.runs.push(run);
    }

    /// Joins the units. All of them must have arrived.
    pub(super) fn join(&mut self) -> Units<U> {
        assert_eq!(self.missing, 0, "all units have come");
        let mut runs = std::mem::take(&mut self.runs);
        runs.sort_unstable_by_key(|run| run.first);
        Units { first: self.first, data: runs.into_iter().flat_map(|run| run.data).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_come_in_any_order_are_joined_by_number() {
        let run = |numbers: Range<u64>| Units { first: numbers.start, data: numbers.collect() };
        let mut incoming = Incoming::new(3..9);
        for (numbers, missing) in [(6..9, 3), (5..5, 3), (3..5, 1), (5..6, 0)] {
            incoming.add(run(numbers));
            assert_eq!(incoming.missing, missing);
        }
        let mut units = incoming.join();
        assert_eq!(units, run(3..9));
        assert_eq!((units.get(2), units.get(3), units.get(9)), (None, Some(&3), None));
        units.replace(&(4..6), vec![40, 50]);
        assert_eq!(units.slice(&(3..7)), [3, 40, 50, 6]);
    }
}
