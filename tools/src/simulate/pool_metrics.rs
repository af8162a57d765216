//! Computes the figures that only a simulated run of a pool has: ends of workers and ranks, idle time and messages.

use std::sync::Arc;

use lb_strategies::pool::{Nanos, PoolStrategy};
use lb_strategies::{POOLS, Table};
use presentation::chart::{Axis, Chart, Series};
use serde::Serialize;
use virtual_cluster::{PoolRun, SCENARIOS, Scenario, ScenarioEntry, WorkerRun};

use super::compare::{Comparable, Comparison, Metrics, Outcome, seconds};
use super::files::text;
use super::options::Named;

/// Figures of one policy in one scenario. Ranks that died count only in `worker_ends_s`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PoolMetrics {
    /// Time between the ends of the first and the last worker.
    pub(super) worker_spread_s: f64,
    /// Time between the ends of the first and the last rank.
    pub(super) rank_spread_s: f64,
    /// Sum over workers of their idle time from their start to the makespan.
    pub(super) idle_worker_s: f64,
    pub(super) messages: u64,
    /// Iterations executed beyond the number in the pool, in percent of that number.
    pub(super) overshoot_percent: f64,
    /// Iterations that were not executed.
    pub(super) missing: u64,
    /// Ranks that never ended.
    pub(super) hung: usize,
    pub(super) rank_ends_s: Vec<f64>,
    /// End of each worker, by rank.
    pub(super) worker_ends_s: Vec<Vec<f64>>,
    /// Iterations per second of each worker from the beginning to its end, by rank.
    pub(super) worker_speeds: Vec<Vec<f64>>,
}

fn spread(ends: &[f64]) -> f64 {
    let first = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let last = ends.iter().copied().fold(0.0, f64::max);
    (last - first).max(0.0)
}

impl PoolMetrics {
    /// The figures of `run`, which is `scenario` under a policy.
    fn new(scenario: &Scenario, run: &PoolRun) -> Self {
        let workers: Vec<(Nanos, &WorkerRun)> = (scenario.workers().zip(&run.workers))
            .map(|(worker, run)| (scenario.start(worker), run))
            .collect();
        let ends: Vec<f64> = workers.iter().map(|(_, run)| seconds(run.end)).collect();
        let makespan = run.makespan();
        let idle = |&(start, run): &(Nanos, &WorkerRun)| makespan.saturating_sub(start + run.busy);
        let rank_ends: Vec<f64> = run.rank_ends(&scenario.pool).into_iter().map(seconds).collect();
        let iterations = scenario.pool.iterations;
        let done: u64 = run.workers.iter().map(|run| run.done).sum();
        Self {
            worker_spread_s: spread(&ends),
            rank_spread_s: spread(&rank_ends),
            idle_worker_s: workers.iter().map(idle).map(seconds).sum(),
            messages: run.messages,
            overshoot_percent: 100.0 * done.saturating_sub(iterations) as f64 / iterations.max(1) as f64,
            missing: iterations.saturating_sub(run.executed.len()),
            hung: run.closed.iter().filter(|closed| closed.is_none()).count(),
            rank_ends_s: rank_ends,
            worker_ends_s: by_rank(scenario, run, |worker| seconds(worker.end)),
            worker_speeds: by_rank(scenario, run, |worker| worker.done as f64 / seconds(worker.end.max(1))),
        }
    }
}

impl Comparable for Scenario {
    type Policy = dyn PoolStrategy;
    type Metrics = PoolMetrics;

    fn table() -> &'static Table<dyn PoolStrategy> {
        &POOLS
    }

    fn named() -> Vec<Named<Self>> {
        let named = |entry: &'static ScenarioEntry| {
            let build = Box::new(|| entry.build());
            Named { name: entry.name, about: entry.about, build }
        };
        SCENARIOS.iter().map(named).collect()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn kept_bytes(&self) -> u64 {
        // The end and the speed of a worker.
        16 * u64::from(self.pool.workers())
    }

    fn ideal_s(&self) -> f64 {
        Scenario::ideal_s(self)
    }

    fn run_under(&self, policy: &Arc<dyn PoolStrategy>, _tell: &dyn Fn(f64)) -> (f64, PoolMetrics) {
        let run = self.run(&**policy);
        (seconds(run.makespan()), PoolMetrics::new(self, &run))
    }

    fn comparison(&self, ideal_s: f64, outcomes: Vec<Outcome<PoolMetrics>>) -> Comparison<PoolMetrics> {
        Comparison {
            scenario: self.name.clone(),
            swept: Vec::new(),
            chunks: None,
            units: None,
            iterations: self.pool.iterations,
            workers: self.pool.workers.clone(),
            ideal_s,
            outcomes,
        }
    }
}

impl Metrics for PoolMetrics {
    const HEADS: &'static [&'static str] = &["spread s", "of ranks s", "idle s", "messages", "overshoot %"];
    const COLUMNS: &'static [&'static str] = &[
        "worker_spread_s",
        "rank_spread_s",
        "idle_worker_s",
        "messages",
        "overshoot_percent",
        "missing",
        "hung",
    ];
    const LEGEND: Option<&'static str> = Some(
        "excess: over the ideal; spread: time between the ends of the first and the last worker; of ranks: the same of \
         ranks;\nidle: of all workers together; overshoot: iterations executed beyond those of the pool, in percent of it",
    );
    const PLOT: &'static str = "when each worker ended";

    fn cells(&self) -> Vec<String> {
        vec![
            format!("{:.1}", self.worker_spread_s),
            format!("{:.1}", self.rank_spread_s),
            format!("{:.0}", self.idle_worker_s),
            self.messages.to_string(),
            format!("{:.2}", self.overshoot_percent),
        ]
    }

    fn values(&self) -> Vec<String> {
        let spreads_and_idle = [self.worker_spread_s, self.rank_spread_s, self.idle_worker_s].map(text);
        let counts = [self.messages.to_string(), text(self.overshoot_percent)];
        let wrong = [self.missing.to_string(), self.hung.to_string()];
        spreads_and_idle.into_iter().chain(counts).chain(wrong).collect()
    }

    fn complaint(&self) -> Option<String> {
        let missing = (self.missing > 0).then(|| format!("{} iterations missing", self.missing));
        let hung = (self.hung > 0).then(|| format!("{} ranks hang", self.hung));
        let words: Vec<String> = missing.into_iter().chain(hung).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    fn chart(comparison: &Comparison<Self>) -> Chart {
        let workers = f64::from(comparison.workers.iter().sum::<u32>());
        let ends = comparison.outcomes.iter().map(|outcome| outcome.makespan_s);
        let top = 1.08 * ends.fold(comparison.ideal_s, f64::max).max(1e-9);
        Chart {
            caption: comparison.title(),
            horizontal: Axis { title: "worker, by rank".into(), from: -0.5, to: workers - 0.5, whole: true },
            vertical: Axis { title: "end (s)".into(), from: 0.0, to: top, whole: false },
            bands: Vec::new(),
            level: Some(comparison.ideal_s),
            series: comparison.outcomes.iter().map(ends_of_workers).collect(),
        }
    }
}

fn ends_of_workers(outcome: &Outcome<PoolMetrics>) -> Series {
    let ends = outcome.metrics.worker_ends_s.iter().flatten();
    Series {
        name: format!("{}: {:.0} s", outcome.policy, outcome.makespan_s),
        dots: (0..).map(f64::from).zip(ends.copied()).collect(),
        radius: 4.0,
        opacity: 1.0,
        line: Vec::new(),
    }
}

fn by_rank(scenario: &Scenario, run: &PoolRun, value: impl Fn(&WorkerRun) -> f64) -> Vec<Vec<f64>> {
    let mut workers = run.workers.iter();
    let counts = scenario.pool.workers.iter();
    counts.map(|&count| workers.by_ref().take(count as usize).map(&value).collect()).collect()
}
