//! The chunks of the donors, each donor ready to give up the best one for a receiver.
//!
//! A donor's chunks are cut into classes by falling load: a class holds the loads within `band` of its
//! heaviest. Classes are gone through from the heaviest; inside a class the order is that of the index, and
//! the chunk nearest the receiver goes first. With a band of 0 a class holds equal loads only, and the order
//! is the paper's: largest first.

use std::cmp::Reverse;
use std::ops::Range;

use super::Plan;
use crate::{ChunkId, Rank, Snapshot};

/// A chunk that may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) id: ChunkId,
    pub(crate) ticks: u64,
    /// Position in the snapshot.
    pub(crate) position: usize,
}

/// The offers of all donors in one vector, donor by donor.
pub(crate) struct Donors {
    offers: Vec<Offer>,
    /// Per rank; empty for a rank that is no donor.
    of: Vec<Classes>,
    band: f64,
}

/// The classes of one donor, heaviest first. Until the donor's first turn they are one unsorted range.
#[derive(Clone, Default)]
struct Classes {
    classes: Vec<Class>,
    unsorted: Range<usize>,
    /// Classes before this one are used up.
    first: usize,
}

#[derive(Clone)]
struct Class {
    lightest: u64,
    /// The remaining offers of the class, by rising id.
    offers: Range<usize>,
}

/// From which end of the index order a donor gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Lowest,
    Highest,
}

impl Donors {
    /// Collects the chunks that may leave the ranks marked in `is_donor`. Chunks without load stay: moving
    /// them is vain.
    pub(crate) fn gather(snapshot: &Snapshot, plan: &Plan, is_donor: &[bool], band: f64) -> Self {
        // A counting sort: sizes, then starts, then every offer to its place.
        let holds = |rank: Rank| is_donor.get(rank.index()).is_some_and(|donor| *donor);
        let mut of = vec![Classes::default(); is_donor.len()];
        for rank in plan.assignment.ranks.iter().filter(|rank| holds(**rank)) {
            of[rank.index()].unsorted.end += 1;
        }
        let mut total = 0;
        for classes in &mut of {
            let size = classes.unsorted.end;
            classes.unsorted = total..total;
            total += size;
        }
        let nothing = Offer { id: ChunkId { array: 0, key: 0 }, ticks: 0, position: 0 };
        let mut offers = vec![nothing; total];
        for (position, rank) in plan.assignment.ranks.iter().enumerate().filter(|(_, rank)| holds(**rank)) {
            let chunk = &snapshot.chunks[position];
            if chunk.migratable && chunk.ticks > 0 {
                let end = &mut of[rank.index()].unsorted.end;
                offers[*end] = Offer { id: chunk.id, ticks: plan.loads.cut(chunk.ticks), position };
                *end += 1;
            }
        }
        Self { offers, of, band }
    }

    /// Takes from `donor` the largest chunk of at most `room` ticks, and among its like the one nearest
    /// `end`.
    pub(crate) fn take(&mut self, donor: Rank, room: u64, end: End) -> Option<Offer> {
        let donor = &mut self.of[donor.index()];
        donor.sort(&mut self.offers, self.band);
        while donor.classes.get(donor.first).is_some_and(|class| class.offers.is_empty()) {
            donor.first += 1;
        }
        let classes = &mut donor.classes[donor.first..];
        let fitting = classes.partition_point(|class| class.lightest > room);
        classes[fitting..].iter_mut().find_map(|class| class.take(&mut self.offers, room, end))
    }
}

impl Classes {
    /// Sorts the donor's offers into classes, once.
    fn sort(&mut self, offers: &mut [Offer], band: f64) {
        let mut start = self.unsorted.start;
        let all = &mut offers[std::mem::take(&mut self.unsorted)];
        all.sort_unstable_by_key(|offer| (Reverse(offer.ticks), offer.id, offer.position));
        let mut rest = all;
        while let Some(heaviest) = rest.first() {
            let lowest = (heaviest.ticks as f64 * (1.0 - band)) as u64;
            let size = rest.partition_point(|offer| offer.ticks >= lowest.min(heaviest.ticks));
            let (class, lighter) = rest.split_at_mut(size);
            self.classes.push(Class { lightest: class[size - 1].ticks, offers: start..start + size });
            class.sort_unstable_by_key(|offer| (offer.id, offer.position));
            start += size;
            rest = lighter;
        }
    }
}

impl Class {
    /// Takes the fitting offer nearest `end`; those it skips close the gap.
    fn take(&mut self, offers: &mut [Offer], room: u64, end: End) -> Option<Offer> {
        let remaining = &mut offers[self.offers.clone()];
        match end {
            End::Lowest => {
                let found = remaining.iter().position(|offer| offer.ticks <= room)?;
                remaining[..=found].rotate_right(1);
                self.offers.start += 1;
                Some(remaining[0])
            }
            End::Highest => {
                let found = remaining.iter().rposition(|offer| offer.ticks <= room)?;
                remaining[found..].rotate_left(1);
                self.offers.end -= 1;
                remaining.last().copied()
            }
        }
    }
}
