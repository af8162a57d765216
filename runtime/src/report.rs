//! What a run tells when it is over.

use serde::{Deserialize, Serialize};

/// The record of a finished run.
///
/// ```
/// let report = caribou::Report::default();
/// assert!(report.syncs.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// From the moment all ranks were set up to the exit, ns; measuring the vCPUs' speed takes the first ms of it.
    pub elapsed_ns: u64,
    /// Deliveries handled, on all ranks: messages, starts, resumes, results.
    pub messages: u64,
    /// Hosts, ranks, workers and where they sit, in one line.
    pub placement: String,
    /// Workers of each rank; empty under simulation.
    pub workers_per_rank: Vec<u32>,
    /// Whether every worker had a vCPU to itself.
    pub pinned: bool,
    /// Each rank's clock, in rank order; empty where all ranks are in one process.
    pub clocks: Vec<ClockOffset>,
    /// One record a sync, in order. Of several processes only that of rank 0 has them.
    pub syncs: Vec<SyncReport>,
}

/// A rank's clock against that of rank 0. All times of a run are corrected by `begin_ns`.
///
/// ```
/// let clock = caribou::ClockOffset { begin_ns: -1_200, drift_ns: 40, error_ns: 900 };
/// assert!(clock.drift_ns.unsigned_abs() < clock.error_ns, "nothing that could be told from an error");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Its clock minus rank 0's when the run began, ns.
    pub begin_ns: i64,
    /// How much that has grown by the end of the run, ns.
    pub drift_ns: i64,
    /// The error of both, at most, ns; 0 where both clocks are one.
    pub error_ns: u64,
}

/// What one sync found and did.
///
/// Makespans and imbalance follow from the snapshot under the strategy's background model; `collect_ns`, `decide_ns` and
/// `migrate_ns` were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SyncReport {
    /// Number of the sync, from 0.
    pub sync: u64,
    /// When it was decided, ns since the run began.
    pub at_ns: u64,
    /// Largest over average completion time of the phase that was measured; 1 is perfect.
    pub imbalance_before: f64,
    /// The same, expected for the next phase after the moves.
    pub imbalance_predicted: f64,
    /// Largest completion time of the phase measured, ns.
    pub makespan_before_ns: u64,
    /// Largest completion time expected after the moves, ns.
    pub makespan_predicted_ns: u64,
    /// The best possible: sum of work over sum of capacities, ns.
    pub bound_ns: u64,
    /// Chunks moved.
    pub moved: u64,
    /// Their state, bytes.
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
}
