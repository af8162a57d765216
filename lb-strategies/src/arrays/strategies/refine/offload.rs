//! Runs the loop of Algorithm 1 at one level. Every available rank above a limit is a donor. Every available rank below
//! this limit, or below a lower one, is a receiver.
//!
//! `overHeap` of the paper is a priority queue of ranks whose completion times change. `underSet` is a plain heap,
//! because only its top changes, by falling with each move. A queue with an index by rank takes 1.6 to 3.5 times as
//! long there (10^6 chunks on 10^4 ranks).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use priority_queue::PriorityQueue;
use rustc_hash::FxBuildHasher;

use super::Plan;
use super::donors::{Donors, IndexEnd};
use crate::rank::Rank;

/// Ranks by completion time, ns, the latest first; of equal ranks the lowest. The order is total, so it hides the hash
/// order.
type OverHeap = PriorityQueue<Rank, (u64, Reverse<Rank>), FxBuildHasher>;

/// Headroom and rank in one integer, which is fast to compare. The most headroom comes first; of equal ranks the
/// lowest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct HeadroomKey(u128);

impl HeadroomKey {
    fn new(room: u64, rank: Rank) -> Self {
        Self(u128::from(room) << 32 | u128::from(!rank.0))
    }

    fn headroom(self) -> u64 {
        (self.0 >> 32) as u64
    }

    fn rank(self) -> Rank {
        Rank(!(self.0 as u32))
    }
}

/// The limits of completion times for donors and receivers.
pub(super) struct Limits {
    /// Ranks that finish later give chunks away until they finish by this time.
    pub(super) donor_ns: u64,
    /// Receivers get chunks as long as they finish by this time, which is at most `donor_ns`.
    pub(super) receiver_ns: u64,
}

/// Moves chunks off ranks that finish late, so that no other rank finishes late. Returns true if no donor is left.
pub(super) fn offload(plan: &mut Plan, donors: &mut Donors<'_>, limits: &Limits, band: f64) -> bool {
    // The largest headroom never grows, because a donor that becomes a receiver has less room than the chunk it gave.
    let (mut over, mut under) = (OverHeap::default(), BinaryHeap::new());
    for &rank in &plan.loads.available {
        if plan.headroom(rank, limits.donor_ns).is_none() {
            donors.reset(rank);
            over.push(rank, (plan.loads.completion_ns(rank), Reverse(rank)));
        } else if let Some(room @ 1..) = plan.headroom(rank, limits.receiver_ns) {
            under.push(HeadroomKey::new(room, rank));
        }
    }

    let mut all_settled = true;
    while let (Some((&donor, _)), Some(&emptiest)) = (over.peek(), under.peek()) {
        let (receiver, receiver_room) = (emptiest.rank(), emptiest.headroom());
        let end = if receiver > donor { IndexEnd::Highest } else { IndexEnd::Lowest };
        let Some(chunk) = donors.take(plan, donor, receiver_room, end, band) else {
            over.pop();
            all_settled = false;
            continue;
        };
        plan.transfer(chunk.position, chunk.ticks, receiver);
        lower_top(&mut under, receiver_room - chunk.ticks);
        if plan.headroom(donor, limits.donor_ns).is_none() {
            over.change_priority(&donor, (plan.loads.completion_ns(donor), Reverse(donor)));
            continue;
        }
        over.pop();
        if let Some(room) = plan.headroom(donor, limits.receiver_ns) {
            under.push(HeadroomKey::new(room, donor));
        }
    }
    all_settled && over.is_empty()
}

fn lower_top(under: &mut BinaryHeap<HeadroomKey>, room: u64) {
    if let Some(mut top) = under.peek_mut() {
        *top = HeadroomKey::new(room, top.rank());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arrays::snapshot::Snapshot;
    use crate::arrays::strategy::Background;
    use crate::arrays::synthetic::Workload;

    /// The same loop without heaps, which searches all ranks for each move.
    fn rescanned(plan: &mut Plan, donors: &mut Donors<'_>, limits: &Limits, band: f64) -> bool {
        let (mut over, mut under) = (Vec::new(), Vec::new());
        for rank in plan.loads.available.clone() {
            if plan.headroom(rank, limits.donor_ns).is_none() {
                donors.reset(rank);
                over.push(rank);
            } else if plan.headroom(rank, limits.receiver_ns).is_some_and(|room| room > 0) {
                under.push(rank);
            }
        }
        let mut all_settled = true;
        loop {
            let latest =
                over.iter().copied().max_by_key(|&rank| (plan.loads.completion_ns(rank), Reverse(rank)));
            let room = |rank| plan.headroom(rank, limits.receiver_ns).unwrap_or(0);
            let emptiest = under.iter().copied().max_by_key(|&rank| (room(rank), Reverse(rank)));
            let (Some(donor), Some(receiver)) = (latest, emptiest) else { break };
            let end = if receiver > donor { IndexEnd::Highest } else { IndexEnd::Lowest };
            let chunk = donors.take(plan, donor, room(receiver), end, band);
            if let Some(chunk) = chunk {
                plan.transfer(chunk.position, chunk.ticks, receiver);
                if plan.headroom(donor, limits.donor_ns).is_none() {
                    continue;
                }
            }
            over.retain(|rank| *rank != donor);
            all_settled &= chunk.is_some();
            if chunk.is_some() && plan.headroom(donor, limits.receiver_ns).is_some() {
                under.push(donor);
            }
        }
        all_settled && over.is_empty()
    }

    /// Many loads and ranks are equal, so ties occur often.
    fn snapshots() -> impl Strategy<Value = Snapshot> {
        let chunk = (1..5_u64, any::<prop::sample::Index>(), any::<bool>());
        let ranks = prop::collection::vec(prop::sample::select(vec![0.5, 1.0, 1.0, 2.0]), 2..12);
        (prop::collection::vec(chunk, 2..60), ranks).prop_map(|(chunks, speeds)| {
            let mut snapshot = Workload::Equal.snapshot(chunks.len().max(speeds.len()), speeds.len(), 1);
            snapshot.chunks.truncate(chunks.len());
            for (chunk, (ticks, rank, crowded)) in snapshot.chunks.iter_mut().zip(chunks) {
                let among = if crowded { 2 } else { speeds.len() };
                (chunk.ticks, chunk.rank) = (ticks * 1_000_000, Rank(rank.index(among) as u32));
            }
            snapshot.ranks.iter_mut().zip(speeds).for_each(|(rank, speed)| rank.speed = speed);
            snapshot
        })
    }

    proptest! {
        #[test]
        fn the_queues_find_what_a_look_through_all_ranks_does(
            snapshot in snapshots(), level in 0.0..0.5_f64, only_light_receive: bool, band in prop::sample::select(vec![0.0, 0.5]),
        ) {
            let start = Plan::evacuated(&snapshot, Background::Share);
            let receiver_level = if only_light_receive { -level } else { level };
            let limits = Limits { donor_ns: start.limit_ns(level), receiver_ns: start.limit_ns(receiver_level) };
            let run = |drain: fn(&mut Plan, &mut Donors<'_>, &Limits, f64) -> bool| {
                let (mut plan, mut donors) = (start.clone(), Donors::gather(&snapshot, &start, limits.donor_ns));
                let settled = drain(&mut plan, &mut donors, &limits, band);
                (settled, plan.assignment, plan.loads.ticks)
            };
            prop_assert_eq!(run(offload), run(rescanned));
        }
    }
}
