//! The arrivals of one rank at a sync: its chunks come to the sync, the rank reports, and the chunks hear of the decision.
//!
//! | event | action of the rank |
//! |---|---|
//! | the last chunk of the rank comes to a sync | reports up the tree ([`report_aggregation`](super::report_aggregation)) |
//! | the last chunk that the others waited for leaves the rank, or is removed | the same |
//! | a chunk that was inserted or has moved here since comes to the sync | may report a second time |
//! | the decision is known, the chunk stays | tells the chunk at once |
//! | the decision is known, the chunk moves | the new rank tells the chunk: see [`migration`](super::migration) |
//!
//! Chunks that came with `at_sync_nowait` continue without the decision, unless they leave. Under a strategy that never
//! moves chunks (`none`), no chunk waits: chunks resume at once, and loads are still collected.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use crate::arrays::core::collectives::population::{MemberReport, Tally};
use crate::ids::{ArrayId, CellId, ChunkId, Rank, SyncId};
use crate::measure::records::Sample;

/// The measurements of one chunk at a sync.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MeasuredChunk {
    pub(crate) chunk: ChunkId,
    /// CPU time in ns, or ticks if declared.
    pub(crate) load_ns: u64,
    pub(crate) declared: bool,
    pub(crate) bytes: u64,
    pub(crate) migratable: bool,
    /// True if it has not run since the last window, so that it could not be asked whether it may move: it stays.
    pub(crate) unasked: bool,
    /// The rank to which its program moves it.
    pub(crate) wish: Option<Rank>,
    /// Number of messages that it has handled in a window; 0 at a sync.
    pub(crate) handled: u32,
}

/// A rank and its chunks at a sync. A rank may report several times to one sync.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MeasuredRank {
    pub(crate) rank: Rank,
    pub(crate) sample: Sample,
    pub(crate) chunks: Vec<MeasuredChunk>,
}

/// A chunk that has come to a sync.
#[derive(Clone, Debug)]
pub(crate) struct SyncArrival {
    pub(crate) chunk: ChunkId,
    pub(crate) cell: CellId,
    pub(crate) report: MemberReport,
    pub(crate) declared: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) migratable: bool,
    pub(crate) wish: Option<Rank>,
    /// True if the chunk handles nothing until it resumes.
    pub(crate) paused: bool,
}

#[derive(Debug, Default)]
struct PendingReport {
    tallies: LiteMap<ArrayId, Tally>,
    arrivals: Vec<SyncArrival>,
}

/// The report of a rank to a sync, without the loads.
#[derive(Debug)]
pub(crate) struct UnmeasuredReport {
    pub(crate) sync: SyncId,
    pub(crate) tallies: Vec<(ArrayId, Tally)>,
    pub(crate) arrivals: Vec<SyncArrival>,
}

/// One rank's syncs.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    pending: LiteMap<SyncId, PendingReport>,
    /// Number of chunks of this rank, by the sync that they come to next.
    due: LiteMap<SyncId, u64>,
    /// Syncs that the rank reports to as soon as it has been measured.
    sampling: Vec<SyncId>,
    /// Chunks of this rank that are to hear of the decision, by sync. A new chunk may come to the next sync before the
    /// decision on this one.
    waiting: LiteMap<SyncId, Vec<(ChunkId, CellId)>>,
    /// Bytes of the messages that these chunks defer meanwhile.
    deferred_bytes: LiteMap<SyncId, u64>,
}

impl Syncs {
    /// A chunk has come to this rank, or was made here. `next` is the sync that it comes to next.
    pub(crate) fn joined(&mut self, next: SyncId) {
        *self.due.entry(next).or_default() += 1;
    }

    /// Tells whether no chunk of this rank comes to syncs.
    pub(crate) fn has_no_members(&self) -> bool {
        self.due.is_empty()
    }

    /// A chunk has left this rank. `next` is the sync that it comes to next.
    pub(crate) fn left(&mut self, next: SyncId) {
        let count = self.due.get_mut(&next).expect("it was counted when it came");
        *count -= 1;
        if *count == 0 {
            self.due.remove(&next);
        }
    }

    /// A chunk has come to a sync. It hears of the decision if `decides`: a decision will be made.
    pub(crate) fn arrive(&mut self, arrival: SyncArrival, decides: bool) {
        let sync = SyncId(arrival.report.sequence);
        if decides {
            self.waiting.entry(sync).or_default().push((arrival.chunk, arrival.cell));
        }
        self.left(sync);
        self.joined(sync.next());
        self.report(arrival.chunk.array, arrival.report).arrivals.push(arrival);
    }

    /// A chunk was removed. `report` is its last one to the syncs of its array.
    pub(crate) fn removed(&mut self, array: ArrayId, report: MemberReport) {
        self.left(SyncId(report.sequence));
        self.report(array, report);
    }

    fn report(&mut self, array: ArrayId, report: MemberReport) -> &mut PendingReport {
        let pending = self.pending.entry(SyncId(report.sequence)).or_default();
        pending.tallies.entry(array).or_default().merge(&Tally::of(report));
        pending
    }

    /// Takes the reports to the syncs that every chunk of this rank has come to.
    pub(crate) fn take_complete(&mut self) -> Vec<UnmeasuredReport> {
        let first_due = self.due.keys().next().copied().unwrap_or(SyncId(u64::MAX));
        let mut complete = Vec::new();
        while let Some((&sync, _)) = self.pending.first().filter(|&(&sync, _)| sync < first_due) {
            let pending = self.pending.remove(&sync).expect("looked at just above");
            let tallies = pending.tallies.into_tuple_vec();
            complete.push(UnmeasuredReport { sync, tallies, arrivals: pending.arrivals });
            self.sampling.push(sync);
        }
        complete
    }

    /// The rank has been measured for its report to `sync`.
    pub(crate) fn sampled(&mut self, sync: SyncId) {
        self.sampling.retain(|&sampling| sampling != sync);
    }

    /// The first sync that this rank has yet to report to, as far as it knows. None if it has no chunks that come to syncs.
    pub(crate) fn next(&self) -> Option<SyncId> {
        self.due.keys().chain(&self.sampling).min().copied()
    }

    /// The first sync that some chunks of this rank have come to and others have not. Without one, the first sync whose
    /// decision chunks of this rank wait for: a new chunk may come to the rank after its report.
    pub(crate) fn open(&self) -> Option<SyncId> {
        let come =
            |(&sync, pending): (&SyncId, &PendingReport)| (!pending.arrivals.is_empty()).then_some(sync);
        let reported = || self.waiting.keys().next().copied();
        self.pending.iter().find_map(come).or_else(reported)
    }

    /// The tallies of chunks that have come to syncs that other chunks of this rank have not come to.
    pub(crate) fn reported(&self) -> Vec<(SyncId, ArrayId, Tally)> {
        let by_sync = self.pending.iter();
        let its = |(&sync, pending): (&SyncId, &PendingReport)| {
            let tallies = pending.tallies.iter();
            tallies.map(|(&array, tally)| (sync, array, tally.clone())).collect::<Vec<_>>()
        };
        by_sync.flat_map(its).collect()
    }

    /// A chunk defers a message of this number of bytes until a sync has ended. They are not counted if it has ended.
    pub(crate) fn defer(&mut self, sync: SyncId, bytes: u64) {
        if self.waiting.contains_key(&sync) {
            *self.deferred_bytes.entry(sync).or_default() += bytes;
        }
    }

    /// A chunk that passes a sync has handled deferred messages of this number of bytes.
    pub(crate) fn read_deferred(&mut self, sync: SyncId, bytes: u64) {
        if let Some(kept) = self.deferred_bytes.get_mut(&sync) {
            *kept = kept.saturating_sub(bytes);
        }
    }

    /// Bytes of the messages that chunks of this rank defer until syncs have ended.
    pub(crate) fn deferred_bytes(&self) -> u64 {
        self.deferred_bytes.values().sum()
    }

    /// The decision on a sync is known. Returns the chunks that are to hear of it.
    pub(crate) fn decided(&mut self, sync: SyncId) -> Vec<(ChunkId, CellId)> {
        self.deferred_bytes.remove(&sync);
        self.waiting.remove(&sync).unwrap_or_default()
    }
}
