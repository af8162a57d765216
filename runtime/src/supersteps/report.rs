//! The outcome of a program in supersteps, and its report.

use serde::{Deserialize, Serialize};

use super::api::Supersteps;
use crate::run::report::RunReport;

/// The outcome of a program in supersteps, the same in every process.
#[derive(Clone, Debug)]
pub struct SuperstepOutcome<P: Supersteps> {
    /// What every worker knew after the last step.
    pub shared: P::Shared,
    /// All units after the last step, in order, if the program [`collects`](Supersteps::collects) them.
    pub units: Vec<P::Unit>,
    /// The report of the run.
    pub report: SuperstepReport,
}

/// The record of a finished program in supersteps.
///
/// ```
/// use caribou::{SuperstepReport, SuperstepWorker};
/// let worker = |weight, computing_ns| SuperstepWorker { weight, computing_ns, ..SuperstepWorker::default() };
/// // Ten steps of equal shares, one worker half as fast: with two thirds of the units each step would have taken 8 ns.
/// let workers = vec![worker(60.0, 60), worker(60.0, 120)];
/// let report = SuperstepReport { steps: 10, weight: 12.0, elapsed_ns: 120, workers, ..SuperstepReport::default() };
/// assert_eq!((report.bound_ns(), report.excess()), (80, 0.5));
/// // Who is kept from its vCPU before it computes is as slow as who is kept from it meanwhile.
/// let worker = |lost_ns| SuperstepWorker { weight: 60.0, computing_ns: 60, cpu_ns: 60, lost_ns, ..SuperstepWorker::default() };
/// assert_eq!(SuperstepReport { workers: vec![worker(0), worker(60)], ..report.clone() }.bound_ns(), 80);
/// // On one vCPU they wait for each other.
/// let shared = |worker: &SuperstepWorker| SuperstepWorker { cpu_ns: 60, ..*worker };
/// let workers = report.workers.iter().map(shared).collect();
/// let report = SuperstepReport { workers, vcpus: Some(1), ..report };
/// assert_eq!(report.bound_ns(), 120);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuperstepReport {
    /// The part that every run has.
    #[serde(flatten)]
    pub run: RunReport,
    /// The policy and its parameters, as given.
    pub lb: String,
    /// Steps computed.
    pub steps: u64,
    /// Weight of all units.
    pub weight: f64,
    /// From the begin of the first step to the end of the last by the clock of the first worker, ns.
    pub elapsed_ns: u64,
    /// All workers, in order.
    pub workers: Vec<SuperstepWorker>,
    /// Time in `compute` of the slowest worker of each step, added up: each step waits for its own, ns.
    #[serde(default)]
    pub slowest_ns: u64,
    /// vCPUs that they had together; none where that is not known: in several processes, or in a simulation.
    pub vcpus: Option<u32>,
    /// The divisions that took effect after the first, in order.
    pub divisions: Vec<DivisionReport>,
}

/// One worker's part in a program in supersteps. Times are ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuperstepWorker {
    /// Units of its job in the last step.
    pub units: u64,
    /// Weight of the units that it computed in all steps, also of those that another worker computed sooner.
    pub weight: f64,
    /// Jobs that it dropped because another worker was faster.
    pub dropped: u64,
    /// Time in which it had computed them.
    pub dropped_ns: u64,
    /// Time in `compute`, with all interruptions.
    pub computing_ns: u64,
    /// CPU time of its thread in `compute`.
    pub cpu_ns: u64,
    /// Time that its thread wanted to run and others had its vCPU, as far as the kernel tells: in `compute`, and before it.
    #[serde(default)]
    pub lost_ns: u64,
    /// Time without anything to compute within steps.
    pub waiting_ns: u64,
    /// Time in which units came and went.
    pub moving_ns: u64,
    /// The part of a vCPU that quotas allowed it, as last read; none if there was no quota.
    pub allowed: Option<f64>,
}

/// A division that took effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DivisionReport {
    /// The first step under it.
    pub step: u64,
    /// Units of each worker's job.
    pub units: Vec<u64>,
    /// Workers that compute each job.
    pub copies: u32,
    /// Units that a worker got that it had not.
    pub moved: u64,
    /// Why, in the words of the policy.
    pub reason: Option<String>,
}

impl SuperstepReport {
    /// The time that the run would have taken if all workers had always computed, each at the speed it had while it
    /// did or wanted to, or at that of its CPU time where a quota allows it only a part: the capacity bound, ns. Of more workers than
    /// vCPUs it is the time in which all vCPUs give the CPU time that the units took.
    #[must_use]
    pub fn bound_ns(&self) -> u64 {
        if let Some(vcpus) = self.vcpus.filter(|&vcpus| (vcpus as usize) < self.workers.len()) {
            let sum = |of: fn(&SuperstepWorker) -> f64| self.workers.iter().map(of).sum::<f64>();
            let (weight, cpu_ns) = (sum(|worker| worker.weight), sum(|worker| worker.cpu_ns as f64));
            let needed_ns = self.steps as f64 * self.weight * cpu_ns / weight / f64::from(vcpus);
            return if needed_ns.is_finite() { needed_ns as u64 } else { 0 };
        }
        let speed = |worker: &SuperstepWorker| {
            let allowed_ns = worker.cpu_ns as f64 / worker.allowed.unwrap_or(1.0);
            let wanted_ns = (worker.cpu_ns + worker.lost_ns).max(worker.computing_ns);
            match allowed_ns.max(wanted_ns as f64) {
                0.0 => 0.0,
                computing_ns => worker.weight / computing_ns,
            }
        };
        let speeds: f64 = self.workers.iter().map(speed).sum();
        if speeds > 0.0 { (self.steps as f64 * self.weight / speeds) as u64 } else { 0 }
    }

    /// The part by which it took longer than the bound: 0.01 is one percent.
    #[must_use]
    pub fn excess(&self) -> f64 {
        let bound_ns = self.bound_ns();
        if bound_ns == 0 { 0.0 } else { self.elapsed_ns as f64 / bound_ns as f64 - 1.0 }
    }
}
