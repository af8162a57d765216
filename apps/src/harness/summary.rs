//! The result of a comparison as numbers: what the table prints and what `--json` writes.
//!
//! | field | means |
//! |---|---|
//! | `runs[].total_s` | first iteration's begin to last one's end |
//! | `runs[].iteration_ms` | `total_s` over the iterations |
//! | `runs[].imbalance` | median over the syncs of the imbalance, while disturbed, or all along in a quiet run |
//! | `runs[].gain` | part of the first run's time that this one saved |
//! | `runs[].bound_s` | what it would have taken at best, by the capacity that was measured in it |
//! | `possible_gain` | the part of the first run's time that the last one would have saved at best |
//! | `gain_share` | the gain over that of the run's own bound; absent unless the first run is `none` and there is something to gain |
//! | `gain` | that of the last run |

use serde::Serialize;

use crate::harness::disturbance::{Disturbances, Window};
use crate::harness::experiment::Experiment;
use crate::harness::machine::Machine;
use crate::harness::record::{Run, SyncRecord};

/// Below this a gain is noise, and a share of it says nothing.
const WORTH_GAINING: f64 = 0.03;

/// All runs of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The program that ran.
    pub program: &'static str,
    /// What it ran with.
    pub settings: Settings,
    /// What it ran on.
    pub machine: Machine,
    /// Hosts, ranks, workers and where they sat, in one line; the same in all runs.
    pub placement: String,
    /// Each run, in the order they were made.
    pub runs: Vec<RunSummary>,
    /// The last run's gain over the first.
    pub gain: Option<f64>,
    /// The gain that the last run would have had at best.
    pub possible_gain: Option<f64>,
    /// The part of it that the last run reached.
    pub gain_share: Option<f64>,
}

/// The settings all runs shared.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Iterations.
    pub iterations: u32,
    /// Iterations between two syncs.
    pub period: u64,
    /// Ranks.
    pub ranks: u32,
    /// Workers a rank.
    pub workers: u32,
    /// What was done to each run.
    pub disturbances: Disturbances,
    /// What only this program has, such as the size of its grid.
    pub problem: serde_json::Value,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// The strategy, as given.
    pub lb: String,
    /// Seconds in all.
    pub total_s: f64,
    /// Mean milliseconds an iteration.
    pub iteration_ms: f64,
    /// Median imbalance of the syncs.
    pub imbalance: Option<f64>,
    /// Chunks moved.
    pub moves: u64,
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Milliseconds spent in syncs: collecting, deciding, migrating.
    pub sync_ms: f64,
    /// Syncs from the first neighbour's arrival until iterations were as short as they stayed.
    pub settled_after: Option<u32>,
    /// Seconds that it would have taken at best, by the capacity that was measured in it.
    pub bound_s: Option<f64>,
    /// Part of the first run's time saved; none for the first run.
    pub gain: Option<f64>,
    /// Part of the gain that its bound would have been; none for a loss.
    pub gain_share: Option<f64>,
    /// The run between the comings and goings of neighbours.
    pub windows: Vec<WindowSummary>,
    /// Milliseconds of each iteration.
    pub iterations_ms: Vec<f64>,
    /// Each sync.
    pub syncs: Vec<SyncRecord>,
    /// The directory of its trace; empty if it has none.
    pub trace: String,
}

/// A part of a run.
#[derive(Clone, Debug, Serialize)]
pub struct WindowSummary {
    /// Which part.
    #[serde(flatten)]
    pub window: Window,
    /// Mean milliseconds an iteration.
    pub iteration_ms: Option<f64>,
}

impl Summary {
    /// Sums up the runs of `experiment`.
    #[must_use]
    pub fn new(
        program: &'static str,
        problem: serde_json::Value,
        period: u64,
        experiment: &Experiment,
        runs: &[Run],
    ) -> Self {
        let windows = experiment.disturbances.windows(experiment.iterations);
        let unbalanced = runs.first().is_some_and(|run| run.lb == "none");
        let first_s = runs.first().map_or(0.0, Run::total_s);
        let possible =
            |run: &Run| run.bound_s().filter(|_| first_s > 0.0).map(|bound_s| 1.0 - bound_s / first_s);
        let worth = |run: &Run| possible(run).filter(|&gain| unbalanced && gain > WORTH_GAINING);
        let summaries: Vec<RunSummary> = runs
            .iter()
            .enumerate()
            .map(|(at, run)| {
                let gain = (at > 0 && first_s > 0.0).then(|| 1.0 - run.total_s() / first_s);
                RunSummary {
                    gain,
                    gain_share: gain
                        .filter(|&gain| gain > 0.0)
                        .zip(worth(run))
                        .map(|(gain, worth)| gain / worth),
                    ..one(run, &windows)
                }
            })
            .collect();
        let last = summaries.last();
        Self {
            program,
            settings: Settings {
                iterations: experiment.iterations,
                period,
                ranks: experiment.ranks,
                workers: runs.first().map_or(1, |run| run.workers),
                disturbances: experiment.disturbances.clone(),
                problem,
            },
            machine: experiment.machine.clone(),
            placement: runs.first().map_or_else(String::new, |run| run.placement.clone()),
            gain: last.and_then(|run| run.gain),
            gain_share: last.and_then(|run| run.gain_share),
            possible_gain: runs.last().and_then(possible),
            runs: summaries,
        }
    }

    /// The windows, as every run saw them.
    #[must_use]
    pub fn windows(&self) -> Vec<Window> {
        self.settings.disturbances.windows(self.settings.iterations)
    }
}

/// Everything that can be said of a run without looking at the others.
fn one(run: &Run, windows: &[Window]) -> RunSummary {
    let window_summary = |window: &Window| WindowSummary {
        window: window.clone(),
        iteration_ms: run.mean_ms(window.from, window.to),
    };
    let disturbed = windows.iter().find(|window| window.disturbed);
    let totals = &run.totals;
    RunSummary {
        lb: run.lb.clone(),
        total_s: run.total_s(),
        iteration_ms: run.mean_ms(0, u32::MAX).unwrap_or(0.0),
        imbalance: run.imbalance(windows),
        moves: run.moves(),
        moved_bytes: totals.moved_bytes,
        sync_ms: (totals.collect_ns + totals.decide_ns + totals.migrate_ns) as f64 / 1e6,
        settled_after: disturbed.and_then(|window| run.settled_after(window)),
        bound_s: run.bound_s(),
        gain: None,
        gain_share: None,
        windows: windows.iter().map(window_summary).collect(),
        iterations_ms: run.iterations_ms(),
        syncs: run.syncs.clone(),
        trace: run.trace.clone(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::harness::disturbance::NeighbourSpec;
    use crate::harness::experiment::Total;
    use crate::harness::record::tests::run;

    /// Two runs of 30 iterations; with neighbours, the middle ten are longer.
    pub(crate) fn sample(first: &str, neighbours: &[&str]) -> Summary {
        let disturbed = !neighbours.is_empty();
        let neighbours = neighbours.iter().map(|spec| NeighbourSpec::parse(spec).unwrap()).collect();
        let machine =
            Machine { vcpus: vec![0, 1], quota: None, model: "test".to_owned(), vcpu_distance: "unknown" };
        let disturbances = Disturbances { neighbours, ..Disturbances::default() };
        let (workers, launch) = (Some(1), caribou::Launch::Alone);
        let total = Total::iterations(30);
        let experiment =
            Experiment { iterations: 30, total, ranks: 2, workers, disturbances, machine, launch };
        let middles = if disturbed {
            [vec![12; 10], [vec![12; 2], vec![8; 8]].concat()]
        } else {
            [vec![6; 10], vec![6; 10]]
        };
        let [unbalanced, balanced] = middles.map(|middle| [vec![6; 10], middle, vec![6; 10]].concat());
        let runs = [run(first, &unbalanced, 2, &[]), run("refine", &balanced, 2, &[0, 0, 0, 0, 0, 7])];
        Summary::new("sample", serde_json::json!({ "grid": 64 }), 2, &experiment, &runs)
    }

    #[test]
    fn gains_are_measured_against_the_first_run_and_the_bound() {
        let summary = sample("none", &["1:10-20"]);
        assert!((summary.possible_gain.unwrap() - (1.0 - 200.0 / 240.0)).abs() < 1e-9);
        assert!((summary.gain.unwrap() - 32.0 / 240.0).abs() < 1e-9);
        assert!((summary.gain_share.unwrap() - 0.8).abs() < 1e-9);
        assert_eq!(summary.runs[0].gain, None);
        assert_eq!(summary.runs[1].windows[1].iteration_ms, Some(8.8));
        assert_eq!((summary.runs[1].moves, summary.runs[1].settled_after), (7, Some(1)));
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
