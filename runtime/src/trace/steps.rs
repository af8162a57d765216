//! The record of each step of a program in supersteps.

use serde::{Deserialize, Serialize};

/// The work of all workers in a step of a program in supersteps: written by rank 0, in the order of steps. Times are ns,
/// by its clock.
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
    /// Its number, from 0.
    pub step: u64,
    /// When the first worker began it, since the run began.
    pub begin_ns: u64,
    /// When the first worker had ended it.
    pub end_ns: u64,
    /// Workers that compute each job.
    pub copies: u32,
    /// Units that had got another worker before it: with a step that is not 0 a new division took effect.
    pub moved: u64,
    /// Whether a new division took effect with it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub divided: bool,
    /// Why it did, in the words of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it is the first after a restart from a checkpoint.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restarted: bool,
    /// All workers, in order.
    pub workers: Vec<StepWorker>,
}

/// The work of one worker in a step. Times are ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepWorker {
    /// Units of its own job.
    pub units: u64,
    /// Time in which it computed, with all interruptions.
    pub computing_ns: u64,
    /// Time in the step without anything to compute.
    pub waiting_ns: u64,
    /// Time before it in which units came and went.
    pub moving_ns: u64,
    /// Jobs that it dropped because another worker was faster.
    pub dropped: u64,
    /// Time that it had computed them.
    pub dropped_ns: u64,
}

/// The steps of a run so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepsSoFar {
    /// Steps that are over.
    pub steps: u64,
    /// Time of the last of them, ns.
    pub last_ns: u64,
    /// Units of each worker's job in it.
    pub units: Vec<u64>,
    /// Workers that computed each job in it.
    pub copies: u32,
    /// Divisions that took effect after the first.
    pub divisions: u64,
    /// Units that got another worker by them.
    pub moved: u64,
}
