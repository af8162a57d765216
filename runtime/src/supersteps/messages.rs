//! The messages between shares, and the plan of a step.

use std::ops::Range;
use std::sync::Arc;

use lb_strategies::supersteps::Division;
use serde::{Deserialize, Serialize};

use super::api::Supersteps;
use super::checkpoint::Save;
use super::measure::StepStats;
use super::units::Units;
use crate::checkpoint::Written;

/// A message between shares.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) enum ShareMessage<P: Supersteps> {
    /// From the first share: the plan for the end of this step.
    Plan { step: u64, next: StepPlan },
    /// The edge of the unit before the receiver's first unit, or after its last.
    Edge { step: u64, after: bool, edge: P::Edge },
    /// The parts of a job.
    Part(Arc<FinishedJob<P::Part>>),
    /// The parts of all jobs, in order.
    Parts(Vec<Arc<FinishedJob<P::Part>>>),
    /// To the sender's group: the units of a finished job, as the step left them.
    JobUnits { step: u64, job: usize, units: Vec<P::Unit> },
    /// To the new worker of these units.
    Units { step: u64, units: Units<P::Unit> },
    /// To itself: handle the messages that have arrived, then continue this job. Messages that arrive during a slice
    /// are queued after this message and before the `Continue` that follows it.
    Yield { step: u64, job: usize },
    /// To itself: continue this job, or begin the step.
    Continue { step: u64, job: usize },
    /// To the first share: what a share did in a step that is over.
    Stats { step: u64, worker: usize, worked: StepStats },
    /// To the first share: units at the end of the run.
    FinalUnits(Units<P::Unit>),
    /// To the first share: the sender has written its file of a checkpoint, or has failed to.
    Written { worker: usize, written: Result<Written, String> },
    /// To the first share: a process got a notice to end. The text names the source and the rank.
    Notice(String),
    /// To the first share: requests a checkpoint, because the machine of a process may be taken back soon.
    Ask,
}

/// The plan that all shares carry out at the end of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StepPlan {
    /// The new division of the units, if there is one.
    pub(super) division: Option<Division>,
    /// Weight of the longest slice of a job; none until the speed of the workers is known.
    pub(super) slice: Option<f64>,
    /// The checkpoint that saves the state after this step.
    pub(super) save: Option<Save>,
}

/// The result of a job: the parts of its slices.
#[derive(Serialize, Deserialize)]
pub(super) struct FinishedJob<T> {
    pub(super) step: u64,
    pub(super) job: usize,
    /// The worker that has finished the job.
    pub(super) by: usize,
    pub(super) parts: Vec<(Range<u64>, T)>,
}
