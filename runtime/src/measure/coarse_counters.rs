//! What the kernel tells slowly and in coarse steps, read no more often than it can have changed for a phase.
//!
//! `/proc/stat` counts in ticks of 10 ms, and a quota stops a thread for the rest of a period, which is 100 ms by default: a
//! phase under 1 ms has no tick of its own, and was hardly ever stopped. Syncs that follow each other that fast share a reading,
//! which would cost more than what lies between them. What it tells is then all of the last phase: where periods are as short as
//! phases, most of what a quota took is not seen.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::background::ProcStat;
use super::cgroup::{Throttled, Throttling};

/// Phases shorter than this can do without a reading of their own, ns.
const SHORT_NS: u64 = 1_000_000;
/// The age at which a reading is not good for them either: a tick of `/proc/stat`, ns.
const AGE_MAX_NS: u64 = 10_000_000;

/// The last reading of these gauges, for all workers of a rank.
#[derive(Default)]
pub(super) struct CoarseCounters {
    throttling: Throttling,
    last: Mutex<Reading>,
}

/// The vCPUs, and how long quotas have stopped the rank.
#[derive(Default)]
pub(super) struct Reading {
    /// When it was taken; none was at first.
    at_ns: Option<u64>,
    pub(super) stat: ProcStat,
    pub(super) throttled: Throttled,
}

impl CoarseCounters {
    /// A reading for a phase of this length that ends now. About 30 us, unless the last one will do.
    pub(super) fn read(&self, now_ns: u64, phase_ns: u64) -> MutexGuard<'_, Reading> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.is_recent_enough(now_ns, phase_ns) {
            *last =
                Reading { at_ns: Some(now_ns), stat: ProcStat::read(), throttled: self.throttling.read() };
        }
        last
    }
}

impl Reading {
    fn is_recent_enough(&self, now_ns: u64, phase_ns: u64) -> bool {
        phase_ns < SHORT_NS && self.at_ns.is_some_and(|at_ns| now_ns.saturating_sub(at_ns) < AGE_MAX_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_phases_share_a_reading_for_a_tick_and_a_long_one_has_its_own() {
        let coarse = CoarseCounters::default();
        let taken_at = |now_ns, phase_ns| coarse.read(now_ns, phase_ns).at_ns;
        assert_eq!(taken_at(5, 5), Some(5), "there was none");
        assert_eq!(taken_at(SHORT_NS, SHORT_NS - 5), Some(5));
        assert_eq!(taken_at(2 * SHORT_NS, SHORT_NS), Some(2 * SHORT_NS), "a thread may have been stopped");
        assert_eq!(taken_at(2 * SHORT_NS + AGE_MAX_NS - 1, 1), Some(2 * SHORT_NS));
        assert_eq!(taken_at(2 * SHORT_NS + AGE_MAX_NS, 1), Some(2 * SHORT_NS + AGE_MAX_NS));
    }
}
