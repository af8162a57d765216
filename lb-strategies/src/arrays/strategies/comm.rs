//! `comm` places chunks by their loads, by the messages between them, and by the memory of ranks, with few moves.
//!
//! The completion time of a rank is the time of its chunks and of its messages to or from other ranks, whichever of sent
//! and received is more. This is the work model of LBAF and of Lifflander, Pébay et al., "A communication- and
//! memory-aware model for load balancing tasks", 2024 (arXiv 2404.16793), with time in place of weights: the run
//! measures the time of a byte.
//!
//! There are several plans to start from, and a local search improves each. The result with the least cost is taken: its
//! completion time and its moves. Limits of moves and of memory hold for each.
//!
//! | start | good for |
//! |---|---|
//! | the present placement | a few moves |
//! | the plan of [`refine`](super::refine), which sees loads alone | cheap messages |
//! | the present placement, balanced at the boundaries between ranks | chunks that are in regions already |
//! | the regions of [`sfc`](super::sfc) | scattered chunks: no series of single moves leads from them to regions |

use super::refine::{Plan, Refine};
use super::sfc::Sfc;
use crate::arrays::local_search::{Problem, Search};
use crate::arrays::metrics::{Moved, max_ns};
use crate::arrays::snapshot::{Assignment, Edge, Snapshot};
use crate::arrays::strategy::{Background, EdgeUse, Strategy, Terms};
use crate::arrays::traffic::EdgeCosts;
use crate::entry::Entry;
use crate::parameters::Parameter;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "comm",
    summary: "by loads, messages between chunks and memory; as many moves as allowed",
    parameters: &[
        Parameter {
            name: "tolerance",
            default: "0.02",
            meaning: "chunks move if a rank exceeds the least possible time by this part of it",
        },
        Parameter {
            name: "moves",
            default: "all",
            meaning: "largest number of chunks that move at once, or all",
        },
        Parameter {
            name: "move-cost",
            default: "auto",
            meaning: "cost of moving all chunks, as a part of the time of a balanced phase; auto: 0.25, or 0.025 with `moves`",
        },
        Parameter {
            name: "steps",
            default: "auto",
            meaning: "number of changes that the search tries; auto: 800 per chunk, from 20000 to 200000, of very many chunks 2 per chunk; without `moves` at most those that take a tenth of what a phase could still gain",
        },
        Parameter { name: "seed", default: "1", meaning: "seed of the search" },
        Background::PARAMETER,
    ],
    build: |parameters| {
        let moves = parameters.number_or("moves", 0.0..=1e9, "all")?;
        // A thousand million changes take minutes.
        let steps = parameters.number_or("steps", 1.0..=1e9, "auto")?;
        Ok(Box::new(Comm {
            tolerance: parameters.number("tolerance", 0.0..=10.0)?,
            moves: moves.map(|moves| moves as usize),
            move_cost: parameters.number_or("move-cost", 0.0..=1000.0, "auto")?,
            steps: steps.map(|steps| steps as u64),
            seed: parameters.integer("seed")?,
            background: Background::read(parameters)?,
        }))
    },
};

/// Changes tried per chunk, and at least and at most in all.
const STEPS_PER_CHUNK: u64 = 800;
const STEPS_MIN: u64 = 20_000;
const STEPS_MAX: u64 = 200_000;
/// The part of the gain that is possible in a phase which the search may take, and the usual time of a change, ns.
const GAIN_PART: f64 = 0.1;
const STEP_NS: f64 = 150.0;

/// Cost of moving all chunks, as a part of the time of a balanced phase; the second where moves are limited.
const MOVE_COST: f64 = 0.25;
const MOVE_COST_LIMITED: f64 = 0.025;
/// The least part of the time of a balanced phase that messages must be able to take for them to matter.
const TRAFFIC_MIN: f64 = 0.02;

/// A local search by loads, messages and memory.
///
/// ```
/// use lb_strategies::{Edge, LinkCost, LinkCosts, Strategy, strategies::comm::Comm, synthetic::Workload};
/// use lb_strategies::metrics::Crossing;
/// // Eight chunks of equal load on two ranks: each exchanges messages with a chunk of the other rank.
/// let mut snapshot = Workload::Equal.snapshot(8, 2, 1);
/// snapshot.edges = (0..4).map(|from| Edge { from, to: from + 4, messages: 10, bytes: 100_000 }).collect();
/// let link = LinkCost { ns_per_message: 1_000.0, ns_per_byte: 8.0 };
/// snapshot.links = LinkCosts { within_host: link, between_hosts: link };
/// let together = Comm::default().assign(&snapshot);
/// assert_eq!(Crossing::of(&snapshot, &together).bytes, 0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Comm {
    /// A rank must be above the least possible completion time by this part before anything moves.
    pub tolerance: f64,
    /// Largest number of chunks that move; none for no limit. Chunks on unavailable ranks move in any case.
    pub moves: Option<usize>,
    /// Cost of moving all chunks, as a part of the time of a balanced phase; none for a small one, and a smaller
    /// one if moves are limited.
    pub move_cost: Option<f64>,
    /// Number of changes that the search tries; none for the default of the parameter.
    pub steps: Option<u64>,
    /// Seed of the search.
    pub seed: u64,
    /// The model of a neighbour's load.
    pub background: Background,
}

impl Default for Comm {
    fn default() -> Self {
        Self {
            tolerance: 0.02,
            moves: None,
            move_cost: None,
            steps: None,
            seed: 1,
            background: Background::Share,
        }
    }
}

impl Comm {
    /// True if loads alone do not tell which placement is best: messages between ranks may take a part of the time that
    /// matters, or ranks have limits of memory.
    pub(crate) fn is_needed(&self, snapshot: &Snapshot, start: &Plan) -> bool {
        is_limited(snapshot) || most_traffic_ns(snapshot) > TRAFFIC_MIN * start.least_ns
    }

    /// True if the search may find a placement that is clearly better than this plan by loads alone.
    pub(crate) fn may_gain(&self, snapshot: &Snapshot, by_loads: &Plan, start: &Plan) -> bool {
        let by_loads_ns = max_ns(snapshot, &by_loads.assignment, self.background);
        let traffic_ns = by_loads_ns.saturating_sub(by_loads.max_ns());
        is_limited(snapshot) || traffic_ns as f64 > TRAFFIC_MIN * start.least_ns
    }

    /// Improves `start`, the present placement with unavailable ranks emptied, and the plan by loads alone. Nothing moves
    /// while no rank exceeds the least possible time by `tolerance`.
    pub(crate) fn improve(
        &self,
        snapshot: &Snapshot,
        start: &Plan,
        tolerance: f64,
        by_loads: impl FnOnce() -> Plan,
    ) -> Assignment {
        let within_memory =
            |plan: Assignment| plan.within_memory(snapshot).relieved(snapshot, self.background);
        let stay = within_memory(start.assignment.clone());
        let now_ns = max_ns(snapshot, &stay, self.background);
        if now_ns <= start.limit_ns(tolerance) {
            return stay;
        }
        let by_loads = within_memory(by_loads().assignment);
        let problem = Problem::new(snapshot, self.background, start.least_ns);
        let mut starts = vec![by_loads];
        if !snapshot.edges.is_empty() {
            let (regions, _) = Sfc { background: self.background, ..Sfc::default() }.cut(snapshot);
            starts.push(problem.balance_at_boundaries(stay.clone()));
            starts.push(within_memory(regions));
        }
        starts.retain(|plan| self.moves.is_none_or(|moves| Moved::of(snapshot, plan).chunks <= moves));
        starts.push(stay.clone());
        let steps = self.steps.unwrap_or_else(|| self.default_steps(snapshot, &starts, start.least_ns));
        let search = Search {
            steps: steps / starts.len() as u64,
            moves: self.moves.unwrap_or(usize::MAX),
            move_cost: self.move_cost.unwrap_or(if self.moves.is_some() {
                MOVE_COST_LIMITED
            } else {
                MOVE_COST
            }),
            seed: self.seed,
        };
        let found = search.best(&problem, &starts);
        let is_earlier = |plan: &Assignment| max_ns(snapshot, plan, self.background) < now_ns;
        found.filter(is_earlier).unwrap_or(stay)
    }

    /// The number of changes to try: more for more chunks, but unless moves are limited only as many as may pay in one
    /// phase.
    fn default_steps(&self, snapshot: &Snapshot, starts: &[Assignment], least_ns: f64) -> u64 {
        let chunks = snapshot.chunks.len() as u64;
        let most = (STEPS_PER_CHUNK * chunks).clamp(STEPS_MIN, STEPS_MAX).max(2 * chunks);
        if self.moves.is_some() {
            return most;
        }
        let times = starts.iter().map(|plan| max_ns(snapshot, plan, self.background));
        let gain_ns = times.min().map_or(0.0, |best_ns| best_ns as f64 - least_ns);
        most.min((gain_ns * GAIN_PART / STEP_NS) as u64)
    }
}

impl Strategy for Comm {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let refine = Refine { tolerance: self.tolerance, background: self.background, ..Refine::default() };
        let start = refine.start(snapshot);
        self.improve(snapshot, &start, self.tolerance, || refine.refine(snapshot, &start))
    }

    fn terms(&self) -> Terms {
        Terms { background: self.background, scatters: true, edges: EdgeUse::Always, ..Terms::default() }
    }
}

/// True if ranks have limits of memory.
fn is_limited(snapshot: &Snapshot) -> bool {
    snapshot.memory.as_ref().is_some_and(|memory| !memory.limits.is_empty())
}

/// Mean traffic of a rank if every message crossed ranks, ns.
fn most_traffic_ns(snapshot: &Snapshot) -> f64 {
    let Some(costs) = EdgeCosts::new(snapshot) else { return 0.0 };
    let first = snapshot.ranks.first().map_or(0, |rank| rank.host);
    let many_hosts = snapshot.ranks.iter().any(|rank| rank.host != first);
    let ns = |edge: &Edge| costs.both_ns(edge)[usize::from(many_hosts)];
    let sum: u64 = snapshot.edges.iter().filter(|edge| costs.connects(edge)).map(ns).sum();
    sum as f64 / snapshot.ranks.len().max(1) as f64
}

#[cfg(test)]
mod tests;
