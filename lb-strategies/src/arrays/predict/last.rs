//! The last phase again.

use super::{Predictor, Series};

/// The next phase is like the last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last;

impl Predictor for Last {
    fn predict(&self, series: &Series<'_>, _: f64) -> Option<Vec<f64>> {
        series.loads(0).map(<[f64]>::to_vec)
    }
}
