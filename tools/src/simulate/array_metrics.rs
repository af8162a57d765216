//! Computes the figures that only a simulated run of an array has: syncs, moves, and iteration times.

use std::sync::Arc;

use lb_strategies::{ARRAYS, Strategy, Table};
use presentation::chart::Chart;
use serde::Serialize;
use virtual_cluster::{ARRAY_SCENARIOS, ArrayRun, ArrayScenario, ArrayScenarioEntry, SyncRun};

use super::compare::{Comparable, Comparison, Metrics, Outcome, seconds};
use super::files::text;
use super::options::Named;
use super::table;

/// Figures of one strategy in one scenario.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ArrayMetrics {
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
    fn new(SyncRun { at, decision, .. }: SyncRun) -> Self {
        Self {
            at_s: seconds(at),
            imbalance_before: decision.imbalance_before,
            imbalance_predicted: decision.imbalance_predicted,
            proposed: decision.proposed,
            moved: decision.moves.len(),
            predictor: decision.prediction.name(),
            share: decision.share,
            capacity: decision.capacity,
            chunks_per_rank: decision.chunks_per_rank,
        }
    }
}

impl ArrayMetrics {
    /// The figures of `run`, which is `scenario` under a strategy.
    fn new(scenario: &ArrayScenario, run: ArrayRun) -> Self {
        let all = u64::from(scenario.array.chunks) * scenario.array.iterations;
        Self {
            idle_worker_s: seconds(run.idle()),
            moves: run.moves(),
            messages: run.messages,
            predictor: run.syncs.last().map(|sync| sync.decision.prediction.name()),
            missing: all - run.executed,
            iteration_times_s: run.iteration_times().into_iter().map(seconds).collect(),
            syncs: run.syncs.into_iter().map(Sync::new).collect(),
        }
    }
}

impl Comparable for ArrayScenario {
    type Policy = dyn Strategy;
    type Metrics = ArrayMetrics;
    const POLICIES: &'static str = "strategies";
    /// `program`, `rotate` and `random` are left out because they balance nothing here.
    const COMPARED: Option<&'static str> = Some("none,refine,refine-paper,greedy");

    fn table() -> &'static Table<dyn Strategy> {
        &ARRAYS
    }

    fn named() -> Vec<Named<Self>> {
        let named = |entry: &'static ArrayScenarioEntry| {
            let build = Box::new(|| entry.build());
            Named { name: entry.name, about: entry.about, build }
        };
        ARRAY_SCENARIOS.iter().map(named).collect()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn kept_bytes(&self) -> u64 {
        /// Of a rank at a sync: its share, its capacity, and its number of chunks.
        const RANK_BYTES: u64 = 20;
        8 * self.array.iterations + RANK_BYTES * self.array.syncs() * self.array.workers.len() as u64
    }

    fn ideal_s(&self) -> f64 {
        ArrayScenario::ideal_s(self)
    }

    fn run_under(&self, policy: &Arc<dyn Strategy>, tell: &dyn Fn(f64)) -> (f64, ArrayMetrics) {
        let run = self.run_telling(Arc::clone(policy), tell);
        (seconds(run.makespan()), ArrayMetrics::new(self, run))
    }

    fn comparison(&self, ideal_s: f64, outcomes: Vec<Outcome<ArrayMetrics>>) -> Comparison<ArrayMetrics> {
        Comparison {
            scenario: self.name.clone(),
            swept: Vec::new(),
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
    const POLICY: &'static str = "strategy";
    const HEADS: &'static [&'static str] = &["idle s", "syncs", "moves", "messages", "predictor"];
    const COLUMNS: &'static [&'static str] =
        &["idle_worker_s", "syncs", "moves", "messages", "missing", "predictor"];
    const BASELINE: Option<&'static str> = Some("none");
    const LEGEND: Option<&'static str> =
        Some("messages: between ranks, those of chunks and of syncs, and the chunks that move");
    const PLOT: &'static str = "how long each iteration took";

    fn cells(&self) -> Vec<String> {
        vec![
            format!("{:.1}", self.idle_worker_s),
            self.syncs.len().to_string(),
            self.moves.to_string(),
            self.messages.to_string(),
            self.predictor.unwrap_or_default().to_owned(),
        ]
    }

    fn values(&self) -> Vec<String> {
        let times = [text(self.idle_worker_s)];
        let counts = [self.syncs.len() as u64, self.moves, self.messages, self.missing];
        let predictor = self.predictor.unwrap_or_default().to_owned();
        times.into_iter().chain(counts.map(|count| count.to_string())).chain([predictor]).collect()
    }

    fn complaint(&self) -> Option<String> {
        (self.missing > 0).then(|| format!("{} iterations of chunks missing", self.missing))
    }

    fn chart(comparison: &Comparison<Self>) -> Chart {
        let chart = comparison.chart_of_times("iteration", |metrics| &metrics.iteration_times_s);
        Chart { caption: format!("{}: {}", comparison.scenario, table::size(comparison)), ..chart }
    }
}
