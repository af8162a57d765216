//! The recorders of the messages between the chunks of a rank, one per worker, and whether they are in use.
//!
//! Rank 0 decides in which phases messages are recorded. While they are not, a lone worker does not look here when it
//! sends. Of several workers, each tests the flag per message, if the run may record messages at all.

use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_utils::CachePadded;
use lb_strategies::EdgeUse;
use lb_strategies::balancer::EdgeReports;
use lb_strategies::balancer::RankPlace;

use crate::arrays::core::routing::envelope::{Delivery, NODE_BYTES};
use crate::ids::{ChunkId, WorkerId};
use crate::measure::edges::{EdgeRecorder, EdgeRecording};
use crate::threads::elided_mutex::{ElidedMutex, Tag};

/// The recorders of a rank. They are empty while no messages are recorded.
pub(crate) struct EdgeRecorders {
    may_record: bool,
    records: AtomicBool,
    /// By worker. Empty if the run records no messages.
    workers: Box<[CachePadded<ElidedMutex<EdgeRecorder>>]>,
}

impl EdgeRecorders {
    /// The recorders of a rank of `workers` workers, whose lock tag is `tag`.
    pub(crate) fn new(tag: Tag, workers: u32, may_record: bool) -> EdgeRecorders {
        let recorder = |_| CachePadded::new(ElidedMutex::new(tag, EdgeRecorder::default()));
        EdgeRecorders {
            may_record,
            records: AtomicBool::new(may_record),
            workers: (0..if may_record { workers } else { 0 }).map(recorder).collect(),
        }
    }

    /// True if the messages of some phases are recorded.
    pub(crate) fn may_record(&self) -> bool {
        self.may_record
    }

    /// True if messages are recorded now.
    #[inline]
    pub(crate) fn records(&self) -> bool {
        self.records.load(Ordering::Relaxed)
    }

    /// Begins to record messages, or ends it and forgets those that were not reported.
    pub(super) fn record(&self, records: bool) {
        self.records.store(records && self.may_record, Ordering::Relaxed);
        if !records {
            self.take(|_| false);
        }
    }

    /// Counts a message that a chunk sends.
    #[inline]
    pub(super) fn count(&self, worker: WorkerId, to: ChunkId, delivery: &Delivery) {
        if !delivery.payload.is_insertion() {
            let (from, bytes) = (delivery.from.chunk(), delivery.bytes.saturating_sub(NODE_BYTES));
            self.workers[worker.index()].with(|recorder| recorder.count(from, to, bytes));
        }
    }

    /// Takes the edges between chunks that are `balanced`.
    pub(super) fn take(&self, balanced: impl Fn(ChunkId) -> bool) -> EdgeReports {
        let (mut edges, mut unlisted_messages) = (Vec::new(), 0);
        for worker in &self.workers {
            let (listed, unlisted) = worker.lock().take();
            edges.extend(listed.into_iter().filter(|edge| balanced(edge.from) && balanced(edge.to)));
            unlisted_messages += unlisted;
        }
        EdgeReports::new(edges, unlisted_messages)
    }
}

/// True if a run on these ranks records messages in its first phase, and perhaps in later ones. One rank has no other to
/// place chunks on. Between ranks of one host messages are so cheap that recording them and searching cost more than
/// better placements save.
pub(super) fn may_record(recording: EdgeRecording, asked: EdgeUse, places: &[RankPlace]) -> bool {
    let many_hosts = places.iter().any(|place| place.host != places[0].host);
    match recording {
        EdgeRecording::Auto => match asked {
            EdgeUse::Never => false,
            EdgeUse::WhereTheyMatter => many_hosts,
            EdgeUse::Always => places.len() > 1,
        },
        EdgeRecording::On => true,
        EdgeRecording::Off => false,
    }
}
