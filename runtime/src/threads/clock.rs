//! The clock of a run: the machine's monotonic clock, or the virtual time of a simulation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// The source of times, in ns since the run began.
#[derive(Clone)]
pub(crate) enum Clock {
    /// `CLOCK_MONOTONIC`, about 23 ns per reading.
    Machine { origin_ns: u64 },
    /// One rank's virtual time, advanced by the simulation.
    Virtual { now_ns: Arc<AtomicU64> },
}

impl Clock {
    pub(crate) fn machine() -> Clock {
        Clock::Machine { origin_ns: monotonic_ns() }
    }

    /// Tells whether this is the virtual time of a simulation.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self, Clock::Virtual { .. })
    }

    /// Time since the run began, ns.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Clock::Machine { origin_ns } => monotonic_ns().saturating_sub(*origin_ns),
            Clock::Virtual { now_ns } => now_ns.load(Ordering::Relaxed),
        }
    }
}

/// The machine's monotonic clock, ns.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
