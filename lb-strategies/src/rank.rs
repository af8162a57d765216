//! The name of a rank.

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
