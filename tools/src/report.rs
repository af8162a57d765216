//! Formats the results of `caribou balance` for one snapshot, one row per strategy, as a table or as JSON.

use std::io::{self, Write};
use std::time::Duration;

use lb_strategies::metrics::{Crossing, Moved, bound_ns, gain_bound, max_ns, max_over_avg, memory_bytes};
use lb_strategies::{Assignment, Snapshot, Strategy};
use presentation::Table;
use presentation::format::decimal;
use serde::Serialize;

/// Result of one strategy.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) strategy: String,
    pub(crate) max_over_avg_before: f64,
    pub(crate) max_over_avg_after: f64,
    /// The lower bound for the loads alone.
    pub(crate) max_over_avg_least: f64,
    /// Fraction of the makespan of the phase that the assignment saves, by the model of the strategy.
    gain: f64,
    /// Largest fraction that any placement can save.
    gain_bound: f64,
    pub(crate) moved_chunks: usize,
    moved_percent: f64,
    moved_bytes: u64,
    pub(crate) decide_ns: u64,
    before_ns: u64,
    pub(crate) predicted_ns: u64,
    pub(crate) bound_ns: u64,
    bytes_between_ranks_before: u64,
    pub(crate) bytes_between_ranks: u64,
    bytes_between_hosts: u64,
    /// Memory of the fullest rank; none without limits.
    memory_max_bytes: Option<u64>,
    /// The most by which a rank exceeds its memory.
    memory_over_bytes: u64,
    /// True if every other row has more moves or a higher imbalance.
    pub(crate) on_front: bool,
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
        let [before_ns, predicted_ns] =
            [&current, assignment].map(|placement| max_ns(snapshot, placement, model));
        let before = max_over_avg(snapshot, &current, model);
        let least_ns = bound_ns(snapshot, model);
        let moved = Moved::of(snapshot, assignment);
        let [crossing_before, crossing] =
            [&current, assignment].map(|placement| Crossing::of(snapshot, placement));
        let limits = snapshot.memory.as_ref().map_or(&[][..], |memory| &memory.limits);
        let used = memory_bytes(snapshot, assignment);
        let over = used.iter().zip(limits).map(|(used, limit)| used.saturating_sub(*limit));
        let saved = |before_ns: u64| 1.0 - predicted_ns as f64 / before_ns as f64;
        Self {
            strategy: spec.to_owned(),
            max_over_avg_before: before,
            max_over_avg_after: max_over_avg(snapshot, assignment, model),
            max_over_avg_least: if before_ns > 0 { before * least_ns as f64 / before_ns as f64 } else { 1.0 },
            gain: if before_ns > 0 { saved(before_ns) } else { 0.0 },
            gain_bound: gain_bound(snapshot, model),
            moved_chunks: moved.chunks,
            moved_percent: 100.0 * moved.chunks as f64 / snapshot.chunks.len().max(1) as f64,
            moved_bytes: moved.bytes,
            decide_ns: u64::try_from(decide.as_nanos()).unwrap_or(u64::MAX),
            before_ns,
            predicted_ns,
            bound_ns: least_ns,
            bytes_between_ranks_before: crossing_before.bytes,
            bytes_between_ranks: crossing.bytes,
            bytes_between_hosts: crossing.bytes_between_hosts,
            memory_over_bytes: over.max().unwrap_or(0),
            memory_max_bytes: used.into_iter().max(),
            on_front: false,
        }
    }

    /// Chunks moved, and the imbalance reached. It is infinite if a rank exceeds its memory, as in LBAF.
    pub(crate) fn result(&self) -> (usize, f64) {
        let over = self.memory_over_bytes > 0;
        (self.moved_chunks, if over { f64::INFINITY } else { self.max_over_avg_after })
    }

    fn cells(&self, columns: Columns) -> Vec<String> {
        let mut cells = vec![
            self.strategy.clone(),
            format!("{:.4}", self.max_over_avg_before),
            format!("{:.4}", self.max_over_avg_after),
            format!("{:.4}", self.max_over_avg_least),
            decimal(100.0 * self.gain, 2),
            decimal(100.0 * self.gain_bound, 2),
            self.moved_chunks.to_string(),
            format!("{:.2}", self.moved_percent),
            mib(self.moved_bytes),
            format!("{:.3}", self.predicted_ns as f64 / 1e6),
        ];
        if columns.messages {
            let sent = [self.bytes_between_ranks, self.bytes_between_hosts];
            cells.extend(sent.map(|bytes| format!("{:.3}", bytes as f64 / f64::from(1 << 20))));
        }
        if columns.memory {
            cells.push(self.memory_max_bytes.map_or_else(String::new, mib));
        }
        let front = if self.on_front { "*" } else { "-" };
        cells.push(if self.memory_over_bytes > 0 { "over" } else { front }.to_owned());
        cells.push(format!("{:.3}", self.decide_ns as f64 / 1e6));
        cells
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// Columns that not all snapshots need.
#[derive(Clone, Copy, Default)]
pub(crate) struct Columns {
    messages: bool,
    memory: bool,
}

impl Columns {
    /// The columns that one of the reports needs.
    pub(crate) fn of(reports: &[Report]) -> Self {
        let any = |needs: fn(&Columns) -> bool| reports.iter().any(|report| needs(&report.columns));
        Self { messages: any(|columns| columns.messages), memory: any(|columns| columns.memory) }
    }

    /// The headings.
    pub(crate) fn heads(self) -> Vec<&'static str> {
        let mut heads = vec!["strategy", "imbalance before", "after", "least", "gain %", "bound %"];
        heads.extend(["moved chunks", "%", "MiB", "predicted ms"]);
        if self.messages {
            heads.extend(["ranks MiB", "hosts MiB"]);
        }
        if self.memory {
            heads.push("memory MiB");
        }
        heads.extend(["front", "time ms"]);
        heads
    }

    /// Lines below the table.
    pub(crate) fn legend(self) -> String {
        let mut legend = LEGEND.to_owned();
        if self.messages {
            legend += "\nranks MiB, hosts MiB: messages between ranks, and those of them between hosts, after the moves";
        }
        if self.memory {
            legend += "\nmemory: of the fullest rank after the moves; over: a rank exceeds its memory";
        }
        legend
    }
}

const LEGEND: &str = "\
imbalance: the slowest rank's time in a phase over the time with work spread by capacity; least: no placement is below
gain: the part of that phase that the moves save; bound: the most that any placement saves; %, MiB: of the moved chunks
predicted: the phase after the moves; front *: every other row has more moves or a higher imbalance; time: to decide";

/// The rows and the size of the snapshot.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) phase: u64,
    chunks: usize,
    ranks: usize,
    pub(crate) rows: Vec<Row>,
    #[serde(skip)]
    columns: Columns,
}

impl Report {
    /// The memory of a rank includes what it uses besides its chunks: `memory_limit` less the limit in the snapshot.
    pub(crate) fn new(snapshot: &Snapshot, mut rows: Vec<Row>, memory_limit: Option<u64>) -> Self {
        let limits = snapshot.memory.as_ref().map_or(&[][..], |memory| &memory.limits);
        if let Some(limit) = memory_limit {
            let besides = limits.iter().map(|left| limit.saturating_sub(*left)).max().unwrap_or(0);
            for bytes in rows.iter_mut().filter_map(|row| row.memory_max_bytes.as_mut()) {
                *bytes = bytes.saturating_add(besides);
            }
        }
        let memory = rows.iter().any(|row| row.memory_max_bytes.is_some());
        Self {
            phase: snapshot.phase,
            chunks: snapshot.chunks.len(),
            ranks: snapshot.ranks.len(),
            rows,
            columns: Columns { messages: !snapshot.edges.is_empty(), memory },
        }
    }

    /// True if chunks communicate.
    pub(crate) fn has_messages(&self) -> bool {
        self.columns.messages
    }

    /// Cells of the rows.
    pub(crate) fn cells(&self, columns: Columns) -> impl Iterator<Item = Vec<String>> {
        self.rows.iter().map(move |row| row.cells(columns))
    }

    /// Writes one JSON object on one line.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// Writes a table with one line per strategy.
    pub(crate) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} chunks on {} ranks, loads of phase {}", self.chunks, self.ranks, self.phase)?;
        let mut table = Table::new(self.columns.heads());
        self.cells(self.columns).for_each(|cells| table.row(cells));
        write!(out, "{table}")?;
        writeln!(out, "{}", self.columns.legend())
    }
}
