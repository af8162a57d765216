//! The loop of Algorithm 1 at one level: every available rank above a limit is a donor, every one below it, or
//! below a lower one, a receiver.

use std::collections::BinaryHeap;

use super::Plan;
use super::donors::{Donors, End};
use crate::rank::Rank;

/// Ranks by a figure, largest first; of equal ones the lowest rank.
type Queue = BinaryHeap<Entry>;

/// A figure and a rank, in one integer: heaps spend their time comparing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(figure: u64, rank: Rank) -> Self {
        Self(u128::from(figure) << 32 | u128::from(!rank.0))
    }

    fn figure(self) -> u64 {
        (self.0 >> 32) as u64
    }

    fn rank(self) -> Rank {
        Rank(!(self.0 as u32))
    }
}

/// The completion times above which ranks give and up to which they receive.
pub(super) struct Limits {
    /// Ranks that finish later give chunks away until they do not.
    pub(super) donor_ns: u64,
    /// Others receive chunks for as long as they finish by this; not above the other limit.
    pub(super) receiver_ns: u64,
}

/// Moves chunks off ranks that finish late, without letting another one finish late.
///
/// Says whether no rank is left that should give.
pub(super) fn drain(plan: &mut Plan, donors: &mut Donors<'_>, limits: &Limits, band: f64) -> bool {
    // `overHeap` and `underSet` of the paper, the first by completion time, the second by room. The most room never
    // grows: a rank that becomes a receiver has less than it just gave.
    let (mut over, mut under) = (Queue::default(), Queue::default());
    for &rank in &plan.loads.available {
        if plan.room(rank, limits.donor_ns).is_none() {
            donors.offer_all(rank);
            over.push(Entry::new(plan.loads.completion_ns(rank), rank));
        } else if let Some(room @ 1..) = plan.room(rank, limits.receiver_ns) {
            under.push(Entry::new(room, rank));
        }
    }

    let mut all_settled = true;
    while let (Some(latest), Some(emptiest)) = (over.peek(), under.peek()) {
        let (donor, receiver, receiver_room) = (latest.rank(), emptiest.rank(), emptiest.figure());
        let end = if receiver > donor { End::Highest } else { End::Lowest };
        let Some(chunk) = donors.take(plan, donor, receiver_room, end, band) else {
            over.pop();
            all_settled = false;
            continue;
        };
        plan.transfer(chunk.position, chunk.ticks, receiver);
        lower_top(&mut under, receiver_room - chunk.ticks);
        if plan.room(donor, limits.donor_ns).is_none() {
            lower_top(&mut over, plan.loads.completion_ns(donor));
            continue;
        }
        over.pop();
        if let Some(room) = plan.room(donor, limits.receiver_ns) {
            under.push(Entry::new(room, donor));
        }
    }
    all_settled && over.is_empty()
}

fn lower_top(queue: &mut Queue, figure: u64) {
    if let Some(mut top) = queue.peek_mut() {
        *top = Entry::new(figure, top.rank());
    }
}
