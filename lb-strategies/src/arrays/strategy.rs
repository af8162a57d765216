//! The trait of a strategy, the terms on which it is run, and the two models of a neighbour's load.

use std::fmt;

use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

/// A policy that places chunks on ranks; a pure function with a name.
///
/// Every strategy of this crate keeps four promises. The assignment has one rank per chunk. Pinned chunks stay. Chunks
/// are placed on available ranks only (`none` excepted). The same snapshot gives the same answer. A run asks it for its
/// terms once, before it begins. A strategy never fails: numbers that make no sense (a speed of zero, loads near
/// `u64::MAX`) lead to a poor placement, not to a panic.
///
/// ```
/// use lb_strategies::{Assignment, ChunkLoad, Rank, Snapshot, Strategy, Terms, synthetic::Workload};
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
///     fn terms(&self) -> Terms {
///         Terms { must_pay: false, ..Terms::default() }
///     }
/// }
/// assert_eq!(Gather.assign(&Workload::Equal.snapshot(4, 2, 1)).ranks, [Rank(0); 4]);
/// ```
pub trait Strategy: Send + Sync {
    /// The name in the table, in `CARIBOU_LB` and in reports.
    fn name(&self) -> &'static str;

    /// Places every chunk for the coming phase.
    fn assign(&self, snapshot: &Snapshot) -> Assignment;

    /// The terms on which it is run.
    fn terms(&self) -> Terms {
        Terms::default()
    }
}

/// The terms on which a strategy is run: how measurements are prepared for it, and how its assignments are judged and
/// carried out. The default suits most strategies.
///
/// ```
/// use lb_strategies::{ARRAYS, Background, Terms};
/// assert_eq!(ARRAYS.parse("refine")?.terms(), Terms { scatters: true, ..Terms::default() });
/// let paper = ARRAYS.parse("refine-paper")?.terms();
/// assert_eq!((paper.smoothing, paper.background, paper.must_pay), (1.0, Background::Additive, false));
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The model of a neighbour's load in the judgement of assignments. By default a share of the vCPU.
    pub background: Background,
    /// True if the strategy ever moves a chunk. If not, no chunk waits at a sync: loads are collected while chunks go on,
    /// and the assignment is not carried out. True by default.
    pub moves: bool,
    /// True if an assignment is carried out only if it pays. The longest rank of the next phase is predicted to gain more
    /// than all moves cost, or a chunk leaves an unavailable rank (see [`accept`](crate::accept())). Then the strategy is
    /// not asked if no plan could pay for its time (see [`worth_asking`](crate::worth_asking)). True by default. False
    /// for strategies that move for another reason, such as a test.
    pub must_pay: bool,
    /// True if, in windows, chunks may be scattered against its answer. A scattered placement needs no rebalancing when
    /// loads change unpredictably. False by default: a strategy may have reasons of its own.
    pub scatters: bool,
    /// Weight of the newest phase in the expected load of a chunk, in (0, 1]; 1 takes the last phase as it was. 0.5 by
    /// default.
    pub smoothing: f64,
    /// Ranks that are slower than the fastest by less than this part count as equally fast. 0.08 by default.
    pub speed_noise: f64,
    /// True if the background load is by equation 2 of the refinement paper: wall time of a phase - CPU time - idle time
    /// of the vCPU. The user can choose another source. Otherwise, and by default, it is the time in which the rank
    /// wanted to run and did not.
    pub background_by_idle: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            background: Background::Share,
            moves: true,
            must_pay: true,
            scatters: false,
            smoothing: 0.5,
            speed_noise: 0.08,
            background_by_idle: false,
        }
    }
}

/// The model of the load of others on a rank's vCPU.
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
    /// The parameter that selects the model, of all strategies that use loads.
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
        parameters.one_of(Self::PARAMETER.name, &[("share", Self::Share), ("additive", Self::Additive)])
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
