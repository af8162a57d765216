//! What the workers of a rank share, and what the ranks of a process share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::cells::Cells;
use super::clock::Clock;
use super::crew::Crew;
use super::guarded::{Guarded, Tag};
use super::ready::Queues;
use super::threads::text_of;
use crate::core::codec::ArrayCodec;
use crate::core::erased::ErasedArray;
use crate::core::handler::Facts;
use crate::core::packet::Packet;
use crate::core::rank::RankCore;
use crate::core::undelivered::{Leftover, undelivered};
use crate::error::Error;
use crate::ids::Rank;
use crate::measure::sample::Gauges;
use crate::report::{SyncReport, SyncTotals};
use crate::trace::recording::Recording;
use crate::warn::warn;

/// The core of a rank, and packets for the transport from workers that may not call it.
pub(crate) struct Core {
    pub(crate) rank: RankCore,
    pub(crate) outbound: Vec<(Rank, Packet)>,
}

/// One rank.
pub(crate) struct RankShared {
    pub(crate) facts: Facts,
    pub(crate) arrays: Arc<[Arc<dyn ErasedArray>]>,
    pub(crate) codec: ArrayCodec,
    pub(crate) cells: Cells,
    pub(crate) core: Guarded<Core>,
    /// Set while `Core::outbound` may hold something for worker 0.
    pub(crate) outbound_waits: AtomicBool,
    pub(crate) queues: Queues,
    pub(crate) crew: Arc<Crew>,
    pub(crate) gauges: Gauges,
    pub(crate) clock: Clock,
    pub(crate) outcome: Arc<Outcome>,
    /// Encode and decode every packet even inside the process.
    pub(crate) wire: bool,
    /// Measure what handlers cost.
    pub(crate) measure: bool,
    pub(crate) recording: Arc<Recording>,
    /// Of the arrays that were set up.
    pub(crate) checksum: u64,
    /// How long a run that has failed waits for ranks that do not answer.
    pub(crate) patience: Duration,
    /// Turns an idle worker spins before it parks.
    pub(crate) spins: u32,
    /// So much waits for a slow rank that no chunk of this one should run.
    pub(crate) congested: AtomicBool,
    /// The run has failed here in a way that the core could not tell the others of: worker 0 does so at the end.
    pub(crate) untold: AtomicBool,
}

impl RankShared {
    /// Ends the run where nothing but that may be relied on any more: without the core, without a log.
    pub(crate) fn give_up(&self, error: Error) {
        self.outcome.fail(error);
        self.untold.store(true, Ordering::Release);
        self.crew.stop();
    }

    /// A worker's thread dies of a panic that nothing else has caught.
    pub(crate) fn worker_died(&self, worker: u32, panic: &(dyn std::any::Any + Send)) {
        let what = format!("worker {worker} of rank {}", self.facts.rank);
        self.give_up(Error::System { what, why: format!("its thread panicked: {}", text_of(panic)) });
    }

    /// Whether the rank is one thread.
    #[inline]
    pub(crate) fn lone(&self) -> bool {
        self.queues.inboxes.is_empty()
    }
}

/// How the run ended, as far as this process knows.
#[derive(Default)]
pub(crate) struct Outcome {
    error: Mutex<Option<Error>>,
    lost: AtomicBool,
    syncs: Mutex<(Vec<SyncReport>, SyncTotals)>,
    messages: AtomicU64,
    end_ns: AtomicU64,
    leftovers: Mutex<Vec<Leftover>>,
}

impl Outcome {
    /// Keeps the first error: what comes later is its consequence.
    pub(crate) fn fail(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Why the run has failed, if it has.
    pub(crate) fn error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Says to a rank that has stopped when to wait no longer for the others: a rank is lost, or the run has failed and
    /// somebody takes longer than `patience` to hear it, such as a handler that never returns. Zero is for ever.
    pub(crate) fn gives_up<'a>(&'a self, clock: &'a Clock, patience: Duration) -> impl Fn() -> bool + 'a {
        let limit_ns = if patience.is_zero() { u64::MAX } else { patience.as_nanos() as u64 };
        let until_ns = clock.now_ns().saturating_add(limit_ns);
        move || self.lost() || (clock.now_ns() >= until_ns && self.give_up())
    }

    /// Leaves a run that has failed without those who have not heard of it.
    fn give_up(&self) -> bool {
        let Some(error) = self.error() else { return false };
        warn(&format!("ranks that do not answer are given up, because the run has failed: {error}"));
        self.lost.store(true, Ordering::Release);
        true
    }

    pub(crate) fn finish(&self, now_ns: u64) {
        self.end_ns.fetch_max(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, messages: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
    }

    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Relaxed)
    }

    /// Rank 0's record of syncs.
    pub(crate) fn record(&self, syncs: (Vec<SyncReport>, SyncTotals)) {
        *self.syncs.lock().unwrap_or_else(PoisonError::into_inner) = syncs;
    }

    /// Keeps what a rank knows of messages that reached nobody.
    pub(crate) fn keep_leftover(&self, leftover: Leftover) {
        self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).push(leftover);
    }

    /// What the ranks of this process know of messages that reached nobody, in rank order.
    pub(crate) fn leftovers(&self) -> Vec<Leftover> {
        let mut leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        leftovers.sort_by_key(|leftover| leftover.rank);
        leftovers
    }

    /// The report of the run, or why it failed.
    pub(crate) fn result(&self) -> Result<crate::Report, Error> {
        if let Some(error) = self.error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        let (syncs, sync_totals) =
            std::mem::take(&mut *self.syncs.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(crate::Report {
            elapsed_ns: self.end_ns.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
            undelivered: undelivered(&self.leftovers()),
            syncs,
            sync_totals,
            ..crate::Report::default()
        })
    }
}

/// For runs that can lose a rank.
#[cfg(feature = "mpi")]
impl Outcome {
    /// A rank is gone: there is nobody to end the run in order with.
    pub(crate) fn lose(&self, error: Error) {
        self.fail(error);
        self.lost.store(true, Ordering::Release);
    }
}

/// The tag for what a rank's workers share.
pub(crate) fn sharing(workers: u32, own: Tag) -> Tag {
    if workers == 1 { own } else { Tag::SHARED }
}
