//! Messages between shares.

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
    /// The first share to all: the plan for the end of this step.
    Plan { step: u64, next: StepPlan },
    /// The edge of the unit before the first of the receiver, or after its last.
    Edge { step: u64, after: bool, edge: P::Edge },
    /// The parts of a job.
    Part(Arc<FinishedJob<P::Part>>),
    /// The parts of all jobs, in order.
    Parts(Vec<Arc<FinishedJob<P::Part>>>),
    /// The units of a finished job as the step left them, to the group of the sender.
    JobUnits { step: u64, job: usize, units: Vec<P::Unit> },
    /// Units for their new worker.
    Units { step: u64, units: Units<P::Unit> },
    /// To itself: handle the messages that have come, then go on with this job. Messages that come during a slice are queued
    /// behind this message and before the `Continue` that follows it.
    Yield { step: u64, job: usize },
    /// To itself: go on with this job, or begin the step.
    Continue { step: u64, job: usize },
    /// The statistics of a share in a step that is over, to the first share.
    Stats { step: u64, worker: usize, worked: StepStats },
    /// Units at the end of the run, to the first share.
    FinalUnits(Units<P::Unit>),
    /// A share has written its file of a checkpoint, or has failed to. To the first share.
    Written { worker: usize, written: Result<Written, String> },
    /// A process got a notice to end; the text names its source and the rank. To the first share.
    Notice(String),
    /// A process asks for a checkpoint, since its machine may be taken back soon. To the first share.
    Ask,
}

/// The plan that all shares carry out at the end of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StepPlan {
    /// The new division of the units, if there is one.
    pub(super) division: Option<Division>,
    /// Weight of the longest slice of a job, once the speed of the workers is known.
    pub(super) slice: Option<f64>,
    /// The checkpoint that saves the state after this step.
    pub(super) save: Option<Save>,
}

/// The result of a job: the parts of its slices.
#[derive(Serialize, Deserialize)]
pub(super) struct FinishedJob<T> {
    pub(super) step: u64,
    pub(super) job: usize,
    /// The worker that finished it.
    pub(super) by: usize,
    pub(super) parts: Vec<(Range<u64>, T)>,
}
