//! Predicts loads that return in cycles: the phase a cycle ago comes again.

use super::{Predictor, Series};

/// The longest cycle, in phases.
const CYCLE_MAX: usize = 7;
/// Phases count as equally long if they differ by at most this part.
const EQUAL: f64 = 0.05;

/// Expects loads to return every 2 to 7 phases. The cycle is the one by which the last phases differ least from the
/// phases a cycle before. There is no prediction where phases differ in length, or before two cycles are over. Time is
/// linear in the number of chunks.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, predict::{Predictor, Seasonal, Series}};
/// let ids = [ChunkId { array: ArrayId(0), key: 0 }];
/// let phases = [1.0, 5.0, 3.0, 1.0, 5.0, 3.0, 1.0].map(|load| (vec![load], 1.0));
/// assert_eq!(Seasonal.predict(&Series::of(&ids, phases.into()), 1.0), Some(vec![5.0]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Seasonal;

impl Predictor for Seasonal {
    fn predict(&self, series: &Series<'_>, steps: f64) -> Option<Vec<f64>> {
        let is_equal = |back: usize| (series.steps(back) - steps).abs() <= EQUAL * steps;
        let known = (0..series.phases()).take_while(|&back| is_equal(back)).count();
        let deviation = |cycle: usize| -> f64 {
            (0..cycle).map(|back| distance(series, back, back + cycle)).sum::<f64>() / cycle as f64
        };
        let cycles = (2..=CYCLE_MAX.min(known / 2)).map(|cycle| (deviation(cycle), cycle));
        let (_, cycle) = cycles.min_by(|a, b| a.0.total_cmp(&b.0))?;
        series.loads(cycle - 1).map(<[f64]>::to_vec)
    }
}

/// The sum of the absolute differences between two phases.
fn distance(series: &Series<'_>, back: usize, further: usize) -> f64 {
    let (Some(a), Some(b)) = (series.loads(back), series.loads(further)) else { return f64::INFINITY };
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).filter(|difference| !difference.is_nan()).sum()
}
