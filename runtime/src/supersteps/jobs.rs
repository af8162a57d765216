//! The state of all jobs of a step on one share: their parts, and which units of its group are outdated.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::messages::FinishedJob;

/// The jobs of a step. Parts may arrive before the share begins the step.
#[derive(Serialize, Deserialize)]
pub(super) struct Jobs<T> {
    /// The parts of each job; none if they have not arrived.
    parts: Vec<Option<Arc<FinishedJob<T>>>>,
    /// Jobs of the group whose units on this share are still from before the step.
    outdated: BTreeSet<usize>,
    /// Weight of the longest slice of a job; none until the speed of the workers is known.
    pub(super) longest_slice: Option<f64>,
}

impl<T> Jobs<T> {
    pub(super) fn new(workers: usize) -> Jobs<T> {
        let parts = (0..workers).map(|_| None).collect();
        Jobs { parts, outdated: BTreeSet::new(), longest_slice: None }
    }

    /// Begins a step.
    pub(super) fn begin(&mut self, group: Range<usize>, changes_units: bool) {
        self.outdated = if changes_units { group.collect() } else { BTreeSet::new() };
    }

    pub(super) fn is_finished(&self, job: usize) -> bool {
        self.parts[job].is_some()
    }

    /// Keeps the parts of a job.
    pub(super) fn keep(&mut self, finished: Arc<FinishedJob<T>>) {
        let job = finished.job;
        self.parts[job] = Some(finished);
    }

    /// Marks the units of this job as up to date. False if they were, or if steps change no units.
    pub(super) fn update(&mut self, job: usize) -> bool {
        self.outdated.remove(&job)
    }

    /// Tells whether the share has all parts, and its group's units are up to date.
    pub(super) fn are_over(&self) -> bool {
        self.outdated.is_empty() && self.parts.iter().all(Option::is_some)
    }

    /// The parts of all jobs, in order, if all have arrived.
    pub(super) fn all_parts(&self) -> Option<Vec<Arc<FinishedJob<T>>>> {
        self.parts.iter().cloned().collect()
    }

    /// Takes the parts of all jobs, in order, so that the next step may follow.
    pub(super) fn take_parts(&mut self) -> Vec<Arc<FinishedJob<T>>> {
        self.parts.iter_mut().map(|parts| parts.take().expect("all have come")).collect()
    }

    /// Number of jobs whose parts have not arrived.
    pub(super) fn unfinished(&self) -> usize {
        self.parts.iter().filter(|parts| parts.is_none()).count()
    }
}
