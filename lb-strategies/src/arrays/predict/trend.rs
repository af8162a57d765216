//! Predicts loads on a straight line through the last phases.

use super::{Predictor, Series};

/// Largest and least number of phases that the line is fitted to.
const PHASES: usize = 6;
const PHASES_MIN: usize = 3;

/// Expects each load on the line of least squares through its last six phases, at least zero. There is no prediction
/// before the third phase of a chunk. Time is linear in the number of chunks.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, predict::{Predictor, Series, Trend}};
/// let ids = [ChunkId { array: ArrayId(0), key: 0 }];
/// let ramp = Series::of(&ids, [1.0, 2.0, 3.0].map(|load| (vec![load], 10.0)).into());
/// assert_eq!(Trend.predict(&ramp, 10.0), Some(vec![4.0]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Trend;

impl Predictor for Trend {
    fn predict(&self, series: &Series<'_>, steps: f64) -> Option<Vec<f64>> {
        let phases: Vec<(f64, &[f64])> = (0..PHASES).filter_map(|back| series.phase(back)).collect();
        let at = |chunk: usize| {
            let known =
                || phases.iter().map(|(at, loads)| (*at, loads[chunk])).filter(|(_, load)| !load.is_nan());
            extrapolate(known, steps / 2.0)
        };
        (phases.len() >= PHASES_MIN).then(|| (0..series.chunks()).map(at).collect())
    }
}

/// The value at `at` of the line of least squares through these points, at least zero.
fn extrapolate<I: Iterator<Item = (f64, f64)>>(points: impl Fn() -> I, at: f64) -> f64 {
    let count = points().count() as f64;
    let (sum_x, sum_y) = points().fold((0.0, 0.0), |(xs, ys), (x, y)| (xs + x, ys + y));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let (products, squares) = points().fold((0.0, 0.0), |(products, squares), (x, y)| {
        (products + (x - mean_x) * (y - mean_y), squares + (x - mean_x).powi(2))
    });
    if count < PHASES_MIN as f64 || squares <= 0.0 {
        return f64::NAN;
    }
    (mean_y + products / squares * (at - mean_x)).max(0.0)
}
