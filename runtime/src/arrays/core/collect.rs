//! Collect: the chunks of a rank come to a sync, and hear of its decision.
//!
//! A rank reports to a sync when every chunk of its own has come to it; chunks that were inserted or have moved here since
//! may lead to a second report. It goes up the tree, see [`ascent`](super::ascent). The rank keeps who waits for the
//! decision, and tells them once that is known: at once those who stay, on their new rank those who move (see
//! [`balance`](super::balance)).
//!
//! Chunks that came with `at_sync_nowait` never stand still unless they leave. Under a strategy that never moves (`none`)
//! nobody does: chunks resume at once, loads are collected all the same.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::census::{Report, Tally};
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
pub(crate) struct Arrival {
    pub(crate) chunk: ChunkId,
    pub(crate) cell: CellId,
    pub(crate) report: Report,
    pub(crate) declared: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) migratable: bool,
    pub(crate) wish: Option<Rank>,
    /// It handles nothing until it resumes.
    pub(crate) stands: bool,
}

#[derive(Debug, Default)]
struct Gathering {
    tallies: LiteMap<ArrayId, Tally>,
    arrivals: Vec<Arrival>,
}

/// The report of a rank at a sync, but for the loads.
#[derive(Debug)]
pub(crate) struct Reports {
    pub(crate) sync: SyncId,
    pub(crate) tallies: Vec<(ArrayId, Tally)>,
    pub(crate) arrivals: Vec<Arrival>,
}

/// One rank's syncs.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    gathering: LiteMap<SyncId, Gathering>,
    /// Chunks of this rank, counted by the sync they come to next.
    due: LiteMap<SyncId, u64>,
    /// Syncs that are reported to as soon as the rank has been measured.
    sampling: Vec<SyncId>,
    /// Chunks of this rank that hear of the decision, by sync: a newcomer may come to the next one before this one's.
    waiting: LiteMap<SyncId, Vec<(ChunkId, CellId)>>,
    /// Bytes of the messages that these keep meanwhile.
    kept: LiteMap<SyncId, u64>,
}

impl Syncs {
    /// A chunk has come to this rank, or was made here: `next` is the sync it comes to next.
    pub(crate) fn joined(&mut self, next: SyncId) {
        *self.due.entry(next).or_default() += 1;
    }

    /// Tells whether no chunk of this rank comes to syncs.
    pub(crate) fn nobody_due(&self) -> bool {
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
    pub(crate) fn arrive(&mut self, arrival: Arrival, decides: bool) {
        let sync = SyncId(arrival.report.sequence);
        if decides {
            self.waiting.entry(sync).or_default().push((arrival.chunk, arrival.cell));
        }
        self.left(sync);
        self.joined(sync.next());
        self.report(arrival.chunk.array, arrival.report).arrivals.push(arrival);
    }

    /// A chunk was removed: its last report to the syncs of its array.
    pub(crate) fn removed(&mut self, array: ArrayId, report: Report) {
        self.left(SyncId(report.sequence));
        self.report(array, report);
    }

    fn report(&mut self, array: ArrayId, report: Report) -> &mut Gathering {
        let gathering = self.gathering.entry(SyncId(report.sequence)).or_default();
        gathering.tallies.entry(array).or_default().merge(&Tally::of(report));
        gathering
    }

    /// Takes the reports to syncs to which every chunk of this rank has come.
    pub(crate) fn complete(&mut self) -> Vec<Reports> {
        let first_due = self.due.keys().next().copied().unwrap_or(SyncId(u64::MAX));
        let mut complete = Vec::new();
        while let Some((&sync, _)) = self.gathering.first().filter(|&(&sync, _)| sync < first_due) {
            let gathering = self.gathering.remove(&sync).expect("looked at just above");
            let tallies = gathering.tallies.into_tuple_vec();
            complete.push(Reports { sync, tallies, arrivals: gathering.arrivals });
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
            |(&sync, gathering): (&SyncId, &Gathering)| (!gathering.arrivals.is_empty()).then_some(sync);
        let reported = || self.waiting.keys().next().copied();
        self.gathering.iter().find_map(come).or_else(reported)
    }

    /// The tallies of chunks that have come to syncs to which others of this rank have not.
    pub(crate) fn reported(&self) -> Vec<(SyncId, ArrayId, Tally)> {
        let by_sync = self.gathering.iter();
        let its = |(&sync, gathering): (&SyncId, &Gathering)| {
            let tallies = gathering.tallies.iter();
            tallies.map(|(&array, tally)| (sync, array, tally.clone())).collect::<Vec<_>>()
        };
        by_sync.flat_map(its).collect()
    }

    /// A chunk keeps a message of so many bytes until a sync has ended. None are counted where it has.
    pub(crate) fn keeps(&mut self, sync: SyncId, bytes: u64) {
        if self.waiting.contains_key(&sync) {
            *self.kept.entry(sync).or_default() += bytes;
        }
    }

    /// A chunk that passes a sync has read so many of them.
    pub(crate) fn reads(&mut self, sync: SyncId, bytes: u64) {
        if let Some(kept) = self.kept.get_mut(&sync) {
            *kept = kept.saturating_sub(bytes);
        }
    }

    /// Bytes of the messages that chunks of this rank keep until syncs have ended.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.kept.values().sum()
    }

    /// The decision on a sync is known: who hears of it.
    pub(crate) fn decided(&mut self, sync: SyncId) -> Vec<(ChunkId, CellId)> {
        self.kept.remove(&sync);
        self.waiting.remove(&sync).unwrap_or_default()
    }
}
