//! The report of a finished pool, with the times of all workers.

use serde::{Deserialize, Serialize};

use crate::run::report::RunReport;

/// The report of a finished pool.
///
/// ```
/// use caribou::pools::{PoolReport, PoolWorker};
/// let worker = |busy_ns| PoolWorker { busy_ns, end_ns: busy_ns, ..PoolWorker::default() };
/// let report = PoolReport { elapsed_ns: 100, workers: vec![worker(100), worker(90)], ..PoolReport::default() };
/// assert_eq!((report.bound_ns(), report.idle_ns()), (95, 10));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolReport {
    /// The part of the report that every shape of program has.
    #[serde(flatten)]
    pub run: RunReport,
    /// The policy and its parameters, as given.
    pub lb: String,
    /// From the set-up of all ranks to the end of the last iteration, ns.
    pub elapsed_ns: u64,
    /// Number of executed iterations.
    pub iterations: u64,
    /// True if the pool was cancelled before all iterations were executed.
    pub cancelled: bool,
    /// Messages that the policy sent between ranks.
    pub messages: u64,
    /// What the policy has decided, in one line, if it decides anything.
    pub decision: Option<String>,
    /// All workers of all ranks, in order.
    pub workers: Vec<PoolWorker>,
}

/// What one worker did in a pool. Times are ns.
///
/// ```
/// let worker = caribou::pools::PoolWorker { cpu_ns: 60, busy_ns: 100, ..Default::default() };
/// assert!(worker.share() < 0.61, "somebody else had the vCPU for the rest");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolWorker {
    /// The rank of the worker.
    pub rank: u32,
    /// The number of the worker on its rank.
    pub worker: u32,
    /// Number of executed iterations that count.
    pub iterations: u64,
    /// Number of executed iterations that do not count, because another worker was faster.
    pub discarded: u64,
    /// Number of executed ranges.
    pub ranges: u64,
    /// CPU time in iterations.
    pub cpu_ns: u64,
    /// Wall time in iterations, including interruptions.
    pub busy_ns: u64,
    /// Time in the policy, including waiting for the lock of the rank.
    pub policy_ns: u64,
    /// End of the last iteration, since the run began.
    pub end_ns: u64,
}

impl PoolWorker {
    /// CPU time over busy time: the part of the vCPU that others left.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.cpu_ns as f64 / (self.busy_ns.max(1)) as f64
    }
}

impl PoolReport {
    /// The capacity bound, ns: the time that the pool would have taken if no worker had ever been idle.
    ///
    /// The bound assumes that a worker had the same capacity in its idle time as in its busy time.
    #[must_use]
    pub fn bound_ns(&self) -> u64 {
        let busy: u128 = self.workers.iter().map(|worker| u128::from(worker.busy_ns)).sum();
        (busy / self.workers.len().max(1) as u128) as u64
    }

    /// Time in which workers had nothing to execute, summed over workers, ns.
    #[must_use]
    pub fn idle_ns(&self) -> u64 {
        self.workers.iter().map(|worker| self.elapsed_ns.saturating_sub(worker.busy_ns)).sum()
    }

    /// The part by which the pool took longer than the bound: 0.01 is one percent.
    #[must_use]
    pub fn excess(&self) -> f64 {
        let bound_ns = self.bound_ns();
        if bound_ns == 0 { 0.0 } else { self.elapsed_ns as f64 / bound_ns as f64 - 1.0 }
    }
}
