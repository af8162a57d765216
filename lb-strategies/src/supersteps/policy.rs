//! Defines a policy for supersteps: it gets the work of every worker in a step, and returns the division of the units.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The facts about a program in supersteps that are known before it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Number of workers, at least one. Each has a share of the units.
    pub workers: usize,
    /// Number of vCPUs of all workers together, if known. With fewer vCPUs than workers, workers take turns.
    pub vcpus: Option<usize>,
    /// The relative weight of each unit; a unit of twice the weight takes twice as long to compute.
    pub weights: Weights,
}

impl Problem {
    /// True if a worker that computes copies takes no vCPU from other workers. Only then copies pay.
    pub fn has_room_for_copies(&self) -> bool {
        self.vcpus.is_none_or(|vcpus| vcpus >= self.workers)
    }
}

/// The weights of the units, all above 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// This number of units, each of weight 1.
    Equal(u64),
    /// The weight of each unit.
    Each(Vec<f64>),
}

/// The work of one worker in one step.
///
/// If another worker finished a job first, the part computed until then is included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Weight of the computed units.
    pub weight: f64,
    /// Wall time of computing, s, including the time that others took of the vCPU.
    pub seconds: f64,
    /// CPU time of computing, s. Others had the vCPU for the rest of `seconds`.
    pub cpu_seconds: f64,
    /// Time in which the worker waited for others, s.
    pub waiting_seconds: f64,
    /// The part of a vCPU that quotas allow the worker, above 0; none without a quota. A quota does not stop a worker
    /// with little work, so its limit cannot be measured otherwise.
    pub allowed: Option<f64>,
}

/// The measurements of a finished step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Number of the step, counted from 0.
    pub number: u64,
    /// The work of each worker.
    pub works: Vec<Work>,
    /// Wall time from the start of the step to the next on the first worker, s, without `redivision_seconds`.
    pub seconds: f64,
    /// Time in which units changed workers before the step, s; 0 if none did.
    pub redivision_seconds: f64,
    /// Number of units that changed workers before the step.
    pub moved: u64,
}

/// Which worker computes which units.
///
/// The units of a job are consecutive: job 0 has the first ones, and so on. Groups have [`copies`](Self::copies)
/// consecutive workers; the last group may have fewer. Every worker of a group computes all jobs of the group, its own
/// first and then the next in a circle. When one worker finishes a job, the others stop computing it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    /// Number of units of each job. There is one job per worker.
    pub units: Vec<u64>,
    /// Number of workers that compute each job; with 1, job i is computed by worker i alone.
    pub copies: u32,
}

/// A policy for programs in supersteps, which makes a divider for each run.
pub trait SuperstepStrategy: Send + Sync {
    /// The name in the table, in `CARIBOU_LB` and in reports.
    fn name(&self) -> &'static str;

    /// The divider of one run.
    fn divider(&self, problem: &Problem) -> Box<dyn Divider>;
}

/// Divides the units of one run. One worker of the run has the divider, and sends the divisions to all others.
pub trait Divider: Send {
    /// The division at the start. It is computed once in every process, and must be the same in all.
    fn first(&mut self) -> Division;

    /// Handles a finished step. Returns the division from the next possible step on, or `None` to keep the old one. A
    /// new division takes effect one or two steps later.
    fn after(&mut self, step: &Step) -> Option<Division>;

    /// The reason for the last decision in one line, for reports and traces, if there is any.
    fn reason(&self) -> Option<String> {
        None
    }
}

impl Weights {
    /// Number of units.
    pub fn units(&self) -> u64 {
        match self {
            Self::Equal(units) => *units,
            Self::Each(weights) => weights.len() as u64,
        }
    }

    /// Weight of the units in a range.
    pub fn of(&self, units: Range<u64>) -> f64 {
        match self {
            Self::Equal(_) => (units.end - units.start) as f64,
            Self::Each(weights) => weights[units.start as usize..units.end as usize].iter().sum(),
        }
    }
}

impl Division {
    /// The range of units of each job.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.units.iter().scan(0, |begin, &units| {
            let range = *begin..*begin + units;
            *begin = range.end;
            Some(range)
        })
    }

    /// The workers that compute the jobs of `worker`'s group, which are also the numbers of these jobs. The last group
    /// may have fewer than `copies`. Each worker after the last one with units is a group by itself.
    pub fn group(&self, worker: usize) -> Range<usize> {
        let with_units = self.units.iter().rposition(|&units| units > 0).map_or(0, |last| last + 1);
        if worker >= with_units {
            return worker..worker + 1;
        }
        let copies = self.copies.max(1) as usize;
        let begin = worker - worker % copies;
        begin..(begin + copies).min(with_units)
    }
}
