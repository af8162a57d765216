//! Defines a simulated program in supersteps with its cluster and disturbances, to compare policies under equal terms.

use std::sync::Arc;

use super::ideal::ideal_s;
use super::job_times::{Computing, JobTimes, OnVcpus};
use super::pool_scenario::MakeVcpus;
use super::step_simulation::{RunSteps, StepProgram, StepsRun};
use lb_strategies::supersteps::SuperstepStrategy;
use lb_strategies::virtual_time::vcpus::{Worker, all_workers};

/// A program in supersteps on a cluster, the same in each run under any policy.
///
/// ```
/// use lb_strategies::{SUPERSTEPS, supersteps::Weights};
/// use virtual_cluster::{StepProgram, StepScenario, Times};
/// let program = StepProgram { steps: 10, ..StepProgram::new(Weights::Equal(300), 2) };
/// let times = Times::Jobs(vec![vec![0.01], vec![0.02]].into());
/// let scenario = StepScenario { name: "halves".into(), program, times };
/// assert_eq!(scenario.ideal_s(), 20.0);
/// assert_eq!(scenario.run(&*SUPERSTEPS.parse("equal")?).makespan_s(), 30.0);
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone)]
pub struct StepScenario {
    /// Name in reports.
    pub name: String,
    /// The program.
    pub program: StepProgram,
    /// The computing times of its workers.
    pub times: Times,
}

/// The computing times of the workers of a program.
#[derive(Clone)]
pub enum Times {
    /// Workers run on vCPUs; ranks have these numbers of workers.
    Vcpus(MakeVcpus, Vec<u32>),
    /// Measured job by job: seconds per unit of weight, by worker; see [`JobTimes`].
    Jobs(Arc<Vec<Vec<f64>>>),
    /// Measured step by step.
    Steps(Arc<Vec<Vec<f64>>>),
}

impl Times {
    /// The measured series of each worker; empty for vCPUs.
    pub fn series(&self) -> &[Vec<f64>] {
        match self {
            Times::Vcpus(..) => &[],
            Times::Jobs(series) | Times::Steps(series) => series,
        }
    }
}

impl StepScenario {
    /// Runs the program under `policy`.
    pub fn run(&self, policy: &dyn SuperstepStrategy) -> StepsRun {
        let mut computing: Box<dyn Computing> = match &self.times {
            Times::Vcpus(vcpus, workers) => Box::new(OnVcpus::new(vcpus(), all_workers(workers).collect())),
            Times::Jobs(series) => Box::new(JobTimes::new(series.clone())),
            Times::Steps(series) => Box::new(JobTimes::by_step(series.clone())),
        };
        RunSteps::new(&self.program, policy, &mut *computing).run()
    }

    /// The time of the run if units could be divided, all workers always computed, and messages took no time, s.
    pub fn ideal_s(&self) -> f64 {
        let StepProgram { weights, steps, .. } = &self.program;
        let weight = weights.of(0..weights.units());
        match &self.times {
            Times::Vcpus(vcpus, workers) => {
                let workers: Vec<(Worker, u64)> = all_workers(workers).map(|worker| (worker, 0)).collect();
                ideal_s(&workers, &mut *vcpus(), weight * *steps as f64)
            }
            Times::Jobs(series) | Times::Steps(series) => {
                let speed = |step: usize| series.iter().map(|of| 1.0 / of[step % of.len()]).sum::<f64>();
                (0..*steps as usize).map(|step| weight / speed(step)).sum()
            }
        }
    }
}
