//! Prediction of the next phase from the phases that were measured.
//!
//! A predictor maps a history of snapshots, oldest first, to the snapshot a strategy should plan for. It
//! changes loads only: placement, ranks and edges are those of the last snapshot, since a chunk is where it
//! is. Prediction matters because measured loads are noisy: a chunk preempted once for a 4 ms slice looks ten
//! times as heavy as it is, and a strategy that trusts the last phase moves exactly that chunk.

use rustc_hash::FxHashMap;

use crate::arrays::snapshot::Snapshot;

/// A pure predictor of the coming phase.
///
/// ```
/// use lb_strategies::{predict::{Last, Predictor}, synthetic::Workload};
/// let measured = Workload::Equal.snapshot(4, 2, 1);
/// assert_eq!(Last.predict(&[measured.clone()]), Some(measured));
/// assert_eq!(Last.predict(&[]), None);
/// ```
pub trait Predictor: Send + Sync {
    /// The expected snapshot, or `None` where there is no history. `history` is ordered from oldest to
    /// newest.
    fn predict(&self, history: &[Snapshot]) -> Option<Snapshot>;
}

/// The next phase is like the last one.
///
/// ```
/// use lb_strategies::{predict::{Last, Predictor}, synthetic::Workload};
/// let phases = [Workload::Uniform.snapshot(4, 2, 1), Workload::Uniform.snapshot(4, 2, 2)];
/// assert_eq!(Last.predict(&phases).as_ref(), phases.last());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Last;

impl Predictor for Last {
    fn predict(&self, history: &[Snapshot]) -> Option<Snapshot> {
        history.last().cloned()
    }
}

/// Exponential smoothing per chunk: expected = weight x measured + (1 - weight) x expected before.
///
/// A chunk that appears later starts from its first measurement. A weight of 1 is [`Last`]; weights outside
/// (0, 1] are read as 1. Time and memory are linear in the history.
///
/// ```
/// use lb_strategies::{predict::{Predictor, Smoothing}, synthetic::Workload};
/// let mut phases = vec![Workload::Equal.snapshot(4, 2, 1); 2];
/// phases[1].chunks[0].ticks = 3_000_000; // usually 1_000_000
/// let expected = Smoothing { weight: 0.25 }.predict(&phases).expect("there is a history");
/// assert_eq!(expected.chunks[0].ticks, 1_500_000);
/// assert_eq!(expected.chunks[1].ticks, 1_000_000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Smoothing {
    /// Weight of the newest measurement, in (0, 1].
    pub weight: f64,
}

impl Predictor for Smoothing {
    fn predict(&self, history: &[Snapshot]) -> Option<Snapshot> {
        let mut expected = history.last()?.clone();
        let weight = if self.weight > 0.0 && self.weight <= 1.0 { self.weight } else { 1.0 };
        let mut levels: Vec<Option<f64>> = vec![None; expected.chunks.len()];
        for snapshot in history {
            let same =
                snapshot.chunks.iter().map(|chunk| chunk.id).eq(expected.chunks.iter().map(|chunk| chunk.id));
            // Looked up by name, and only where chunks came or left since. Never iterated, so its order cannot show.
            let by_id = (!same).then(|| {
                snapshot.chunks.iter().map(|chunk| (chunk.id, chunk.ticks)).collect::<FxHashMap<_, _>>()
            });
            for (index, (level, chunk)) in levels.iter_mut().zip(&expected.chunks).enumerate() {
                let ticks = match &by_id {
                    None => Some(snapshot.chunks[index].ticks),
                    Some(by_id) => by_id.get(&chunk.id).copied(),
                };
                let Some(ticks) = ticks else { continue };
                let before = level.unwrap_or(ticks as f64);
                *level = Some(before + weight * (ticks as f64 - before));
            }
        }
        for (chunk, level) in expected.chunks.iter_mut().zip(levels) {
            if let Some(ticks) = level {
                chunk.ticks = ticks.round() as u64;
            }
        }
        Some(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::synthetic::Workload;
    use crate::rank::Rank;

    #[test]
    fn smoothing_follows_a_chunk_that_moved_and_forgets_one_that_left() {
        let mut phases = vec![Workload::Equal.snapshot(3, 2, 1); 2];
        phases[1].chunks.remove(0);
        phases[1].chunks[0].rank = Rank(1);
        phases[1].chunks[0].ticks = 2_000_000;
        let expected = Smoothing { weight: 0.5 }.predict(&phases).expect("there is a history");
        assert_eq!(expected.chunks.len(), 2);
        assert_eq!((expected.chunks[0].rank, expected.chunks[0].ticks), (Rank(1), 1_500_000));
        assert_eq!(expected.chunks[1].ticks, 1_000_000, "not that of the one that left");
    }

    #[test]
    fn a_senseless_weight_means_the_last_phase() {
        let phases = [Workload::Uniform.snapshot(9, 3, 1), Workload::Uniform.snapshot(9, 3, 2)];
        for weight in [f64::NAN, 0.0, -1.0, 7.0, 1.0] {
            assert_eq!(Smoothing { weight }.predict(&phases), Last.predict(&phases));
        }
    }
}
