//! What is told of the runs of a pool: a table, a plot, JSON.

use std::fmt::Write;

use caribou::PoolReport;
use presentation::Table;
use serde::Serialize;

use super::PARTS;
use crate::harness::disturbance::{Disturbances, Window};
use crate::harness::experiment::Experiment;
use crate::harness::machine::Machine;
use crate::harness::plot::Picture;
use crate::harness::table::traces;

/// All runs of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct PoolSummary {
    /// The program that ran.
    pub program: &'static str,
    /// What only this program has.
    pub problem: serde_json::Value,
    /// What it ran on.
    pub machine: Machine,
    /// What was done to each run; neighbours come and go at percents of the pool.
    pub disturbances: Disturbances,
    /// The pool between the comings and goings of neighbours, in percents.
    pub windows: Vec<Window>,
    /// Each run, in the order they were made.
    pub runs: Vec<PooledRun>,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct PooledRun {
    /// What the runtime says of it.
    #[serde(flatten)]
    pub report: PoolReport,
    /// What it would have taken had no worker ever been idle, ns.
    pub bound_ns: u64,
    /// How much longer it took: 0.01 is one percent.
    pub excess: f64,
    /// Part of the first run's time saved; none for the first run.
    pub gain: Option<f64>,
    /// Whether every quota asked for was in force; true when none was.
    pub quotas_held: bool,
    /// Milliseconds that each percent took.
    pub parts_ms: Vec<f64>,
}

impl PooledRun {
    /// `complete_ns` is when each part was complete, since the run began.
    pub(super) fn new(report: PoolReport, quotas_held: bool, complete_ns: &[u64]) -> Self {
        // Progress is heard of a little after it was made, and of the end after the end.
        let ends = complete_ns.iter().map(|&end| end.min(report.elapsed_ns));
        let begins = std::iter::once(0).chain(ends.clone());
        let parts_ms = begins.zip(ends).map(|(begin, end)| end.saturating_sub(begin) as f64 / 1e6);
        Self {
            parts_ms: parts_ms.collect(),
            bound_ns: report.bound_ns(),
            excess: report.excess(),
            gain: None,
            quotas_held,
            report,
        }
    }

    fn seconds(&self, window: &Window) -> f64 {
        self.parts_ms[window.from as usize..window.to as usize].iter().sum::<f64>() / 1e3
    }
}

impl PoolSummary {
    pub(super) fn new(experiment: &Experiment, mut runs: Vec<PooledRun>) -> Self {
        let first_ns = runs.first().map_or(0, |run| run.report.elapsed_ns) as f64;
        for run in runs.iter_mut().skip(1) {
            run.gain = (first_ns > 0.0).then(|| 1.0 - run.report.elapsed_ns as f64 / first_ns);
        }
        let disturbances = experiment.disturbances.clone();
        Self {
            program: "",
            problem: serde_json::Value::Null,
            machine: experiment.machine.clone(),
            windows: disturbances.windows(PARTS),
            disturbances,
            runs,
        }
    }

    /// With the program's name and what it worked at.
    #[must_use]
    pub fn of(self, program: &'static str, problem: serde_json::Value) -> Self {
        Self { program, problem, ..self }
    }

    /// The runs, one line each, with a heading; above it where they ran, below it what strategies decided.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        if let Some(run) = self.runs.first().filter(|run| !run.report.run.placement.is_empty()) {
            let _ = writeln!(text, "{}", run.report.run.placement);
        }
        let windows: &[Window] = if self.disturbances.is_empty() { &[] } else { &self.windows };
        let mut heads = vec!["lb".to_owned(), "time".to_owned()];
        heads.extend(windows.iter().map(|window| format!("{}-{} %", window.from, window.to)));
        heads.extend(["never idle", "excess", "idle", "messages", "gain"].map(str::to_owned));
        let mut rows = Table::new(heads);
        self.runs.iter().for_each(|run| rows.row(cells(run, windows)));
        text += &rows.to_string();
        for window in windows.iter().filter(|window| window.disturbed) {
            let _ = writeln!(text, "From {} to {} %: {}.", window.from, window.to, window.label);
        }
        for run in &self.runs {
            if let Some(words) = afterwards(&run.report) {
                let _ = writeln!(text, "{words}");
            }
            if let Some(decision) = &run.report.decision {
                let _ = writeln!(text, "`{}`: {decision}", run.report.lb);
            }
        }
        text + &traces(self.runs.iter().map(|run| (&run.report.lb[..], &run.report.run.record.trace[..])))
    }
}

/// What each percent took.
impl From<&PoolSummary> for Picture {
    fn from(summary: &PoolSummary) -> Self {
        let curve = |run: &PooledRun| {
            let seconds = run.report.elapsed_ns as f64 / 1e9;
            (format!("{}: {seconds:.2} s", run.report.lb), run.parts_ms.clone())
        };
        Self {
            caption: format!("{}: time for each percent of the pool", summary.program),
            step: "percent",
            steps: PARTS,
            windows: summary.windows.clone(),
            curves: summary.runs.iter().map(curve).collect(),
        }
    }
}

/// What comes after the last iteration, where the time in the table would hide it: a hundredth of it, and 10 ms.
fn afterwards(report: &PoolReport) -> Option<String> {
    let after_ns = report.run.wall_ns.saturating_sub(report.elapsed_ns);
    let differs = after_ns >= 10_000_000 && after_ns >= report.elapsed_ns / 100;
    let seconds = report.run.wall_ns as f64 / 1e9;
    differs.then(|| format!("`{}`: {seconds:.3} s until the last rank had the result.", report.lb))
}

fn cells(run: &PooledRun, windows: &[Window]) -> Vec<String> {
    let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let report = &run.report;
    let mut cells = vec![report.lb.clone(), seconds(report.elapsed_ns)];
    cells.extend(windows.iter().map(|window| format!("{:.3} s", run.seconds(window))));
    cells.extend([
        seconds(run.bound_ns),
        percent(run.excess),
        seconds(report.idle_ns()),
        report.messages.to_string(),
        run.gain.map_or_else(|| "-".to_owned(), percent),
    ]);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::{PoolWorker, RunReport};

    fn ended_at(wall_ns: u64) -> RunReport {
        let mut run = RunReport::default();
        run.wall_ns = wall_ns;
        run
    }

    fn summary() -> PoolSummary {
        let worker = |busy_ns| PoolWorker { busy_ns, ..PoolWorker::default() };
        let run = |lb: &str, elapsed_ns: u64, decision: Option<&str>| {
            let report = PoolReport {
                lb: lb.to_owned(),
                elapsed_ns,
                run: ended_at(elapsed_ns + 9_000_000 * u64::from(lb == "static")),
                workers: vec![worker(elapsed_ns), worker(1_000_000_000)],
                decision: decision.map(str::to_owned),
                ..PoolReport::default()
            };
            let complete_ns = (1..=u64::from(PARTS)).map(|part| part * elapsed_ns / u64::from(PARTS));
            PooledRun::new(report, true, &complete_ns.collect::<Vec<_>>())
        };
        let runs =
            vec![run("static", 2_000_000_000, Some("equal shares")), run("leases", 1_000_000_000, None)];
        let neighbours = vec![crate::harness::disturbance::NeighbourSpec::parse("1:20-60").unwrap()];
        let experiment = Experiment {
            iterations: PARTS,
            total: crate::harness::experiment::Total { count: 1000, unit: "darts" },
            ranks: 2,
            workers: Some(1),
            disturbances: Disturbances { neighbours, ..Disturbances::default() },
            machine: Machine {
                vcpus: vec![0, 1],
                quota: None,
                model: String::new(),
                vcpu_distance: "unknown",
            },
            launch: caribou::Launch::Alone,
        };
        PoolSummary::new(&experiment, runs).of("darts", serde_json::json!({ "darts": 1000 }))
    }

    #[test]
    fn all_parts_together_take_no_longer_than_the_run() {
        let report = PoolReport { elapsed_ns: 5_000_000, ..PoolReport::default() };
        let run = PooledRun::new(report, true, &[2_000_000, 6_000_000]);
        assert_eq!(run.parts_ms, [2.0, 3.0]);
    }

    #[test]
    fn the_table_tells_the_time_what_it_could_have_been_and_the_windows() {
        let text = summary().table();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let words: Vec<&str> = lines[1].split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        let expected =
            ["static", "2.000 s", "0.400 s", "0.800 s", "0.800 s", "1.500 s", "33.3 %", "1.000 s", "0", "-"];
        assert_eq!(words, expected, "{text}");
        assert!(lines[2].starts_with("leases") && lines[2].ends_with("50.0 %"), "{text}");
        assert_eq!(lines[3], "From 20 to 60 %: neighbour on rank 1.");
        assert_eq!(lines[4], "`static`: equal shares");
    }

    #[test]
    fn what_comes_after_the_last_iteration_is_told_where_it_is_long() {
        let report = |elapsed_ns, wall_ns| PoolReport {
            lb: "static".to_owned(),
            elapsed_ns,
            run: ended_at(wall_ns),
            ..PoolReport::default()
        };
        let told = afterwards(&report(1_000_000_000, 1_025_000_000)).unwrap();
        assert_eq!(told, "`static`: 1.025 s until the last rank had the result.");
        assert!(afterwards(&report(1_000_000_000, 1_009_000_000)).is_none());
        assert!(afterwards(&report(9_000_000_000, 9_080_000_000)).is_none());
    }

    #[test]
    fn the_json_and_the_plot_have_every_run() {
        let json: serde_json::Value = serde_json::to_value(summary()).unwrap();
        for pointer in
            ["/program", "/runs/1/lb", "/runs/1/gain", "/runs/0/workers/1/busy_ns", "/runs/0/parts_ms/99"]
        {
            assert!(json.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}");
        }
        let plot = crate::harness::plot::svg(&(&summary()).into());
        for words in ["time per percent (ms)", "leases: 1.00 s", "neighbour on rank 1"] {
            assert!(plot.contains(words), "{words}");
        }
    }
}
