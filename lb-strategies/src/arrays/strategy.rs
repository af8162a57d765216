//! Defines the trait of a strategy, the terms on which it is run, and the two models of the load of a neighbour
//! (another process on a vCPU).

use std::fmt;

use crate::arrays::groups::Hierarchy;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

/// A policy that places chunks on ranks. It is a pure function with a name.
///
/// Every strategy of this crate keeps four promises. The assignment has one rank per chunk. Pinned chunks stay. Chunks
/// are placed on available ranks only, except by `none`. The same snapshot gives the same answer. A strategy never
/// fails: senseless numbers (a speed of zero, loads near `u64::MAX`) give a poor placement, not a panic. A run reads
/// the terms of its strategy once, before it begins.
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

    /// The strategy for the ranks of one group, if windows are decided on two levels ([`Terms::hierarchy`]). None for this
    /// strategy itself.
    fn within_group(&self) -> Option<Box<dyn Strategy>> {
        None
    }

    /// The terms on which the strategy is run.
    fn terms(&self) -> Terms {
        Terms::default()
    }
}

/// How measurements are prepared for a strategy, and how its assignments are judged and carried out. The default suits
/// most strategies.
///
/// ```
/// use lb_strategies::{ARRAYS, Background, Terms};
/// assert_eq!(ARRAYS.parse("greedy")?.terms(), Terms { scatters: true, ..Terms::default() });
/// let paper = ARRAYS.parse("refine-paper")?.terms();
/// assert_eq!((paper.smoothing, paper.background, paper.must_pay), (1.0, Background::Additive, false));
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The model of a neighbour's load by which assignments are judged. By default a share of the vCPU.
    pub background: Background,
    /// True if the strategy ever moves a chunk; true by default. If false, no chunk waits at a sync: loads are
    /// collected while chunks run, and the assignment is not carried out.
    pub moves: bool,
    /// True if an assignment is carried out only if it pays; true by default. The slowest rank must be predicted to
    /// gain more than all moves cost, or a chunk must leave an unavailable rank (see [`accept`](crate::accept())). The
    /// strategy is not asked if no plan could pay for its time (see [`worth_asking`](crate::worth_asking)). False for
    /// strategies that move chunks for another reason, such as a test.
    pub must_pay: bool,
    /// True if the balancer may scatter chunks in windows without asking the strategy; false by default. A scattered
    /// placement needs no rebalancing when loads change unpredictably.
    pub scatters: bool,
    /// Whether the strategy wants to know which chunks send to which; never by default. Runs record edges only if so.
    pub edges: EdgeUse,
    /// How windows are decided on two levels, so that no rank needs the chunks of all ranks; none by default.
    pub hierarchy: Option<Hierarchy>,
    /// Weight of the newest phase in the expected load of a chunk, in (0, 1]; 0.5 by default. 1 expects the last phase
    /// again.
    pub smoothing: f64,
    /// Ranks that are slower than the fastest rank by less than this part count as equally fast; 0.08 by default.
    pub speed_noise: f64,
    /// True if the background load is by equation 2 of the refinement paper: wall time of a phase - CPU time - idle
    /// time of the vCPU. Else, and by default, it is the time in which the rank wanted to run and did not. The user can
    /// choose another source.
    pub background_by_idle: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            background: Background::Share,
            moves: true,
            must_pay: true,
            scatters: false,
            edges: EdgeUse::Never,
            hierarchy: None,
            smoothing: 0.5,
            speed_noise: 0.08,
            background_by_idle: false,
        }
    }
}

/// When a strategy wants the communication between chunks ([`Snapshot::edges`]).
///
/// ```
/// use lb_strategies::{EdgeUse, Terms};
/// assert_eq!(Terms::default().edges, EdgeUse::Never);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeUse {
    /// The strategy places chunks by their loads alone.
    #[default]
    Never,
    /// On several hosts, in phases in which messages between ranks take a part of the time that matters.
    WhereTheyMatter,
    /// In every phase.
    Always,
}

/// The model of the load that others put on a rank's vCPU.
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
    /// This holds for a neighbour that always wants to run: it also takes the time that moved chunks set free.
    #[default]
    Share,
    /// A neighbour takes a constant time, as in the refinement paper: capacity is the speed, and `O_p * f_p`
    /// ticks are added to the rank's load (its equation 1).
    Additive,
}

impl Background {
    /// The parameter that selects the model, for all strategies that use loads.
    pub const PARAMETER: Parameter = Parameter {
        name: "background",
        default: "share",
        meaning: "model of another process on the vCPU: share (of the vCPU), or additive (constant time, as in the paper)",
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
