//! The records of the steps of a program in supersteps.

use serde::{Deserialize, Serialize};

/// What all workers did in one step of a program in supersteps. Rank 0 writes these records in the order of steps.
/// Times are ns, by the clock of rank 0.
///
/// ```
/// use caribou::trace::{StepRecord, StepWorker};
/// let worker = |computing_ns| StepWorker { computing_ns, ..StepWorker::default() };
/// let step = StepRecord { workers: vec![worker(30), worker(10)], ..StepRecord::default() };
/// let read: StepRecord = serde_json::from_str(&serde_json::to_string(&step)?)?;
/// assert_eq!(read, step);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepRecord {
    /// The number of the step, from 0.
    pub step: u64,
    /// When worker 0 began the step, since the run began.
    pub begin_ns: u64,
    /// When worker 0 had ended the step.
    pub end_ns: u64,
    /// Number of workers that compute each job.
    pub copies: u32,
    /// Units that changed workers before the step, because a new division took effect. Step 0 has no such units.
    pub moved: u64,
    /// True if a new division took effect with the step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub divided: bool,
    /// Why the policy changed the division.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// True for the first step after a restart from a checkpoint.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restarted: bool,
    /// All workers, in order.
    pub workers: Vec<StepWorker>,
}

/// What one worker did in a step. Times are ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepWorker {
    /// Units of the worker's own job.
    pub units: u64,
    /// Time of computing, including interruptions.
    pub computing_ns: u64,
    /// Time in the step without a job to compute.
    pub waiting_ns: u64,
    /// Time before the step in which units were sent and received.
    pub moving_ns: u64,
    /// Jobs that the worker dropped because another worker was faster.
    pub dropped: u64,
    /// Computing time of the dropped jobs.
    pub dropped_ns: u64,
}

/// The steps of a run so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepsSoFar {
    /// Number of complete steps.
    pub steps: u64,
    /// Time of the last complete step, ns.
    pub last_ns: u64,
    /// Units of each worker's job in that step.
    pub units: Vec<u64>,
    /// Number of workers that computed each job in that step.
    pub copies: u32,
    /// Divisions that took effect after the first.
    pub divisions: u64,
    /// Units that changed workers by these divisions.
    pub moved: u64,
}
