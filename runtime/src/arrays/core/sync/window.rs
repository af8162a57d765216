//! Collects the costs of all chunks on rank 0 while the chunks run: a *balancing window*. Windows are the default way
//! to balance; no chunk comes to a sync or waits. [`Windows`] is the state of one rank, driven by
//! [`rank`](crate::arrays::core::rank).
//!
//! # Packets
//!
//! | packet | path | content |
//! |---|---|---|
//! | [`Signal`] | up the tree, every few ms of work and once at its end | how busy the sender and the ranks below are; whether all are idle from now on |
//! | [`Resize`] | to rank 0 | the number of ranks that are to be active |
//! | [`ActiveRanks`] | down the tree | the number of ranks that are active from now on; a window with a decision follows soon |
//! | [`OpenWindow`] | down the tree | the number of the window; whether rank 0 will decide; whether messages between chunks are recorded in the next window |
//! | [`WindowReports`] | up the tree | measurements of the sender and the ranks below it |
//! | [`Decision`] | down the tree | all moves; not sent if no chunk moves |
//!
//! # Rules
//!
//! 1. *One at a time.* Rank 0 opens a window after the last window is decided and its chunks have moved. The
//!    [policy](lb_strategies::window_policy) chooses the time, and whether rank 0 decides or the window only ends the
//!    last one.
//! 2. *Reports.* Each rank reports once and immediately: its sample, the cost of each of its chunks since the last
//!    window, and the messages that chunks sent here, if they are recorded.
//! 3. *Moves.* The [migration](super::migration) holds each moving chunk between two of its handlers. The chunk goes on
//!    with its messages on its new rank, without `resume`.
//!
//! # Proof that each chunk is reported by one rank, and stays there until the decision
//!
//! 1. Rank 0 opens a window after `CompleteMigration` of the last window (rule 1), on the same paths. So a rank that
//!    receives `OpenWindow` has admitted all its incoming chunks, and each chunk is on one rank.
//! 2. A chunk moves only by a decision, and rank 0 makes none before all ranks have reported.
//! 3. A chunk that is inserted after its rank has reported is in no report and does not move. There is one exception:
//!    another chunk with its index was reported and then removed. Then the rank moves the chunk that has the index when
//!    the `Decision` arrives. If a chunk was removed, its index moves alone ([migration](super::migration), rule 5).
//!
//! Cost: two packets on each edge of the tree, with all loads. Moves cost as much as at a sync.
//!
//! [`Signal`]: super::SyncPacket::Signal
//! [`Resize`]: super::SyncPacket::Resize
//! [`ActiveRanks`]: super::SyncPacket::ActiveRanks
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

/// The state of one rank for windows.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// Time at which the window was opened on this rank, ns.
    opened_ns: u64,
    /// The latest signals of this rank and of its children in this window.
    signals: LiteMap<Rank, LastSignal>,
    /// Reports of this rank and its children.
    reports: Convergecast<Option<AggregatedReports>>,
    /// Chunks inserted under indices that may be on their way to this rank, each with the rank that inserted it.
    insertions: Vec<(Rank, Box<ChunkTransfer>)>,
    /// By chunk that is about to be admitted, the number of the first broadcast that the chunk has not received.
    late: LiteMap<ChunkId, u64>,
}

/// The signal of a rank and the ranks below it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RankSignal {
    pub(crate) busy: Signal,
    /// True if all of these ranks are idle from now on. They send no more signals until they have work.
    pub(crate) rests: bool,
}

/// A signal, and the time at which it came.
#[derive(Clone, Copy, Debug)]
struct LastSignal {
    signal: RankSignal,
    at_ns: u64,
}

impl Windows {
    /// Stores the signal of this rank, or of a child with the ranks below it. Returns the sum of all signals now.
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

    /// True if this rank has sent no signal in this window, or its last signal was that it is idle.
    pub(crate) fn rests(&self, rank: Rank) -> bool {
        self.signals.get(&rank).is_none_or(|last| last.signal.rests)
    }

    /// A window is opened: discards the signals of the last one.
    pub(crate) fn forget_signals(&mut self, now_ns: u64) {
        self.signals.clear();
        self.opened_ns = now_ns;
    }

    /// Adds the report of this rank or of a child. Returns the sum when the last report has been added.
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

    /// A migration is complete: gives the kept insertions the present epoch, since they were sent under the present
    /// routes or older ones. True if there are any.
    pub(crate) fn complete(&mut self, epoch: Epoch) -> bool {
        self.insertions.iter_mut().for_each(|(_, transfer)| transfer.epoch = epoch);
        !self.insertions.is_empty()
    }

    /// A kept chunk is about to be admitted. `next_broadcast` is the first broadcast that it has not received.
    pub(crate) fn admit_late(&mut self, chunk: ChunkId, next_broadcast: u64) {
        self.late.insert(chunk, next_broadcast);
    }

    /// Takes the number of the first broadcast that a kept chunk has not received.
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
