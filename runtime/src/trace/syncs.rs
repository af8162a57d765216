//! The record of each sync.

use std::sync::Arc;

use lb_strategies::Prediction;
use lb_strategies::balancer::PhaseReport;
use serde::{Deserialize, Serialize};

/// All syncs of a run together, or all windows that were decided. Sums saturate.
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
    /// Their state, bytes: as encoded if they left their process, else by
    /// [`Chunk::state_bytes`](crate::Chunk::state_bytes).
    pub moved_bytes: u64,
    /// From the first rank's report to the last's, ns.
    pub collect_ns: u64,
    /// The strategy's own time, ns.
    pub decide_ns: u64,
    /// From decisions until the last chunk landed, ns.
    pub migrate_ns: u64,
    /// The largest [`SyncReport::imbalance_before`].
    pub worst_imbalance: f64,
    /// The sync that found it, the first of several.
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

/// The findings and the work of one sync, or of one window that was decided.
///
/// Makespans and imbalance follow from the snapshot under the strategy's background model; `collect_ns`, `decide_ns` and
/// `migrate_ns` were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SyncReport {
    /// Number of the sync, from 0.
    pub sync: u64,
    /// True if it was a window, without any call by chunks; false if chunks came to a sync.
    pub window: bool,
    /// Number of ranks that are active from then on, which are the first ones. None if it is not known.
    pub active: Option<u32>,
    /// The predictor of loads; [`Prediction::Auto`](lb_strategies::Prediction::Auto) if it is not known.
    pub prediction: Prediction,
    /// The time of the decision, ns since the run began.
    pub at_ns: u64,
    /// Completion time of the slowest rank in the measured phase, over the ideal with all work divided in proportion to
    /// the capacities; 1 is perfect.
    pub imbalance_before: f64,
    /// The same, expected for the next phase after the moves.
    pub imbalance_predicted: f64,
    /// Ideal time of the measured phase and of the undecided windows before it, ns: all work divided in proportion to the
    /// capacities. 0 where it is not known.
    pub ideal_ns: u64,
    /// Largest completion time of the phase measured, ns.
    pub makespan_before_ns: u64,
    /// Largest completion time expected after the moves, ns.
    pub makespan_predicted_ns: u64,
    /// A lower bound of the next phase under any placement, ns. It is the largest of three times: all work over all
    /// capacities, the heaviest chunk alone, the pinned chunks of a rank alone.
    pub bound_ns: u64,
    /// Chunks moved.
    pub moved: u64,
    /// Their state, bytes: as encoded if they left their process, else by
    /// [`Chunk::state_bytes`](crate::Chunk::state_bytes).
    pub moved_bytes: u64,
    /// From the first rank's report to the last's, ns.
    pub collect_ns: u64,
    /// The strategy's own time, ns.
    pub decide_ns: u64,
    /// From the decision until the last chunk landed, ns; chunks that stay do not wait for it.
    pub migrate_ns: u64,
    /// Chunks on each rank after the moves.
    pub chunks_per_rank: Vec<u32>,
    /// Speed times share of each rank.
    pub capacity: Vec<f64>,
    /// CPU got over CPU wanted, of each rank.
    pub share: Vec<f64>,
    /// Completion time of each rank in the phase that was measured, ns.
    pub before_ns: Vec<u64>,
    /// Completion time of each rank expected after the moves, ns.
    pub predicted_ns: Vec<u64>,
    /// Chunks that the strategy wanted to move. The chunks stay (`moved` is 0) if the moves do not pay, unless they need
    /// not: see [`Terms::must_pay`](crate::lb::Terms::must_pay).
    pub proposed: u64,
    /// Time that moving them was expected to save in the next phase, ns. Where the strategy was not asked
    /// ([`was_asked`](Self::was_asked)) the most that any moves could have saved.
    pub gain_ns: u64,
    /// The gain above which they are moved, ns: the expected cost of the moves. In a window it is the larger of that and
    /// the error of predictions so far, divided by the trust in plans (the part of their gains that plans have kept).
    /// Where the strategy was not asked, the cost of a decision and of the cheapest move.
    #[serde(alias = "cost_ns")]
    pub needed_ns: u64,
    /// Messages that chunks handled in the measured phase: its length, independent of the steps of the program. 0 where
    /// nothing was measured.
    pub deliveries: u64,
    /// The same of the phase that was predicted, from the phases that it was predicted from.
    pub deliveries_predicted: u64,
    /// Largest completion time of the measured phase if the sync before it had moved nothing, ns. It is by the loads and
    /// capacities of that phase. 0 where there was no sync before. If it is smaller than `makespan_before_ns`, loads
    /// change faster than syncs follow: the placement was outdated when it came.
    pub makespan_unmoved_ns: u64,
    /// Chunks that waited for the decision. Chunks that came with `at_sync_nowait` do not wait; one that comes to the
    /// next sync before this is decided keeps its messages, and is not counted.
    pub waited: Option<u64>,
    /// Reports of the ranks to it, where they are kept ([`Config::lb_reports`](crate::Config::lb_reports)). In a
    /// [`Report`](crate::Report) the newest syncs have it, up to a million chunks together. In a trace each sync has it
    /// whose record then takes at most 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Arc<PhaseReport>>,
}

impl SyncReport {
    /// False if the strategy was not asked, because no moves could have saved as much time as a decision takes.
    ///
    /// ```
    /// let asked = caribou::report::SyncReport::default();
    /// assert!(asked.was_asked());
    /// ```
    pub fn was_asked(&self) -> bool {
        // If the strategy was asked and proposed no moves, their cost is 0.
        self.proposed > 0 || self.needed_ns == 0
    }
}
