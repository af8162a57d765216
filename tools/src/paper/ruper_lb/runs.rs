//! Runs pool scenarios under the policies of the page, and keeps what its figures show.

use lb_strategies::POOLS;
use lb_strategies::pool::{Nanos, SECOND};
use virtual_cluster::{PoolRun, Scenario, scenario};

use super::Context;

/// The policies that are compared: equal shares, the paper's (it counts iterations without their identity), and the
/// best of Caribou.
pub(super) const POLICIES: [&str; 3] = ["static", "ruper,counts=fungible", "leases"];
/// Place of `static` in [`POLICIES`].
pub(super) const STATIC: usize = 0;
/// Place of `ruper`.
pub(super) const RUPER: usize = 1;
/// Place of `leases`.
pub(super) const LEASES: usize = 2;

/// One scenario under all policies.
pub(super) struct Trial {
    /// Name of the scenario.
    pub(super) scenario: String,
    /// All workers computing to the end, s.
    pub(super) ideal_s: f64,
    /// The run of each policy.
    pub(super) runs: Vec<Run>,
}

/// What a figure shows of one run. Times in seconds.
pub(super) struct Run {
    /// End of the last iteration.
    pub(super) makespan_s: f64,
    /// End of each rank.
    pub(super) rank_ends_s: Vec<f64>,
    /// End of each thread, by rank.
    pub(super) thread_ends_s: Vec<Vec<f64>>,
    /// Iterations per second of each thread until its end, by rank.
    pub(super) thread_speeds: Vec<Vec<f64>>,
    /// Sum over threads of the time without work before the makespan.
    pub(super) idle_s: f64,
    /// Messages between ranks.
    pub(super) messages: u64,
    /// Iterations beyond those of the pool, in percent of them.
    pub(super) overshoot_percent: f64,
}

impl Trial {
    /// Time above the ideal under a policy, percent.
    pub(super) fn excess(&self, policy: usize) -> f64 {
        100.0 * (self.runs[policy].makespan_s / self.ideal_s - 1.0)
    }
}

impl Run {
    fn new(scenario: &Scenario, run: &PoolRun) -> Self {
        let by_rank = |value: &dyn Fn(&virtual_cluster::WorkerRun) -> f64| {
            let mut workers = run.workers.iter();
            let counts = scenario.pool.workers.iter();
            counts
                .map(|&count| workers.by_ref().take(count as usize).map(value).collect())
                .collect::<Vec<Vec<f64>>>()
        };
        let done: u64 = run.workers.iter().map(|worker| worker.done).sum();
        let iterations = scenario.pool.iterations.max(1);
        Self {
            makespan_s: seconds(run.makespan()),
            rank_ends_s: run.rank_ends(&scenario.pool).into_iter().map(seconds).collect(),
            thread_ends_s: by_rank(&|worker| seconds(worker.end)),
            thread_speeds: by_rank(&|worker| worker.done as f64 / seconds(worker.end.max(1))),
            idle_s: seconds(run.idle()),
            messages: run.messages,
            overshoot_percent: 100.0 * done.saturating_sub(iterations) as f64 / iterations as f64,
        }
    }
}

/// Runs these scenarios under these policies. A run of each policy per scenario.
pub(super) fn trials_of(
    context: &Context,
    what: &str,
    scenarios: &[Scenario],
    policies: &[&str],
) -> Vec<Trial> {
    let ideals: Vec<f64> = scenarios.iter().map(Scenario::ideal_s).collect();
    let runs = context.each(what, scenarios.len() * policies.len(), |index| {
        let scenario = &scenarios[index / policies.len()];
        // Tests take larger chunks, of which there are fewer to simulate.
        let larger = if context.quick { ",chunk=5" } else { "" };
        let policy =
            POOLS.parse(&format!("{}{larger}", policies[index % policies.len()])).expect("it is listed");
        Run::new(scenario, &scenario.run(&*policy))
    });
    let mut runs = runs.into_iter();
    let trial = |(scenario, ideal_s): (&Scenario, f64)| Trial {
        scenario: scenario.name.clone(),
        ideal_s,
        runs: runs.by_ref().take(policies.len()).collect(),
    };
    scenarios.iter().zip(ideals).map(trial).collect()
}

/// Runs named scenarios under [`POLICIES`].
pub(super) fn trials(context: &Context, what: &str, names: &[&str]) -> Vec<Trial> {
    let scenarios: Vec<Scenario> = names.iter().map(|name| scenario(name).expect("it is listed")).collect();
    trials_of(context, what, &scenarios, &POLICIES)
}

/// The mean speed of each thread from the start to each multiple of `step_s` up to `end_s`, by rank, while all run.
pub(super) fn mean_speeds(name: &str, step_s: f64, end_s: f64) -> Vec<Vec<Vec<(f64, f64)>>> {
    let scenario = scenario(name).expect("it is listed");
    let (mut vcpus, workers) = (scenario.vcpus(), scenario.workers().collect::<Vec<_>>());
    for &worker in &workers {
        vcpus.occupied(worker, true, 0);
    }
    let mut done = vec![0.0; workers.len()];
    let mut curves: Vec<Vec<(f64, f64)>> = vec![Vec::new(); workers.len()];
    let (step, end) = ((step_s * SECOND as f64) as Nanos, (end_s * SECOND as f64) as Nanos);
    let mut now = 0;
    while now < end {
        // The speeds of all workers hold until the first of them changes. The first seconds show the beginning.
        let mark = if now < SECOND { SECOND } else { (now / step + 1) * step };
        let speeds: Vec<(f64, Nanos)> = workers.iter().map(|&worker| vcpus.speed(worker, now)).collect();
        let until = speeds.iter().map(|(_, until)| *until).fold(mark, Nanos::min);
        for (done, (speed, _)) in done.iter_mut().zip(&speeds) {
            *done += speed * seconds(until - now);
        }
        now = until;
        if now == mark {
            let at = seconds(now);
            curves.iter_mut().zip(&done).for_each(|(curve, done)| curve.push((at, done / at)));
        }
    }
    let mut curves = curves.into_iter();
    scenario.pool.workers.iter().map(|&count| curves.by_ref().take(count as usize).collect()).collect()
}

/// Least and greatest of some values.
pub(super) fn range(values: &[f64]) -> [f64; 2] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    [least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
}

/// Greatest minus least value.
pub(super) fn spread(values: &[f64]) -> f64 {
    let [least, most] = range(values);
    most - least
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}
