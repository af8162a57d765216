//! Sums up what another method would have saved, to decide whether to switch to it (a cumulative sum test).
//!
//! Source: Page, Continuous inspection schemes, Biometrika 41 (1954). The savings of the other method are added up, and
//! a negative sum becomes 0. So a large difference is detected soon, a small one late. The sum counts when it exceeds
//! chance.

/// Number of changes from step to step over which the variance is averaged.
const MEMORY: f64 = 50.0;

/// Seconds that another method would have saved, since it last saved nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Regret {
    pub(crate) seconds: f64,
    /// The saving in the last step, s.
    last: Option<f64>,
    /// Variance of the saving in a step, s^2: half the mean square of its changes from step to step (von Neumann,
    /// 1941). So a single change of load does not count as noise.
    variance: f64,
    /// Number of changes in the variance, up to [`MEMORY`].
    known: f64,
}

impl Regret {
    /// Adds a step in which the other method would have saved `saved` s. Saving `tolerance` s is not worth a switch.
    pub(crate) fn add(&mut self, saved: f64, tolerance: f64) {
        if let Some(last) = self.last.replace(saved) {
            self.known = (self.known + 1.0).min(MEMORY);
            self.variance += ((saved - last).powi(2) / 2.0 - self.variance) / self.known;
        }
        self.seconds = (self.seconds + saved - tolerance).max(0.0);
    }

    /// Corrects the sum by `saved` s, because of later knowledge of these steps.
    pub(crate) fn correct(&mut self, saved: f64) {
        self.seconds = (self.seconds + saved).max(0.0);
    }

    /// Restarts at 0, because another method is in force.
    pub(crate) fn restart(&mut self) {
        (self.seconds, self.last) = (0.0, None);
    }

    /// True if the sum exceeds the price of a switch, s, plus `patience` standard deviations of a step. False after one
    /// step, because the deviation is unknown then.
    pub(crate) fn exceeds(&self, price: f64, patience: f64) -> bool {
        self.known > 0.0 && self.seconds > patience * self.variance.sqrt() + price
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the first step at which the savings exceed a price of 10 s.
    fn found(saved: impl Fn(u32) -> f64) -> Option<u32> {
        let mut regret = Regret::default();
        (0..1000).find(|&step| {
            regret.add(saved(step), 0.1);
            regret.exceeds(10.0, 5.0)
        })
    }

    #[test]
    fn a_great_change_is_found_soon_a_small_one_at_last_and_chance_never() {
        assert_eq!(found(|_| 20.0), Some(1), "one step may be chance");
        let late = found(|step| if step < 500 { -20.0 } else { 20.0 });
        assert_eq!(late, Some(501), "what was before is forgotten");
        assert_eq!(found(|_| 0.6), Some(20), "half a second more than is tolerated, 21 times");
        assert_eq!(found(|_| 0.1), None);
        assert_eq!(found(|step| if step % 2 == 0 { 5.0 } else { -5.0 }), None);
        let mostly = found(|step| if step % 3 == 0 { -5.0 } else { 5.0 });
        assert!((10..40).contains(&mostly.expect("it saves 5 s in three steps")), "{mostly:?}");
    }
}
