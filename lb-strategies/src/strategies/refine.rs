//! `refine`: moves as little as needed from overloaded to underloaded ranks.
//!
//! Algorithm 1 of the paper on refinement balancing in the cloud (arrays of chunks, with background load and
//! unequal vCPU speeds): overloaded ranks wait in a max-heap, `overHeap`; the most loaded one, the donor,
//! gives the largest chunk that fits some underloaded rank of `underSet` without overloading it; both are
//! updated, and so on until no donor is left. A donor none of whose chunks fits is set aside, so the loop
//! ends. A chunk moves at most once.
//!
//! Where we read the paper freely:
//!
//! - **Completion time, not ticks.** Equation 3 taken literally equalises ticks, so a slow vCPU would get as
//!   much work as a fast one. We equalise completion time = ticks / capacity: the fair part of rank p is
//!   total x capacity_p / sum(capacity).
//! - **Tolerance is relative** to the least completion time that is possible (the fair one, or what the
//!   heaviest chunk needs), and it is a trigger with hysteresis: nothing moves until some rank is above 1 +
//!   `tolerance`; then ranks are drained down to 1 + `settle`, and receivers are filled up to it. Where chunks
//!   are too coarse for that, the level doubles until it reaches `tolerance`. Stopping at the tolerance instead
//!   would leave that much time on the table for ever. `settle=tolerance` is the literal paper.
//! - **Index order within a band.** With nearly equal loads, "the largest chunk" is picked by measurement
//!   noise, which frays the boundary between ranks. Chunks within `band` of each other count as equal, and of
//!   those the one goes whose index lies nearest the receiver: the highest for a higher rank, the lowest for
//!   a lower one. Blocks stay contiguous, which means less communication. `band=0` is the literal paper.
//! - **Which receiver.** The paper says one that stays underloaded; we take the one with the most room.
//! - **It does not end where it stalls.** A donor that is set aside stays late. Where one does, [`coarse`]
//!   plans anew by other means.
//!
//! Receivers are filled to a level below the maximum, so the maximum never rises. Time: O(chunks) to read the
//! loads, plus a sort of the donors' chunks and two heap updates a move.

mod coarse;
mod donors;
mod drain;
mod exchange;
mod plan;

pub(crate) use exchange::exchange;
pub(crate) use plan::Plan;

use crate::parameters::BACKGROUND;
use crate::{Assignment, Background, Parameter, Snapshot, Strategy, StrategyEntry};

/// The table's line.
pub const ENTRY: StrategyEntry = StrategyEntry {
    name: "refine",
    summary: "a few chunks from overloaded to underloaded ranks, exchanges where they are coarse",
    parameters: PARAMETERS,
    build: |parameters| Ok(Box::new(Refine::from_parameters(parameters)?)),
};

/// What can be set, here and in `refine-best`.
pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "tolerance",
        default: "0.05",
        meaning: "a rank this far above the least possible time starts a refinement",
    },
    Parameter {
        name: "settle",
        default: "0.005",
        meaning: "refine down to this far above it; tolerance: the paper",
    },
    Parameter {
        name: "band",
        default: "0.2",
        meaning: "loads this near count as equal and go by index; 0: the paper",
    },
    BACKGROUND,
];

/// The level that follows a `settle` of zero.
const LEVEL_MIN: f64 = 0.005;

/// Refinement with a tolerance.
///
/// ```
/// use lb_strategies::{Rank, Strategy, strategies::refine::Refine, synthetic::Workload};
/// // A neighbour takes half of the second vCPU: of 256 chunks the first rank gets two thirds, in one block.
/// let snapshot = Workload::NoisyRank.snapshot(256, 2, 1);
/// let ranks = Refine::default().assign(&snapshot).ranks;
/// let first = ranks.iter().filter(|&&rank| rank == Rank(0)).count();
/// assert!((170..=172).contains(&first));
/// assert!(ranks.is_sorted());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Refine {
    /// How far above the least possible completion time a rank must be before anything moves; 0.05 is 5 %.
    pub tolerance: f64,
    /// How far above it ranks may stay once something moves; at most `tolerance`.
    pub settle: f64,
    /// Loads within this part of each other are taken in index order.
    pub band: f64,
    /// How a neighbour counts.
    pub background: Background,
}

impl Default for Refine {
    fn default() -> Self {
        Self { tolerance: 0.05, settle: 0.005, band: 0.2, background: Background::Share }
    }
}

impl Refine {
    /// Reads the four parameters.
    pub(crate) fn from_parameters(parameters: &crate::Parameters) -> Result<Self, crate::ParseError> {
        Ok(Self {
            tolerance: parameters.number("tolerance", 0.0..=10.0)?,
            settle: parameters.number("settle", 0.0..=10.0)?,
            band: parameters.number("band", 0.0..=1.0)?,
            background: parameters.background()?,
        })
    }

    /// Whether some rank is so late that a refinement starts.
    pub(crate) fn is_due(&self, plan: &Plan) -> bool {
        plan.max_ns() > plan.limit_ns(self.tolerance)
    }

    /// Refines down to the tolerance wherever that is possible, and to `settle` where it is easy.
    pub(crate) fn refine(&self, snapshot: &Snapshot, start: &Plan) -> Plan {
        let mut plan = start.clone();
        if self.drain(snapshot, &mut plan) { plan } else { coarse::refine(self, snapshot, start, plan) }
    }

    /// Drains to `settle`, then, for as long as donors are left, to twice that and so on up to `tolerance`. Says
    /// whether none is left.
    pub(crate) fn drain(&self, snapshot: &Snapshot, plan: &mut Plan) -> bool {
        let mut level = self.settle.min(self.tolerance);
        loop {
            let all_settled = drain::drain(snapshot, plan, plan.limit_ns(level), self.band);
            if all_settled || level >= self.tolerance {
                return all_settled;
            }
            level = (2.0 * level).max(LEVEL_MIN).min(self.tolerance);
        }
    }
}

impl Strategy for Refine {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let start = Plan::evacuated(snapshot, self.background);
        let plan = if self.is_due(&start) { self.refine(snapshot, &start) } else { start };
        plan.assignment
    }

    fn background(&self) -> Background {
        self.background
    }
}

#[cfg(test)]
mod tests;
