//! The trait of a policy, and the two readings of a neighbour's load.

use std::fmt;

use crate::{Assignment, Snapshot};

/// A policy that places chunks on ranks; a pure function with a name.
///
/// Every strategy of this crate keeps four promises: the assignment has one rank a chunk, pinned chunks stay,
/// chunks are placed on available ranks only (`none` excepted), and the same snapshot gives the same answer.
/// A strategy never fails: numbers that make no sense (a speed of zero, loads near `u64::MAX`) lead to a poor
/// placement, not to a panic.
///
/// ```
/// use lb_strategies::{Assignment, Rank, Snapshot, Strategy, synthetic::Workload};
///
/// /// Everything on rank 0.
/// struct Gather;
///
/// impl Strategy for Gather {
///     fn name(&self) -> &'static str {
///         "gather"
///     }
///     fn assign(&self, snapshot: &Snapshot) -> Assignment {
///         Assignment { ranks: vec![Rank(0); snapshot.chunks.len()] }
///     }
/// }
/// assert_eq!(Gather.assign(&Workload::Equal.snapshot(4, 2, 1)).ranks, [Rank(0); 4]);
/// ```
pub trait Strategy: Send + Sync {
    /// The name in the table, in `CARIBOU_LB` and in reports.
    fn name(&self) -> &'static str;

    /// Where every chunk should be in the coming phase.
    fn assign(&self, snapshot: &Snapshot) -> Assignment;

    /// How this strategy counts a neighbour's load, so that reports judge its plan by the model it was made
    /// with.
    fn background(&self) -> Background {
        Background::Share
    }

    /// Whether this strategy ever moves anything. If not, a sync stops nobody: loads are collected while chunks go on.
    fn moves(&self) -> bool {
        true
    }

    /// Whether a plan must pay for its moves to be carried out. False for strategies that move for moving's sake.
    fn must_pay(&self) -> bool {
        true
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

impl fmt::Display for Background {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Share => "share",
            Self::Additive => "additive",
        })
    }
}
