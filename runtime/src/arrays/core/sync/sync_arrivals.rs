//! Collect: the chunks of a rank come to a sync, and hear of its decision.
//!
//! A rank reports to a sync when every chunk of its own has come to it; chunks that were inserted or have moved here since
//! may lead to a second report. It goes up the tree, see [`report_aggregation`](super::report_aggregation). The rank keeps who waits for the
//! decision, and tells them once that is known: at once those who stay, on their new rank those who move (see
//! [`balance`](super::migration)).
//!
//! Chunks that came with `at_sync_nowait` never stand still unless they leave. Under a strategy that never moves (`none`)
//! nobody does: chunks resume at once, loads are collected all the same.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use crate::arrays::core::collectives::population::{MemberReport, Tally};
use crate::ids::{ArrayId, CellId, ChunkId, Rank, SyncId};
use crate::measure::records::Sample;

/// The measurements of one chunk at a sync.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MeasuredChunk {
    pub(crate) chunk: ChunkId,
    /// CPU time, ns; or ticks if declared.
    pub(crate) load_ns: u64,
    pub(crate) declared: bool,
    pub(crate) bytes: u64,
    pub(crate) migratable: bool,
    /// The rank to which its program moves it.
    pub(crate) wish: Option<Rank>,
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
    /// It handles nothing until it resumes.
    pub(crate) paused: bool,
}

#[derive(Debug, Default)]
struct PendingReport {
    tallies: LiteMap<ArrayId, Tally>,
    arrivals: Vec<SyncArrival>,
}

/// The report of a rank at a sync, but for the loads.
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
    /// Chunks of this rank, counted by the sync they come to next.
    due: LiteMap<SyncId, u64>,
    /// Syncs that are reported to as soon as the rank has been measured.
    sampling: Vec<SyncId>,
    /// Chunks of this rank that hear of the decision, by sync: a newcomer may come to the next one before this one's.
    waiting: LiteMap<SyncId, Vec<(ChunkId, CellId)>>,
    /// Bytes of the messages that these keep meanwhile.
    deferred_bytes: LiteMap<SyncId, u64>,
}

impl Syncs {
    /// A chunk has come to this rank, or was made here: `next` is the sync it comes to next.
    pub(crate) fn joined(&mut self, next: SyncId) {
        *self.due.entry(next).or_default() += 1;
    }

    /// Tells whether no chunk of this rank comes to syncs.
    pub(crate) fn has_no_members(&self) -> bool {
        self.due.is_empty()
    }

    /// It is on this rank no more.
    pub(crate) fn left(&mut self, next: SyncId) {
        let count = self.due.get_mut(&next).expect("it was counted when it came");
        *count -= 1;
        if *count == 0 {
            self.due.remove(&next);
        }
    }

    /// A chunk has come to a sync; it hears of the decision if one will be made.
    pub(crate) fn arrive(&mut self, arrival: SyncArrival, decides: bool) {
        let sync = SyncId(arrival.report.sequence);
        if decides {
            self.waiting.entry(sync).or_default().push((arrival.chunk, arrival.cell));
        }
        self.left(sync);
        self.joined(sync.next());
        self.report(arrival.chunk.array, arrival.report).arrivals.push(arrival);
    }

    /// A chunk was removed: its last report to the syncs of its array.
    pub(crate) fn removed(&mut self, array: ArrayId, report: MemberReport) {
        self.left(SyncId(report.sequence));
        self.report(array, report);
    }

    fn report(&mut self, array: ArrayId, report: MemberReport) -> &mut PendingReport {
        let pending = self.pending.entry(SyncId(report.sequence)).or_default();
        pending.tallies.entry(array).or_default().merge(&Tally::of(report));
        pending
    }

    /// Takes the reports to syncs to which every chunk of this rank has come.
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

    /// The first sync that this rank has yet to report to, as far as it knows; none without chunks that come to syncs.
    pub(crate) fn next(&self) -> Option<SyncId> {
        self.due.keys().chain(&self.sampling).min().copied()
    }

    /// The first sync that some chunks of this rank have come to and others have not; else the first whose decision chunks of
    /// this rank wait for, since a newcomer may come to the rank after that has reported.
    pub(crate) fn open(&self) -> Option<SyncId> {
        let come =
            |(&sync, pending): (&SyncId, &PendingReport)| (!pending.arrivals.is_empty()).then_some(sync);
        let reported = || self.waiting.keys().next().copied();
        self.pending.iter().find_map(come).or_else(reported)
    }

    /// The tallies of chunks that have come to syncs to which others of this rank have not.
    pub(crate) fn reported(&self) -> Vec<(SyncId, ArrayId, Tally)> {
        let by_sync = self.pending.iter();
        let its = |(&sync, pending): (&SyncId, &PendingReport)| {
            let tallies = pending.tallies.iter();
            tallies.map(|(&array, tally)| (sync, array, tally.clone())).collect::<Vec<_>>()
        };
        by_sync.flat_map(its).collect()
    }

    /// A chunk keeps a message of so many bytes until a sync has ended. None are counted where it has.
    pub(crate) fn defer(&mut self, sync: SyncId, bytes: u64) {
        if self.waiting.contains_key(&sync) {
            *self.deferred_bytes.entry(sync).or_default() += bytes;
        }
    }

    /// A chunk that passes a sync has read so many of them.
    pub(crate) fn read_deferred(&mut self, sync: SyncId, bytes: u64) {
        if let Some(kept) = self.deferred_bytes.get_mut(&sync) {
            *kept = kept.saturating_sub(bytes);
        }
    }

    /// Bytes of the messages that chunks of this rank keep until syncs have ended.
    pub(crate) fn deferred_bytes(&self) -> u64 {
        self.deferred_bytes.values().sum()
    }

    /// The decision on a sync is known: who hears of it.
    pub(crate) fn decided(&mut self, sync: SyncId) -> Vec<(ChunkId, CellId)> {
        self.deferred_bytes.remove(&sync);
        self.waiting.remove(&sync).unwrap_or_default()
    }
}
