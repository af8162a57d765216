//! What the workers of a rank share, and what the ranks of a process share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::cells::Cells;
use super::ready::Queues;
use crate::arrays::core::codec::ArrayCodec;
use crate::arrays::core::erased::ErasedArray;
use crate::arrays::core::handler::Facts;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::rank::RankCore;
use crate::arrays::report::Figures;
use crate::error::Error;
use crate::ids::Rank;
use crate::measure::sample::Gauges;
use crate::run::outcome::Outcome;
use crate::text::of_panic;
use crate::threads::clock::Clock;
use crate::threads::crew::Crew;
use crate::threads::guarded::{Guarded, Tag};
use crate::trace::recording::Recording;

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
    pub(crate) figures: Mutex<Figures>,
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
        self.give_up(Error::System { what, why: format!("its thread panicked: {}", of_panic(panic)) });
    }

    /// Adds to what the rank knows at the end.
    pub(crate) fn tell(&self, add: impl FnOnce(&mut Figures)) {
        add(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether the rank is one thread.
    #[inline]
    pub(crate) fn lone(&self) -> bool {
        self.queues.inboxes.is_empty()
    }
}

/// The tag for what a rank's workers share.
pub(crate) fn sharing(workers: u32, own: Tag) -> Tag {
    if workers == 1 { own } else { Tag::SHARED }
}
