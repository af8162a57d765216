//! Defines the numbers of ranks and of their workers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of an address space with workers: an MPI process or an in-process stand-in.
///
/// ```
/// use lb_strategies::Rank;
/// assert_eq!(Rank(3).to_string(), "3");
/// assert!(Rank(3) < Rank(10));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank as a position in a list of all ranks.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The number of a worker on its rank. Workers of different ranks may have the same number.
///
/// ```
/// use lb_strategies::WorkerId;
/// assert_eq!(WorkerId(3).to_string(), "3");
/// assert_eq!(["first", "second"][WorkerId(1).index()], "second");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId(pub u32);

impl WorkerId {
    /// The worker as a position in a list of all workers of its rank.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
