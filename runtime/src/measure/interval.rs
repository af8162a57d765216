//! Computes the time that others took from a worker between two readings of its counters.
//!
//! *Waiting* is the kernel's run-queue delay, plus unexplained time (wall - CPU - parked). Of unexplained time, at most
//! as much counts as a quota or the hypervisor can have taken, because a handler may also have slept or waited for a
//! disk. If the kernel does not report the delay, all unexplained time counts.

use super::background::VcpuTimes;

/// The times of one worker between two readings, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) wall_ns: u64,
    pub(super) cpu_ns: u64,
    /// Time runnable but not running; none if the kernel does not report it.
    pub(super) delay_ns: Option<u64>,
    pub(super) parked_ns: u64,
    /// Time for which quotas stopped threads of the worker's groups, also other threads.
    pub(super) throttled_ns: u64,
    /// The times of the worker's vCPU; none if they are not known.
    pub(super) vcpu: Option<VcpuTimes>,
}

impl Interval {
    /// Time that the hypervisor took.
    pub(super) fn steal_ns(&self) -> u64 {
        self.vcpu.map_or(0, |vcpu| vcpu.steal_ns.min(self.wall_ns))
    }

    /// Time in which the worker wanted to run and did not, without steal.
    pub(super) fn wait_ns(&self) -> u64 {
        let (steal_ns, unexplained_ns) =
            (self.steal_ns(), self.wall_ns.saturating_sub(self.cpu_ns + self.parked_ns));
        let lost_ns = self.delay_ns.map_or(unexplained_ns, |delay_ns| {
            unexplained_ns.min(delay_ns + self.throttled_ns + steal_ns).max(delay_ns)
        });
        lost_ns.saturating_sub(steal_ns).min(self.wall_ns)
    }

    /// Time of the vCPU that was neither idle nor used by the worker; none if the vCPU is not known.
    ///
    /// Equation 2 of Gupta et al. (2013) subtracts only the time of chunks, so the time of the runtime is background.
    /// Here all time of the worker is subtracted, because its spinning is not background either.
    pub(super) fn taken_ns(&self) -> Option<u64> {
        let vcpu = self.vcpu?;
        Some(self.wall_ns.saturating_sub(self.cpu_ns + vcpu.idle_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// As recorded of a rank whose handlers sleep for a third of a second, on a vCPU without other load.
    fn blocking() -> Interval {
        let (wall_ns, cpu_ns, delay_ns) = (1_000 * MS, 640 * MS, Some(2 * MS));
        Interval { wall_ns, cpu_ns, delay_ns, parked_ns: 20 * MS, ..Interval::default() }
    }

    #[test]
    fn a_handler_that_blocks_is_not_background() {
        assert_eq!(blocking().wait_ns(), 2 * MS);
    }

    #[test]
    fn a_quota_explains_as_much_as_it_throttled() {
        let throttled = Interval { throttled_ns: 100 * MS, ..blocking() };
        assert_eq!(throttled.wait_ns(), 102 * MS);
        // The group has other threads that were throttled too.
        let crowd = Interval { throttled_ns: 5_000 * MS, ..blocking() };
        assert_eq!(crowd.wait_ns(), 340 * MS);
    }

    #[test]
    fn the_delay_of_a_wake_up_counts_although_the_worker_was_parked() {
        let interval = Interval { parked_ns: 360 * MS, delay_ns: Some(50 * MS), ..blocking() };
        assert_eq!(interval.wait_ns(), 50 * MS);
    }

    #[test]
    fn steal_is_counted_once() {
        let vcpu = Some(VcpuTimes { idle_ns: 0, steal_ns: 300 * MS });
        let stolen = Interval { vcpu, ..blocking() };
        assert_eq!((stolen.wait_ns(), stolen.steal_ns()), (2 * MS, 300 * MS));
    }

    #[test]
    fn without_the_kernels_delay_all_that_is_unexplained_is_waiting() {
        assert_eq!(Interval { delay_ns: None, ..blocking() }.wait_ns(), 340 * MS);
    }

    #[test]
    fn spinning_without_work_is_not_background_and_an_unknown_vcpu_says_nothing() {
        assert_eq!(blocking().taken_ns(), None);
        // The worker computed for 200 ms, spun for 440 ms and was parked. The vCPU was idle only while it was parked.
        let vcpu = Some(VcpuTimes { idle_ns: 360 * MS, steal_ns: 0 });
        assert_eq!(Interval { vcpu, ..blocking() }.taken_ns(), Some(0));
        let busy = Some(VcpuTimes::default());
        assert_eq!(Interval { vcpu: busy, ..blocking() }.taken_ns(), Some(360 * MS));
    }
}
