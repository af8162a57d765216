//! Reads the CPU clock of a thread.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread, ns. The time of others on its vCPU does not count.
pub(super) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
