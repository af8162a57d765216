//! The outcome of a run as far as this process knows it: shared by its ranks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::Error;
use crate::ids::Rank;
use crate::threads::clock::Clock;
use crate::transport::OpenRanks;
use crate::warn::warn;

/// Ranks that are named when they are given up; there may be thousands.
const NAMED_MAX: usize = 8;

/// The outcome of a run as far as this process knows it.
#[derive(Default)]
pub(crate) struct Outcome {
    error: Mutex<Option<Error>>,
    lost: AtomicBool,
    end_ns: AtomicU64,
}

impl Outcome {
    /// Keeps the first error: later ones are its consequences.
    pub(crate) fn fail(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The reason why the run has failed, if it has.
    pub(crate) fn error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Tells a stopped rank when to stop waiting for the others. A rank is lost, or the run has failed and a rank does
    /// not notice for `patience`, such as one in a handler that never returns. Zero means never.
    pub(crate) fn give_up_condition<'a>(
        &'a self,
        clock: &'a Clock,
        patience: Duration,
    ) -> impl Fn(OpenRanks<'_>) -> bool + 'a {
        let limit_ns = if patience.is_zero() { u64::MAX } else { patience.as_nanos() as u64 };
        let until_ns = clock.now_ns().saturating_add(limit_ns);
        move |silent| self.lost() || (clock.now_ns() >= until_ns && self.give_up(&silent()))
    }

    /// Leaves a failed run without the ranks that have not noticed the failure.
    fn give_up(&self, silent: &[Rank]) -> bool {
        let Some(error) = self.error() else { return false };
        let ranks: Vec<String> = silent.iter().take(NAMED_MAX).map(ToString::to_string).collect();
        let more = if silent.len() > NAMED_MAX { ", ..." } else { "" };
        warn(&format!(
            "ranks that do not answer ({}{more}) are given up, because the run has failed: {error}",
            ranks.join(", ")
        ));
        self.lost.store(true, Ordering::Release);
        true
    }

    pub(crate) fn finish(&self, now_ns: u64) {
        self.end_ns.fetch_max(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Relaxed)
    }
}

/// For runs that can lose a rank.
#[cfg(feature = "mpi")]
impl Outcome {
    /// A rank is gone: the run cannot end in order.
    pub(crate) fn lose(&self, error: Error) {
        self.fail(error);
        self.lost.store(true, Ordering::Release);
    }
}
