//! Reads kernel counters that are coarse and slow to read, `/proc/stat` and throttling, only if they can have changed.
//!
//! `/proc/stat` counts in ticks of 10 ms, and a quota stops a thread for several ms at least. A phase shorter than a
//! tick has no full tick, and was not stopped unless much of its time is unexplained. Such phases share a reading until
//! it is a tick old, because separate readings would take a tenth of phases of 1 ms. The whole change is then charged
//! to the last phase. A longer phase always has a separate reading.
//!
//! In short phases, stops by a quota that are shorter than [`UNEXPLAINED_MIN_NS`] are not seen.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::background::{ProcStat, VcpuTimes};
use super::cgroup::{Throttled, Throttling};
use super::kept_files::KeptFiles;

/// A tick of `/proc/stat`, ns. Shorter phases can share a reading, unless the reading is older than a tick.
const TICK_NS: u64 = 10_000_000;
/// Minimum unexplained time for a separate reading, ns.
const UNEXPLAINED_MIN_NS: u64 = 1_000_000;

/// A phase for which the counters are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) wall_ns: u64,
    /// Time in which a worker neither ran nor waited for its vCPU nor was parked; the maximum of all workers.
    pub(super) unexplained_ns: u64,
}

impl Phase {
    /// True if an earlier reading may be used for the end of this phase.
    fn shares_a_reading(self) -> bool {
        self.wall_ns < TICK_NS && self.unexplained_ns < UNEXPLAINED_MIN_NS
    }
}

/// The last reading of these counters, for all workers of a rank.
#[derive(Default)]
pub(super) struct CoarseCounters {
    files: KeptFiles,
    throttling: Throttling,
    last: Mutex<Reading>,
}

/// A vCPU to which a worker is pinned, and its times if they are known.
pub(super) type Vcpu = (usize, Option<VcpuTimes>);

/// The times of the vCPUs, and how long quotas have stopped the rank.
#[derive(Default)]
pub(super) struct Reading {
    /// The time of the reading; none before the first.
    at_ns: Option<u64>,
    /// The vCPU of each worker; none if it is not pinned.
    pub(super) vcpus: Vec<Option<Vcpu>>,
    pub(super) throttled: Throttled,
}

impl CoarseCounters {
    /// A reading for a phase that ends now, of workers `pinned` to these vCPUs. Takes about 30 us, unless the last
    /// reading can be used.
    pub(super) fn read(
        &self,
        now_ns: u64,
        phase: Phase,
        pinned: impl Iterator<Item = Option<usize>>,
    ) -> MutexGuard<'_, Reading> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !(phase.shares_a_reading() && last.is_recent(now_ns)) {
            let stat = ProcStat::read(&self.files);
            *last = Reading {
                at_ns: Some(now_ns),
                vcpus: pinned.map(|vcpu| vcpu.map(|vcpu| (vcpu, stat.vcpu(vcpu)))).collect(),
                throttled: self.throttling.read(now_ns, &self.files),
            };
        }
        last
    }
}

impl Reading {
    fn is_recent(&self, now_ns: u64) -> bool {
        self.at_ns.is_some_and(|at_ns| now_ns.saturating_sub(at_ns) < TICK_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Phase = Phase { wall_ns: TICK_NS - 1, unexplained_ns: UNEXPLAINED_MIN_NS - 1 };

    #[test]
    fn short_phases_share_a_reading_for_a_tick_and_a_long_one_has_its_own() {
        let coarse = CoarseCounters::default();
        let taken_at = |now_ns, phase| coarse.read(now_ns, phase, [None].into_iter()).at_ns;
        assert_eq!(taken_at(5, QUIET), Some(5), "there was none");
        assert_eq!(taken_at(TICK_NS, QUIET), Some(5));
        let long = Phase { wall_ns: TICK_NS, unexplained_ns: 0 };
        assert_eq!(taken_at(TICK_NS + 1, long), Some(TICK_NS + 1), "it has a tick of its own");
        assert_eq!(taken_at(2 * TICK_NS, QUIET), Some(TICK_NS + 1));
        assert_eq!(taken_at(2 * TICK_NS + 1, QUIET), Some(2 * TICK_NS + 1));
    }

    #[test]
    fn a_short_phase_that_a_quota_may_have_stopped_has_its_own_reading() {
        let coarse = CoarseCounters::default();
        let taken_at = |now_ns, phase| coarse.read(now_ns, phase, [None].into_iter()).at_ns;
        assert_eq!(taken_at(5, QUIET), Some(5));
        let stopped = Phase { unexplained_ns: UNEXPLAINED_MIN_NS, ..QUIET };
        assert_eq!(taken_at(6, stopped), Some(6));
    }

    #[test]
    fn the_vcpus_are_those_of_the_workers_when_it_was_read() {
        let coarse = CoarseCounters::default();
        let vcpus = |now_ns, pinned: [Option<usize>; 2]| {
            coarse
                .read(now_ns, QUIET, pinned.into_iter())
                .vcpus
                .iter()
                .map(|vcpu| vcpu.map(|(vcpu, _)| vcpu))
                .collect()
        };
        let read: [Vec<Option<usize>>; 2] = [vcpus(5, [Some(1), None]), vcpus(6, [Some(0), Some(2)])];
        assert_eq!(read, [vec![Some(1), None], vec![Some(1), None]]);
    }
}
