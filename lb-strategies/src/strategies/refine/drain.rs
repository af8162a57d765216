//! The loop of Algorithm 1 at one level: every available rank above a limit is a donor, every one below it, or
//! below a lower one, a receiver.

use std::cmp::Reverse;

use priority_queue::PriorityQueue;
use rustc_hash::FxBuildHasher;

use super::Plan;
use super::donors::{Donors, End};
use crate::{Rank, Snapshot};

/// Ranks by a figure, largest first; of equal ones the lowest rank.
type Queue = PriorityQueue<Rank, (u64, Reverse<Rank>), FxBuildHasher>;

/// Who gives and who receives.
pub(super) struct Limits {
    /// Ranks that finish later give chunks away until they do not.
    pub(super) donor_ns: u64,
    /// Others receive chunks for as long as they finish by this; not above the other limit.
    pub(super) receiver_ns: u64,
}

/// Moves chunks off ranks that finish late, without letting another one finish late.
///
/// Says whether no rank is left that should give.
pub(super) fn drain(snapshot: &Snapshot, plan: &mut Plan, limits: &Limits, band: f64) -> bool {
    // `overHeap` and `underSet` of the paper, the first by completion time, the second by room.
    let mut over = Queue::default();
    let mut under = Queue::default();
    let mut is_donor = vec![false; snapshot.ranks.len()];
    for &rank in &plan.loads.available {
        if room(plan, rank, limits.donor_ns).is_none() {
            is_donor[rank.index()] = true;
            over.push(rank, (plan.loads.completion_ns(rank), Reverse(rank)));
        } else if let Some(room @ 1..) = room(plan, rank, limits.receiver_ns) {
            under.push(rank, (room, Reverse(rank)));
        }
    }
    if over.is_empty() {
        return true;
    }

    let mut donors = Donors::gather(snapshot, plan, &is_donor, band);
    let mut all_settled = true;
    while let (Some((&donor, _)), Some((&receiver, &(receiver_room, _)))) = (over.peek(), under.peek()) {
        let end = if receiver > donor { End::Highest } else { End::Lowest };
        let Some(chunk) = donors.take(donor, receiver_room, end) else {
            over.pop();
            all_settled = false;
            continue;
        };
        plan.transfer(chunk.position, chunk.ticks, receiver);
        under.change_priority(&receiver, (receiver_room - chunk.ticks, Reverse(receiver)));
        if room(plan, donor, limits.donor_ns).is_none() {
            over.change_priority(&donor, (plan.loads.completion_ns(donor), Reverse(donor)));
            continue;
        }
        over.pop();
        if let Some(room) = room(plan, donor, limits.receiver_ns) {
            under.push(donor, (room, Reverse(donor)));
        }
    }
    all_settled && over.is_empty()
}

/// The ticks a rank can take and still finish by the limit; `None` if it already does not.
fn room(plan: &Plan, rank: Rank, limit_ns: u64) -> Option<u64> {
    plan.loads.ticks_by(rank, limit_ns).checked_sub(plan.loads.ticks[rank.index()])
}
