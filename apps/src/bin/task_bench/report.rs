//! Formats the results of a run as the lines that the scripts of Task Bench read.

use std::fmt::{self, Display};

use caribou::Report;
use clap::ValueEnum;
use harness::Trace;
use serde::Serialize;

use super::graph::Graph;
use super::kernel::TaskId;
use super::point::ROUNDS;

/// The work of all graphs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    /// Tasks.
    pub(crate) tasks: u64,
    /// Inputs of all tasks.
    pub(crate) dependencies: u64,
    /// Floating-point operations.
    pub(crate) flops: u64,
    /// Bytes read or written.
    pub(crate) bytes: u64,
}

impl Totals {
    /// The work of these graphs.
    #[must_use]
    pub(crate) fn of(graphs: &[Graph]) -> Self {
        graphs.iter().fold(Self::default(), |sum, graph| Self {
            tasks: sum.tasks + graph.tasks(),
            dependencies: sum.dependencies + graph.inputs(),
            flops: sum.flops + tasks(graph).map(|task| graph.kernel.flops(task)).sum::<u64>(),
            bytes: sum.bytes + graph.tasks() * graph.kernel.bytes(),
        })
    }

    /// The difference between this work and the work of the points in all rounds, if there is one.
    #[must_use]
    pub(crate) fn difference(&self, told: &[PointResult]) -> Option<String> {
        let executed: u64 = told.iter().map(|told| told.executed).sum();
        let checked: u64 = told.iter().map(|told| told.checked).sum();
        let [tasks, inputs] = [self.tasks, self.dependencies].map(|total| total * ROUNDS);
        ((executed, checked) != (tasks, inputs)).then(|| {
            format!("{executed} tasks executed and {checked} inputs checked instead of {tasks} and {inputs}")
        })
    }
}

fn tasks(graph: &Graph) -> impl Iterator<Item = TaskId> {
    let at = move |step| graph.active(step).map(move |point| TaskId { graph: graph.number, step, point });
    (0..graph.steps).flat_map(at)
}

/// The work of a point: tasks executed and inputs checked in all rounds, and the nanoseconds of the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PointResult {
    /// Tasks.
    pub(crate) executed: u64,
    /// Inputs.
    pub(crate) checked: u64,
    /// From the begin of its first task to the end of its last one.
    pub(crate) elapsed_ns: u64,
}

impl PointResult {
    /// The results of all points of a run.
    ///
    /// # Errors
    /// Those of the runtime.
    pub(crate) fn all(report: &Report) -> Result<Vec<Self>, caribou::Error> {
        let parts = report.gathered()?;
        let told = |(_, ([executed, checked], elapsed_ns)): ([u32; 2], ([u64; 2], u64))| Self {
            executed,
            checked,
            elapsed_ns,
        };
        Ok(parts.into_iter().map(told).collect())
    }
}

/// The configuration of a run, as Task Bench prints it.
#[derive(Debug)]
pub(crate) struct Configuration<'a>(pub &'a [Graph]);

impl Display for Configuration<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Running Task Benchmark\n  Configuration:")?;
        for graph in self.0 {
            let kernel = &graph.kernel;
            writeln!(f, "    Task Graph {}:", graph.number + 1)?;
            writeln!(f, "      Time Steps: {}", graph.steps)?;
            writeln!(f, "      Max Width: {}", graph.width)?;
            writeln!(f, "      Dependence Type: {}", name(&graph.pattern))?;
            writeln!(f, "      Radix: {}", graph.radix)?;
            writeln!(f, "      Period: {}", graph.period())?;
            writeln!(f, "      Fraction Connected: {:.6}", graph.fraction)?;
            writeln!(f, "      Kernel:")?;
            writeln!(f, "        Type: {}", name(&kernel.kind))?;
            writeln!(f, "        Iterations: {}", kernel.iterations)?;
            writeln!(f, "        Samples: {}", kernel.samples)?;
            writeln!(f, "        Imbalance: {:.6}", kernel.imbalance)?;
            writeln!(f, "      Output Bytes: {}", graph.output_bytes)?;
            writeln!(f, "      Scratch Bytes: {}", kernel.scratch_bytes)?;
        }
        Ok(())
    }
}

pub(super) fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|name| name.get_name().to_owned()).unwrap_or_default()
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    /// The work of each round.
    #[serde(flatten)]
    pub(crate) totals: Totals,
    /// Seconds of the last round.
    pub(crate) elapsed_s: f64,
    /// Floating-point operations per second.
    pub(crate) flops_per_s: f64,
    /// Bytes per second.
    pub(crate) bytes_per_s: f64,
    /// Syncs of all rounds.
    pub(crate) syncs: u64,
    /// Points moved.
    pub(crate) moved: u64,
    /// Workers of all ranks; 0 in a simulation.
    pub(crate) workers: u32,
    /// Hosts, ranks, workers and their vCPUs, in one line.
    pub(crate) seats: String,
    /// The trace of the run.
    pub(crate) trace: Trace,
}

impl Outcome {
    /// The result of a run with this work and these results of its points.
    #[must_use]
    pub(crate) fn new(totals: Totals, told: &[PointResult], report: &Report) -> Self {
        let elapsed_ns = told.iter().map(|told| told.elapsed_ns).max().unwrap_or(0);
        Self {
            syncs: report.sync_totals.syncs,
            moved: report.sync_totals.moved,
            seats: report.run.placement.clone(),
            trace: Trace::of(&report.run),
            ..Self::of(totals, elapsed_ns as f64 / 1e9, report.run.workers_per_rank.iter().sum())
        }
    }

    /// The result of a run without a runtime.
    #[must_use]
    pub(crate) fn of(totals: Totals, elapsed_s: f64, workers: u32) -> Self {
        let rate = |count: u64| if elapsed_s > 0.0 { count as f64 / elapsed_s } else { 0.0 };
        Self {
            totals,
            elapsed_s,
            flops_per_s: rate(totals.flops),
            bytes_per_s: rate(totals.bytes),
            syncs: 0,
            moved: 0,
            workers,
            seats: String::new(),
            trace: Trace::default(),
        }
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { tasks, dependencies, flops, bytes } = self.totals;
        writeln!(f, "Total Tasks {tasks}")?;
        writeln!(f, "Total Dependencies {dependencies}")?;
        writeln!(f, "Total FLOPs {flops}")?;
        writeln!(f, "Total Bytes {bytes}")?;
        writeln!(f, "Elapsed Time {} seconds", scientific(self.elapsed_s))?;
        writeln!(f, "FLOP/s {}", scientific(self.flops_per_s))?;
        writeln!(f, "B/s {}", scientific(self.bytes_per_s))
    }
}

/// A number as C writes it with `%e`.
fn scientific(number: f64) -> String {
    let text = format!("{number:.6e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::*;

    #[test]
    fn numbers_look_as_in_c() {
        let texts = [0.0, 1.5, 0.000_123_4, 1.263_719e12, 2e-100].map(scientific);
        let expected = ["0.000000e+00", "1.500000e+00", "1.234000e-04", "1.263719e+12", "2.000000e-100"];
        assert_eq!(texts, expected);
    }

    #[test]
    fn the_lines_that_scripts_read_are_there() {
        let graphs = [graph("--type stencil_1d --kernel compute_bound --iter 7 --output 32")];
        let said = Configuration(&graphs).to_string();
        for line in ["Time Steps: 4", "Max Width: 4", "Iterations: 7", "Output Bytes: 32", "Type: stencil_1d"]
        {
            assert!(said.lines().any(|said| said.trim_start().ends_with(line)), "{line}: {said}");
        }
        let told = [PointResult { executed: 32, checked: 60, elapsed_ns: 2_000_000 }];
        let totals = Totals::of(&graphs);
        assert_eq!(totals.difference(&told), None);
        let said = Outcome::new(totals, &told, &Report::default()).to_string();
        let expected = "Total Tasks 16\nTotal Dependencies 30\nTotal FLOPs 15360\nTotal Bytes 0\n\
            Elapsed Time 2.000000e-03 seconds\nFLOP/s 7.680000e+06\nB/s 0.000000e+00\n";
        assert_eq!(said, expected);
    }

    #[test]
    fn a_task_too_few_or_an_input_too_many_is_a_difference() {
        let totals = Totals::of(&[graph("--type no_comm")]);
        let told = |executed, checked| [PointResult { executed, checked, elapsed_ns: 1 }];
        assert_eq!(totals.difference(&told(32, 24)), None);
        assert!(totals.difference(&told(31, 24)).is_some_and(|words| words.starts_with("31 tasks")));
        assert!(totals.difference(&told(32, 25)).is_some());
    }
}
