//! Checks that all ranks have set up the same arrays, because a setup function must do the same on every rank. Each
//! rank sends signatures of its arrays. If they differ from rank 0's own, rank 0 fails the run. The error names the
//! array.
//!
//! | compared | how |
//! |---|---|
//! | names of types and placement, number of chunks, part in syncs, group, leader | exactly |
//! | indices | by a hash |
//! | placement | by a hash of the ranks of at most [`SAMPLE_MAX`] indices: differences elsewhere go unnoticed |
//! | constructors of chunks, services | not at all |

use std::hash::Hasher;

use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use crate::ids::{ArrayId, Rank};
use crate::text::counted;

/// The most indices of an array for which the homes are compared.
pub(crate) const SAMPLE_MAX: u64 = 1_000;

/// One array, as a rank has set it up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArraySignature {
    /// The name of the chunk type.
    pub(crate) chunk: String,
    /// The name of the message type.
    pub(crate) message: String,
    pub(crate) chunks: u64,
    /// Hash of all indices.
    pub(crate) indices: u64,
    pub(crate) placement: String,
    /// Hash of the ranks of a sample of the indices.
    pub(crate) homes: u64,
    pub(crate) syncs: bool,
    pub(crate) at_syncs: bool,
    pub(crate) group: bool,
    pub(crate) leader: Option<ArrayId>,
}

/// The positions of the sampled indices among `chunks` indices, ascending: the first, the last, and evenly spread ones.
pub(crate) fn sample(chunks: u64) -> impl Iterator<Item = u64> {
    let count = chunks.min(SAMPLE_MAX);
    let (last, steps) = (u128::from(chunks.saturating_sub(1)), u128::from(count.saturating_sub(1)).max(1));
    (0..count).map(move |nth| (u128::from(nth) * last / steps) as u64)
}

/// A hash of the ranks that indices are placed on.
pub(crate) fn hash_homes(homes: impl Iterator<Item = Rank>) -> u64 {
    let mut hasher = FxHasher::default();
    homes.for_each(|home| hasher.write_u32(home.0));
    hasher.finish()
}

/// The differences between the arrays of a rank and of rank 0, as text; none if they are the same.
pub(crate) fn difference(its: &[ArraySignature], first: &[ArraySignature]) -> Option<String> {
    let differing = (0..).map(ArrayId).zip(its.iter().zip(first)).find(|(_, (its, first))| its != first);
    if let Some((array, (its, first))) = differing {
        let aspects = its.differs(first).join("; ");
        return Some(format!("array {array} `{}`: {aspects}", first.chunk));
    }
    let arrays = |signatures: &[ArraySignature]| counted(signatures.len(), "array", "arrays");
    (its.len() != first.len()).then(|| format!("{}, but {} on rank 0", arrays(its), arrays(first)))
}

/// The differences between the arrays of a program and of a checkpoint, as text. None if the program can go on from the
/// checkpoint: chunks may be placed on other ranks, and a group may have more or fewer chunks.
pub(crate) fn restart_difference(saved: &[ArraySignature], program: &[ArraySignature]) -> Option<String> {
    let comparable = |signatures: &[ArraySignature]| -> Vec<ArraySignature> {
        let of_any_ranks = |signature: &ArraySignature| {
            let (placement, homes, syncs, at_syncs) = (String::new(), 0, false, false);
            let its = ArraySignature { placement, homes, syncs, at_syncs, ..signature.clone() };
            if its.group { ArraySignature { chunks: 0, indices: 0, ..its } } else { its }
        };
        signatures.iter().map(of_any_ranks).collect()
    };
    let (saved, program) = (comparable(saved), comparable(program));
    if saved.len() != program.len() {
        let arrays = |signatures: &[ArraySignature]| counted(signatures.len(), "array", "arrays");
        return Some(format!("{} in the checkpoint, {} in this program", arrays(&saved), arrays(&program)));
    }
    let differing = (0..).map(ArrayId).zip(saved.iter().zip(&program)).find(|(_, (saved, its))| saved != its);
    differing.map(|(array, (saved, its))| match (saved.text(), its.text()) {
        (saved, its) if saved == its => {
            format!("array {array}, {its}, has other indices or another leader")
        }
        (saved, its) => format!("array {array} had {saved} and now has {its}"),
    })
}

impl ArraySignature {
    /// The number and the types of the chunks, as text.
    pub(crate) fn text(&self) -> String {
        let ArraySignature { chunk, message, chunks, group, .. } = self;
        let chunks = match group {
            true => "a group".into(),
            false => counted(*chunks as usize, "chunk", "chunks"),
        };
        format!("{chunks} of `{chunk}` with messages `{message}`")
    }

    /// The aspects in which the signature differs from the one of rank 0.
    fn differs(&self, first: &ArraySignature) -> Vec<String> {
        let mut aspects = Vec::new();
        let mut compare = |same: bool, its: String, at_first: String| {
            if !same {
                aspects.push(format!("{its}, but {at_first} on rank 0"));
            }
        };
        let chunk = |signature: &ArraySignature| format!("chunks of type `{}`", signature.chunk);
        compare(self.chunk == first.chunk, chunk(self), chunk(first));
        let message = |signature: &ArraySignature| format!("messages of type `{}`", signature.message);
        compare(self.message == first.message, message(self), message(first));
        let chunks = |signature: &ArraySignature| counted(signature.chunks as usize, "chunk", "chunks");
        compare(self.chunks == first.chunks, chunks(self), chunks(first));
        let placement = |signature: &ArraySignature| format!("placement {}", signature.placement);
        compare(self.placement == first.placement, placement(self), placement(first));
        let part = |signature: &ArraySignature| (signature.group, signature.syncs, signature.at_syncs);
        let syncs = |signature: &ArraySignature| match part(signature) {
            (true, ..) => "a group".to_owned(),
            (false, false, _) => "without syncs".to_owned(),
            (false, true, false) => "in syncs".to_owned(),
            (false, true, true) => "moved at syncs only".to_owned(),
        };
        compare(part(self) == part(first), syncs(self), syncs(first));
        let beside = |signature: &ArraySignature| {
            signature.leader.map_or("beside none".into(), |of| format!("beside array {of}"))
        };
        compare(self.leader == first.leader, beside(self), beside(first));
        // Different indices have different homes too, so the homes need no mention.
        if self.chunks == first.chunks && self.indices != first.indices {
            aspects.push("other indices".into());
        } else if aspects.is_empty() {
            aspects.push("its placement returns other ranks".into());
        }
        aspects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell() -> ArraySignature {
        let (chunk, message, placement) = ("Cell".into(), "Halo".into(), "Block".into());
        ArraySignature { chunk, message, chunks: 6, placement, syncs: true, ..ArraySignature::default() }
    }

    #[test]
    fn the_first_array_that_differs_is_named_with_all_that_differs() {
        let differs = |its: ArraySignature| difference(&[cell(), its], &[cell(), cell()]);
        assert_eq!(differs(cell()), None);
        let (leader, chunk) = (Some(ArrayId(0)), "Tile".into());
        for (its, expected) in [
            (ArraySignature { indices: 1, homes: 1, ..cell() }, "other indices"),
            (ArraySignature { homes: 1, ..cell() }, "its placement returns other ranks"),
            (ArraySignature { chunks: 7, indices: 1, ..cell() }, "7 chunks, but 6 chunks on rank 0"),
            (ArraySignature { syncs: false, ..cell() }, "without syncs, but in syncs on rank 0"),
            (ArraySignature { at_syncs: true, ..cell() }, "moved at syncs only, but in syncs on rank 0"),
            (
                ArraySignature { message: "()".into(), ..cell() },
                "messages of type `()`, but messages of type `Halo` on rank 0",
            ),
            (
                ArraySignature { chunk, leader, ..cell() },
                "chunks of type `Tile`, but chunks of type `Cell` on rank 0; beside array 0, but beside none on rank 0",
            ),
            (
                ArraySignature { placement: "RoundRobin".into(), homes: 3, ..cell() },
                "placement RoundRobin, but placement Block on rank 0",
            ),
        ] {
            assert_eq!(differs(its), Some(format!("array 1 `Cell`: {expected}")));
        }
        assert_eq!(difference(&[cell()], &[]).as_deref(), Some("1 array, but 0 arrays on rank 0"));
    }

    #[test]
    fn a_sample_has_the_first_and_the_last_and_no_index_twice() {
        for chunks in [0, 1, 2, 999, 1_000, 1_001, 123_456, u64::MAX] {
            let sampled: Vec<u64> = sample(chunks).collect();
            assert_eq!(sampled.len() as u64, chunks.min(SAMPLE_MAX));
            assert!(sampled.is_sorted_by(|a, b| a < b));
            let ends = (chunks > 0).then(|| (0, chunks - 1));
            assert_eq!(sampled.first().copied().zip(sampled.last().copied()), ends);
        }
    }
}
