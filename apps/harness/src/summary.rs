//! Computes the numbers of a comparison that the table and `--json` show.
//!
//! A step is an iteration of an array, a percent of a pool, or a superstep. Other facts of a run depend on its shape.

use caribou::config::Period;
use serde::Serialize;

use super::disturbance::{Disturbances, Window};
use super::experiment::Experiment;
use super::machine::Machine;
use super::plot::Plot;
use super::shape::Facts;
use super::times::Times;
use super::trace::Trace;

/// A possible gain below this is noise, so no share of it is computed.
const WORTH_GAINING: f64 = 0.03;

/// All runs of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<F> {
    /// The program that ran.
    pub program: &'static str,
    /// The settings of all runs.
    pub settings: Settings,
    /// The machine.
    pub machine: Machine,
    /// Hosts, ranks, workers and their vCPUs, in one line; the same in all runs.
    pub placement: String,
    /// The run, cut where neighbours start or end, in steps.
    pub windows: Vec<Window>,
    /// Each run, in the order they were made.
    pub runs: Vec<Run<F>>,
    /// The last run's gain over the first.
    pub gain: Option<f64>,
    /// The gain that the last run would have had at best; 0 where its bound is longer than the first run.
    pub possible_gain: Option<f64>,
    /// The part of the possible gain that the last run reached.
    pub gain_share: Option<f64>,
}

/// The settings all runs shared.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Iterations: of an array, or of a pool.
    pub iterations: u64,
    /// When chunks are balanced; none for programs without chunks.
    pub period: Option<Period>,
    /// Ranks.
    pub ranks: u32,
    /// Workers per rank.
    pub workers: u32,
    /// Disturbances of each run.
    pub disturbances: Disturbances,
    /// All that only this program has, such as the size of its grid.
    pub problem: serde_json::Value,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Run<F> {
    /// Seconds in all.
    pub total_s: f64,
    /// The shortest possible time, s, by the capacity that was measured in the run.
    pub bound_s: Option<f64>,
    /// Part of the first run's time saved; none for the first run.
    pub gain: Option<f64>,
    /// The largest possible gain by the capacity that was measured in the run, at least 0. None for the first run, and
    /// if the first run was balanced.
    pub possible_gain: Option<f64>,
    /// The part of the possible gain that was reached; none for a loss.
    pub gain_share: Option<f64>,
    /// True if every requested quota was in force; true when none was requested.
    pub quotas_held: bool,
    /// Its trace.
    pub trace: Trace,
    /// The result in numbers, from [`Program::numbers`](crate::Program::numbers).
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub result: serde_json::Value,
    /// Facts that only runs of this shape have.
    #[serde(flatten)]
    pub facts: F,
    /// The times of its steps.
    #[serde(skip)]
    pub times: Times,
}

impl<F: Facts> Run<F> {
    /// A run that is not compared yet.
    #[must_use]
    pub fn new(facts: F, times: Times, quotas_held: bool) -> Self {
        let (total_s, bound_s) = (times.total_s(), facts.bound_s());
        let trace = Trace::of(facts.run());
        let result = serde_json::Value::Null;
        let (gain, possible_gain, gain_share) = (None, None, None);
        Self { trace, total_s, bound_s, gain, possible_gain, gain_share, quotas_held, result, facts, times }
    }
}

impl<F> Run<F> {
    /// The possible gain, if it is more than noise.
    #[must_use]
    pub fn worth_gaining(&self) -> Option<f64> {
        self.possible_gain.filter(|&gain| gain > WORTH_GAINING)
    }
}

impl<F: Facts> Summary<F> {
    /// Sums up the runs of `experiment`, in which `program` worked at `problem`.
    #[must_use]
    pub fn new(
        program: &'static str,
        problem: serde_json::Value,
        period: Option<Period>,
        experiment: &Experiment,
        mut runs: Vec<Run<F>>,
    ) -> Self {
        let first_s = runs.first().map_or(0.0, |run| run.total_s);
        let compares = F::UNBALANCED.is_some_and(|lb| runs.first().is_some_and(|run| run.facts.lb() == lb));
        let possible = |run: &Run<F>| {
            run.bound_s.filter(|_| first_s > 0.0).map(|bound_s| (1.0 - bound_s / first_s).max(0.0))
        };
        for run in runs.iter_mut().skip(1) {
            run.gain = (first_s > 0.0).then(|| 1.0 - run.total_s / first_s);
            run.possible_gain = possible(run).filter(|_| compares);
            let worth = run.worth_gaining();
            run.gain_share = run.gain.filter(|&gain| gain > 0.0).zip(worth).map(|(gain, worth)| gain / worth);
        }
        let quotas_held = runs.iter().all(|run| run.quotas_held);
        // A program may end before the last step that it may make.
        let steps = runs.iter().map(|run| run.times.steps()).max().unwrap_or(0);
        let (first, last) = (runs.first().map(|run| run.facts.run()), runs.last());
        Self {
            program,
            settings: Settings {
                iterations: experiment.total.count,
                period,
                ranks: experiment.ranks,
                // Ranks differ only on request; the first stands for all.
                workers: first.and_then(|run| run.workers_per_rank.first().copied()).unwrap_or(1),
                disturbances: experiment.disturbances.clone(),
                problem,
            },
            machine: experiment.machine.clone(),
            placement: first.map_or_else(String::new, |run| run.placement.clone()),
            windows: experiment.disturbances.windows(steps, quotas_held),
            gain: last.and_then(|run| run.gain),
            gain_share: last.and_then(|run| run.gain_share),
            possible_gain: last.and_then(possible),
            runs,
        }
    }
}

/// The time of each step, of every run.
impl<F: Facts> From<&Summary<F>> for Plot {
    fn from(summary: &Summary<F>) -> Self {
        let Summary { program, settings, windows, runs, .. } = summary;
        let problem =
            settings.problem.get("description").and_then(serde_json::Value::as_str).unwrap_or_default();
        let period = match settings.period {
            None => String::new(),
            Some(Period::Auto) => ", balanced when it pays".to_owned(),
            Some(Period::Steps(steps)) => format!(", balanced every {steps} iterations"),
            Some(period) => format!(", balanced every {period}"),
        };
        let curve =
            |run: &Run<F>| (format!("{}: {:.2} s", run.facts.lb(), run.total_s), run.times.steps_ms());
        Self {
            caption: format!("{program}: {problem}, {} ranks{period}", settings.ranks),
            step: F::STEP,
            steps: windows.last().map_or(0, |window| window.to),
            windows: windows.clone(),
            curves: runs.iter().map(curve).collect(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::arrays::tests::{past, report_of};
    use crate::arrays::{Array, Syncs};
    use crate::disturbance::NeighbourSpec;
    use crate::program::Total;
    use crate::shape::Shape;

    /// Two runs of 30 iterations; with neighbours, the middle ten are longer.
    pub(crate) fn sample(first: &str, neighbours: &[&str]) -> Summary<Syncs> {
        let disturbed = !neighbours.is_empty();
        let neighbours = neighbours.iter().map(|spec| NeighbourSpec::parse(spec).unwrap()).collect();
        let machine =
            Machine { vcpus: vec![0, 1], quota: None, model: "test".to_owned(), vcpu_distance: "unknown" };
        let disturbances = Disturbances { neighbours, ..Disturbances::default() };
        let (workers, launch) = (Some(1), caribou::Launch::Alone);
        let total = Total { count: 30, unit: "iterations" };
        let experiment = Experiment {
            steps: 30,
            step: "iteration",
            total,
            ranks: 2,
            workers,
            disturbances,
            machine,
            launch,
        };
        let middles = if disturbed {
            [vec![12; 10], [vec![12; 2], vec![8; 8]].concat()]
        } else {
            [vec![6; 10], vec![6; 10]]
        };
        let [unbalanced, balanced] = middles.map(|middle| [vec![6; 10], middle, vec![6; 10]].concat());
        let windows = experiment.disturbances.windows(30, true);
        let run = |lb: &str, iterations_ms: &[u64], moved: &[u64]| {
            let (times, report) = past(iterations_ms, 2, moved);
            Run::new(Array::facts(lb, report, &times, &windows), times, true)
        };
        let runs = vec![run(first, &unbalanced, &[]), run("refine", &balanced, &[0, 0, 0, 0, 0, 7])];
        Summary::new("sample", serde_json::json!({ "grid": 64 }), Some(Period::Steps(2)), &experiment, runs)
    }

    /// Gives a rank of a run these samples.
    pub(crate) fn with_samples(run: &mut Run<Syncs>, rank: u32, samples: Vec<caribou::trace::Sample>) {
        let profiles = &mut report_of(&mut run.facts).profiles;
        profiles.retain(|profile| profile.rank != rank);
        profiles.push(caribou::trace::RankProfile { rank, samples, ..Default::default() });
    }

    /// Makes its workers share vCPUs.
    pub(crate) fn unpin(run: &mut Run<Syncs>) {
        report_of(&mut run.facts).pinned = false;
    }

    #[test]
    fn the_possible_gain_is_no_loss() {
        let summary = sample("none", &[]);
        let Summary { program, settings, .. } = summary.clone();
        let [first, mut second] = <[Run<Syncs>; 2]>::try_from(summary.runs).unwrap();
        second.bound_s = Some(2.0 * first.total_s);
        let experiment = Experiment {
            steps: 30,
            step: "iteration",
            total: Total { count: 30, unit: "iterations" },
            ranks: 2,
            workers: Some(1),
            disturbances: settings.disturbances,
            machine: summary.machine,
            launch: caribou::Launch::Alone,
        };
        let summary = Summary::new(
            program,
            serde_json::json!({}),
            Some(Period::Steps(2)),
            &experiment,
            vec![first, second],
        );
        assert_eq!((summary.possible_gain, summary.runs[1].possible_gain), (Some(0.0), Some(0.0)));
        assert_eq!(summary.runs[1].worth_gaining(), None);
    }

    #[test]
    fn gains_are_measured_against_the_first_run_and_the_bound() {
        let summary = sample("none", &["1:10-20"]);
        assert!((summary.possible_gain.unwrap() - (1.0 - 200.0 / 240.0)).abs() < 1e-9);
        assert!((summary.gain.unwrap() - 32.0 / 240.0).abs() < 1e-9);
        assert!((summary.gain_share.unwrap() - 0.8).abs() < 1e-9);
        assert_eq!(summary.runs[0].gain, None);
        let balanced = &summary.runs[1].facts;
        assert_eq!(balanced.windows[1].iteration_ms, Some(8.8));
        assert_eq!((balanced.moves, balanced.settled_after), (7, Some(1)));
    }

    #[test]
    fn a_share_of_the_possible_gain_needs_a_run_without_balancing_and_something_to_gain() {
        assert_eq!(sample("greedy", &["1:10-20"]).gain_share, None);
        assert_eq!(sample("none", &[]).gain_share, None);
    }

    #[test]
    fn the_json_has_the_promised_names() {
        let json = serde_json::to_value(sample("none", &["1:10-20"])).unwrap();
        for pointer in
            ["/runs/1/lb", "/runs/1/total_s", "/runs/1/iteration_ms", "/runs/1/imbalance", "/runs/1/moves"]
        {
            assert!(json.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}");
        }
        for pointer in
            ["/gain", "/possible_gain", "/gain_share", "/runs/0/windows/1/iteration_ms", "/machine/vcpus/1"]
        {
            assert!(json.pointer(pointer).is_some_and(serde_json::Value::is_number), "{pointer}");
        }
    }
}
