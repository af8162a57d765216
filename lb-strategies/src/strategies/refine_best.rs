//! `refine-best`: the best of several refinements, improved by exchanges.
//!
//! Plain refinement stalls where chunks are coarse: no chunk fits below the level. Here it is tried from
//! several levels, with and without the band, and on beyond the tolerance; then, while it helps, the latest
//! rank gives a chunk to one of the earliest, or swaps one for one. The plan with the least predicted maximum
//! wins, of equal ones the one that moves least. Plain `refine` is among the candidates, so the result is
//! never worse; it costs several times the time to decide.

mod exchange;

use super::refine::{PARAMETERS, Plan, Refine};
use crate::metrics::Moved;
use crate::{Assignment, Background, Snapshot, Strategy, StrategyEntry};

/// The table's line.
pub const ENTRY: StrategyEntry = StrategyEntry {
    name: "refine-best",
    summary: "refine from several levels, then exchanges; the best plan wins",
    parameters: PARAMETERS,
    build: |parameters| Ok(Box::new(RefineBest { refine: Refine::from_parameters(parameters)? })),
};

/// Several refinements, of which the best is kept.
///
/// ```
/// use lb_strategies::{Strategy, metrics::max_ns, strategies::{refine::Refine, refine_best::RefineBest}};
/// use lb_strategies::synthetic::Workload;
/// // Three chunks a rank: too coarse to settle, or to divide well by moves alone.
/// let snapshot = Workload::Uniform.snapshot(30, 10, 1);
/// let plain = Refine::default();
/// let best = RefineBest { refine: plain };
/// let [plain_ns, best_ns] = [plain.assign(&snapshot), best.assign(&snapshot)]
///     .map(|assignment| max_ns(&snapshot, &assignment, plain.background));
/// assert!(best_ns < plain_ns);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RefineBest {
    /// The refinement to vary; its tolerance also decides whether anything happens.
    pub refine: Refine,
}

impl RefineBest {
    /// The refinements to try; the first is the plain one.
    fn candidates(&self, imbalance: f64) -> Vec<Refine> {
        let mut candidates = vec![self.refine];
        for band in [self.refine.band, 0.0] {
            for settle in [self.refine.settle, 0.02, self.refine.tolerance, 4.0 * self.refine.tolerance] {
                if settle < imbalance {
                    candidates.push(Refine { tolerance: imbalance, settle, band, ..self.refine });
                }
            }
        }
        candidates
    }
}

impl Strategy for RefineBest {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let start = Plan::evacuated(snapshot, self.refine.background);
        if !self.refine.is_due(&start) {
            return start.assignment;
        }
        let cost = |plan: &Plan| (plan.max_ns(), Moved::of(snapshot, &plan.assignment).chunks);
        let imbalance = start.max_ns() as f64 / start.fair_ns - 1.0;
        let plans = self.candidates(imbalance).into_iter().map(|candidate| {
            let mut plan = start.clone();
            candidate.refine(snapshot, &mut plan);
            plan
        });
        // `min_by_key` keeps the first of equal plans, the plain one before the others.
        let mut best = plans.min_by_key(cost).unwrap_or(start);
        let settled_ns = (best.fair_ns * (1.0 + self.refine.settle)) as u64;
        exchange::exchange(snapshot, &mut best, settled_ns);
        best.assignment
    }

    fn background(&self) -> Background {
        self.refine.background
    }
}
