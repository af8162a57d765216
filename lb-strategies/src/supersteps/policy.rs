//! A policy for supersteps: takes the work of every worker in a step, returns the division of the units from now on.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The facts of a program in supersteps that are known before it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Number of workers, at least one. Each has a share of the units.
    pub workers: usize,
    /// vCPUs that they have together, as far as known. Fewer than workers take them from each other.
    pub vcpus: Option<usize>,
    /// The relative weight of each unit; a unit of twice the weight takes twice as long to compute.
    pub weights: Weights,
}

impl Problem {
    /// Tells if a worker that computes copies takes no vCPU from others that compute: copies only pay then.
    pub fn has_room_for_copies(&self) -> bool {
        self.vcpus.is_none_or(|vcpus| vcpus >= self.workers)
    }
}

/// The weights of the units, all above 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// That many units, each of weight 1.
    Equal(u64),
    /// A weight for each.
    Each(Vec<f64>),
}

/// The work of one worker in one step.
///
/// If another worker finished a job first, the part computed until then counts as well.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Weight of the units that it computed.
    pub weight: f64,
    /// Wall time of its computing, including the time that others took of its vCPU, s.
    pub seconds: f64,
    /// CPU time of its computing, s. Others had the rest of `seconds`.
    pub cpu_seconds: f64,
    /// Time it waited for others, s.
    pub waiting_seconds: f64,
    /// The part of a vCPU that quotas allow it, above 0; none where there is no quota. A worker with less to do is not
    /// stopped by the quota, so only this value tells its limit.
    pub allowed: Option<f64>,
}

/// The measurements of a finished step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Its number, from 0.
    pub number: u64,
    /// The work of each worker.
    pub works: Vec<Work>,
    /// From its begin to the begin of the next by the clock of the first worker, s; without `redivision_seconds`.
    pub seconds: f64,
    /// Time that units took to change workers before it, s; 0 where none did.
    pub redivision_seconds: f64,
    /// Units that did.
    pub moved: u64,
}

/// Which worker computes which units.
///
/// The units of a job are neighbours: job 0 has the first, and so on. Workers are in groups of [`copies`](Self::copies)
/// consecutive ones; the last group may be smaller. Every worker of a group computes all jobs of the group, its own first
/// and then the next, in a circle. When one finishes a job, the others drop it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    /// Units of each job; there is a job for each worker.
    pub units: Vec<u64>,
    /// Workers that compute each job; 1 for the worker of that number alone.
    pub copies: u32,
}

/// A policy for programs in supersteps: it makes a divider for each run.
pub trait SuperstepStrategy: Send + Sync {
    /// The name in the table, in `CARIBOU_LB` and in reports.
    fn name(&self) -> &'static str;

    /// The divider of one run.
    fn divider(&self, problem: &Problem) -> Box<dyn Divider>;
}

/// Divides the units of one run. One worker of the run has it, and sends its answers to all others.
pub trait Divider: Send {
    /// How the run begins. Asked once in every process, and the same in all.
    fn first(&mut self) -> Division;

    /// Takes a finished step; returns the division from the next possible step on, or `None` to keep the old one. An
    /// answer takes effect a step or two later: the steps in between still have the old division.
    fn after(&mut self, step: &Step) -> Option<Division>;

    /// Why it decided as it last did, in one line for reports and traces, if there is anything to say.
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

    /// Weight of the units of a range.
    pub fn of(&self, units: Range<u64>) -> f64 {
        match self {
            Self::Equal(_) => (units.end - units.start) as f64,
            Self::Each(weights) => weights[units.start as usize..units.end as usize].iter().sum(),
        }
    }
}

impl Division {
    /// The units of each job, as ranges of their numbers.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.units.iter().scan(0, |begin, &units| {
            let range = *begin..*begin + units;
            *begin = range.end;
            Some(range)
        })
    }

    /// The workers that compute the jobs of `worker`'s group, which are also the numbers of those jobs; fewer than
    /// `copies` in the last group. The last workers, as far as they have no units, are groups of their own.
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
