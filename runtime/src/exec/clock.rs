//! Time: the machine's, or the simulation's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Where "now" comes from. Times are ns since the run began.
#[derive(Clone)]
pub(crate) enum Clock {
    /// `CLOCK_MONOTONIC`, about 23 ns a reading.
    Machine { origin: Instant },
    /// One rank's virtual time, moved by the simulation.
    Virtual { now_ns: Arc<AtomicU64> },
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else asks")]
    pub(crate) fn machine() -> Clock {
        Clock::Machine { origin: Instant::now() }
    }

    /// Time since the run began, ns.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else asks")]
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Clock::Machine { origin } => Instant::now().duration_since(*origin).as_nanos() as u64,
            Clock::Virtual { now_ns } => now_ns.load(Ordering::Relaxed),
        }
    }
}
