//! Predicts loads by exponential smoothing, which averages noise.

use super::{Predictor, Series};

/// Exponential smoothing of the last four phases: expected = weight x measured + (1 - weight) x expected before.
///
/// A chunk that appears later starts from its first measurement. A weight of 1 is [`Last`](super::Last). Weights
/// outside (0, 1] are read as 1. Time is linear in the number of chunks.
///
/// ```
/// use lb_strategies::predict::Smoothing;
/// let smoothing = Smoothing { weight: 0.25 };
/// assert_eq!(smoothing.level([1.0, 3.0].into_iter()), Some(1.5));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Smoothing {
    /// Weight of the newest measurement, in (0, 1].
    pub weight: f64,
}

impl Smoothing {
    /// Number of phases that are smoothed.
    pub const PHASES: usize = 4;

    /// The value predicted to follow these values, oldest first; none if there are none.
    pub fn level(&self, values: impl Iterator<Item = f64>) -> Option<f64> {
        let weight = if self.weight > 0.0 && self.weight <= 1.0 { self.weight } else { 1.0 };
        values.reduce(|level, value| level + weight * (value - level))
    }
}

impl Predictor for Smoothing {
    fn predict(&self, series: &Series<'_>, _: f64) -> Option<Vec<f64>> {
        let phases: Vec<&[f64]> = (0..Self::PHASES).rev().filter_map(|back| series.loads(back)).collect();
        let level = |chunk: usize| {
            let known = phases.iter().map(|loads| loads[chunk]).filter(|load| !load.is_nan());
            self.level(known).unwrap_or(f64::NAN)
        };
        (!phases.is_empty()).then(|| (0..series.chunks()).map(level).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Last, Predictor};
    use super::*;
    use crate::arrays::snapshot::{ArrayId, ChunkId};

    #[test]
    fn a_chunk_that_appears_later_starts_from_its_first_measurement() {
        let ids = [1, 2].map(|key| ChunkId { array: ArrayId(0), key });
        let series = Series::of(&ids, vec![(vec![1.0, f64::NAN], 1.0), (vec![2.0, 7.0], 1.0)]);
        assert_eq!(Smoothing { weight: 0.5 }.predict(&series, 1.0), Some(vec![1.5, 7.0]));
    }

    #[test]
    fn a_senseless_weight_means_the_last_phase() {
        let ids = [ChunkId { array: ArrayId(0), key: 1 }];
        let series = Series::of(&ids, vec![(vec![1.0], 1.0), (vec![2.0], 1.0)]);
        for weight in [f64::NAN, 0.0, -1.0, 7.0, 1.0] {
            assert_eq!(Smoothing { weight }.predict(&series, 1.0), Last.predict(&series, 1.0));
        }
    }
}
