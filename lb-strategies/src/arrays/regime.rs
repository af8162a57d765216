//! Estimates how long a share or a load will stay as it is. The balancer uses this time as the horizon of a plan's
//! gain.
//!
//! A *regime* is a time for which such a value does not change, except by chance. A regime younger than the mean of
//! earlier regimes is expected to reach that mean. An older regime is expected to last as long again as it has lasted.

/// Weight of the newest regime in the mean.
const WEIGHT: f64 = 0.3;
/// A rank with a smaller share is disturbed.
const QUIET: f64 = 0.9;

/// The lengths of regimes of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    /// Mean length, ns; 0 before the first regime has ended.
    mean_ns: f64,
}

impl Lengths {
    fn add(&mut self, lasted_ns: f64) {
        let weight = if self.mean_ns == 0.0 { 1.0 } else { WEIGHT };
        self.mean_ns += weight * (lasted_ns - self.mean_ns);
    }

    /// The time for which a regime of this age is expected to go on, ns.
    fn remaining_ns(&self, lasted_ns: f64) -> f64 {
        if lasted_ns < self.mean_ns { self.mean_ns - lasted_ns } else { lasted_ns }
    }
}

/// The regimes of one value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Regime {
    lasted_ns: f64,
    lengths: Lengths,
}

impl Regime {
    /// Notes that a window of this length has ended, in which the value `changed` or not.
    pub(super) fn follow(&mut self, changed: bool, window_ns: f64) {
        if changed && self.lasted_ns > 0.0 {
            self.lengths.add(self.lasted_ns);
            self.lasted_ns = 0.0;
        }
        self.lasted_ns += window_ns;
    }

    /// The time for which the value is expected to stay as it is, ns.
    pub(super) fn remaining_ns(&self) -> f64 {
        self.lengths.remaining_ns(self.lasted_ns)
    }
}

/// How long a rank has been quiet or disturbed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ShareRegime {
    is_disturbed: bool,
    lasted_ns: f64,
}

impl ShareRegime {
    /// Notes that a window of this length has ended, after which the rank has this share. Returns the regime that ended
    /// with it, if any.
    pub(super) fn follow(&mut self, share: f64, window_ns: f64) -> Option<ShareRegime> {
        let is_disturbed = share < QUIET;
        let ended = (is_disturbed != self.is_disturbed && self.lasted_ns > 0.0).then_some(*self);
        if ended.is_some() {
            *self = ShareRegime { is_disturbed, lasted_ns: 0.0 };
        }
        self.is_disturbed = is_disturbed;
        self.lasted_ns += window_ns;
        ended
    }
}

/// The lengths of the share regimes of all ranks together, because neighbours behave alike on all ranks. Visits of
/// neighbours may be short and the times between them long, so each kind has its own mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShareRegimes {
    quiet: Lengths,
    disturbed: Lengths,
}

impl ShareRegimes {
    /// Notes that the regime of a rank has ended.
    pub(super) fn ended(&mut self, regime: ShareRegime) {
        let lengths = if regime.is_disturbed { &mut self.disturbed } else { &mut self.quiet };
        lengths.add(regime.lasted_ns);
    }

    /// The time for which a rank is expected to stay as it is, ns.
    pub(super) fn remaining_ns(&self, regime: ShareRegime) -> f64 {
        let lengths = if regime.is_disturbed { self.disturbed } else { self.quiet };
        lengths.remaining_ns(regime.lasted_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expectation after windows of 1 ns, in some of which it has changed.
    fn remaining(windows: impl IntoIterator<Item = bool>) -> f64 {
        let mut regime = Regime::default();
        windows.into_iter().for_each(|changed| regime.follow(changed, 1.0));
        regime.remaining_ns()
    }

    #[test]
    fn the_first_regime_lasts_as_long_again() {
        assert_eq!(
            [1, 5].map(|windows| remaining(vec![false; windows]).to_bits()),
            [1.0f64, 5.0].map(f64::to_bits)
        );
    }

    #[test]
    fn a_young_regime_is_expected_to_become_as_old_as_those_before_and_an_older_one_to_last_as_long_again() {
        let turns = |more: usize| (0..100 + more).map(|window| window % 20 == 0 && window < 101);
        assert_eq!(remaining(turns(5)).to_bits(), 15.0f64.to_bits());
        assert_eq!(remaining(turns(60)).to_bits(), 60.0f64.to_bits());
    }

    #[test]
    fn short_visits_of_neighbours_are_expected_to_be_short_again_however_long_ranks_are_quiet() {
        let (mut regimes, mut regime) = (ShareRegimes::default(), ShareRegime::default());
        let mut follow = |share, windows| {
            for _ in 0..windows {
                regime.follow(share, 1.0).into_iter().for_each(|regime| regimes.ended(regime));
            }
            regimes.remaining_ns(regime)
        };
        for _ in 0..3 {
            follow(1.0, 300);
            // The neighbour came in the middle of a window.
            follow(0.8, 1);
            follow(0.5, 9);
        }
        assert!((follow(1.0, 10) - 290.0).abs() < 1e-9);
        assert!((follow(0.5, 4) - 6.0).abs() < 1e-9);
    }
}
