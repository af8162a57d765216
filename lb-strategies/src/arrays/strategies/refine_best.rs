//! `refine-best` tries several refinements, takes the best, and improves it by exchanges.
//!
//! With coarse chunks, `refine` stops at its tolerance. `refine-best` tries it from several levels, with and without
//! the band, and beyond the tolerance. The plan with the least predicted maximum wins; of equal plans, the one that
//! moves least. Then exchanges go on while they help. `refine` is among the candidates, so the result is never worse.
//! It costs several times the time to decide, and more moves.

use super::refine::{Donors, PARAMETERS, Plan, Refine, swap_chunks};
use crate::arrays::metrics::Moved;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Strategy, Terms};
use crate::entry::Entry;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "refine-best",
    summary: "refine with several tolerances, then exchanges; the best plan wins",
    parameters: PARAMETERS,
    build: |parameters| Ok(Box::new(RefineBest { refine: Refine::from_parameters(parameters)? })),
};

/// Makes several refinements and keeps the best.
///
/// ```
/// use lb_strategies::{Strategy, metrics::max_ns, strategies::{refine::Refine, refine_best::RefineBest}};
/// use lb_strategies::synthetic::Workload;
/// // Nine chunks a rank, so coarse that `refine` is content with half of its tolerance.
/// let snapshot = Workload::HotSpots.snapshot(288, 32, 1);
/// let plain = Refine::default();
/// let best = RefineBest { refine: plain };
/// let [plain_ns, best_ns] = [plain.assign(&snapshot), best.assign(&snapshot)]
///     .map(|assignment| max_ns(&snapshot, &assignment, plain.background));
/// assert!(best_ns < plain_ns);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RefineBest {
    /// The refinement to vary. Its tolerance also decides whether anything moves.
    pub refine: Refine,
}

impl RefineBest {
    /// The refinements to try beside the plain one.
    fn variants(&self, imbalance: f64) -> Vec<Refine> {
        let mut variants = Vec::new();
        for band in [self.refine.band, 0.0] {
            for settle in [self.refine.settle, 0.02, self.refine.tolerance, 4.0 * self.refine.tolerance] {
                if settle < imbalance {
                    variants.push(Refine { tolerance: imbalance, settle, band, ..self.refine });
                }
            }
        }
        variants
    }
}

impl Strategy for RefineBest {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let start = self.refine.start(snapshot);
        if !self.refine.is_due(&start) {
            return start.assignment.within_memory_or_stay(snapshot, self.refine.background);
        }
        let cost = |plan: &Plan| (plan.max_ns(), Moved::of(snapshot, &plan.assignment).chunks);
        let mut donors = Donors::gather(snapshot, &start, start.limit_ns(0.0));
        let variants = self.variants(start.level()).into_iter().map(|variant| {
            let mut plan = start.clone();
            variant.offload(&mut plan, &mut donors);
            plan
        });
        // `min_by_key` returns the first of equal plans, so the plain plan wins.
        let plans = std::iter::once(self.refine.refine(snapshot, &start)).chain(variants);
        let mut best = plans.min_by_key(cost).expect("there is the plain one");
        let settled_ns = best.limit_ns(self.refine.settle);
        swap_chunks(snapshot, &mut best, settled_ns);
        best.assignment.within_memory_or_stay(snapshot, self.refine.background)
    }

    fn terms(&self) -> Terms {
        Terms { background: self.refine.background, scatters: true, ..Terms::default() }
    }
}
