//! Whether to believe a plan, where phases are windows. Its gain is compared with the errors of predictions so far, and
//! with the real savings of plans.
//!
//! Both are parts of the length of a window. A plan is believed if its gain, times the trust in plans, is more than the
//! noise. In a quiet run the gain of a plan is noise, and nothing moves. A gain below the error of the newest prediction
//! has to be found in two windows: in the second one it is expected.

/// Weight of the newest window.
const WEIGHT: f64 = 0.3;
/// The same in the mean imbalance.
const IMBALANCE_WEIGHT: f64 = 0.15;
/// The noise before it is known.
const NOISE: f64 = 0.03;
/// The least and the largest noise: a plan that gains more than the largest is believed in any case.
const NOISE_MIN: f64 = 0.015;
const NOISE_MAX: f64 = 0.08;
/// The largest error of the newest window that counts: a plan that gains more is believed at once.
const SURPRISE_MAX: f64 = 0.15;
/// The least trust in plans, and how much a window without a plan restores.
const TRUST_MIN: f64 = 0.1;
const RESTORED: f64 = 0.02;

/// The record of predictions and plans.
#[derive(Clone, Debug)]
pub(super) struct Judgement {
    /// The completion time of each rank as predicted for this window, over the mean of all ranks; none before the first.
    predicted: Option<Vec<f64>>,
    noise: f64,
    /// The error of the newest window; before the first the largest that counts.
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
    /// A window has ended, with these completion times. Without the moves before it the longest would have been `unmoved_ns`.
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

    /// Chunks are scattered, so this imbalance is expected, and earlier ones no longer count.
    pub(super) fn scattered(&mut self, imbalance: f64) {
        self.imbalance = imbalance;
    }

    /// The error of predictions, as a part of a window, in the mean of the last windows.
    pub(super) fn noise(&self) -> f64 {
        self.noise
    }

    /// Maximum over mean of completion times, in the mean of the last windows.
    pub(super) fn imbalance(&self) -> f64 {
        self.imbalance
    }

    /// The gain above which a plan is believed, ns: for a window of `makespan_ns`, and moves of `cost_ns`.
    pub(super) fn required_gain_ns(&self, makespan_ns: u64, cost_ns: u64) -> u64 {
        let noise = self.noise.clamp(NOISE_MIN, NOISE_MAX).max(self.surprise.min(SURPRISE_MAX));
        let noise_ns = noise * makespan_ns as f64;
        (noise_ns.max(cost_ns as f64) / self.trust.max(TRUST_MIN)) as u64
    }

    /// Sets the expectations for the next window: completion times of ranks, and the gain of the plan if one is carried
    /// out.
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

    /// Windows in which the first rank takes this much longer than the second, or less, in turn; equal ones are expected.
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
