//! Divides the time that workers lost among its causes: other threads, a quota, the hypervisor, or unknown.
//!
//! Handlers measure how much time they lost. Ranks sample the causes. The two measurements seldom agree to the
//! microsecond, so the handlers determine the amount and the samples determine the proportions.

use caribou::trace::Sample;
use trace_reader::{RankTrace, Trace};

use super::bins::Bins;
use super::time_breakdown::TimeBreakdown;
use crate::trace::select::Selection;

/// Smallest fraction of time that the text mentions.
const BESIDE_MIN: f64 = 0.005;

/// Lost time by cause, as ranks sampled it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LostTime {
    /// Another thread ran on the vCPU. Excludes time under a quota.
    pub(crate) wait_ns: f64,
    pub(crate) throttled_ns: f64,
    pub(crate) steal_ns: f64,
    /// The handler slept or did I/O, or the host does not report the cause.
    pub(crate) unexplained_ns: f64,
    /// Time lost outside of handlers, according to samples. It is part of the runtime's time and of idle time.
    pub(crate) outside_handlers_ns: f64,
}

impl LostTime {
    /// Divides `lost_ns` in proportion to the samples. Samples include time lost outside of handlers: if they exceed
    /// `lost_ns`, all causes shrink by the same factor.
    pub(crate) fn of(lost_ns: f64, [waited_ns, steal_ns, throttled_ns]: [f64; 3]) -> LostTime {
        let explained_ns = waited_ns + steal_ns;
        let fits = if explained_ns > lost_ns { lost_ns / explained_ns } else { 1.0 };
        let throttled_ns = throttled_ns.min(waited_ns);
        LostTime {
            wait_ns: (waited_ns - throttled_ns) * fits,
            throttled_ns: throttled_ns * fits,
            steal_ns: steal_ns * fits,
            unexplained_ns: (lost_ns - explained_ns).max(0.0),
            outside_handlers_ns: (explained_ns - lost_ns).max(0.0),
        }
    }
}

impl LostTime {
    /// The sum over the selected ranks, each divided separately.
    pub(crate) fn of_selection(trace: &Trace, spent: &TimeBreakdown, selection: &Selection) -> LostTime {
        let parts = spent.by_rank();
        let mut sum = LostTime::default();
        for rank in selection.ranks(trace) {
            let lost_ns = parts.get(&rank.rank).map_or(0.0, |parts| parts.lost_ns);
            sum += LostTime::of(lost_ns, sampled(rank, &spent.bins).map(|bins| bins.iter().sum()));
        }
        sum
    }
}

/// Describes the time lost outside of handlers; none if it is negligible.
pub(crate) fn outside_handlers_text(spent: &TimeBreakdown, taken: &LostTime) -> Option<String> {
    let beside = spent.parts().share(taken.outside_handlers_ns);
    let percent = 100.0 * beside;
    (beside > BESIDE_MIN).then(|| {
        format!(
            "samples show another {percent:.1} % lost outside of handlers, which counts as runtime and idle"
        )
    })
}

impl std::ops::AddAssign for LostTime {
    fn add_assign(&mut self, other: LostTime) {
        self.wait_ns += other.wait_ns;
        self.throttled_ns += other.throttled_ns;
        self.steal_ns += other.steal_ns;
        self.unexplained_ns += other.unexplained_ns;
        self.outside_handlers_ns += other.outside_handlers_ns;
    }
}

/// Waited, stolen and throttled time of a rank in each bin, in ns. A sample is spread over the time since the last one.
pub(crate) fn sampled(rank: &RankTrace, bins: &Bins) -> [Vec<f64>; 3] {
    let mut sums = [const { Vec::new() }; 3].map(|_: Vec<f64>| vec![0.0; bins.count]);
    let mut last_ns = 0;
    for Sample { at_ns, wait_ns, steal_ns, throttled_ns, .. } in &rank.samples {
        for (sum, &ns) in sums.iter_mut().zip([wait_ns, steal_ns, throttled_ns]) {
            if ns > 0 {
                bins.spread(last_ns.min(*at_ns), *at_ns, ns as f64, sum);
            }
        }
        last_ns = *at_ns;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_time_is_divided_and_nothing_is_left_over() {
        let sum =
            |taken: LostTime| taken.wait_ns + taken.throttled_ns + taken.steal_ns + taken.unexplained_ns;
        let part = LostTime::of(100.0, [30.0, 20.0, 10.0]);
        let expected = LostTime {
            wait_ns: 20.0,
            throttled_ns: 10.0,
            steal_ns: 20.0,
            unexplained_ns: 50.0,
            outside_handlers_ns: 0.0,
        };
        assert_eq!(part, expected);
        let more = LostTime::of(100.0, [300.0, 100.0, 500.0]);
        assert!((sum(more) - 100.0).abs() < 1e-9 && (more.steal_ns - 25.0).abs() < 1e-9, "{more:?}");
        assert!((more.outside_handlers_ns - 300.0).abs() < 1e-9, "{more:?}");
    }
}
