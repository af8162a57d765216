//! How long something that changes now and then stays as it is.

/// Weight of the newest regime.
const WEIGHT: f64 = 0.3;
/// The lengths of regimes, in ns: the present one, and those before it.
///
/// What is younger than the mean regime is expected to last until that age, what is older as long again as it has lasted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Regime {
    lasted_ns: f64,
    /// Mean length of the regimes before; 0 before the first change.
    mean_ns: f64,
}

impl Regime {
    /// A window of this length is over, in which it has `changed`.
    pub(super) fn follow(&mut self, changed: bool, window_ns: f64) {
        if changed && self.lasted_ns > 0.0 {
            let weight = if self.mean_ns == 0.0 { 1.0 } else { WEIGHT };
            self.mean_ns += weight * (self.lasted_ns - self.mean_ns);
            self.lasted_ns = 0.0;
        }
        self.lasted_ns += window_ns;
    }

    /// The time for which it is expected to stay as it is, ns.
    pub(super) fn expected_ns(&self) -> f64 {
        if self.lasted_ns < self.mean_ns { self.mean_ns - self.lasted_ns } else { self.lasted_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expectation after windows of 1 ns, in some of which it has changed.
    fn expected(windows: impl IntoIterator<Item = bool>) -> f64 {
        let mut regime = Regime::default();
        windows.into_iter().for_each(|changed| regime.follow(changed, 1.0));
        regime.expected_ns()
    }

    #[test]
    fn the_first_regime_lasts_as_long_again() {
        assert_eq!(
            [1, 5].map(|windows| expected(vec![false; windows]).to_bits()),
            [1.0f64, 5.0].map(f64::to_bits)
        );
    }

    #[test]
    fn a_young_regime_is_expected_to_become_as_old_as_those_before_and_an_older_one_to_last_as_long_again() {
        let turns = |more: usize| (0..100 + more).map(|window| window % 20 == 0 && window < 101);
        assert_eq!(expected(turns(5)).to_bits(), 15.0f64.to_bits());
        assert_eq!(expected(turns(60)).to_bits(), 60.0f64.to_bits());
    }
}
