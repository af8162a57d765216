//! Chooses the predictor of loads by the errors of earlier predictions. The balancer predicts each phase (the time
//! between two syncs, or a balancing window) with it.

use super::history::MANY_CHUNKS;
use super::{Drift, Last, Prediction, Predictor, Seasonal, Series, Smoothing, Trend};
use crate::arrays::regime::Regime;
use crate::arrays::strategy::Terms;

/// Weight of the newest error.
const WEIGHT: f64 = 0.25;
/// Another predictor replaces smoothing if its error is below the first part of smoothing's error. It is dropped again
/// if its error is above the second part.
const CHOSEN: f64 = 0.75;
const LEFT: f64 = 0.9;
/// For both, its error must be less than smoothing's by at least this.
const BETTER: f64 = 0.02;
/// Number of predictions before a predictor may be chosen.
const TRIED: u32 = 2;

/// The largest error that counts.
const ERROR_MAX: f64 = 2.0;
/// While the error of smoothing is below this, no other predictor is tried.
const STEADY: f64 = 0.02;
/// An error of smoothing is unusual if it is above this multiple of the mean error and above the second value.
const UNUSUAL: f64 = 2.0;
const UNUSUAL_MIN: f64 = 0.05;

/// The error of a predictor.
#[derive(Clone, Copy, Default)]
struct Record {
    /// Mean, over phases, of the sum of the prediction errors divided by the sum of the measured loads.
    error: f64,
    predictions: u32,
}

/// Predicts with the configured predictor, or under `auto` with the best one so far.
pub(in crate::arrays) struct Chooser {
    asked: Prediction,
    smoothing: Smoothing,
    chosen: Prediction,
    records: [Record; CANDIDATES.len()],
    /// The time for which smoothing has predicted as well as usual.
    regime: Regime,
}

/// Candidates under `auto`. The first one is used unless another is better.
const CANDIDATES: [Prediction; 4] =
    [Prediction::Smoothing, Prediction::Drift, Prediction::Seasonal, Prediction::Trend];

impl Chooser {
    /// The chooser of a run. A strategy that moves chunks whether it pays or not always gets smoothing, with its own
    /// weight.
    pub(in crate::arrays) fn new(asked: Prediction, terms: &Terms) -> Chooser {
        let smoothing = Smoothing { weight: terms.smoothing };
        let asked = if terms.must_pay { asked } else { Prediction::Smoothing };
        let chosen = if asked == Prediction::Auto { Prediction::Smoothing } else { asked };
        Chooser {
            asked,
            smoothing,
            chosen,
            records: [Record::default(); CANDIDATES.len()],
            regime: Regime::default(),
        }
    }

    /// The predictor in use.
    pub(in crate::arrays) fn chosen(&self) -> Prediction {
        self.chosen
    }

    /// The error of the predictor in use, as a part of the sum of all loads.
    pub(in crate::arrays) fn error(&self) -> f64 {
        let used = CANDIDATES.iter().position(|&candidate| candidate == self.chosen);
        used.map_or(0.0, |used| self.records[used].error)
    }

    /// The time for which loads are expected to stay as predicted, ns; 0 if the predictor itself predicts their change.
    pub(in crate::arrays) fn remaining_ns(&self) -> f64 {
        match self.chosen {
            Prediction::Auto | Prediction::Last | Prediction::Smoothing => self.regime.remaining_ns(),
            Prediction::Trend | Prediction::Seasonal | Prediction::Drift => 0.0,
        }
    }

    /// Learns the prediction errors on the newest phase of the series, which took `phase_ns`. Predictors other than
    /// smoothing, which is the cheapest, are compared only if `tries` is true.
    pub(in crate::arrays) fn learn(&mut self, series: &Series<'_>, phase_ns: f64, tries: bool) {
        let before = series.before();
        let Some(measured) = series.loads(0).filter(|_| before.phases() > 0) else { return };
        let steady = self.records[0].predictions >= TRIED && self.records[0].error < STEADY;
        let chooses = self.asked == Prediction::Auto && series.chunks() < MANY_CHUNKS;
        let tried = if chooses && !steady && tries { CANDIDATES.len() } else { 1 };
        for (number, candidate) in CANDIDATES.into_iter().enumerate().take(tried) {
            let Some(predicted) = self.predict_by(candidate, &before, series.steps(0)) else {
                self.records[number] = Record::default();
                continue;
            };
            let error = error(&predicted, measured);
            let record = &mut self.records[number];
            if number == 0 {
                let usual = error <= UNUSUAL * record.error || error <= UNUSUAL_MIN;
                self.regime.follow(!usual, phase_ns);
            }
            let weight = if record.predictions == 0 { 1.0 } else { WEIGHT };
            record.error += weight * (error - record.error);
            record.predictions += 1;
        }
        if self.asked == Prediction::Auto {
            self.choose();
        }
    }

    fn choose(&mut self) {
        let to_beat = self.records[0].error;
        let part = |number: usize| if CANDIDATES[number] == self.chosen { LEFT } else { CHOSEN };
        let beats = |&number: &usize| {
            let record = self.records[number];
            let is_better = record.error < part(number) * to_beat && to_beat - record.error > BETTER;
            record.predictions >= TRIED && is_better
        };
        let weighted = |number: &usize| self.records[*number].error / part(*number);
        let best = (1..CANDIDATES.len()).filter(beats).min_by(|a, b| weighted(a).total_cmp(&weighted(b)));
        self.chosen = CANDIDATES[best.unwrap_or(0)];
    }

    /// The mean load of each chunk in the coming `steps` steps.
    pub(in crate::arrays) fn predict(&self, series: &Series<'_>, steps: f64) -> Vec<f64> {
        let newest = series.loads(0).unwrap_or_default();
        let predicted = self.predict_by(self.chosen, series, steps);
        match predicted.or_else(|| self.smoothing.predict(series, steps)) {
            None => newest.to_vec(),
            Some(loads) => loads
                .iter()
                .zip(newest)
                .map(|(load, last)| if load.is_nan() { *last } else { *load })
                .collect(),
        }
    }

    fn predict_by(&self, prediction: Prediction, series: &Series<'_>, steps: f64) -> Option<Vec<f64>> {
        match prediction {
            Prediction::Auto | Prediction::Smoothing => self.smoothing.predict(series, steps),
            Prediction::Last => Last.predict(series, steps),
            Prediction::Trend => Trend.predict(series, steps),
            Prediction::Seasonal => Seasonal.predict(series, steps),
            Prediction::Drift => Drift.predict(series, steps),
        }
    }
}

/// The sum of the differences, divided by the sum of the measured loads. A load without a prediction counts as
/// predicted 0.
fn error(predicted: &[f64], measured: &[f64]) -> f64 {
    let difference = |(predicted, measured): (&f64, &f64)| match (predicted - measured).abs() {
        difference if difference.is_nan() => measured.abs(),
        difference => difference,
    };
    let differences: f64 = predicted.iter().zip(measured).map(difference).sum();
    let sum: f64 = measured.iter().sum();
    if sum > 0.0 { (differences / sum).min(ERROR_MAX) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::History;
    use super::*;
    use crate::arrays::snapshot::{ArrayId, ChunkId};

    /// The chooser after phases of 32 chunks with these loads.
    fn after(asked: Prediction, phases: usize, load: impl Fn(usize, usize) -> f64) -> (Chooser, History) {
        let mut chooser = Chooser::new(asked, &Terms::default());
        let mut history = History::default();
        for phase in 0..phases {
            let id = |key| ChunkId { array: ArrayId(0), key };
            history.push(
                (0..32).map(|key| (id(key), load(phase, key as usize))).collect::<Vec<_>>().into_iter(),
                1.0,
            );
            chooser.learn(&history.series(), 1.0, true);
        }
        (chooser, history)
    }

    fn spot(phase: usize, key: usize) -> f64 {
        if (key + 32 - 3 * phase % 32) % 32 < 4 { 10.0 } else { 1.0 }
    }

    #[test]
    fn drift_is_chosen_for_a_spot_that_moves_and_says_where_it_will_be() {
        let (chooser, history) = after(Prediction::Auto, 8, spot);
        assert_eq!(chooser.chosen(), Prediction::Drift);
        let predicted = chooser.predict(&history.series(), 1.0);
        let off = |loads: &[f64]| (0..32).map(|key| (loads[key] - spot(8, key)).abs()).sum::<f64>();
        let series = history.series();
        let last = series.loads(0).unwrap_or_default();
        assert!(off(&predicted) < 0.5 * off(last), "{predicted:?}");
        assert_eq!(chooser.remaining_ns().to_bits(), 0.0f64.to_bits(), "it moves on");
    }

    #[test]
    fn a_cycle_is_found_and_a_steady_load_with_noise_is_smoothed() {
        let swap = |phase: usize, key: usize| if phase % 2 == key / 16 { 3.0 } else { 1.0 };
        assert_eq!(after(Prediction::Auto, 10, swap).0.chosen(), Prediction::Seasonal);
        let noise = |phase: usize, key: usize| {
            let mixed = (1 + 64 * phase as u64 + key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            1.0 + 0.2 * (mixed >> 40) as f64 / (1 << 24) as f64
        };
        let (chooser, _) = after(Prediction::Auto, 12, noise);
        assert_eq!(chooser.chosen(), Prediction::Smoothing);
        assert!(chooser.remaining_ns() > 5.0, "{}", chooser.remaining_ns());
    }

    #[test]
    fn a_predictor_that_was_asked_for_stays() {
        assert_eq!(after(Prediction::Last, 8, spot).0.chosen(), Prediction::Last);
        let own = Terms { must_pay: false, ..Terms::default() };
        assert_eq!(Chooser::new(Prediction::Drift, &own).chosen(), Prediction::Smoothing);
    }
}
