//! The report of a pool.

use serde::{Deserialize, Serialize};

use crate::run::report::RunReport;

/// The record of a finished pool.
///
/// ```
/// use caribou::pools::{PoolReport, PoolWorker};
/// let worker = |busy_ns| PoolWorker { busy_ns, end_ns: busy_ns, ..PoolWorker::default() };
/// let report = PoolReport { elapsed_ns: 100, workers: vec![worker(100), worker(90)], ..PoolReport::default() };
/// assert_eq!((report.bound_ns(), report.idle_ns()), (95, 10));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolReport {
    /// The part that every run has.
    #[serde(flatten)]
    pub run: RunReport,
    /// The policy and its parameters, as given.
    pub lb: String,
    /// From the moment all ranks were set up to the end of the last iteration, ns.
    pub elapsed_ns: u64,
    /// Iterations executed.
    pub iterations: u64,
    /// True if the pool was cancelled before all were.
    pub cancelled: bool,
    /// Messages that the policy sent between ranks.
    pub messages: u64,
    /// The decision of the policy, in one line, if it decides anything.
    pub decision: Option<String>,
    /// All workers of all ranks, in order.
    pub workers: Vec<PoolWorker>,
}

/// One worker's part in a pool. Times are ns.
///
/// ```
/// let worker = caribou::pools::PoolWorker { cpu_ns: 60, busy_ns: 100, ..Default::default() };
/// assert!(worker.share() < 0.61, "somebody else had the vCPU for the rest");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolWorker {
    /// Its rank.
    pub rank: u32,
    /// Its number on the rank.
    pub worker: u32,
    /// Iterations it has executed.
    pub iterations: u64,
    /// Iterations it has executed that do not count, because another worker was faster.
    pub discarded: u64,
    /// Ranges of iterations.
    pub ranges: u64,
    /// CPU time of its thread in iterations.
    pub cpu_ns: u64,
    /// Time in iterations, with all interruptions.
    pub busy_ns: u64,
    /// Time in the policy, waiting for the lock of the rank included.
    pub policy_ns: u64,
    /// End of its last iteration, since the run began.
    pub end_ns: u64,
}

impl PoolWorker {
    /// CPU time got over busy time: the part of its vCPU that others left.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.cpu_ns as f64 / (self.busy_ns.max(1)) as f64
    }
}

impl PoolReport {
    /// The time that the pool would have taken if no worker had ever been idle: the capacity bound, ns.
    ///
    /// It assumes that a worker had the same capacity in its idle time as in its busy time.
    #[must_use]
    pub fn bound_ns(&self) -> u64 {
        let busy: u128 = self.workers.iter().map(|worker| u128::from(worker.busy_ns)).sum();
        (busy / self.workers.len().max(1) as u128) as u64
    }

    /// Time that workers had nothing to execute, all added up, ns.
    #[must_use]
    pub fn idle_ns(&self) -> u64 {
        self.workers.iter().map(|worker| self.elapsed_ns.saturating_sub(worker.busy_ns)).sum()
    }

    /// The part by which it took longer than the bound: 0.01 is one percent.
    #[must_use]
    pub fn excess(&self) -> f64 {
        let bound_ns = self.bound_ns();
        if bound_ns == 0 { 0.0 } else { self.elapsed_ns as f64 / bound_ns as f64 - 1.0 }
    }
}
