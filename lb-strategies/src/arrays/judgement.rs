//! Decides how large the predicted gain of a plan must be to be carried out, where phases are balancing windows (there
//! are no syncs). Small gains may be errors of the prediction, and earlier plans may not have saved what was predicted.
//!
//! A plan must gain more than max(noise, surprise, cost of its moves) / trust:
//!
//! | term | part of a window's length | limits |
//! |---|---|---|
//! | noise | the error of predictions, in the mean of the last windows | 1.5 % to 8 % |
//! | surprise | the error of the newest prediction, so that an unexpected gain must be found in two windows | up to 15 % |
//! | trust | the part of its predicted gain that a plan has saved, in the mean of earlier plans | 10 % to 100 % |

/// Weight of the newest window.
const WEIGHT: f64 = 0.3;
/// Weight of the newest window in the mean imbalance.
const IMBALANCE_WEIGHT: f64 = 0.15;
/// Noise before the first prediction.
const NOISE: f64 = 0.03;
/// Least and largest noise.
const NOISE_MIN: f64 = 0.015;
const NOISE_MAX: f64 = 0.08;
/// Largest surprise.
const SURPRISE_MAX: f64 = 0.15;
/// Least trust, and the trust that a window without a plan restores.
const TRUST_MIN: f64 = 0.1;
const RESTORED: f64 = 0.02;

/// The record of predictions and plans.
#[derive(Clone, Debug)]
pub(super) struct Judgement {
    /// Predicted completion time of each rank in this window, over the mean of ranks; none before the first prediction.
    predicted: Option<Vec<f64>>,
    noise: f64,
    /// The error of the newest prediction; the largest that counts before the first.
    surprise: f64,
    /// The gain of the plan that was carried out last.
    planned: Option<f64>,
    trust: f64,
    /// Maximum over mean of completion times, in the mean of the last windows.
    imbalance: f64,
}

impl Default for Judgement {
    fn default() -> Judgement {
        Judgement {
            predicted: None,
            noise: NOISE,
            surprise: SURPRISE_MAX,
            planned: None,
            trust: 1.0,
            imbalance: 1.0,
        }
    }
}

impl Judgement {
    /// Notes that a window has ended with these times. Without the moves before it, the longest would be `unmoved_ns`.
    pub(super) fn follow(&mut self, completion_ns: &[u64], unmoved_ns: Option<u64>) {
        let measured = relative(completion_ns);
        self.imbalance += IMBALANCE_WEIGHT * (measured.iter().copied().fold(0.0, f64::max) - self.imbalance);
        if let Some(predicted) = self.predicted.take() {
            let errors =
                predicted.iter().zip(&measured).map(|(predicted, measured)| (predicted - measured).abs());
            self.surprise = errors.fold(0.0, f64::max);
            self.noise += WEIGHT * (self.surprise - self.noise);
        }
        match (self.planned.take(), unmoved_ns) {
            (Some(planned), Some(unmoved_ns)) if unmoved_ns > 0 => {
                let makespan_ns = completion_ns.iter().copied().max().unwrap_or(0);
                let saved = 1.0 - makespan_ns as f64 / unmoved_ns as f64;
                let kept = (saved / planned).clamp(0.0, 1.0);
                self.trust += WEIGHT * (kept - self.trust);
            }
            _ => self.trust = (self.trust + RESTORED).min(1.0),
        }
    }

    /// Notes that chunks are scattered: this imbalance is expected, and earlier values no longer count.
    pub(super) fn scattered(&mut self, imbalance: f64) {
        self.imbalance = imbalance;
    }

    /// Drops what was expected of the next window, because others have changed it.
    pub(super) fn forget_expectations(&mut self) {
        (self.predicted, self.planned) = (None, None);
    }

    /// The error of predictions, as a part of a window, in the mean of the last windows.
    pub(super) fn noise(&self) -> f64 {
        self.noise
    }

    /// Maximum over mean of completion times, in the mean of the last windows.
    pub(super) fn imbalance(&self) -> f64 {
        self.imbalance
    }

    /// The gain that a plan must exceed, ns, for a window of `makespan_ns` and moves of `cost_ns`.
    pub(super) fn required_gain_ns(&self, makespan_ns: u64, cost_ns: u64) -> u64 {
        let noise = self.noise.clamp(NOISE_MIN, NOISE_MAX).max(self.surprise.min(SURPRISE_MAX));
        let noise_ns = noise * makespan_ns as f64;
        (noise_ns.max(cost_ns as f64) / self.trust.max(TRUST_MIN)) as u64
    }

    /// Sets the expectations for the next window: completion times, and the gain of the plan if one is carried out.
    pub(super) fn expect(&mut self, completion_ns: &[u64], gain: Option<f64>) {
        self.predicted = Some(relative(completion_ns));
        self.planned = gain.filter(|&gain| gain > 0.0);
    }
}

/// Times over their mean.
fn relative(times_ns: &[u64]) -> Vec<f64> {
    let sum: f64 = times_ns.iter().map(|&ns| ns as f64).sum();
    let mean = (sum / times_ns.len().max(1) as f64).max(1.0);
    times_ns.iter().map(|&ns| ns as f64 / mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows in which the first rank takes this much longer than the second, or less, in turn; equal times are
    /// expected.
    fn after_noise(noise: f64, windows: usize) -> Judgement {
        let mut judgement = Judgement::default();
        for window in 0..windows {
            judgement.expect(&[1000, 1000], None);
            let sign = if window % 2 == 0 { 1.0 } else { -1.0 };
            judgement.follow(
                &[(1000.0 * (1.0 + sign * noise)) as u64, (1000.0 * (1.0 - sign * noise)) as u64],
                None,
            );
        }
        judgement
    }

    #[test]
    fn a_gain_below_the_noise_is_not_believed_and_a_large_one_always_is() {
        let (quiet, noisy) = (after_noise(0.0, 20), after_noise(0.06, 20));
        assert!(quiet.required_gain_ns(1000, 0) < 30 && noisy.required_gain_ns(1000, 0) > 50);
        assert_eq!(quiet.required_gain_ns(1000, 0), 15, "the least noise");
        let mut noisiest = after_noise(0.5, 20);
        assert_eq!(noisiest.required_gain_ns(1000, 0), 150, "the largest error of one window");
        noisiest.expect(&[1500, 500], None);
        noisiest.follow(&[1500, 500], None);
        assert_eq!(
            noisiest.required_gain_ns(1000, 0),
            80,
            "the largest noise, where the newest window was expected"
        );
        assert_eq!(quiet.required_gain_ns(1000, 100), 100, "what the moves cost");
    }

    #[test]
    fn a_gain_that_was_not_expected_is_believed_in_the_second_window() {
        let mut judgement = after_noise(0.0, 20);
        judgement.expect(&[1000, 1000], None);
        judgement.follow(&[1100, 900], None);
        assert_eq!(judgement.required_gain_ns(1000, 0), 100, "a window of another kind");
        judgement.expect(&[1080, 920], None);
        judgement.follow(&[1100, 900], None);
        assert!(judgement.required_gain_ns(1000, 0) < 40, "{judgement:?}");
    }

    #[test]
    fn plans_that_save_nothing_are_trusted_less_until_loads_have_been_left_alone() {
        let mut judgement = after_noise(0.0, 20);
        for _ in 0..10 {
            judgement.expect(&[1000, 1000], Some(0.05));
            judgement.follow(&[1000, 1000], Some(1000));
        }
        assert!(judgement.required_gain_ns(1000, 0) > 100, "{judgement:?}");
        (0..50).for_each(|_| judgement.follow(&[1000, 1000], None));
        assert!(judgement.required_gain_ns(1000, 0) < 30, "{judgement:?}");
    }
}
