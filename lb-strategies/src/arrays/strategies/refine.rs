//! `refine` balances with few moves from overloaded to underloaded ranks. It is the default strategy.
//!
//! It is Algorithm 1 of the refinement paper (Gupta, Sarood, Kale and Milojicic, "Improving HPC Application Performance
//! in Cloud through Dynamic Load Balancing", 2013), for chunks with background load and unequal vCPU speeds. Overloaded
//! ranks wait in a max-heap, `overHeap`. The most loaded rank is the donor. It gives its largest chunk that fits a rank
//! of `underSet` (the underloaded ranks) without overloading it. This repeats until no donor is left. A donor without a
//! chunk that fits is set aside, so the loop ends. A chunk moves at most once.
//!
//! `refine` deviates from the paper in these points; [`refine_paper`](super::refine_paper) has a parameter for each.
//!
//! - **Completion time, not ticks.** *Ticks* are CPU time x vCPU speed. By equation 3, no rank may be above the average
//!   ticks by epsilon, so a slow vCPU would get as much work as a fast one. We equalise completion time = ticks /
//!   capacity. The fair part of rank p is total x capacity_p / sum(capacity).
//! - **Relative tolerance with hysteresis.** Levels are relative to the least possible completion time: the fair time,
//!   or that of the heaviest chunk if it is longer. Nothing moves until some rank is above 1 + `tolerance`. Then donors
//!   give, and receivers take, until all are at 1 + `settle`. If chunks are too coarse, `settle` is doubled, up to
//!   `tolerance`. If donors stopped at 1 + `tolerance`, every later phase (the time between two syncs, or a balancing
//!   window) would be longer by that part.
//! - **Index order within a band.** With nearly equal loads, measurement noise decides which chunk is the largest, and
//!   blocks of chunks fall apart. So chunks within `band` of each other count as equal. Of these, a receiver with a
//!   higher number than the donor gets the highest index, else the lowest. Blocks stay contiguous, which saves
//!   communication.
//! - **Receivers.** In the paper, a receiver is below the average by more than epsilon, also after it has received. We
//!   fill every rank up to the level, the rank with the most room first.
//! - **Messages and memory.** The paper sees loads alone. Where messages between ranks may take a part of the time that
//!   matters, or ranks have limits of memory, the plan is improved by the local search of [`comm`](super::comm).
//! - **Coarse chunks.** In the paper, a donor that is set aside stays overloaded. Here the module `coarse` then makes a
//!   new plan.
//!
//! Receivers are filled to a level below the maximum, so the maximum never rises. Time: O(chunks) to read the loads, a
//! sort of the donors' chunks, and two heap updates per move.

mod coarse;
mod donors;
mod offload;
mod plan;
mod swap;

use donors::Donors;
pub(crate) use plan::Plan;
use swap::swap_chunks;

use offload::Limits;

use super::comm::Comm;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Background, EdgeUse, Strategy, Terms};
use crate::entry::Entry;
use crate::parameters::Parameter;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "refine",
    summary: "a few chunks from overloaded to underloaded ranks; exchanges if chunks are too large",
    parameters: PARAMETERS,
    build: |parameters| Ok(Box::new(Refine::from_parameters(parameters)?)),
};

/// The parameters of this strategy.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "tolerance",
        default: "0.05",
        meaning: "chunks move if a rank exceeds the least possible time by this part of it",
    },
    Parameter {
        name: "settle",
        default: "0.005",
        meaning: "part above the least possible time to which ranks are brought down, if possible",
    },
    Parameter {
        name: "band",
        default: "0.2",
        meaning: "loads that differ by less than this part count as equal, and chunks go by index",
    },
    Background::PARAMETER,
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
    /// A rank must be above the least possible completion time by this part before anything moves; 0.05 is 5 %.
    pub tolerance: f64,
    /// Once something moves, ranks may stay above the least possible completion time by this part; at most `tolerance`.
    pub settle: f64,
    /// Loads within this part of each other are taken in index order.
    pub band: f64,
    /// The model of a neighbour's load.
    pub background: Background,
    /// The quantity that is equalised among ranks.
    pub equalise: Equalise,
    /// The ranks that may receive chunks.
    pub receivers: Receivers,
    /// What is done if no chunk of a donor fits a receiver.
    pub misfit: Misfit,
}

/// The quantity that is equalised among ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Equalise {
    /// Completion time of the rank.
    #[default]
    Time,
    /// Ticks, independent of the speed of ranks: equation 3 taken literally.
    Ticks,
}

/// The ranks that may receive chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receivers {
    /// All ranks that are not overloaded, up to the level above which a rank is overloaded.
    #[default]
    All,
    /// As in the paper: only ranks that are as far below the fair time as a donor is above it, and stay so.
    Underloaded,
}

/// What is done if no chunk of a donor fits a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Misfit {
    /// The placement is planned anew, by exchanges and packing.
    #[default]
    Replan,
    /// As in the paper: the donor stays late.
    StayLate,
}

impl Default for Refine {
    fn default() -> Self {
        Self {
            tolerance: 0.05,
            settle: 0.005,
            band: 0.2,
            background: Background::Share,
            equalise: Equalise::default(),
            receivers: Receivers::default(),
            misfit: Misfit::default(),
        }
    }
}

impl Refine {
    /// Reads the parameters of `refine`.
    pub(crate) fn from_parameters(parameters: &crate::Parameters) -> Result<Self, crate::ParseError> {
        Self::with_tolerance(parameters, parameters.number("tolerance", 0.0..=10.0)?)
    }

    /// Reads the parameters of `refine` but for the tolerance.
    pub(crate) fn with_tolerance(
        parameters: &crate::Parameters,
        tolerance: f64,
    ) -> Result<Self, crate::ParseError> {
        let settle = parameters.number_or("settle", 0.0..=10.0, "tolerance")?.unwrap_or(tolerance);
        let (band, background) = (parameters.number("band", 0.0..=1.0)?, Background::read(parameters)?);
        Ok(Self { tolerance, settle, band, background, ..Self::default() })
    }

    /// The current placement with unavailable ranks emptied.
    pub(crate) fn start(&self, snapshot: &Snapshot) -> Plan {
        let plan = match self.equalise {
            Equalise::Time => Plan::evacuated(snapshot, self.background),
            Equalise::Ticks => Plan::evacuated(snapshot, self.background).in_ticks(),
        };
        match self.misfit {
            Misfit::Replan if self.is_due(&plan) => plan.above_heaviest(snapshot, self.background),
            Misfit::Replan | Misfit::StayLate => plan,
        }
    }

    /// True if some rank is so late that a refinement starts.
    pub(crate) fn is_due(&self, plan: &Plan) -> bool {
        plan.max_ns() > plan.limit_ns(self.tolerance)
    }

    /// Refines down to the tolerance where possible, and to `settle` where this takes no more than Algorithm 1.
    pub(crate) fn refine(&self, snapshot: &Snapshot, start: &Plan) -> Plan {
        let mut plan = start.clone();
        let mut donors = Donors::gather(snapshot, start, start.limit_ns(self.settle.min(self.tolerance)));
        let all_settled = self.offload(&mut plan, &mut donors);
        match self.misfit {
            Misfit::Replan if !all_settled => coarse::refine(self, snapshot, start, plan, donors),
            Misfit::Replan | Misfit::StayLate => plan,
        }
    }

    /// Drains donors to `settle`. While donors are left, doubles the level up to `tolerance`. Returns true if none is
    /// left.
    pub(crate) fn offload(&self, plan: &mut Plan, donors: &mut Donors<'_>) -> bool {
        let mut level = self.settle.min(self.tolerance);
        loop {
            let receiver_level = match self.receivers {
                Receivers::All => level,
                Receivers::Underloaded => -level,
            };
            let [donor_ns, receiver_ns] = [level, receiver_level].map(|level| plan.limit_ns(level));
            let all_settled = offload::offload(plan, donors, &Limits { donor_ns, receiver_ns }, self.band);
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
        let search = Comm { background: self.background, ..Comm::default() };
        let start = self.start(snapshot);
        let searches = self.misfit == Misfit::Replan && search.is_needed(snapshot, &start);
        if searches && !self.is_due(&start) {
            let by_loads = || self.refine(snapshot, &start);
            return search.improve(snapshot, &start, self.tolerance, by_loads);
        }
        let plan = if self.is_due(&start) { self.refine(snapshot, &start) } else { start.clone() };
        // The search takes much longer than Algorithm 1, so it must be able to gain something.
        if searches && search.may_gain(snapshot, &plan, &start) {
            return search.improve(snapshot, &start, self.tolerance, || plan);
        }
        plan.assignment.within_memory_or_stay(snapshot, self.background)
    }

    fn terms(&self) -> Terms {
        let edges = EdgeUse::WhereTheyMatter;
        Terms { background: self.background, scatters: true, edges, ..Terms::default() }
    }
}

#[cfg(test)]
mod tests;
