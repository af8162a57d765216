//! The loop of Algorithm 1 at one level: every available rank above the limit is a donor, every other one a
//! receiver.

use std::cmp::Reverse;

use priority_queue::PriorityQueue;
use rustc_hash::FxBuildHasher;

use super::Plan;
use super::donors::{Donors, End};
use crate::{Rank, Snapshot};

/// Ranks by a figure, largest first; of equal ones the lowest rank.
type Queue = PriorityQueue<Rank, (u64, Reverse<Rank>), FxBuildHasher>;

/// Moves chunks off ranks that finish after `limit_ns`, without letting another one finish after it.
///
/// Says whether every rank now finishes by the limit.
pub(super) fn drain(snapshot: &Snapshot, plan: &mut Plan, limit_ns: u64, band: f64) -> bool {
    // `overHeap` and `underSet` of the paper, the first by completion time, the second by room.
    let mut over = Queue::default();
    let mut under = Queue::default();
    let mut is_donor = vec![false; snapshot.ranks.len()];
    for &rank in &plan.loads.available {
        match room(plan, rank, limit_ns) {
            Some(0) => {}
            Some(room) => drop(under.push(rank, (room, Reverse(rank)))),
            None => {
                is_donor[rank.index()] = true;
                over.push(rank, (plan.loads.completion_ns(rank), Reverse(rank)));
            }
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
        match room(plan, donor, limit_ns) {
            None => drop(over.change_priority(&donor, (plan.loads.completion_ns(donor), Reverse(donor)))),
            Some(room) => {
                over.pop();
                under.push(donor, (room, Reverse(donor)));
            }
        }
    }
    all_settled && over.is_empty()
}

/// The ticks a rank can take and still finish by the limit; `None` if it already does not.
fn room(plan: &Plan, rank: Rank, limit_ns: u64) -> Option<u64> {
    plan.loads.ticks_by(rank, limit_ns).checked_sub(plan.loads.ticks[rank.index()])
}
