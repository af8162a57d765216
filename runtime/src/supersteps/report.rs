//! The outcome of a program in supersteps, and its report.

use serde::{Deserialize, Serialize};

use super::api::Supersteps;
use crate::run::report::RunReport;

/// The outcome of a program in supersteps, the same in every process.
#[derive(Clone, Debug)]
pub struct SuperstepOutcome<P: Supersteps> {
    /// The shared data after the last step.
    pub shared: P::Shared,
    /// All units after the last step, in order, if the program [`collects`](Supersteps::collects) them.
    pub units: Vec<P::Unit>,
    /// The report of the run.
    pub report: SuperstepReport,
}

/// The report of a finished program in supersteps.
///
/// ```
/// use caribou::supersteps::{SuperstepReport, SuperstepWorker};
/// let worker = |weight, computing_ns| SuperstepWorker { weight, computing_ns, ..SuperstepWorker::default() };
/// // Ten steps of equal shares, one worker half as fast. With two thirds of the units on the other, a step takes 8 ns.
/// let workers = vec![worker(60.0, 60), worker(60.0, 120)];
/// let report = SuperstepReport { steps: 10, weight: 12.0, elapsed_ns: 120, workers, ..SuperstepReport::default() };
/// assert_eq!((report.bound_ns(), report.excess()), (80, 0.5));
/// // A worker that loses its vCPU before it computes is as slow as one that loses it while it computes.
/// let base = SuperstepWorker { weight: 60.0, computing_ns: 60, cpu_ns: 60, ..SuperstepWorker::default() };
/// let worker = |lost_ns| SuperstepWorker { lost_ns, ..base };
/// assert_eq!(SuperstepReport { workers: vec![worker(0), worker(60)], ..report.clone() }.bound_ns(), 80);
/// // On one vCPU the workers wait for each other.
/// let shared = |worker: &SuperstepWorker| SuperstepWorker { cpu_ns: 60, ..*worker };
/// let workers = report.workers.iter().map(shared).collect();
/// let report = SuperstepReport { workers, vcpus: Some(1), ..report };
/// assert_eq!(report.bound_ns(), 120);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuperstepReport {
    /// The part of the report that every shape of program has.
    #[serde(flatten)]
    pub run: RunReport,
    /// The policy and its parameters, as given.
    pub lb: String,
    /// Number of computed steps; in a restarted run, of steps after the checkpoint.
    pub steps: u64,
    /// Weight of all units.
    pub weight: f64,
    /// Time from the begin of the first step to the end of the last, by the clock of worker 0, ns.
    pub elapsed_ns: u64,
    /// All workers, in order.
    pub workers: Vec<SuperstepWorker>,
    /// Sum over all steps of the time in `compute` of the step's slowest worker, ns. Each step waits for that worker.
    #[serde(default)]
    pub slowest_ns: u64,
    /// Number of vCPUs of all workers; none if it is not known: in several processes, or in a simulation.
    pub vcpus: Option<u32>,
    /// The divisions that took effect after the first, in order.
    pub divisions: Vec<DivisionReport>,
}

/// What one worker did in a program in supersteps. Times are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuperstepWorker {
    /// Number of units of the worker's job in the last step.
    pub units: u64,
    /// Weight of the units computed in all steps, including units that another worker finished sooner.
    pub weight: f64,
    /// Number of jobs that were dropped because another worker was faster.
    pub dropped: u64,
    /// Time spent on the dropped jobs.
    pub dropped_ns: u64,
    /// Wall time in `compute`, including interruptions.
    pub computing_ns: u64,
    /// CPU time in `compute`.
    pub cpu_ns: u64,
    /// Run-queue delay, in `compute` and before it: the thread could run, but others had the vCPU. 0 if not reported.
    #[serde(default)]
    pub lost_ns: u64,
    /// Time within steps without a job to compute.
    pub waiting_ns: u64,
    /// Time in which units were redistributed.
    pub moving_ns: u64,
    /// The number of vCPUs that quotas allowed the worker, as last read; none without a quota.
    pub allowed: Option<f64>,
}

/// A division that took effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DivisionReport {
    /// The first step with this division.
    pub step: u64,
    /// Number of units of each worker's job.
    pub units: Vec<u64>,
    /// Number of workers that compute each job.
    pub copies: u32,
    /// Number of units that workers received, summed over workers.
    pub moved: u64,
    /// The reason that the policy gave, if any.
    pub reason: Option<String>,
}

impl SuperstepReport {
    /// The capacity bound, ns: the time that the run would have taken if all workers had computed all the time.
    ///
    /// | case | speed of a worker |
    /// |---|---|
    /// | no quota | its weight over the time in which it computed or was ready to compute |
    /// | a quota of a part of a vCPU | the same, but at most that part of its weight over its CPU time |
    ///
    /// With more workers than vCPUs, the bound is the time in which all vCPUs provide the CPU time that the units took.
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

    /// The relative excess of the elapsed time over the bound: 0.01 is one percent.
    #[must_use]
    pub fn excess(&self) -> f64 {
        let bound_ns = self.bound_ns();
        if bound_ns == 0 { 0.0 } else { self.elapsed_ns as f64 / bound_ns as f64 - 1.0 }
    }
}
