//! The results of a worker of a pool, as a checkpoint saves them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The results of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerImage {
    /// The indices of the iterations whose results are in `accumulated`, in any order.
    pub(crate) done: Vec<Range<u64>>,
    /// The accumulated value, encoded.
    #[serde(with = "crate::wire::bulk")]
    pub(crate) accumulated: Vec<u8>,
}

/// Adds the indices of executed iterations.
pub(crate) fn add_range(done: &mut Vec<Range<u64>>, range: Range<u64>) {
    match done.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ if range.is_empty() => {}
        _ => done.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_follow_each_other_are_one() {
        let mut done = Vec::new();
        for range in [0..3, 3..5, 7..7, 8..9] {
            add_range(&mut done, range);
        }
        assert_eq!(done, [0..5, 8..9]);
    }
}
