//! Records which chunks of one rank have come to a sync, and decides when the rank can report. The driver in
//! [`rank`](crate::arrays::core::rank) calls [`Syncs`].
//!
//! | event | action of the rank |
//! |---|---|
//! | the last chunk of the rank comes to a sync | reports up the tree ([`report_aggregation`](super::report_aggregation)) |
//! | the last chunk that has not come to the sync leaves the rank, or is removed | reports up the tree |
//! | a chunk that was inserted or has moved here after the report comes to the sync | may report a second time |
//! | `Decision` arrives, the chunk stays | resumes the chunk at once |
//! | `Decision` arrives, the chunk moves | the new rank resumes the chunk, see [`migration`](super::migration) |
//!
//! A chunk that came by `at_sync_nowait` runs on before the decision, unless the chunk moves. Under a strategy that
//! never moves chunks (`none`), chunks resume at once, and their loads are still collected.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use crate::arrays::core::collectives::population::{MemberReport, Tally};
use crate::ids::{ArrayId, CellId, ChunkId, Rank, SyncId};
use crate::measure::records::Sample;

/// The measurements of one chunk at a sync.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MeasuredChunk {
    pub(crate) chunk: ChunkId,
    /// CPU time in ns, or ticks if the program declared the load.
    pub(crate) load_ns: u64,
    pub(crate) declared: bool,
    pub(crate) bytes: u64,
    pub(crate) migratable: bool,
    /// True if the chunk has not run since the last window: `migratable` and `bytes` are older, or unset since it came
    /// here.
    pub(crate) unasked: bool,
    /// The rank to which the program itself moves the chunk.
    pub(crate) wish: Option<Rank>,
    /// Number of messages that the chunk has handled in a window; 0 at a sync.
    pub(crate) handled: u32,
}

/// The measurements of a rank and its chunks at a sync. A rank may report several times to one sync.
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

/// The syncs of one rank.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    pending: LiteMap<SyncId, PendingReport>,
    /// Number of chunks of this rank, by the sync that the chunks come to next.
    due: LiteMap<SyncId, u64>,
    /// Syncs that the rank will report to as soon as it has been measured.
    sampling: Vec<SyncId>,
    /// Chunks of this rank that the decision of each sync resumes. A new chunk may come to the next sync before the
    /// decision on this one.
    waiting: LiteMap<SyncId, Vec<(ChunkId, CellId)>>,
    /// By sync, the bytes of the messages that the waiting chunks defer.
    deferred_bytes: LiteMap<SyncId, u64>,
}

impl Syncs {
    /// A chunk has come to this rank, or was made here. `next` is the sync that it comes to next.
    pub(crate) fn joined(&mut self, next: SyncId) {
        *self.due.entry(next).or_default() += 1;
    }

    /// True if no chunk of this rank comes to syncs.
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

    /// A chunk has come to a sync. `decides` is true if rank 0 will decide, so that the chunk waits for the decision.
    pub(crate) fn arrive(&mut self, arrival: SyncArrival, decides: bool) {
        let sync = SyncId(arrival.report.sequence);
        if decides {
            self.waiting.entry(sync).or_default().push((arrival.chunk, arrival.cell));
        }
        self.left(sync);
        self.joined(sync.next());
        self.report(arrival.chunk.array, arrival.report).arrivals.push(arrival);
    }

    /// A chunk was removed. `report` is the chunk's last report to the syncs of its array.
    pub(crate) fn removed(&mut self, array: ArrayId, report: MemberReport) {
        self.left(SyncId(report.sequence));
        self.report(array, report);
    }

    fn report(&mut self, array: ArrayId, report: MemberReport) -> &mut PendingReport {
        let pending = self.pending.entry(SyncId(report.sequence)).or_default();
        pending.tallies.entry(array).or_default().merge(&Tally::of(report));
        pending
    }

    /// Takes the reports to each sync that all chunks of this rank have come to.
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

    /// The first sync that this rank has still to report to. None if no chunk of this rank comes to syncs.
    pub(crate) fn next(&self) -> Option<SyncId> {
        self.due.keys().chain(&self.sampling).min().copied()
    }

    /// The first sync that some chunks of this rank have come to and others have not. If there is none: the first sync
    /// whose decision chunks of this rank wait for, since a new chunk may come to the rank after its report.
    pub(crate) fn open(&self) -> Option<SyncId> {
        let come =
            |(&sync, pending): (&SyncId, &PendingReport)| (!pending.arrivals.is_empty()).then_some(sync);
        let reported = || self.waiting.keys().next().copied();
        self.pending.iter().find_map(come).or_else(reported)
    }

    /// The tallies of the syncs that some chunks of this rank have come to and others have not.
    pub(crate) fn reported(&self) -> Vec<(SyncId, ArrayId, Tally)> {
        let by_sync = self.pending.iter();
        let its = |(&sync, pending): (&SyncId, &PendingReport)| {
            let tallies = pending.tallies.iter();
            tallies.map(|(&array, tally)| (sync, array, tally.clone())).collect::<Vec<_>>()
        };
        by_sync.flat_map(its).collect()
    }

    /// A chunk defers a message of this number of bytes until a sync has ended. Not counted if that sync is over.
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

    /// The decision on a sync has arrived. Returns the chunks that waited for it.
    pub(crate) fn decided(&mut self, sync: SyncId) -> Vec<(ChunkId, CellId)> {
        self.deferred_bytes.remove(&sync);
        self.waiting.remove(&sync).unwrap_or_default()
    }
}
