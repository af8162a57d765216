//! The records of syncs and of decided balancing windows.

use std::sync::Arc;

use lb_strategies::Prediction;
use lb_strategies::balancer::PhaseReport;
use serde::{Deserialize, Serialize};

/// Sums over all syncs of a run, or over all windows that were decided. Sums saturate.
///
/// ```
/// let totals = caribou::Report::default().sync_totals;
/// assert_eq!((totals.syncs, totals.moved), (0, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SyncTotals {
    /// Number of syncs.
    pub syncs: u64,
    /// Chunks moved.
    pub moved: u64,
    /// State of the moved chunks, bytes: as encoded for chunks that left their process, else by
    /// [`Chunk::state_bytes`](crate::Chunk::state_bytes).
    pub moved_bytes: u64,
    /// From the first rank's report to the last's, ns.
    pub collect_ns: u64,
    /// Time of the strategy, ns.
    pub decide_ns: u64,
    /// From decisions until the last chunk had arrived, ns.
    pub migrate_ns: u64,
    /// The largest [`SyncReport::imbalance_before`].
    pub worst_imbalance: f64,
    /// The sync with this imbalance, the first if there are several.
    pub worst_sync: u64,
}

impl SyncTotals {
    pub(crate) fn add(&mut self, sync: &SyncReport) {
        self.syncs += 1;
        let sums = [
            (&mut self.moved, sync.moved),
            (&mut self.moved_bytes, sync.moved_bytes),
            (&mut self.collect_ns, sync.collect_ns),
            (&mut self.decide_ns, sync.decide_ns),
            (&mut self.migrate_ns, sync.migrate_ns),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        if sync.imbalance_before > self.worst_imbalance {
            (self.worst_imbalance, self.worst_sync) = (sync.imbalance_before, sync.sync);
        }
    }
}

/// What one sync found and did, or one window that was decided.
///
/// Completion times and imbalances are computed from the snapshot, with the strategy's model of background load.
/// `collect_ns`, `decide_ns` and `migrate_ns` were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SyncReport {
    /// Number of the sync, from 0.
    pub sync: u64,
    /// True for a window, in which chunks make no call; false if chunks came to a sync.
    pub window: bool,
    /// Number of active ranks from then on, which are the ranks with the lowest numbers. None if it is not known.
    pub active: Option<u32>,
    /// The predictor of loads; [`Prediction::Auto`](lb_strategies::Prediction::Auto) if it is not known.
    pub prediction: Prediction,
    /// The time of the decision, ns since the run began.
    pub at_ns: u64,
    /// Completion time of the slowest rank in the measured phase, over the ideal with all work divided in proportion to
    /// the capacities; 1 is perfect.
    pub imbalance_before: f64,
    /// The same ratio, expected for the next phase after the moves.
    pub imbalance_predicted: f64,
    /// Ideal time of the measured phase and of the undecided windows before it, ns: all work divided in proportion to
    /// the capacities. 0 if it is not known.
    pub ideal_ns: u64,
    /// Largest completion time of a rank in the measured phase, ns.
    pub makespan_before_ns: u64,
    /// Largest completion time expected after the moves, ns.
    pub makespan_predicted_ns: u64,
    /// A lower bound of the next phase under any placement, ns. It is the largest of three times: all work over all
    /// capacities, the heaviest chunk alone, the pinned chunks of a rank alone.
    pub bound_ns: u64,
    /// Chunks moved.
    pub moved: u64,
    /// State of the moved chunks, bytes: as encoded for chunks that left their process, else by
    /// [`Chunk::state_bytes`](crate::Chunk::state_bytes).
    pub moved_bytes: u64,
    /// From the first rank's report to the last's, ns.
    pub collect_ns: u64,
    /// Time of the strategy, ns.
    pub decide_ns: u64,
    /// From the decision until the last chunk had arrived, ns. Chunks that stay do not wait for this.
    pub migrate_ns: u64,
    /// Chunks on each rank after the moves.
    pub chunks_per_rank: Vec<u32>,
    /// Speed times share of each rank.
    pub capacity: Vec<f64>,
    /// Each rank's share: CPU time that it got over CPU time that it wanted.
    pub share: Vec<f64>,
    /// Completion time of each rank in the measured phase, ns.
    pub before_ns: Vec<u64>,
    /// Completion time of each rank expected after the moves, ns.
    pub predicted_ns: Vec<u64>,
    /// Chunks that the strategy wanted to move. If the moves do not pay, the chunks stay and `moved` is 0, except for
    /// strategies whose [`Terms::must_pay`](crate::lb::Terms::must_pay) is false.
    pub proposed: u64,
    /// Time that the moves were expected to save in the next phase, ns. If the strategy was not called
    /// ([`was_asked`](Self::was_asked) is false), the most that any moves could have saved.
    pub gain_ns: u64,
    /// The gain above which the moves are made, ns: their expected cost. In a window: the larger of this cost and the
    /// error of predictions so far, divided by the trust in plans (the part of their gains that plans have kept). If
    /// the strategy was not called, the cost of a decision and of the cheapest move.
    #[serde(alias = "cost_ns")]
    pub needed_ns: u64,
    /// Messages that chunks handled in the measured phase: its length, independent of steps. 0 if not measured.
    pub deliveries: u64,
    /// The number of messages that is expected in the next phase, from the measured phases.
    pub deliveries_predicted: u64,
    /// Largest completion time of the measured phase, by its loads and capacities, if the previous sync had moved
    /// nothing, ns. 0 without a previous sync. If it is smaller than `makespan_before_ns`, loads change faster than
    /// syncs follow: the placement was outdated when it took effect.
    pub makespan_unmoved_ns: u64,
    /// Chunks that waited for the decision. Chunks that came by `at_sync_nowait` do not wait. If such a chunk comes to
    /// the next sync before this decision, it handles no messages until then, and is not counted.
    pub waited: Option<u64>,
    /// Reports of the ranks, if they are kept ([`Config::lb_reports`](crate::Config::lb_reports)). A
    /// [`Report`](crate::Report) has those of the newest syncs, up to a million chunks and edges together. A trace has those of
    /// each sync whose record takes at most 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Arc<PhaseReport>>,
}

impl SyncReport {
    /// False if the strategy was not called, because no moves could have saved as much time as a decision takes.
    ///
    /// ```
    /// let asked = caribou::report::SyncReport::default();
    /// assert!(asked.was_asked());
    /// ```
    pub fn was_asked(&self) -> bool {
        // If the strategy was called and proposed no moves, their cost is 0.
        self.proposed > 0 || self.needed_ns == 0
    }
}
