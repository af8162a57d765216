//! Computes the figures of a simulated run of an array: time, excess over the ideal, moves, and iteration times.

use std::sync::Arc;

use lb_strategies::Strategy;
use lb_strategies::pool::Nanos;
use presentation::chart::Chart;
use presentation::format::decimal;
use serde::Serialize;
use virtual_cluster::{ArrayRun, ArrayScenario, SyncRun};

use super::compare::{Comparable, Comparison, Metrics};
use super::files::text;

/// Result of one strategy in one scenario. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ArrayMetrics {
    policy: String,
    makespan_s: f64,
    /// Excess over the ideal; none if iterations are missing.
    excess_percent: Option<f64>,
    /// Time saved, in percent of the time of `none`; none if `none` is not compared.
    saved_percent: Option<f64>,
    /// Sum over workers of their idle time until the makespan.
    idle_worker_s: f64,
    moves: u64,
    messages: u64,
    /// Predictor of loads at the last sync; none without a sync.
    predictor: Option<&'static str>,
    /// Iterations of chunks that were not executed.
    missing: u64,
    iteration_times_s: Vec<f64>,
    syncs: Vec<Sync>,
}

#[derive(Clone, Debug, Serialize)]
struct Sync {
    at_s: f64,
    imbalance_before: f64,
    imbalance_predicted: f64,
    proposed: u64,
    moved: usize,
    predictor: &'static str,
    share: Vec<f64>,
    capacity: Vec<f64>,
    chunks_per_rank: Vec<u32>,
}

impl Sync {
    fn new(sync: &SyncRun) -> Self {
        let SyncRun { at, decision, .. } = sync;
        Self {
            at_s: seconds(*at),
            imbalance_before: decision.imbalance_before,
            imbalance_predicted: decision.imbalance_predicted,
            proposed: decision.proposed,
            moved: decision.moves.len(),
            predictor: decision.prediction.name(),
            share: decision.share.clone(),
            capacity: decision.capacity.clone(),
            chunks_per_rank: decision.chunks_per_rank.clone(),
        }
    }
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

impl ArrayMetrics {
    /// Time saved, in percent of the time of `none`; none if `none` is not compared.
    pub(super) fn saved_percent(&self) -> Option<f64> {
        self.saved_percent
    }

    /// The figures of `run`, which is `scenario` under a strategy.
    fn new(policy: &str, scenario: &ArrayScenario, ideal_s: f64, run: &ArrayRun) -> Self {
        let all = u64::from(scenario.array.chunks) * scenario.array.iterations;
        let makespan_s = seconds(run.makespan());
        let excess = if ideal_s > 0.0 { 100.0 * (makespan_s / ideal_s - 1.0) } else { 0.0 };
        Self {
            policy: policy.to_owned(),
            makespan_s,
            excess_percent: run.is_complete(&scenario.array).then_some(excess),
            saved_percent: None,
            idle_worker_s: seconds(run.idle()),
            moves: run.moves(),
            messages: run.messages,
            predictor: run.syncs.last().map(|sync| sync.decision.prediction.name()),
            missing: all - run.executed,
            iteration_times_s: run.iteration_times().into_iter().map(seconds).collect(),
            syncs: run.syncs.iter().map(Sync::new).collect(),
        }
    }
}

impl Comparable for ArrayScenario {
    type Policy = dyn Strategy;
    type Outcome = ArrayMetrics;

    fn ideal_s(&self) -> f64 {
        ArrayScenario::ideal_s(self)
    }

    fn outcome(&self, spec: &str, policy: &Arc<dyn Strategy>, ideal_s: f64) -> ArrayMetrics {
        ArrayMetrics::new(spec, self, ideal_s, &self.run(Arc::clone(policy)))
    }

    fn comparison(&self, ideal_s: f64, outcomes: Vec<ArrayMetrics>) -> Comparison<ArrayMetrics> {
        Comparison {
            scenario: self.name.clone(),
            chunks: Some(self.array.chunks),
            units: None,
            iterations: self.array.iterations,
            workers: self.array.workers.clone(),
            ideal_s,
            outcomes,
        }
    }
}

impl Metrics for ArrayMetrics {
    const HEADS: &'static [&'static str] = &[
        "strategy",
        "makespan s",
        "excess %",
        "saved %",
        "idle s",
        "syncs",
        "moves",
        "messages",
        "predictor",
        "",
    ];
    const COLUMNS: &'static [&'static str] =
        &["saved_percent", "idle_worker_s", "syncs", "moves", "messages", "missing", "predictor"];
    const BASELINE: Option<&'static str> = Some("none");
    const PLOT: &'static str = "how long each iteration took";

    fn policy(&self) -> &str {
        &self.policy
    }

    fn makespan_s(&self) -> f64 {
        self.makespan_s
    }

    fn excess_percent(&self) -> Option<f64> {
        self.excess_percent
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.saved_percent.map_or_else(String::new, |saved| decimal(saved, 2)),
            format!("{:.1}", self.idle_worker_s),
            self.syncs.len().to_string(),
            self.moves.to_string(),
            self.messages.to_string(),
            self.predictor.unwrap_or_default().to_owned(),
        ]
    }

    fn values(&self) -> Vec<String> {
        let times = [self.saved_percent.map_or_else(String::new, text), text(self.idle_worker_s)];
        let counts = [self.syncs.len() as u64, self.moves, self.messages, self.missing];
        let predictor = self.predictor.unwrap_or_default().to_owned();
        times.into_iter().chain(counts.map(|count| count.to_string())).chain([predictor]).collect()
    }

    fn complaint(&self) -> Option<String> {
        (self.missing > 0).then(|| format!("{} iterations of chunks missing", self.missing))
    }

    fn set_saved(&mut self, percent: f64) {
        self.saved_percent = Some(percent);
    }

    fn chart(comparison: &Comparison<Self>) -> Chart {
        comparison.chart_of_times("iteration", |outcome| &outcome.iteration_times_s)
    }
}
