//! The trait of a policy, what it asks of whoever runs it, and the two readings of a neighbour's load.

use std::fmt;

use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

/// A policy that places chunks on ranks; a pure function with a name.
///
/// Every strategy of this crate keeps four promises: the assignment has one rank a chunk, pinned chunks stay,
/// chunks are placed on available ranks only (`none` excepted), and the same snapshot gives the same answer.
/// A run asks it what it is like (all but `assign`) once, before it begins.
/// A strategy never fails: numbers that make no sense (a speed of zero, loads near `u64::MAX`) lead to a poor
/// placement, not to a panic.
///
/// ```
/// use lb_strategies::{Assignment, ChunkLoad, Rank, Snapshot, Strategy, synthetic::Workload};
///
/// /// Everything that may move on the first rank that may be used.
/// struct Gather;
///
/// impl Strategy for Gather {
///     fn name(&self) -> &'static str {
///         "gather"
///     }
///     fn assign(&self, snapshot: &Snapshot) -> Assignment {
///         let first = snapshot.ranks.iter().position(|rank| rank.available).unwrap_or(0);
///         let first = Rank(first as u32);
///         let place = |chunk: &ChunkLoad| if chunk.migratable { first } else { chunk.rank };
///         Assignment { ranks: snapshot.chunks.iter().map(place).collect() }
///     }
///     // To gather makes nothing faster: without this the runtime would leave every chunk where it is.
///     fn must_pay(&self) -> bool {
///         false
///     }
/// }
/// assert_eq!(Gather.assign(&Workload::Equal.snapshot(4, 2, 1)).ranks, [Rank(0); 4]);
/// ```
pub trait Strategy: Send + Sync {
    /// The name in the table, in `CARIBOU_LB` and in reports.
    fn name(&self) -> &'static str;

    /// Where every chunk should be in the coming phase.
    fn assign(&self, snapshot: &Snapshot) -> Assignment;

    /// How this strategy counts a neighbour's load, so that its plan is judged by the model it was made with. By default
    /// as a share of the vCPU.
    fn background(&self) -> Background {
        Background::Share
    }

    /// Whether this strategy ever moves anything. If not, a sync stops nobody: loads are collected while chunks go on, and the
    /// assignment is not carried out. True by default.
    fn moves(&self) -> bool {
        true
    }

    /// Whether a plan must pay for its moves to be carried out: none is made unless the longest rank of the next phase is
    /// predicted to gain more than all moves cost, or a chunk leaves an unavailable rank (see [`accept`](crate::accept())).
    /// True by default. False for strategies that move for another reason, such as a test.
    fn must_pay(&self) -> bool {
        true
    }

    /// What is done with measurements before this strategy sees them. By default they are smoothed over phases, and ranks
    /// of nearly the same speed count as equally fast: see [`Preparation`].
    fn preparation(&self) -> Preparation {
        Preparation::default()
    }
}

/// How measurements become the snapshot that a strategy sees. The default is what our own strategies want.
///
/// ```
/// use lb_strategies::{Preparation, ARRAYS};
/// assert_eq!(ARRAYS.parse("refine")?.preparation(), Preparation::default());
/// let paper = Preparation { smoothing: 1.0, speed_noise: 0.0, background_by_idle: true };
/// assert_eq!(ARRAYS.parse("refine-paper")?.preparation(), paper);
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preparation {
    /// Weight of the newest phase in the expected load of a chunk, in (0, 1]; 1 takes the last phase as it was.
    pub smoothing: f64,
    /// Ranks whose speed is less than this part below the fastest one's count as equally fast.
    pub speed_noise: f64,
    /// Whether the background load is what the wall time of a phase has beyond CPU time and the idle time of the
    /// vCPU (equation 2 of the refinement paper), where a person does not choose another source. Otherwise it is
    /// the time in which the rank wanted to run and did not.
    pub background_by_idle: bool,
}

impl Default for Preparation {
    fn default() -> Self {
        Self { smoothing: 0.5, speed_noise: 0.08, background_by_idle: false }
    }
}

/// How the load of others on a rank's vCPU counts.
///
/// ```
/// use lb_strategies::{Assignment, Background, metrics, synthetic::Workload};
/// let snapshot = Workload::NoisyRank.snapshot(200, 2, 1);
/// let now = Assignment::current(&snapshot);
/// let share = metrics::max_ns(&snapshot, &now, Background::Share);
/// let additive = metrics::max_ns(&snapshot, &now, Background::Additive);
/// assert!(share.abs_diff(additive) <= 1, "both explain what was measured; they differ once chunks move");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// A neighbour leaves a share of the vCPU: capacity is speed x share, and nothing is added.
    ///
    /// This holds for a neighbour that always wants to run: it also eats the time that moved chunks set free.
    #[default]
    Share,
    /// A neighbour takes a constant time, as in the refinement paper: capacity is the speed, and `O_p * f_p`
    /// ticks are added to the rank's load (its equation 1).
    Additive,
}

impl Background {
    /// The parameter by which a person chooses, of all strategies that look at loads.
    pub const PARAMETER: Parameter = Parameter {
        name: "background",
        default: "share",
        meaning: "how a neighbour counts: as a share of the vCPU, or additive (the paper)",
    };

    /// The value of [`PARAMETER`](Self::PARAMETER).
    ///
    /// # Errors
    /// It is neither `share` nor `additive`.
    pub fn read(parameters: &Parameters) -> Result<Self, ParseError> {
        let additive = parameters.second_of(Self::PARAMETER.name, ["share", "additive"])?;
        Ok(if additive { Self::Additive } else { Self::Share })
    }
}

impl fmt::Display for Background {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Share => "share",
            Self::Additive => "additive",
        })
    }
}
