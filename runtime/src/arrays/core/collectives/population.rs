//! Population count: finds out that *every* chunk of an array has reported to a reduction or a sync. Rank 0 uses it for
//! both, because members come and go meanwhile. A plain count can look complete too early, because a new chunk's
//! report may overtake the report that announces the new chunk.
//!
//! # Rules
//! 1. *Births.* Each report has the number of children that its sender has inserted since its last report.
//! 2. *Generations.* Each report has the generation of its sender: 0 for old members. A chunk born since the last
//!    completed count has the generation of its parent plus one.
//! 3. *Completeness.* A count is complete when all old members have reported, and in each later generation as many as
//!    the generation before has announced.
//! 4. *Other arrays.* A chunk of another array cannot announce a new chunk, since it does not report to the same
//!    counts. Either this chunk names a member as the parent, and the member inserts the new chunk (see
//!    [`Payload::Insertion`](crate::arrays::core::routing::envelope::Payload)). Or the new chunk goes through rank 0,
//!    which completes the counts. It then becomes an old member of the first count that is not complete.
//!
//! # Proof that no member is missing from a complete count
//! 1. The number of old members (generation 0) is known: it is the population after the last complete count.
//! 2. Once generation `d` is complete, all births that it announces are known, so generation `d + 1` can be checked.
//!
//! # Cost
//!
//! Tallies add up in any order and in any grouping, so they can travel through a tree and across migrations. For each
//! generation a tally stores only one difference: its reports *minus* the births that the generation before has
//! announced. A difference of 0 is not stored. A chain of thousands of chunks that insert a successor and leave takes
//! two numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The sum of the reports to one count so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Reports minus announced births, for the generations where these differ.
    surplus: BTreeMap<u32, i64>,
    heard: u64,
    born: u64,
    left: u64,
}

impl Tally {
    pub(crate) fn of(report: MemberReport) -> Tally {
        let mut tally =
            Tally { heard: 1, born: report.born.into(), left: report.leaving.into(), ..Tally::default() };
        tally.add(report.generation, 1);
        tally.add(report.generation + 1, -i64::from(report.born));
        tally
    }

    /// Adds another tally of the same count.
    pub(crate) fn merge(&mut self, other: &Tally) {
        for (&generation, &surplus) in &other.surplus {
            self.add(generation, surplus);
        }
        self.heard += other.heard;
        self.born += other.born;
        self.left += other.left;
    }

    fn add(&mut self, generation: u32, surplus: i64) {
        let total = surplus + self.surplus.remove(&generation).unwrap_or(0);
        if total != 0 {
            self.surplus.insert(generation, total);
        }
    }

    /// Number of reports so far, of all generations.
    pub(crate) fn heard(&self) -> u64 {
        self.heard
    }

    /// True if any report came from a member that did not leave with the report.
    pub(crate) fn has_members(&self) -> bool {
        self.heard > self.left
    }

    /// Number of reports that are known to be outstanding, given the population before this count.
    pub(crate) fn missing(&self, population: u64) -> u64 {
        let old = self.surplus.get(&0).map_or(0, |old| old.unsigned_abs());
        let announced = self.surplus.iter().filter(|&(&generation, &surplus)| generation > 0 && surplus < 0);
        let newcomers: u64 = announced.map(|(_, surplus)| surplus.unsigned_abs()).sum();
        population.saturating_sub(old) + newcomers
    }

    /// The population after this count if it is complete, given the population before it.
    pub(crate) fn complete(&self, population: u64) -> Option<u64> {
        // Old members are not announced, so only generation 0 may have a surplus.
        let missing = self.surplus.iter().any(|(&generation, _)| generation > 0);
        let old = self.surplus.get(&0).copied().unwrap_or(0);
        (!missing && u64::try_from(old) == Ok(population)).then(|| self.population_after(population))
    }

    /// The population after this count according to the reports so far, given the population before it.
    pub(crate) fn population_after(&self, population: u64) -> u64 {
        (population + self.born).saturating_sub(self.left)
    }
}

/// The next count of a member that has left, which reports to no count.
const LEFT: u64 = u64::MAX;

/// The report of one member in one count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberReport {
    pub(crate) sequence: u64,
    pub(crate) generation: u32,
    pub(crate) born: u32,
    pub(crate) leaving: bool,
}

/// The position of a member in a series of counts. It travels with the chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Membership {
    /// The count this member reports to next.
    pub(crate) next: u64,
    generation: u32,
    born: u32,
}

impl Membership {
    /// Reports to the next count.
    pub(crate) fn report(&mut self) -> MemberReport {
        let report = MemberReport {
            sequence: self.next,
            generation: self.generation,
            born: self.born,
            leaving: false,
        };
        *self = Membership { next: self.next + 1, generation: 0, born: 0 };
        report
    }

    /// Makes the last report: the member takes part in no later count.
    pub(crate) fn leave(&mut self) -> MemberReport {
        let report = MemberReport { leaving: true, ..self.report() };
        *self = Membership { next: LEFT, generation: 0, born: 0 };
        report
    }

    /// True once the member has left. Neither the member nor children that it inserts afterwards report to a count.
    pub(crate) fn has_left(&self) -> bool {
        self.next == LEFT
    }

    /// The membership of a chunk that is admitted without a parent, as if it had been a member at the last count.
    pub(crate) fn admitted(next: u64) -> Membership {
        Membership { next, generation: 0, born: 0 }
    }

    /// The membership of a child inserted now: it joins at the count its parent reports to next.
    pub(crate) fn child(&mut self) -> Membership {
        if self.has_left() {
            return *self;
        }
        self.born += 1;
        Membership { next: self.next, generation: self.generation + 1, born: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::encoded_bytes;
    use proptest::prelude::*;

    #[test]
    fn an_empty_population_is_complete_at_once() {
        assert_eq!(Tally::default().complete(0), Some(0));
        assert_eq!(Tally::default().complete(1), None);
    }

    #[test]
    fn a_grandchild_heard_before_its_parent_completes_nothing() {
        // X inserts Y, Y inserts W: W and X report, Y is missing. A plain count would say 2 of 1 + 1.
        let mut x = Membership::default();
        let mut y = x.child();
        let mut w = y.child();
        let mut tally = Tally::of(x.report());
        tally.merge(&Tally::of(w.report()));
        assert_eq!(tally.complete(1), None);
        tally.merge(&Tally::of(y.report()));
        assert_eq!(tally.complete(1), Some(3));
    }

    #[test]
    fn announced_children_and_parents_heard_after_their_children_count_as_missing() {
        let (mut x, mut other) = (Membership::default(), Membership::default());
        let (mut child, mut orphan) = (x.child(), other.child());
        let mut tally = Tally::of(x.report());
        assert_eq!((tally.heard(), tally.missing(2)), (1, 2), "the other and the child");
        tally.merge(&Tally::of(other.report()));
        tally.merge(&Tally::of(child.report()));
        assert_eq!((tally.heard(), tally.missing(2)), (3, 1), "both old ones and a child, of four");
        tally.merge(&Tally::of(orphan.report()));
        assert_eq!((tally.heard(), tally.missing(2)), (4, 0));
        let mut parent = Membership::default();
        let early = Tally::of(parent.child().report());
        assert_eq!((early.heard(), early.missing(1)), (1, 1), "its parent was not heard");
    }

    #[test]
    fn a_member_that_leaves_reports_once_and_is_no_longer_counted() {
        let (mut stays, mut leaves) = (Membership::default(), Membership::default());
        let mut tally = Tally::of(stays.report());
        assert_eq!(tally.complete(2), None);
        tally.merge(&Tally::of(leaves.leave()));
        assert_eq!(tally.complete(2), Some(1));
    }

    #[test]
    fn a_chain_of_any_length_is_two_numbers() {
        let mut link = Membership::default();
        let (mut tally, mut report_bytes) = (Tally::default(), 0);
        for _ in 0..100_000 {
            let next = link.child();
            let report = Tally::of(std::mem::replace(&mut link, next).leave());
            report_bytes += encoded_bytes(&report);
            tally.merge(&report);
            assert_eq!(tally.complete(1), None, "its successor has not reported");
        }
        // Three varints per generation, four for the sums: none of more than five bytes.
        assert!(report_bytes < 100_000 * 40, "{report_bytes} bytes");
        assert!(encoded_bytes(&tally) < 40, "{tally:?}");
        tally.merge(&Tally::of(link.report()));
        assert_eq!(tally.complete(1), Some(1));
    }

    proptest! {
        /// Random families, random report order: complete exactly at the last report.
        #[test]
        fn a_count_is_complete_only_when_the_last_member_reported(
            old in 1usize..5, births in prop::collection::vec(0usize..64, 0..12), order in prop::collection::vec(any::<u32>(), 17),
        ) {
            let mut members = vec![Membership::default(); old];
            for birth in births {
                let parent = birth % members.len();
                let child = members[parent].child();
                members.push(child);
            }
            let mut ranked: Vec<usize> = (0..members.len()).collect();
            ranked.sort_by_key(|&member| order[member]);
            let mut tally = Tally::default();
            for (heard, &member) in ranked.iter().enumerate() {
                prop_assert_eq!(tally.complete(old as u64), None, "complete after {} of {}", heard, members.len());
                tally.merge(&Tally::of(members[member].report()));
            }
            prop_assert_eq!(tally.complete(old as u64), Some(members.len() as u64));
        }
    }
}
