//! Defines the shapes of programs: arrays, pools and supersteps. Each shape has its own policies.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The shape of a program: its kind of parallelism.
///
/// ```
/// use lb_strategies::Shape;
/// assert_eq!(format!("{} balances {}", Shape::Pools.default_spec(), Shape::Pools), "leases balances pools");
///
/// // What a later version records is refused.
/// let later: Result<Shape, _> = serde_json::from_str("\"graph\"");
/// assert!(later.unwrap_err().to_string().starts_with("unknown variant `graph`"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// Chunks that exchange messages, and change ranks only at syncs or in windows.
    #[default]
    #[serde(rename = "arrays", alias = "")]
    Arrays,
    /// Independent iterations.
    #[serde(rename = "pool")]
    Pools,
    /// Steps on divisible data. Each step ends when all workers have finished.
    #[serde(rename = "supersteps")]
    Supersteps,
}

impl Shape {
    /// A program of this shape in words, with an article.
    pub fn program(self) -> &'static str {
        match self {
            Self::Arrays => "an array of chunks",
            Self::Pools => "a pool of iterations",
            Self::Supersteps => "a program in supersteps",
        }
    }

    /// The name of such programs, as in "for arrays of chunks".
    pub fn programs(self) -> &'static str {
        match self {
            Self::Arrays => "arrays of chunks",
            Self::Pools => "pools of iterations",
            Self::Supersteps => "programs in supersteps",
        }
    }

    /// The name of the shape in the record of a run.
    pub fn recorded(self) -> &'static str {
        match self {
            Self::Arrays => "arrays",
            Self::Pools => "pool",
            Self::Supersteps => "supersteps",
        }
    }

    /// The default policy.
    pub fn default_spec(self) -> &'static str {
        match self {
            Self::Arrays => "refine",
            Self::Pools => "leases",
            Self::Supersteps => "des",
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Arrays => "arrays",
            Self::Pools => "pools",
            Self::Supersteps => "supersteps",
        })
    }
}
