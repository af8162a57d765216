//! Builds the section of a program in supersteps: times of steps, and the share of each worker.

use maud::{Markup, html};

use crate::trace::report::Report;
use crate::trace::report::charts::{self, legend};
use crate::trace::report::plots;
use crate::trace::report::tables::{Table, prose};
use crate::trace::supersteps::{WORDS, answer, divisions_table, long_ns, workers_table};

/// Points of a line.
const POINTS_MAX: usize = 1500;
/// Classes of the lines of workers. The shares of further workers are not drawn.
const LINES: [&str; 12] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11"];
/// Divisions in the table.
const DIVISIONS_MAX: usize = 200;

/// The section; none for a run without recorded steps.
pub(super) fn supersteps(report: &Report<'_>) -> Option<Markup> {
    let trace = report.trace;
    let says = answer(trace)?;
    let every = trace.steps.len().div_ceil(POINTS_MAX).max(1);
    let drawn = || trace.steps.iter().step_by(every);
    let times: Vec<(u64, f64)> = drawn().map(|step| (step.begin_ns, long_ns(step) as f64)).collect();
    let share = |worker: usize| -> Vec<(u64, f64)> {
        let units = |step: &caribou::trace::StepRecord| {
            step.workers.get(worker).map(|own| (step.begin_ns, own.units as f64))
        };
        drawn().filter_map(units).collect()
    };
    let lines: Vec<(&str, Vec<(u64, f64)>)> = LINES.into_iter().zip((0..).map(share)).collect();
    let lines: Vec<_> = lines.into_iter().filter(|line| !line.1.is_empty()).collect();
    let names =
        lines.iter().enumerate().map(|(worker, line)| (line.0.to_owned(), format!("worker {worker}")));
    let workers = trace.steps.iter().map(|step| step.workers.len()).max().unwrap_or(0);
    Some(html! {
        p { (prose(&says)) "." }
        h3 { "Time of each step" }
        (plots::lines("Time of each step over time", report, &[("before", times.clone())], charts::tick))
        @if every > 1 { p.note { "One in " (every) " of " (trace.steps.len()) " is drawn." } }
        h3 { "Units of each worker" }
        (plots::lines("Units of each worker over time", report, &lines, |units| format!("{units:.0}")))
        (legend(names))
        @if workers > LINES.len() { p.note { "The first " (LINES.len()) " of " (workers) " workers are drawn." } }
        h3 { "New divisions" }
        (Table::of("division-table", "Divisions that took effect after the first", &divisions_table(trace), DIVISIONS_MAX, &report.figures).html())
        p.note { (prose(WORDS)) "." }
        h3 { "Workers" }
        (Table::of("step-worker-table", "What each worker did in all steps", &workers_table(trace), DIVISIONS_MAX, &report.figures).html())
    })
}
