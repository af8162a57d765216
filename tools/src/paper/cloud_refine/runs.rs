//! Runs the programs of the paper on its VMs.

use lb_strategies::{ARRAYS, Period};
use virtual_cluster::ArrayRun;
use virtual_cluster::cloud_cluster::Cloud;

use super::{Context, DEFAULT};
use crate::statistics::mean;

/// A neighbour that never leaves.
pub(super) const ALWAYS: Option<(f64, f64)> = Some((0.0, 1e9));

/// One run.
pub(super) struct Run {
    pub(super) seconds: f64,
    pub(super) moves: u64,
    pub(super) run: ArrayRun,
}

impl Run {
    /// Runs an experiment under a strategy.
    pub(super) fn of(cloud: &Cloud, strategy: &str) -> Self {
        let strategy = ARRAYS.parse(strategy).expect("it is listed");
        let run = cloud.scenario().run(strategy.into());
        Self { seconds: run.makespan() as f64 / 1e9, moves: run.moves(), run }
    }

    /// Runs an experiment under the default of Caribou.
    pub(super) fn of_default(cloud: &Cloud) -> Self {
        Self::of(&Cloud { period: DEFAULT.1, ..*cloud }, DEFAULT.0)
    }

    /// The part of the time of `none` that this run saves, percent.
    pub(super) fn saved(&self, none: &Run) -> f64 {
        saved(self.seconds, none.seconds)
    }

    /// Length of each iteration, s.
    pub(super) fn iterations_s(&self) -> Vec<f64> {
        self.run.iteration_times().into_iter().map(|ns| ns as f64 / 1e9).collect()
    }

    /// The paper's residual imbalance: maximum over average of the loads with background, mean of all phases.
    pub(super) fn residual_imbalance(&self) -> f64 {
        let all: Vec<f64> = self.run.syncs.iter().map(|sync| sync.decision.imbalance_before).collect();
        mean(&all)
    }

    /// The part of the run in which each VM computes, with or without its vCPU, percent.
    pub(super) fn utilisation(&self) -> Vec<f64> {
        self.run.busy.iter().map(|&ns| ns as f64 / 1e7 / self.seconds).collect()
    }
}

/// The part of `none_s` that `seconds` saves, percent.
pub(super) fn saved(seconds: f64, none_s: f64) -> f64 {
    100.0 * (1.0 - seconds / none_s)
}

/// Runs each experiment under each of the strategies, in parallel. By experiment, then strategy.
pub(super) fn all(context: &Context, what: &str, clouds: &[Cloud], strategies: &[&str]) -> Vec<Vec<Run>> {
    let mut runs = context
        .each(what, clouds.len() * strategies.len(), |index| {
            Run::of(&clouds[index / strategies.len()], strategies[index % strategies.len()])
        })
        .into_iter();
    clouds.iter().map(|_| runs.by_ref().take(strategies.len()).collect()).collect()
}

/// The experiments with syncs every so many iterations.
pub(super) fn at_periods(cloud: &Cloud, periods: &[u64]) -> Vec<Cloud> {
    periods.iter().map(|&steps| Cloud { period: Period::Steps(steps), ..*cloud }).collect()
}
