//! What came of a comparison: rows of figures, as a table for people or as JSON for programs.

use std::io::{self, Write};
use std::time::Duration;

use lb_strategies::metrics::{Moved, gain_bound, max_ns, max_over_avg};
use lb_strategies::{Assignment, Snapshot, Strategy};
use serde::Serialize;

/// One strategy's result.
#[derive(Serialize)]
pub(crate) struct Row {
    strategy: String,
    max_over_avg_before: f64,
    max_over_avg_after: f64,
    /// Part of the phase saved, as predicted.
    gain: f64,
    /// Part of the phase that any placement could save at most.
    gain_bound: f64,
    moved_chunks: usize,
    moved_percent: f64,
    moved_bytes: u64,
    decide_ns: u64,
}

impl Row {
    /// Judges an assignment by the model it was made with.
    pub(crate) fn new(
        spec: &str,
        strategy: &dyn Strategy,
        snapshot: &Snapshot,
        assignment: &Assignment,
        decide: Duration,
    ) -> Self {
        let model = strategy.background();
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
}

/// All rows, and what they are about.
#[derive(Serialize)]
pub(crate) struct Report {
    phase: u64,
    chunks: usize,
    ranks: usize,
    rows: Vec<Row>,
}

impl Report {
    /// The rows with the size of the snapshot they were made from.
    pub(crate) fn new(snapshot: &Snapshot, rows: Vec<Row>) -> Self {
        Self { phase: snapshot.phase, chunks: snapshot.chunks.len(), ranks: snapshot.ranks.len(), rows }
    }

    /// One JSON object on one line.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// A line a strategy, aligned.
    pub(crate) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} chunks on {} ranks, phase {}", self.chunks, self.ranks, self.phase)?;
        let width =
            self.rows.iter().map(|row| row.strategy.len()).chain(["strategy".len()]).max().unwrap_or(0);
        writeln!(
            out,
            "{:<width$}  imbalance before   after   gain %  bound %  moved chunks       %       MiB    time ms",
            "strategy"
        )?;
        for row in &self.rows {
            writeln!(
                out,
                "{:<width$}  {:>16.4} {:>7.4} {:>8.2} {:>8.2} {:>13} {:>7.2} {:>9.1} {:>10.3}",
                row.strategy,
                row.max_over_avg_before,
                row.max_over_avg_after,
                100.0 * row.gain,
                100.0 * row.gain_bound,
                row.moved_chunks,
                row.moved_percent,
                row.moved_bytes as f64 / f64::from(1 << 20),
                row.decide_ns as f64 / 1e6,
            )?;
        }
        Ok(())
    }
}
