//! Formats the results of several phases: all rows, and a summary of each strategy.

use std::io::{self, Write};

use presentation::Table;
use serde::Serialize;

use crate::report::{Columns, Report, Row};

/// The results of a strategy in all phases.
#[derive(Serialize)]
pub(super) struct Summary {
    strategy: String,
    max_over_avg_before: Spread,
    max_over_avg_after: Spread,
    max_over_avg_least: Spread,
    moved_chunks: Spread,
    decide_ns: Spread,
    /// Number of phases in which the strategy is on the front.
    on_front: usize,
}

/// The median and the largest value. Of an even number of values, the median is the larger one in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Spread {
    median: f64,
    worst: f64,
}

impl Spread {
    fn of(rows: &[&Row], value: impl Fn(&Row) -> f64) -> Self {
        let mut values: Vec<f64> = rows.iter().map(|row| value(row)).collect();
        values.sort_by(f64::total_cmp);
        let at = |position: usize| values.get(position).copied().unwrap_or(0.0);
        Self { median: at(values.len() / 2), worst: at(values.len().saturating_sub(1)) }
    }
}

impl Summary {
    fn new(strategy: &str, reports: &[Report]) -> Self {
        let all = reports.iter().flat_map(|report| &report.rows);
        let rows: Vec<&Row> = all.filter(|row| row.strategy == strategy).collect();
        Self {
            strategy: strategy.to_owned(),
            max_over_avg_before: Spread::of(&rows, |row| row.max_over_avg_before),
            max_over_avg_after: Spread::of(&rows, |row| row.max_over_avg_after),
            max_over_avg_least: Spread::of(&rows, |row| row.max_over_avg_least),
            moved_chunks: Spread::of(&rows, |row| row.moved_chunks as f64),
            decide_ns: Spread::of(&rows, |row| row.decide_ns as f64),
            on_front: rows.iter().filter(|row| row.on_front).count(),
        }
    }

    fn cells(&self) -> [String; 11] {
        let ratios = [self.max_over_avg_before, self.max_over_avg_after, self.max_over_avg_least];
        let [before, after, least] = ratios.map(|spread| format!("{:.4}", spread.median));
        let [worst_before, worst, worst_least] = ratios.map(|spread| format!("{:.4}", spread.worst));
        [
            self.strategy.clone(),
            before,
            after,
            least,
            worst_before,
            worst,
            worst_least,
            self.moved_chunks.median.to_string(),
            self.moved_chunks.worst.to_string(),
            format!("{:.3}", self.decide_ns.worst / 1e6),
            self.on_front.to_string(),
        ]
    }
}

const HEADS: [&str; 11] = [
    "strategy",
    "median before",
    "after",
    "least",
    "worst before",
    "after",
    "least",
    "moved median",
    "most",
    "time ms most",
    "on front",
];

/// One per strategy, in the order of the first phase that has it.
pub(super) fn summaries(reports: &[Report]) -> Vec<Summary> {
    let mut strategies: Vec<&str> = Vec::new();
    for row in reports.iter().flat_map(|report| &report.rows) {
        if !strategies.contains(&row.strategy.as_str()) {
            strategies.push(&row.strategy);
        }
    }
    strategies.into_iter().map(|strategy| Summary::new(strategy, reports)).collect()
}

/// Writes one JSON object on one line.
pub(super) fn write_json(reports: &[Report], summary: &[Summary], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct All<'r> {
        phases: &'r [Report],
        summary: &'r [Summary],
    }
    serde_json::to_writer(&mut *out, &All { phases: reports, summary })?;
    writeln!(out)
}

/// Writes a table with one line per phase and strategy, and one with a line per strategy.
pub(super) fn write_tables(reports: &[Report], summary: &[Summary], out: &mut dyn Write) -> io::Result<()> {
    let columns = Columns::of(reports);
    let heads = std::iter::once("phase").chain(columns.heads());
    let mut table = Table::new(heads).text_columns([false, true]);
    for report in reports {
        for cells in report.cells(columns) {
            table.row(std::iter::once(report.phase.to_string()).chain(cells));
        }
    }
    write!(out, "{table}")?;
    writeln!(out, "{}", columns.legend())?;
    writeln!(out, "\n{} phases: median and worst imbalance, median and most moved chunks", reports.len())?;
    let mut table = Table::new(HEADS);
    summary.iter().for_each(|strategy| table.row(strategy.cells()));
    write!(out, "{table}")
}
