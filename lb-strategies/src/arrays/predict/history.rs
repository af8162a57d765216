//! Keeps the loads of the last phases (times between two syncs, or balancing windows), and hands them to the predictors
//! as a [`Series`].

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Smoothing;
use crate::arrays::snapshot::ChunkId;

/// Number of phases that are kept.
const KEPT: usize = 16;
/// Number of phases kept in a run with very many chunks: enough for smoothing.
const KEPT_OF_MANY: usize = Smoothing::PHASES;
/// From this number of chunks on, a run has very many chunks.
pub(in crate::arrays) const MANY_CHUNKS: usize = 1 << 16;

struct Phase {
    /// In ascending order.
    ids: Arc<[ChunkId]>,
    loads: Vec<f64>,
    steps: f64,
}

/// The last phases, oldest first.
#[derive(Default)]
pub(in crate::arrays) struct History {
    phases: VecDeque<Phase>,
}

impl History {
    /// Adds a phase of `steps` steps: the chunks in ascending order, with their loads.
    pub(in crate::arrays) fn push(
        &mut self,
        chunks: impl ExactSizeIterator<Item = (ChunkId, f64)>,
        steps: f64,
    ) {
        let kept = if chunks.len() >= MANY_CHUNKS { KEPT_OF_MANY } else { KEPT };
        while self.phases.len() >= kept {
            self.phases.pop_front();
        }
        let (ids, loads): (Vec<ChunkId>, Vec<f64>) = chunks.unzip();
        let ids = match self.phases.back() {
            Some(last) if *last.ids == *ids => last.ids.clone(),
            _ => ids.into(),
        };
        self.phases.push_back(Phase { ids, loads, steps });
    }

    /// Number of phases that are kept.
    pub(in crate::arrays) fn len(&self) -> usize {
        self.phases.len()
    }

    /// The last phases, as loads of the chunks of the newest phase. Empty before the first phase.
    pub(in crate::arrays) fn series(&self) -> Series<'_> {
        let Some(newest) = self.phases.back() else { return Series { ids: &[], phases: Vec::new() } };
        let aligned = |phase: &'_ Phase| -> Vec<f64> {
            let by_id: FxHashMap<ChunkId, f64> =
                phase.ids.iter().copied().zip(phase.loads.iter().copied()).collect();
            newest.ids.iter().map(|id| by_id.get(id).copied().unwrap_or(f64::NAN)).collect()
        };
        let phases = self.phases.iter().rev().map(|phase| {
            let loads = match phase.ids == newest.ids {
                true => Cow::Borrowed(&phase.loads[..]),
                false => Cow::Owned(aligned(phase)),
            };
            (loads, phase.steps)
        });
        Series { ids: &newest.ids, phases: phases.collect() }
    }
}

/// The loads of the current chunks in the last phases. The load of a chunk is NaN in a phase that did not have the
/// chunk.
pub struct Series<'h> {
    ids: &'h [ChunkId],
    /// Loads and steps, newest first.
    phases: Vec<(Cow<'h, [f64]>, f64)>,
}

impl<'h> Series<'h> {
    /// A series of these chunks, in ascending order. Each phase, oldest first, has the loads and its number of steps.
    pub fn of(ids: &'h [ChunkId], phases: Vec<(Vec<f64>, f64)>) -> Series<'h> {
        let phases = phases.into_iter().rev().map(|(loads, steps)| (Cow::Owned(loads), steps));
        Series { ids, phases: phases.collect() }
    }

    /// The chunks, in ascending order.
    pub fn ids(&self) -> &[ChunkId] {
        self.ids
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.ids.len()
    }

    /// Number of phases.
    pub fn phases(&self) -> usize {
        self.phases.len()
    }

    /// The loads of the phase `back` phases before the newest.
    pub fn loads(&self, back: usize) -> Option<&[f64]> {
        self.phases.get(back).map(|(loads, _)| &**loads)
    }

    /// Number of steps of the phase `back` phases before the newest.
    pub fn steps(&self, back: usize) -> f64 {
        self.phases.get(back).map_or(0.0, |&(_, steps)| steps)
    }

    /// The middle of the phase `back` phases before the newest, and its loads. The middle is in steps from the end of
    /// the newest phase, so it is negative.
    pub fn phase(&self, back: usize) -> Option<(f64, &[f64])> {
        let later: f64 = (0..back).map(|later| self.steps(later)).sum();
        self.loads(back).map(|loads| (-later - self.steps(back) / 2.0, loads))
    }

    /// The series as it was before its newest phase.
    pub(super) fn before(&self) -> Series<'_> {
        let before = self.phases.iter().skip(1);
        let phases = before.map(|(loads, steps)| (Cow::Borrowed(&**loads), *steps));
        Series { ids: self.ids, phases: phases.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::snapshot::ArrayId;

    #[test]
    fn phases_are_aligned_to_the_chunks_of_the_newest() {
        let mut history = History::default();
        let chunk = |key| ChunkId { array: ArrayId(0), key };
        history.push([(chunk(1), 1.0), (chunk(2), 2.0)].into_iter(), 3.0);
        history.push([(chunk(2), 4.0), (chunk(7), 5.0)].into_iter(), 2.0);
        let series = history.series();
        assert_eq!((series.ids(), series.phases()), (&[chunk(2), chunk(7)][..], 2));
        assert_eq!(series.phase(0), Some((-1.0, &[4.0, 5.0][..])));
        let (middle, loads) = series.phase(1).expect("there are two");
        assert_eq!((middle.to_bits(), loads[0].to_bits()), ((-3.5f64).to_bits(), 2.0f64.to_bits()));
        assert!(loads[1].is_nan());
        assert_eq!(series.before().phase(0).map(|(middle, _)| middle.to_bits()), Some((-1.5f64).to_bits()));
    }
}
