//! The shapes of programs: each is balanced by policies of its own.

use std::fmt;

/// A shape of program.
///
/// ```
/// use lb_strategies::Shape;
/// assert_eq!(format!("{} balances {}", Shape::Pools.default_spec(), Shape::Pools), "leases balances pools");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Chunks that talk to each other, and stay where they are between two syncs.
    Arrays,
    /// Iterations that know nothing of each other.
    Pools,
}

impl Shape {
    /// A program of this shape, with its article.
    pub fn program(self) -> &'static str {
        match self {
            Self::Arrays => "an array of chunks",
            Self::Pools => "a pool of iterations",
        }
    }

    /// The parts that such programs are balanced by, as in "for arrays of chunks".
    pub fn programs(self) -> &'static str {
        match self {
            Self::Arrays => "arrays of chunks",
            Self::Pools => "pools of iterations",
        }
    }

    /// The policy where nobody chooses one.
    pub fn default_spec(self) -> &'static str {
        match self {
            Self::Arrays => "refine",
            Self::Pools => "leases",
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Arrays => "arrays",
            Self::Pools => "pools",
        })
    }
}
