//! Computes the facts of a run of a pool, such as its excess over a run in which no worker is ever idle.

use caribou::pools::PoolReport;
use caribou::report::RunReport;
use serde::Serialize;

use crate::shape::Facts;
use crate::table::{percent, seconds};
use crate::times::Times;

/// Facts of a run.
#[derive(Clone, Debug, Serialize)]
pub struct PoolFacts {
    /// The runtime's report of it.
    #[serde(flatten)]
    pub report: PoolReport,
    /// Time of the run if no worker had ever been idle, ns.
    pub bound_ns: u64,
    /// The part by which the run took longer: 0.01 is one percent.
    pub excess: f64,
    /// Milliseconds that each percent took.
    pub parts_ms: Vec<f64>,
}

impl PoolFacts {
    pub(super) fn new(report: PoolReport, times: &Times) -> Self {
        Self { bound_ns: report.bound_ns(), excess: report.excess(), parts_ms: times.steps_ms(), report }
    }

    /// A note on the time after the last iteration, which the table hides, if it is at least 10 ms and 1 % of the run.
    fn afterwards(&self) -> Option<String> {
        let PoolReport { lb, elapsed_ns, run: RunReport { wall_ns, .. }, .. } = &self.report;
        let after_ns = wall_ns.saturating_sub(*elapsed_ns);
        let differs = after_ns >= 10_000_000 && after_ns >= elapsed_ns / 100;
        differs.then(|| {
            format!("`{lb}`: {} until the last rank had the result.", seconds(*wall_ns as f64 / 1e9))
        })
    }
}

impl Facts for PoolFacts {
    const STEP: &'static str = "percent";
    const UNBALANCED: Option<&'static str> = None;
    const HEADINGS: &'static [&'static str] = &["never idle", "excess", "idle", "messages"];
    const WORDS: &'static str = "never idle: the time with workers that are never idle; excess: how much longer the run \
        took; idle: of all workers together";

    fn cells(&self) -> Vec<String> {
        vec![
            seconds(self.bound_ns as f64 / 1e9),
            percent(self.excess),
            seconds(self.report.idle_ns() as f64 / 1e9),
            self.report.messages.to_string(),
        ]
    }

    fn lb(&self) -> &str {
        &self.report.lb
    }

    fn run(&self) -> &RunReport {
        &self.report.run
    }

    fn bound_s(&self) -> Option<f64> {
        Some(self.bound_ns as f64 / 1e9)
    }

    fn words(&self) -> String {
        format!("{} longer than with workers that are never idle", percent(self.excess))
    }

    fn notes(&self) -> Vec<String> {
        let PoolReport { lb, decision, .. } = &self.report;
        let decided = decision.as_ref().map(|decision| format!("`{lb}`: {decision}"));
        self.afterwards().into_iter().chain(decided).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disturbance::{Disturbances, NeighbourSpec};
    use crate::experiment::Experiment;
    use crate::machine::Machine;
    use crate::program::Total;
    use crate::summary::{Run, Summary};
    use crate::table::table;
    use caribou::pools::PoolWorker;

    fn ended_at(wall_ns: u64) -> RunReport {
        let mut run = RunReport::default();
        run.wall_ns = wall_ns;
        run
    }

    fn summary() -> Summary<PoolFacts> {
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
            let complete_ns = (1..=100).map(|part| part * elapsed_ns / 100).collect();
            let times = Times::new((0, complete_ns), elapsed_ns);
            Run::new(PoolFacts::new(report, &times), times, true)
        };
        let runs =
            vec![run("static", 2_000_000_000, Some("equal shares")), run("leases", 1_000_000_000, None)];
        let neighbours = vec![NeighbourSpec::parse("1:20-60").unwrap()];
        let experiment = Experiment {
            steps: 100,
            step: "percent",
            total: Total { count: 1000, unit: "darts" },
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
        let problem = serde_json::json!({ "description": "a board", "darts": 1000 });
        Summary::new("darts", problem, None, &experiment, runs)
    }

    #[test]
    fn the_table_tells_the_time_what_it_could_have_been_and_the_windows() {
        let text = table(&summary());
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines[0], "percents 20-60: neighbour on rank 1");
        let words: Vec<&str> = lines[3].split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        let expected = [
            "static", "2.000 s", "20.00 ms", "20.00 ms", "20.00 ms", "1.500 s", "33.3 %", "1.000 s", "0", "-",
        ];
        assert_eq!(words, expected, "{text}");
        assert!(lines[4].starts_with("leases") && lines[4].ends_with("50.0 %"), "{text}");
        assert!(lines[5].starts_with("never idle: "), "{text}");
        assert_eq!(lines[6], "saved: part of the time of `static`.");
        assert_eq!(lines[7], "`static`: equal shares");
    }

    #[test]
    fn what_comes_after_the_last_iteration_is_told_where_it_is_long() {
        let afterwards = |elapsed_ns, wall_ns| {
            let lb = "static".to_owned();
            let report = PoolReport { lb, elapsed_ns, run: ended_at(wall_ns), ..PoolReport::default() };
            PoolFacts::new(report, &Times::default()).afterwards()
        };
        let told = afterwards(1_000_000_000, 1_025_000_000).unwrap();
        assert_eq!(told, "`static`: 1.025 s until the last rank had the result.");
        assert!(afterwards(1_000_000_000, 1_009_000_000).is_none());
        assert!(afterwards(9_000_000_000, 9_080_000_000).is_none());
    }

    #[test]
    fn the_json_and_the_plot_have_every_run() {
        let json: serde_json::Value = serde_json::to_value(summary()).unwrap();
        for pointer in
            ["/program", "/runs/1/lb", "/runs/1/gain", "/runs/0/workers/1/busy_ns", "/runs/0/parts_ms/99"]
        {
            assert!(json.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}");
        }
        let plot = crate::plot::svg(&(&summary()).into());
        for words in ["time per percent (ms)", "leases: 1.00 s", "neighbour on rank 1"] {
            assert!(plot.contains(words), "{words}");
        }
    }
}
