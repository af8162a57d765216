//! The figures of one run: how long, how far from the best, and what it cost.

use lb_strategies::cluster::{PoolRun, Scenario, WorkerRun};
use lb_strategies::pool::Nanos;
use serde::Serialize;

/// Result of one policy in one scenario. Times are in seconds; ranks that died count nowhere but in `worker_ends_s`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) policy: String,
    pub(super) makespan_s: f64,
    /// Over the ideal; none if not everything was done, since time is saved by leaving work undone.
    pub(super) excess_percent: Option<f64>,
    /// Between the ends of the first and the last worker.
    pub(super) worker_spread_s: f64,
    /// Between the ends of the first and the last rank.
    pub(super) rank_spread_s: f64,
    /// Of all workers from their start to the makespan, added up.
    pub(super) idle_worker_s: f64,
    pub(super) messages: u64,
    /// Iterations executed beyond those of the pool, in percent of them.
    pub(super) overshoot_percent: f64,
    /// Iterations that nobody executed.
    pub(super) missing: u64,
    /// Ranks that never closed.
    pub(super) hung: usize,
    pub(super) rank_ends_s: Vec<f64>,
    /// By rank.
    pub(super) worker_ends_s: Vec<Vec<f64>>,
    /// Iterations per second of each worker from the beginning to its end, by rank.
    pub(super) worker_speeds: Vec<Vec<f64>>,
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

fn spread(ends: &[f64]) -> f64 {
    let first = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let last = ends.iter().copied().fold(0.0, f64::max);
    (last - first).max(0.0)
}

impl Outcome {
    /// The figures of `run`, which is `scenario` under `policy`.
    pub(super) fn new(policy: &str, scenario: &Scenario, ideal_s: f64, run: &PoolRun) -> Self {
        let workers: Vec<(Nanos, &WorkerRun)> = (scenario.workers().zip(&run.workers))
            .map(|(worker, run)| (scenario.start(worker), run))
            .collect();
        let ends: Vec<f64> = workers.iter().map(|(_, run)| seconds(run.end)).collect();
        let makespan = run.makespan();
        let idle = |&(start, run): &(Nanos, &WorkerRun)| makespan.saturating_sub(start + run.busy);
        let rank_ends: Vec<f64> = run.rank_ends(&scenario.pool).into_iter().map(seconds).collect();
        let iterations = scenario.pool.iterations;
        let done: u64 = run.workers.iter().map(|run| run.done).sum();
        let missing = iterations.saturating_sub(run.executed.len());
        let hung = run.closed.iter().filter(|closed| closed.is_none()).count();
        let excess = if ideal_s > 0.0 { 100.0 * (seconds(makespan) / ideal_s - 1.0) } else { 0.0 };
        Self {
            policy: policy.to_owned(),
            makespan_s: seconds(makespan),
            excess_percent: (missing == 0 && hung == 0).then_some(excess),
            worker_spread_s: spread(&ends),
            rank_spread_s: spread(&rank_ends),
            idle_worker_s: workers.iter().map(idle).map(seconds).sum(),
            messages: run.messages,
            overshoot_percent: 100.0 * done.saturating_sub(iterations) as f64 / iterations.max(1) as f64,
            missing,
            hung,
            rank_ends_s: rank_ends,
            worker_ends_s: by_rank(scenario, run, |worker| seconds(worker.end)),
            worker_speeds: by_rank(scenario, run, |worker| worker.done as f64 / seconds(worker.end.max(1))),
        }
    }

    /// Faults in words; nothing if all iterations were executed and all ranks closed.
    pub(super) fn complaint(&self) -> Option<String> {
        let missing = (self.missing > 0).then(|| format!("{} iterations missing", self.missing));
        let hung = (self.hung > 0).then(|| format!("{} ranks hang", self.hung));
        let words: Vec<String> = missing.into_iter().chain(hung).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

fn by_rank(scenario: &Scenario, run: &PoolRun, value: impl Fn(&WorkerRun) -> f64) -> Vec<Vec<f64>> {
    let mut workers = run.workers.iter();
    let counts = scenario.pool.workers.iter();
    counts.map(|&count| workers.by_ref().take(count as usize).map(&value).collect()).collect()
}
