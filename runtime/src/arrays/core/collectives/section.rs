//! Reductions over sections: the chunks that a section lists by index contribute values, and one combined result comes
//! back. How values are combined is in [`reduction`](super::reduction).
//!
//! Partial results meet on the *root* of the section: the home rank of the section's first chunk. The root is the same
//! on every rank, wherever chunks migrate. Each row of a matrix may have another root.
//!
//! # Steps
//!
//! | rank | input | output |
//! |---|---|---|
//! | not the root | the last of the section's chunks on this rank contributes | the partial result, to the root |
//! | not the root | a later contribution | only this one, to the root, at once |
//! | not the root | the rank is idle | everything that it has not sent on, to the root |
//! | root | all chunks of the section have contributed | the result |
//!
//! # Rules
//! 1. No population count is needed, because the section lists its chunks. A partial result has one bit per chunk, set
//!    if the chunk has contributed.
//! 2. As in a reduction over an array, *when* a rank sends on a partial result changes only the speed.
//! 3. Each chunk numbers its own contributions to each section, and takes the numbers along when it migrates. The root
//!    finishes reductions in this order, so results come in order too.
//!
//! Cost: one packet from each rank with chunks of the section. A result for all takes one packet to each such rank.
//!
//! # What is remembered
//!
//! | section | what | by | until |
//! |---|---|---|---|
//! | of any number of reductions | number of contributions | each of its chunks | the run ends |
//! | of any number of reductions | number of the next reduction | the root and the ranks that took part | the run ends |
//! | of one reduction ([`once`](crate::Section::once)) | that reduction | the root | its result |
//! | of one reduction | that reduction | any other rank | the rank sends on its partial result |
//!
//! The first two numbers stay because only they distinguish a chunk that has contributed twice from one that has not
//! contributed yet. No rank can tell that a program will not use a section again. A section of one reduction needs no
//! number, because the program has numbered it. Sections that are remembered and not in use cost no time.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::reduction::{Combined, ReductionSpec, Values};
use crate::ids::{ArrayId, Rank};

/// The most missing chunks that an explanation of a stall names, per reduction.
const NAMED_MAX: usize = 8;

/// A chunk's contributions to each section.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SectionCounts(BTreeMap<u64, u64>);

impl SectionCounts {
    /// Counts one more contribution to a section. Returns its number.
    pub(crate) fn number(&mut self, section: u64) -> u64 {
        let next = self.0.entry(section).or_default();
        *next += 1;
        *next - 1
    }
}

/// One chunk's contribution.
#[derive(Debug)]
pub(crate) struct SectionContribution {
    /// Keys of the section's chunks, ascending.
    pub(crate) keys: Arc<[u64]>,
    pub(crate) section: u64,
    /// True if this is the section's only reduction.
    pub(crate) once: bool,
    /// The position of the chunk's key in `keys`.
    pub(crate) place: usize,
    pub(crate) sequence: u64,
    pub(crate) spec: ReductionSpec,
    pub(crate) values: Values,
}

/// A partial result: contributions to one reduction over a section, combined so far.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SectionPartial {
    pub(crate) array: ArrayId,
    pub(crate) keys: Arc<[u64]>,
    /// A number that identifies the section.
    section: u64,
    once: bool,
    sequence: u64,
    /// A bit for each key: set if its chunk has contributed.
    heard: Vec<u64>,
    combined: Combined,
}

impl SectionPartial {
    pub(crate) fn new(array: ArrayId, contribution: SectionContribution) -> SectionPartial {
        let SectionContribution { keys, section, once, place, sequence, spec, values } = contribution;
        let mut heard = vec![0; keys.len().div_ceil(64)];
        heard[place / 64] |= 1 << (place % 64);
        SectionPartial { array, keys, section, once, sequence, heard, combined: Combined { spec, values } }
    }

    fn has_heard(&self, place: usize) -> bool {
        self.heard[place / 64] >> (place % 64) & 1 == 1
    }

    fn count(&self) -> usize {
        self.heard.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Compares only the keys of chunks that have contributed to `other`: comparing all keys for each of n
    /// contributions would take O(n^2). Each chunk contributes, so every difference is found.
    fn has_same_section(&self, other: &SectionPartial) -> bool {
        let words = (0..).zip(&other.heard).filter(|&(_, &bits)| bits != 0);
        let mut places = words.flat_map(|(word, &bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| 64 * word + bit)
        });
        self.keys.len() == other.keys.len() && places.all(|place| self.keys[place] == other.keys[place])
    }

    fn merge(&mut self, other: SectionPartial) -> Result<(), String> {
        if !self.has_same_section(&other) {
            return Err(
                "two sections have the same hash by chance: add or remove a chunk in one of them".into()
            );
        }
        for (ours, theirs) in self.heard.iter_mut().zip(&other.heard) {
            if *ours & theirs != 0 {
                return Err(if self.once { DUPLICATE_ONCE } else { DUPLICATE }.into());
            }
            *ours |= theirs;
        }
        self.combined.merge(other.combined)
    }

    /// Combines the values. Runs user code.
    pub(crate) fn combine(&mut self) -> Result<(), String> {
        self.combined.combine().map_err(|why| self.error_text(&why))
    }

    /// The text of a fault, with the reduction it is in.
    fn error_text(&self, why: &str) -> String {
        format!("reduction {} over a section of {} chunks: {why}", self.sequence, self.keys.len())
    }
}

const DUPLICATE: &str =
    "two chunks of the same index have contributed: the second was inserted after the first had contributed";
/// The fault of a second contribution to the only reduction of a section.
const DUPLICATE_ONCE: &str =
    "a chunk has contributed twice to a section of one reduction: give each of its reductions its own number";

#[derive(Debug)]
pub(crate) struct SectionResult {
    pub(crate) keys: Arc<[u64]>,
    pub(crate) spec: ReductionSpec,
    pub(crate) values: Arc<Values>,
}

#[derive(Debug, Default)]
struct Pending {
    /// The partial result that has not been sent on.
    part: Option<SectionPartial>,
    /// Number of contributions of this rank's chunks, sent on or not.
    own: usize,
    /// Number of the section's chunks on this rank when the first contributed. Used by ranks other than the root.
    expected: usize,
}

/// One rank's state of a section.
#[derive(Debug)]
struct ActiveSection {
    root: Rank,
    /// True if the section has one reduction, and is forgotten with it.
    once: bool,
    /// On the root, the next reduction to finish. On other ranks, the next one to send on.
    next: u64,
    pending: BTreeMap<u64, Pending>,
}

/// The state of one rank for all reductions over sections.
#[derive(Debug)]
pub(crate) struct Sections {
    rank: Rank,
    /// Sections with a reduction in progress on this rank.
    active: BTreeMap<(ArrayId, u64), ActiveSection>,
    /// The next reduction of each other section that has more than one reduction.
    inactive: BTreeMap<(ArrayId, u64), u64>,
}

/// The output after a partial result was added.
#[derive(Debug, Default)]
pub(crate) struct SectionOutput {
    /// A partial result that user code is to combine. [`Sections::receive`] adds it again afterwards.
    pub(crate) combine: Option<SectionPartial>,
    /// Partial results to send to the section's root.
    pub(crate) pass_on: Option<(Rank, Vec<SectionPartial>)>,
    /// Finished reductions, in order.
    pub(crate) finished: Vec<SectionResult>,
}

impl Sections {
    /// Number of sections that this rank remembers.
    pub(crate) fn in_use(&self) -> u64 {
        (self.active.len() + self.inactive.len()) as u64
    }

    pub(crate) fn new(rank: Rank) -> Sections {
        Sections { rank, active: BTreeMap::new(), inactive: BTreeMap::new() }
    }

    /// Adds the contribution of a chunk of this rank. `root` and `residents`, the number of the section's chunks on
    /// this rank, are called once per reduction.
    pub(crate) fn contribute(
        &mut self,
        part: SectionPartial,
        root: impl FnOnce() -> Rank,
        residents: impl FnOnce(&[u64]) -> usize,
    ) -> Result<SectionOutput, String> {
        let (section, sequence) = ((part.array, part.section), part.sequence);
        let rank = self.rank;
        let known = self.active(section, part.once, root);
        let pending = known.pending.entry(sequence).or_default();
        if pending.own == 0 && known.root != rank {
            pending.expected = residents(&part.keys);
        }
        pending.own += 1;
        self.add(section, part)
    }

    /// Adds a partial result from another rank, or one that user code has combined.
    pub(crate) fn receive(
        &mut self,
        part: SectionPartial,
        root: impl FnOnce() -> Rank,
    ) -> Result<SectionOutput, String> {
        let section = (part.array, part.section);
        self.active(section, part.once, root);
        self.add(section, part)
    }

    fn active(
        &mut self,
        section: (ArrayId, u64),
        once: bool,
        root: impl FnOnce() -> Rank,
    ) -> &mut ActiveSection {
        let next = &mut self.inactive;
        let new = || ActiveSection {
            root: root(),
            once,
            next: next.remove(&section).unwrap_or(0),
            pending: BTreeMap::new(),
        };
        self.active.entry(section).or_insert_with(new)
    }

    fn add(&mut self, section: (ArrayId, u64), part: SectionPartial) -> Result<SectionOutput, String> {
        let known = self.active.get_mut(&section).expect("it was just made known");
        let (is_root, sequence) = (known.root == self.rank, part.sequence);
        if is_root && sequence < known.next {
            return Err(part.error_text(DUPLICATE));
        }
        let pending = known.pending.entry(sequence).or_default();
        match &mut pending.part {
            None => pending.part = Some(part),
            Some(ours) => ours.merge(part).map_err(|why| ours.error_text(&why))?,
        }
        let mut advance = SectionOutput::default();
        if pending.part.as_ref().is_some_and(|part| part.combined.can_combine()) {
            advance.combine = pending.part.take();
        }
        if is_root {
            advance.finished = known.finish();
        } else if pending.own >= pending.expected || sequence < known.next {
            known.next = known.next.max(sequence + 1);
            advance.pass_on = Some((known.root, known.take_through(sequence)));
        }
        if known.pending.is_empty()
            && let Some(ActiveSection { once: false, next, .. }) = self.active.remove(&section)
        {
            self.inactive.insert(section, next);
        }
        Ok(advance)
    }

    /// Takes everything that has not been sent on, each with the rank that gets it.
    pub(crate) fn take_all(&mut self) -> Vec<(Rank, SectionPartial)> {
        let me = self.rank;
        let mut taken = Vec::new();
        for known in self.active.values_mut().filter(|known| known.root != me) {
            let parts = known.pending.values_mut().filter_map(|pending| pending.part.take());
            taken.extend(parts.map(|part| (known.root, part)));
        }
        // A section of one reduction: its last chunks may migrate first, and nothing would remove the entry here.
        self.active.retain(|_, known| !known.once || known.root == me);
        taken
    }

    /// One line per reduction that is not finished, for a stall report.
    pub(crate) fn explain(
        &self,
        array: impl Fn(ArrayId) -> String,
        chunk: impl Fn(ArrayId, u64) -> String,
    ) -> Vec<String> {
        let parts =
            self.active.values().flat_map(|known| known.pending.values()).filter_map(|it| it.part.as_ref());
        let line = |part: &SectionPartial| {
            let (all, heard, array) = (part.keys.len(), part.count(), array(part.array));
            let missing = (0..all).filter(|&place| !part.has_heard(place));
            let named = missing.take(NAMED_MAX).map(|place| chunk(part.array, part.keys[place]));
            let (named, sequence) = (named.collect::<Vec<_>>().join(", "), part.sequence);
            let more = (all - heard).checked_sub(NAMED_MAX).filter(|&more| more > 0);
            let more = more.map_or(String::new(), |more| format!(" and {more} more"));
            format!(
                "reduction {sequence} over a section of {array} has {heard} of {all} contributions, missing: \
                 {named}{more}"
            )
        };
        parts.map(line).collect()
    }
}

impl ActiveSection {
    /// Takes the partial results of all reductions up to this one. A chunk contributes in order: if it has not
    /// contributed to an earlier reduction here, it has done so on the rank from which it came.
    fn take_through(&mut self, sequence: u64) -> Vec<SectionPartial> {
        let later = self.pending.split_off(&(sequence + 1));
        std::mem::replace(&mut self.pending, later).into_values().filter_map(|pending| pending.part).collect()
    }

    /// Takes the reductions that are finished, in order.
    fn finish(&mut self) -> Vec<SectionResult> {
        let mut finished = Vec::new();
        while let Some(Pending { part: Some(part), .. }) = self.pending.get(&self.next)
            && part.count() == part.keys.len()
            && let Some(Pending { part: Some(part), .. }) = self.pending.remove(&self.next)
        {
            self.next += 1;
            let SectionPartial { keys, combined, .. } = part;
            let (spec, values) = combined.finished();
            finished.push(SectionResult { keys, spec, values });
        }
        finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::core::collectives::reduction::{Reducer, ResultTarget};

    const ROOT: Rank = Rank(2);
    const OTHER: Rank = Rank(0);
    const KEYS: [u64; 3] = [4, 7, 9];

    fn part(place: usize, sequence: u64, tag: u32) -> SectionPartial {
        part_of(&KEYS, place, sequence, tag)
    }

    fn part_of(keys: &[u64], place: usize, sequence: u64, tag: u32) -> SectionPartial {
        let spec = ReductionSpec { tag, reducer: Reducer::Sum, target: ResultTarget::All };
        let (keys, values) = (keys.into(), vec![1u64 << (place % 64)].into());
        let (section, once) = (77, false);
        let contribution = SectionContribution { keys, section, once, place, sequence, spec, values };
        SectionPartial::new(ArrayId(1), contribution)
    }

    /// A contribution to the only reduction of the section of this number.
    fn once(section: u64, place: usize) -> SectionPartial {
        SectionPartial { section, once: true, ..part(place, 0, 3) }
    }

    fn contribute(rank: &mut Sections, residents: usize, part: SectionPartial) -> SectionOutput {
        rank.contribute(part, || ROOT, |_| residents).expect("they agree")
    }

    impl Sections {
        fn is_empty(&self) -> bool {
            self.active.is_empty() && self.inactive.is_empty()
        }
    }

    /// The values of results, in order.
    fn results(advance: SectionOutput) -> Vec<Values> {
        advance.finished.into_iter().map(|result| (*result.values).clone()).collect()
    }

    #[test]
    fn a_rank_passes_on_its_part_when_its_chunks_have_contributed_and_later_parts_at_once() {
        let mut rank = Sections::new(OTHER);
        assert!(contribute(&mut rank, 2, part(0, 0, 3)).pass_on.is_none(), "one is to come");
        let (to, parts) = contribute(&mut rank, 2, part(1, 0, 3)).pass_on.expect("both have");
        assert_eq!((to, parts.len(), parts[0].count()), (ROOT, 1, 2));
        assert!(rank.take_all().is_empty());
        // The chunk has migrated here after the others contributed.
        let (_, parts) = contribute(&mut rank, 3, part(2, 0, 3)).pass_on.expect("nobody waits for it here");
        assert_eq!(parts[0].count(), 1);
    }

    #[test]
    fn an_idle_rank_passes_on_what_it_has_and_still_knows_when_all_have_contributed() {
        let mut rank = Sections::new(OTHER);
        contribute(&mut rank, 2, part(0, 0, 3));
        assert_eq!(rank.take_all().len(), 1);
        assert!(rank.take_all().is_empty());
        let (_, parts) = contribute(&mut rank, 2, part(1, 0, 3)).pass_on.expect("both have");
        assert_eq!((parts.len(), parts[0].count()), (1, 1));
    }

    #[test]
    fn a_section_for_one_reduction_is_forgotten_with_it() {
        let (mut root, mut rank) = (Sections::new(ROOT), Sections::new(OTHER));
        for section in 0..100 {
            assert!(contribute(&mut rank, 2, once(section, 0)).pass_on.is_none());
            let (_, parts) = contribute(&mut rank, 2, once(section, 1)).pass_on.expect("both have");
            assert!(contribute(&mut root, 1, once(section, 2)).finished.is_empty());
            let finished = parts.into_iter().map(|part| root.receive(part, || ROOT).expect("they agree"));
            assert_eq!(finished.flat_map(results).collect::<Vec<_>>(), [Values::U64(vec![7])]);
        }
        assert!(rank.is_empty() && root.is_empty(), "{rank:?} {root:?}");
    }

    #[test]
    fn an_idle_rank_forgets_a_section_for_one_reduction_when_it_passes_on_its_part() {
        let (mut root, mut rank) = (Sections::new(ROOT), Sections::new(OTHER));
        for place in [0, 1, 2] {
            // The rank waits for more chunks, which migrate.
            assert!(contribute(&mut rank, 3, once(5, place)).pass_on.is_none());
            let passed_on = rank.take_all();
            assert!(passed_on.len() == 1 && rank.is_empty(), "{rank:?}");
            for (_, part) in passed_on {
                let finished = root.receive(part, || ROOT).expect("they agree").finished;
                assert_eq!(finished.len(), usize::from(place == 2));
            }
        }
        assert!(root.is_empty(), "{root:?}");
    }

    #[test]
    fn a_section_without_a_reduction_in_progress_is_one_number_and_goes_on_counting() {
        let (mut root, mut rank) = (Sections::new(ROOT), Sections::new(OTHER));
        for sequence in 0..3 {
            contribute(&mut rank, 2, part(0, sequence, 3));
            let (_, parts) = contribute(&mut rank, 2, part(1, sequence, 3)).pass_on.expect("both have");
            contribute(&mut root, 1, part(2, sequence, 3));
            let finished = parts.into_iter().map(|part| root.receive(part, || ROOT).expect("they agree"));
            assert_eq!(finished.flat_map(results).count(), 1);
            for sections in [&root, &rank] {
                assert!(sections.active.is_empty());
                assert!(sections.inactive.values().eq([&(sequence + 1)]), "{sections:?}");
            }
        }
    }

    #[test]
    fn a_second_contribution_to_the_only_reduction_of_a_section_is_refused() {
        let mut root = Sections::new(ROOT);
        contribute(&mut root, 3, once(5, 0));
        let why = root.receive(once(5, 0), || ROOT).expect_err("it has contributed");
        assert!(why.contains("twice to a section of one reduction"), "{why}");
        assert!(root.receive(once(6, 0), || ROOT).is_ok(), "that is another");
    }

    #[test]
    fn results_come_when_all_have_contributed_and_in_order() {
        let mut root = Sections::new(ROOT);
        for sequence in [1, 0] {
            for place in [2, 0] {
                assert!(contribute(&mut root, 3, part(place, sequence, 3)).finished.is_empty());
            }
        }
        let later = root.receive(part(1, 1, 3), || ROOT).expect("they agree");
        assert!(later.finished.is_empty(), "the first is not finished");
        let both = root.receive(part(1, 0, 3), || ROOT).expect("they agree");
        assert_eq!(results(both), [Values::U64(vec![7]), Values::U64(vec![7])]);
    }

    #[test]
    fn a_second_or_a_different_contribution_is_refused() {
        let mut root = Sections::new(ROOT);
        contribute(&mut root, 3, part(0, 0, 3));
        let refused = |root: &mut Sections, part| root.receive(part, || ROOT).expect_err("it is at odds");
        let why = refused(&mut root, part(0, 0, 3));
        assert!(
            why.starts_with(
                "reduction 0 over a section of 3 chunks: two chunks of the same index have contributed"
            ),
            "{why}"
        );
        let why = refused(&mut root, part(1, 0, 4));
        assert!(why.contains("some are for Sum under tag 3"), "{why}");
        let mut root = Sections::new(ROOT);
        (0..3).for_each(|place| drop(contribute(&mut root, 3, part(place, 0, 3))));
        let why = refused(&mut root, part(0, 0, 3));
        assert!(why.contains("of the same index"), "after it is finished: {why}");
    }

    #[test]
    fn two_sections_of_one_number_are_distinguished_by_the_contribution_of_a_chunk_that_only_one_has() {
        let (one, mut other): (Vec<u64>, Vec<u64>) = ((0..100).collect(), (0..100).collect());
        other[70] = 700;
        let mut root = Sections::new(ROOT);
        contribute(&mut root, 100, part_of(&one, 3, 0, 3));
        assert!(root.receive(part_of(&other, 4, 0, 3), || ROOT).is_ok(), "both have it");
        for keys in [&other[..], &one[..99]] {
            let why = root.receive(part_of(keys, 70, 0, 3), || ROOT).expect_err("only one has it");
            assert!(why.contains("two sections have the same hash by chance"), "{why}");
        }
    }

    #[test]
    fn an_explanation_of_a_stall_names_the_missing_chunks() {
        let mut root = Sections::new(ROOT);
        contribute(&mut root, 3, part(1, 0, 3));
        let lines = root.explain(|array| format!("array {array}"), |_, key| format!("chunk {key}"));
        let expected =
            "reduction 0 over a section of array 1 has 1 of 3 contributions, missing: chunk 4, chunk 9";
        assert_eq!(lines, [expected]);
    }
}
