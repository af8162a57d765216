//! Finds the chunk that a donor (an overloaded rank) should give to a receiver.
//!
//! The chunks of a donor are divided into classes by falling load. A class holds the loads within `band` of its
//! heaviest, and the heaviest class goes first. Within a class, the chunk with the index nearest to the receiver goes
//! first. With a band of 0, the order is the paper's: largest first.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;

use super::Plan;
use crate::arrays::snapshot::Snapshot;
use crate::rank::Rank;

/// A chunk that may leave its donor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) ticks: u64,
    /// Position in the snapshot.
    pub(crate) position: usize,
}

/// The candidates of all donors in one vector: donor by donor, each by falling load.
///
/// They can be used for every plan that starts from the same placement: a chunk that its donor has given away is
/// skipped.
pub(crate) struct Donors<'a> {
    snapshot: &'a Snapshot,
    candidates: Vec<Candidate>,
    /// By rank; empty for a rank that is no donor.
    of: Vec<DonorQueue>,
}

/// The candidates of one donor.
#[derive(Clone, Default)]
struct DonorQueue {
    all: Range<usize>,
    /// The rest of the present class, by rising index.
    class: VecDeque<Candidate>,
    /// The chunks of the lighter classes.
    lighter: Range<usize>,
}

/// The end of the index order from which a donor gives chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexEnd {
    Lowest,
    Highest,
}

impl<'a> Donors<'a> {
    /// Collects the movable chunks of ranks that finish after `limit_ns`. Chunks without load stay, because moving them
    /// gains nothing.
    pub(crate) fn gather(snapshot: &'a Snapshot, plan: &Plan, limit_ns: u64) -> Self {
        // A counting sort: count, compute the starts, then place every candidate.
        let mut is_donor = vec![false; snapshot.ranks.len()];
        for &rank in &plan.loads.available {
            is_donor[rank.index()] = plan.headroom(rank, limit_ns).is_none();
        }
        let holds = |rank: Rank| is_donor.get(rank.index()).is_some_and(|donor| *donor);
        let mut of = vec![DonorQueue::default(); is_donor.len()];
        for rank in plan.assignment.ranks.iter().filter(|rank| holds(**rank)) {
            of[rank.index()].all.end += 1;
        }
        let mut total = 0;
        for held in &mut of {
            let size = held.all.end;
            held.all = total..total;
            total += size;
        }
        let mut offers = vec![Candidate::default(); total];
        for (position, rank) in plan.assignment.ranks.iter().enumerate().filter(|(_, rank)| holds(**rank)) {
            let chunk = &snapshot.chunks[position];
            if chunk.migratable && chunk.ticks > 0 {
                let end = &mut of[rank.index()].all.end;
                offers[*end] = Candidate { ticks: plan.loads.clamp_load(chunk.ticks), position };
                *end += 1;
            }
        }
        for held in &of {
            offers[held.all.clone()].sort_unstable_by_key(|offer| Reverse(offer.ticks));
        }
        Self { snapshot, candidates: offers, of }
    }

    /// Restarts `donor` with its heaviest class.
    pub(crate) fn reset(&mut self, donor: Rank) {
        let held = &mut self.of[donor.index()];
        held.class.clear();
        held.lighter = held.all.clone();
    }

    /// Takes from `donor` the largest chunk of at most `room` ticks that it holds in `plan`. Of chunks within `band` of
    /// each other, it takes the one nearest to `end`.
    ///
    /// A chunk that does not fit is skipped until [`Donors::reset`]. So `room` must never be larger than in the calls
    /// before.
    pub(crate) fn take(
        &mut self,
        plan: &Plan,
        donor: Rank,
        room: u64,
        end: IndexEnd,
        band: f64,
    ) -> Option<Candidate> {
        let held = &mut self.of[donor.index()];
        loop {
            while let Some(offer) = held.take(room, end) {
                if plan.assignment.ranks[offer.position] == donor {
                    return Some(offer);
                }
            }
            let lighter = &self.candidates[held.lighter.clone()];
            let heaviest = lighter.first()?.ticks;
            let lowest = ((heaviest as f64 * (1.0 - band)) as u64).min(heaviest);
            let size = lighter.iter().take_while(|offer| offer.ticks >= lowest).count();
            held.lighter.start += size;
            held.class.clear();
            held.class.extend(lighter[..size].iter().filter(|offer| offer.ticks <= room));
            let id = |offer: &Candidate| (self.snapshot.chunks[offer.position].id, offer.position);
            held.class.make_contiguous().sort_unstable_by_key(id);
        }
    }
}

impl DonorQueue {
    /// Takes the candidate of the class that fits and is nearest to `end`.
    fn take(&mut self, room: u64, end: IndexEnd) -> Option<Candidate> {
        let fits = |offer: &Candidate| offer.ticks <= room;
        let found = match end {
            IndexEnd::Lowest => self.class.iter().position(fits),
            IndexEnd::Highest => self.class.iter().rposition(fits),
        };
        self.class.remove(found?)
    }
}
