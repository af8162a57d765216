//! What shares say to each other.

use std::ops::Range;
use std::sync::Arc;

use lb_strategies::supersteps::Division;
use serde::{Deserialize, Serialize};

use super::api::Supersteps;
use super::measure::StepStats;

/// What shares say.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) enum ShareMessage<P: Supersteps> {
    /// What follows this step.
    Plan { step: u64, next: StepPlan },
    /// What the unit before the first, or after the last, of the receiver shows.
    Edge { step: u64, after: bool, edge: P::Edge },
    /// What came of a job.
    Part(Arc<FinishedJob<P::Part>>),
    /// What came of all jobs, in order.
    Parts(Vec<Arc<FinishedJob<P::Part>>>),
    /// The units of a finished job.
    JobUnits { step: u64, job: usize, units: Vec<P::Unit> },
    /// Units for their new worker, from this number on.
    Units { step: u64, first: u64, units: Vec<P::Unit> },
    /// To oneself: hear what has come, and then go on with this job. What comes during a slice is behind this, and before
    /// what follows it.
    Yield { step: u64, job: usize },
    /// To oneself: go on with this job now.
    Continue { step: u64, job: usize },
    /// What a share did in a step that is over.
    Stats { step: u64, worker: usize, worked: StepStats },
    /// Units at the end of the run, from this number on.
    FinalUnits { first: u64, units: Vec<P::Unit> },
}

/// What follows a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StepPlan {
    /// How units are divided, if anew.
    pub(super) division: Option<Division>,
    /// Weight of the longest slice of a job, once the pace of workers is known.
    pub(super) slice: Option<f64>,
}

/// What came of a job: the parts of its slices.
#[derive(Serialize, Deserialize)]
pub(super) struct FinishedJob<T> {
    pub(super) step: u64,
    pub(super) job: usize,
    /// Who finished it.
    pub(super) by: usize,
    pub(super) parts: Vec<(Range<u64>, T)>,
}
