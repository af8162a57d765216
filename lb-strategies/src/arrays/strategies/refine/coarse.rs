//! Makes a new plan where Algorithm 1 stalls, because no donor has a chunk small enough for a receiver.
//!
//! Three plans are tried, each with more moves than the one before. Each is followed by exchanges between the latest
//! rank and the earliest ranks. The first plan that reaches the tolerance is taken:
//!
//! 1. Algorithm 1 with the largest chunks first, down to half of the tolerance. If donors are left, the level doubles
//!    beyond the tolerance.
//! 2. The same, down to the tolerance.
//! 3. Packing as GreedyRefineLB of Charm++ does: heaviest first, and a chunk that does not fit goes where it finishes first. Only
//!    packing clears a rank for a chunk that nearly fills a rank.
//!
//! If no plan reaches the tolerance, the plan that ends first is taken. Of plans that end at about the same time, the
//! one with the fewest moves wins. Plans aim at half of the tolerance, because noise would start another refinement in
//! the next phase at the tolerance itself.

use super::{Donors, Plan, Refine, swap_chunks};
use crate::arrays::finish_first::{FinishFirst, by_falling_load};
use crate::arrays::loads::Loads;
use crate::arrays::metrics::Moved;
use crate::arrays::snapshot::{Assignment, Snapshot};

/// The part of the tolerance that plans aim at.
const AIM: f64 = 0.5;
/// Algorithm 1 drains donors at most to twice the least time. Exchanges and packing handle later ranks.
const LEVEL_MAX: f64 = 1.0;

/// The best plan for coarse chunks from `start`, never worse than the `stalled` plan of Algorithm 1.
pub(super) fn refine(
    refine: &Refine,
    snapshot: &Snapshot,
    start: &Plan,
    stalled: Plan,
    mut donors: Donors<'_>,
) -> Plan {
    let aim = refine.settle.max(AIM * refine.tolerance).min(refine.tolerance);
    let [least_ns, aim_ns, goal_ns] = [0.0, aim, refine.tolerance].map(|level| start.limit_ns(level));

    let mut refined = |settle| {
        let mut plan = start.clone();
        let tolerance = start.level().min(LEVEL_MAX);
        Refine { settle, tolerance, band: 0.0, ..*refine }.offload(&mut plan, &mut donors);
        plan
    };

    let mut plans = vec![stalled];
    for settle in [Some(aim), Some(refine.tolerance), None] {
        let mut plan = match settle {
            Some(settle) => refined(settle),
            None => packed(refine, snapshot, start, aim_ns),
        };
        swap_chunks(snapshot, &mut plan, aim_ns);
        if plan.max_ns() <= goal_ns {
            return plan;
        }
        plans.push(plan);
    }
    let step_ns = (aim_ns - least_ns).max(1);
    let cost = |plan: &Plan| (plan.max_ns() / step_ns, Moved::of(snapshot, &plan.assignment).chunks);
    plans.into_iter().min_by_key(cost).expect("the stalled one at least")
}

/// Chunks are placed heaviest first. A chunk stays if its rank finishes by `limit_ns`, else it goes where it finishes
/// first.
fn packed(refine: &Refine, snapshot: &Snapshot, start: &Plan, limit_ns: u64) -> Plan {
    let mut plan = Plan { loads: start.pinned(snapshot, refine.background), ..start.clone() };
    let order = by_falling_load(snapshot);
    pack(snapshot, &order, &mut plan.loads, &mut plan.assignment, limit_ns);
    plan
}

/// Places chunks in `order` and adds them to `loads`. A chunk stays where `assignment` has it if that rank finishes by
/// `limit_ns` with it. Else the chunk goes where it finishes first.
fn pack(
    snapshot: &Snapshot,
    order: &[(usize, u64)],
    loads: &mut Loads,
    assignment: &mut Assignment,
    limit_ns: u64,
) {
    let mut finish_first = FinishFirst::new(loads);
    for &(position, ticks) in order {
        let ticks = loads.clamp_load(ticks);
        let home = assignment.ranks[position];
        let usable = snapshot.ranks.get(home.index()).is_some_and(|rank| rank.available);
        if usable && loads.completion_with(home, ticks) <= limit_ns {
            loads.ticks[home.index()] += ticks;
        } else if let Some(rank) = finish_first.place(loads, ticks) {
            assignment.ranks[position] = rank;
        }
    }
}
