//! A balancing window: rank 0 collects the costs of all chunks while they run. No chunk comes to a sync, and none waits.
//!
//! # Packets
//!
//! | packet | path | content |
//! |---|---|---|
//! | [`Signal`] | up the tree, every few ms of work, once after | how busy sender and ranks below are; if all idle from now on |
//! | [`Resize`] | to rank 0 | the number of ranks that are to be active |
//! | [`Resized`] | down the tree | the number of ranks that are active from now on; a window that is decided follows soon |
//! | [`OpenWindow`] | down the tree | the number of the window |
//! | [`WindowReports`] | up the tree | measurements of the sender and the ranks below it |
//! | [`Decision`] | down the tree | all moves; none is sent if no chunk moves |
//!
//! # Rules
//!
//! 1. *One at a time.* Rank 0 opens a window after the last one is decided and its chunks have moved. The
//!    [policy](lb_strategies::window_policy) chooses the time. If rank 0 opens a window only to begin a new one, nothing is
//!    decided.
//! 2. *Reports.* Each rank reports once, at once: its sample, and the cost of each of its chunks since the last window.
//! 3. *Moves.* The [migration](super::migration) holds each moving chunk between two of its handlers. The chunk goes on with its
//!    messages on its new rank, without `resume`.
//!
//! # Proof that each chunk is reported by one rank, where it stays until the decision
//!
//! 1. Rank 0 opens a window after `CompleteMigration` of the last one (rule 1), on the same paths. So when a rank hears of the
//!    window, it has admitted all its incoming chunks, and a chunk is on one rank.
//! 2. A chunk moves only by a decision, and none is made before all ranks have reported.
//! 3. A chunk that is inserted after the report of its rank is in no report and does not move, unless another chunk of its
//!    index is in a report. Then the rank moves the chunk that has the index when the rank hears of the decision. If a chunk was
//!    removed, its index moves alone ([migration](super::migration), rule 5).
//!
//! Cost: two packets on each edge of the tree, with all loads; moves cost as much as at a sync.
//!
//! [`Signal`]: super::SyncPacket::Signal
//! [`Resize`]: super::SyncPacket::Resize
//! [`Resized`]: super::SyncPacket::Resized
//! [`OpenWindow`]: super::SyncPacket::OpenWindow
//! [`WindowReports`]: super::SyncPacket::WindowReports
//! [`Decision`]: super::SyncPacket::Decision

use lb_strategies::window_policy::Signal;
use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::report_aggregation::AggregatedReports;
use crate::arrays::core::collectives::tree::{Convergecast, Tree};
use crate::arrays::core::lifecycle::transfer::ChunkTransfer;
use crate::arrays::core::routing::in_flight::Epoch;
use crate::ids::{ChunkId, Rank};

/// One rank's part of windows.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// When the window was opened here, ns.
    opened_ns: u64,
    /// The last signals of this rank and its children in this window.
    signals: LiteMap<Rank, LastSignal>,
    /// Reports of this rank and its children.
    reports: Convergecast<Option<AggregatedReports>>,
    /// Chunks inserted under indices that may be on their way to this rank, each with the rank that inserted it.
    insertions: Vec<(Rank, Box<ChunkTransfer>)>,
    /// The first broadcast that each of these chunks has not received, while it is about to be admitted.
    late: LiteMap<ChunkId, u64>,
}

/// The signal of a rank and the ranks below it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RankSignal {
    pub(crate) busy: Signal,
    /// All of these ranks are idle from now on: they signal no more until they have work.
    pub(crate) rests: bool,
}

/// A signal, and the time at which it came.
#[derive(Clone, Copy, Debug)]
struct LastSignal {
    signal: RankSignal,
    at_ns: u64,
}

impl Windows {
    /// This rank, or a child with the ranks below it, signals. Returns the signal of all of them, as of now.
    pub(crate) fn signalled(&mut self, from: Rank, signal: RankSignal, now_ns: u64) -> RankSignal {
        self.signals.insert(from, LastSignal { signal, at_ns: now_ns });
        let since_opened = |at_ns: u64| at_ns.saturating_sub(self.opened_ns) as f64;
        let busy_now = |&LastSignal { signal: RankSignal { busy, rests }, at_ns }: &LastSignal| match rests {
            true => busy.diluted(since_opened(at_ns) / since_opened(now_ns).max(1.0)),
            false => busy,
        };
        let busy = self.signals.values().map(busy_now).fold(Signal::default(), Signal::and);
        RankSignal { busy, rests: self.signals.values().all(|last| last.signal.rests) }
    }

    /// True if this rank has signalled nothing in this window, or that it is idle.
    pub(crate) fn rests(&self, rank: Rank) -> bool {
        self.signals.get(&rank).is_none_or(|last| last.signal.rests)
    }

    /// A window is opened: discards the signals of the last one.
    pub(crate) fn forget_signals(&mut self, now_ns: u64) {
        self.signals.clear();
        self.opened_ns = now_ns;
    }

    /// Adds the report of this rank or a child. Returns all of them after the last one.
    pub(crate) fn add(&mut self, tree: &Tree, reports: AggregatedReports) -> Option<AggregatedReports> {
        let join = |sum: &mut Option<AggregatedReports>| match sum {
            Some(sum) => sum.merge(reports),
            None => *sum = Some(reports),
        };
        self.reports.add(tree, join).flatten()
    }

    /// Keeps a chunk that was inserted under a moving index until [`take_insertions`](Windows::take_insertions).
    pub(crate) fn keep_insertion(&mut self, by: Rank, transfer: Box<ChunkTransfer>) {
        self.insertions.push((by, transfer));
    }

    /// A migration is complete: gives the kept insertions the present epoch. They were sent under the present routes or older
    /// ones. True if there are any.
    pub(crate) fn complete(&mut self, epoch: Epoch) -> bool {
        self.insertions.iter_mut().for_each(|(_, transfer)| transfer.epoch = epoch);
        !self.insertions.is_empty()
    }

    /// A kept chunk is about to be admitted. It has not received this broadcast.
    pub(crate) fn admit_late(&mut self, chunk: ChunkId, next_broadcast: u64) {
        self.late.insert(chunk, next_broadcast);
    }

    /// The first broadcast that a kept chunk has not received.
    pub(crate) fn take_late(&mut self, chunk: ChunkId) -> Option<u64> {
        self.late.remove(&chunk)
    }

    /// Takes the kept insertions, in the order in which they came.
    pub(crate) fn take_insertions(&mut self) -> Vec<(Rank, Box<ChunkTransfer>)> {
        std::mem::take(&mut self.insertions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_has_become_idle_counts_for_less_and_less() {
        let (mut windows, ms) = (Windows::default(), 1_000_000);
        let works = |busy| RankSignal { busy: Signal::of(busy), rests: false };
        let rests = |busy| RankSignal { busy: Signal::of(busy), rests: true };
        windows.forget_signals(100 * ms);
        windows.signalled(Rank(1), rests(1.0), 110 * ms);
        let all = windows.signalled(Rank(0), works(1.0), 120 * ms);
        assert!((all.busy.excess(2) - 0.25).abs() < 1e-9 && !all.rests, "{all:?}: busy for half of the time");
        let all = windows.signalled(Rank(0), works(1.0), 200 * ms);
        assert!((all.busy.excess(2) - 0.45).abs() < 1e-9, "{all:?}");
        let all = windows.signalled(Rank(0), rests(0.9), 210 * ms);
        assert!(all.rests && windows.rests(Rank(0)));
        windows.forget_signals(210 * ms);
        let all = windows.signalled(Rank(0), works(1.0), 220 * ms);
        assert!(
            (all.busy.excess(2) - 0.5).abs() < 1e-9,
            "the other has been idle since the window was opened"
        );
    }
}
