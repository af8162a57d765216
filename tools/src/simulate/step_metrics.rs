//! Computes the figures that only a simulated run in supersteps has: divisions, dropped jobs, step times.

use std::sync::Arc;

use lb_strategies::supersteps::SuperstepStrategy;
use lb_strategies::{SUPERSTEPS, Table};
use presentation::chart::Chart;
use serde::Serialize;
use virtual_cluster::{NewDivision, StepScenario, StepsRun, Times};

use super::compare::{Comparable, Comparison, Metrics, Outcome};
use super::files::text;

/// Figures of one policy in one scenario.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StepMetrics {
    /// Sum over workers of the time in which they did not compute.
    idle_worker_s: f64,
    moved: u64,
    dropped: u64,
    /// Steps that were not computed.
    missing: u64,
    step_times_s: Vec<f64>,
    divisions: Vec<Division>,
}

/// A new division of the units.
#[derive(Clone, Debug, Serialize)]
struct Division {
    step: u64,
    units: Vec<u64>,
    copies: u32,
    moved: u64,
    took_s: f64,
    reason: Option<String>,
}

impl From<NewDivision> for Division {
    fn from(new: NewDivision) -> Self {
        let NewDivision { step, division, moved, seconds, reason } = new;
        Self { step, units: division.units, copies: division.copies, moved, took_s: seconds, reason }
    }
}

impl StepMetrics {
    fn new(steps: u64, run: StepsRun) -> Self {
        let done = run.step_seconds.iter().filter(|seconds| seconds.is_finite()).count() as u64;
        let computing_s: f64 = run.computing_s.iter().sum();
        Self {
            idle_worker_s: run.makespan_s() * run.computing_s.len() as f64 - computing_s,
            moved: run.moved(),
            dropped: run.dropped,
            missing: steps - done,
            step_times_s: run.step_seconds,
            divisions: run.divisions.into_iter().map(Division::from).collect(),
        }
    }
}

impl Comparable for StepScenario {
    type Policy = dyn SuperstepStrategy;
    type Metrics = StepMetrics;

    fn table() -> &'static Table<dyn SuperstepStrategy> {
        &SUPERSTEPS
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn kept_bytes(&self) -> u64 {
        8 * self.program.steps
    }

    fn ideal_s(&self) -> f64 {
        StepScenario::ideal_s(self)
    }

    fn run_under(&self, policy: &Arc<dyn SuperstepStrategy>, _tell: &dyn Fn(f64)) -> (f64, StepMetrics) {
        let run = self.run(&**policy);
        (run.makespan_s(), StepMetrics::new(self.program.steps, run))
    }

    fn comparison(&self, ideal_s: f64, outcomes: Vec<Outcome<StepMetrics>>) -> Comparison<StepMetrics> {
        let workers = match &self.times {
            Times::Vcpus(_, workers) => workers.clone(),
            Times::Jobs(series) | Times::Steps(series) => vec![1; series.len()],
        };
        Comparison {
            scenario: self.name.clone(),
            swept: Vec::new(),
            chunks: None,
            units: Some(self.program.weights.units()),
            iterations: self.program.steps,
            workers,
            ideal_s,
            outcomes,
        }
    }
}

impl Metrics for StepMetrics {
    const HEADS: &'static [&'static str] = &["idle s", "divisions", "moved", "dropped"];
    const COLUMNS: &'static [&'static str] = &["idle_worker_s", "divisions", "moved", "dropped", "missing"];
    const BASELINE: Option<&'static str> = Some("equal");
    const PLOT: &'static str = "how long each step took";

    fn cells(&self) -> Vec<String> {
        vec![
            format!("{:.1}", self.idle_worker_s),
            self.divisions.len().to_string(),
            self.moved.to_string(),
            self.dropped.to_string(),
        ]
    }

    fn values(&self) -> Vec<String> {
        let times = [text(self.idle_worker_s)];
        let counts = [self.divisions.len() as u64, self.moved, self.dropped, self.missing];
        times.into_iter().chain(counts.map(|count| count.to_string())).collect()
    }

    fn complaint(&self) -> Option<String> {
        (self.missing > 0).then(|| format!("{} steps missing", self.missing))
    }

    fn chart(comparison: &Comparison<Self>) -> Chart {
        comparison.chart_of_times("step", |metrics| &metrics.step_times_s)
    }
}
