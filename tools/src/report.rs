//! Formats the results of `caribou balance`, one row per strategy, as a table or as JSON.

use std::io::{self, Write};
use std::time::Duration;

use lb_strategies::metrics::{Moved, gain_bound, max_ns, max_over_avg};
use lb_strategies::{Assignment, Snapshot, Strategy};
use presentation::Table;
use presentation::format::decimal;
use serde::Serialize;

/// Result of one strategy.
#[derive(Serialize)]
pub(crate) struct Row {
    strategy: String,
    max_over_avg_before: f64,
    max_over_avg_after: f64,
    /// Fraction of the makespan of the phase that the assignment saves, by the model of the strategy.
    gain: f64,
    /// Largest fraction that any placement can save.
    gain_bound: f64,
    moved_chunks: usize,
    moved_percent: f64,
    moved_bytes: u64,
    decide_ns: u64,
}

impl Row {
    /// Evaluates an assignment by the background model of its strategy.
    pub(crate) fn new(
        spec: &str,
        strategy: &dyn Strategy,
        snapshot: &Snapshot,
        assignment: &Assignment,
        decide: Duration,
    ) -> Self {
        let model = strategy.terms().background;
        let current = Assignment::current(snapshot);
        let [before_ns, after_ns] =
            [&current, assignment].map(|placement| max_ns(snapshot, placement, model) as f64);
        let moved = Moved::of(snapshot, assignment);
        Self {
            strategy: spec.to_owned(),
            max_over_avg_before: max_over_avg(snapshot, &current, model),
            max_over_avg_after: max_over_avg(snapshot, assignment, model),
            gain: if before_ns > 0.0 { 1.0 - after_ns / before_ns } else { 0.0 },
            gain_bound: gain_bound(snapshot, model),
            moved_chunks: moved.chunks,
            moved_percent: 100.0 * moved.chunks as f64 / snapshot.chunks.len().max(1) as f64,
            moved_bytes: moved.bytes,
            decide_ns: u64::try_from(decide.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    fn cells(&self) -> [String; 9] {
        [
            self.strategy.clone(),
            format!("{:.4}", self.max_over_avg_before),
            format!("{:.4}", self.max_over_avg_after),
            decimal(100.0 * self.gain, 2),
            decimal(100.0 * self.gain_bound, 2),
            self.moved_chunks.to_string(),
            format!("{:.2}", self.moved_percent),
            format!("{:.1}", self.moved_bytes as f64 / f64::from(1 << 20)),
            format!("{:.3}", self.decide_ns as f64 / 1e6),
        ]
    }
}

const HEADS: [&str; 9] =
    ["strategy", "imbalance before", "after", "gain %", "bound %", "moved chunks", "%", "MiB", "time ms"];

/// Lines below the table.
const LEGEND: &str = "\
imbalance: the slowest rank's time in a phase over the time with work spread by capacity; gain: the part of that phase
that the moves save; bound: the most that any placement saves; %, MiB: of the moved chunks; time: to decide";

/// The rows and the size of the snapshot.
#[derive(Serialize)]
pub(crate) struct Report {
    phase: u64,
    chunks: usize,
    ranks: usize,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(snapshot: &Snapshot, rows: Vec<Row>) -> Self {
        Self { phase: snapshot.phase, chunks: snapshot.chunks.len(), ranks: snapshot.ranks.len(), rows }
    }

    /// Writes one JSON object on one line.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// Writes a table with one line per strategy.
    pub(crate) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} chunks on {} ranks, loads of phase {}", self.chunks, self.ranks, self.phase)?;
        let mut table = Table::new(HEADS);
        self.rows.iter().for_each(|row| table.row(row.cells()));
        write!(out, "{table}")?;
        writeln!(out, "{LEGEND}")
    }
}
