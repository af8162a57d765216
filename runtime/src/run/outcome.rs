//! The outcome of a run in this process, which its ranks share: the first error, and the time of the end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::Error;
use crate::ids::Rank;
use crate::threads::clock::Clock;
use crate::transport::OpenRanks;
use crate::warn::warn;

/// Maximum number of ranks that are named when they are given up; there may be thousands.
const NAMED_MAX: usize = 8;

/// The outcome of a run in this process.
#[derive(Default)]
pub(crate) struct Outcome {
    error: Mutex<Option<Error>>,
    lost: AtomicBool,
    end_ns: AtomicU64,
}

impl Outcome {
    /// Sets the error. Only the first error is kept, because later errors are its consequences.
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

    /// A condition for a stopped rank to stop waiting for other ranks. True if a rank is lost, or if the run has failed
    /// and another rank has not reacted for `patience`, for example because a handler never returns. Zero means never.
    pub(crate) fn give_up_condition<'a>(
        &'a self,
        clock: &'a Clock,
        patience: Duration,
    ) -> impl Fn(OpenRanks<'_>) -> bool + 'a {
        let limit_ns = if patience.is_zero() { u64::MAX } else { patience.as_nanos() as u64 };
        let until_ns = clock.now_ns().saturating_add(limit_ns);
        move |silent| self.lost() || (clock.now_ns() >= until_ns && self.give_up(&silent()))
    }

    /// Gives up the ranks that have not reacted to the failure of the run.
    fn give_up(&self, silent: &[Rank]) -> bool {
        let Some(error) = self.error() else { return false };
        let ranks: Vec<String> = silent.iter().take(NAMED_MAX).map(ToString::to_string).collect();
        let more = if silent.len() > NAMED_MAX { ", ..." } else { "" };
        warn(&format!(
            "the run has failed, and stops waiting for ranks that do not answer ({}{more}): {error}",
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
    /// Sets the error of a lost rank, without which the run cannot end properly.
    pub(crate) fn lose(&self, error: Error) {
        self.fail(error);
        self.lost.store(true, Ordering::Release);
    }
}
