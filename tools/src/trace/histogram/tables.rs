//! Formats bins and quantiles as tables.

use super::super::analysis::log_histogram::{LogHistogram, Octave};
use super::super::page::{Cell, Table, columns};
use super::Found;

/// Name of the row of latencies.
const LATENCY: &str = "message latency";
/// Characters of the longest bar.
const BAR: f64 = 40.0;

pub(super) fn quantiles(found: &Found) -> Table {
    let columns = columns("what | unit | count | p50 | p90 | p99 | longest | sum");
    let mut table = Table::new("quantiles", "quantiles", &columns).data_only_column("unit");
    let spreads = [
        ("execution, wall", &found.wall, true),
        ("execution, CPU", &found.cpu, true),
        ("message size", &found.size, false),
        (LATENCY, &found.latency, true),
        ("idle", &found.idle, true),
    ];
    for (name, spread, time) in spreads.into_iter().filter(|(_, spread, _)| spread.count() > 0) {
        let cell = |value: f64| if time { Cell::Ns(value) } else { Cell::Bytes(value as u64) };
        let parts = [0.5, 0.9, 0.99].map(|part| cell(spread.quantile(part)));
        let begin = [
            Cell::text_of(name),
            Cell::text_of(if time { "ns" } else { "bytes" }),
            Cell::Count(spread.count()),
        ];
        // Messages are in flight at the same time, so a sum of their latencies has no meaning.
        let sum = if name == LATENCY { Cell::Empty } else { cell(spread.sum()) };
        table.row(begin.into_iter().chain(parts).chain([cell(spread.longest() as f64), sum]));
    }
    table
}

/// Bins of wall time and of CPU time side by side.
pub(super) fn executions(found: &Found) -> Table {
    let columns = columns(
        "from_ns: from | to_ns: below | calls | calls_share: of calls | wall_share: of wall | \
         cpu_calls: by CPU | cpu_share: of CPU | bar: share of wall time",
    );
    let mut table = Table::new("executions", "executions, by wall time and by CPU time", &columns);
    let (wall, cpu) = (found.wall.octaves(), found.cpu.octaves());
    let filled = wall.iter().chain(&cpu).filter(|octave| octave.count > 0);
    let mut edges: Vec<(u64, u64)> = filled.map(|octave| (octave.from, octave.to)).collect();
    edges.sort_unstable();
    edges.dedup();
    let (calls, wall_ns, cpu_ns) = (found.wall.count() as f64, found.wall.sum(), found.cpu.sum());
    for (from, to) in edges {
        let of = |octaves: &[Octave]| {
            octaves
                .iter()
                .find(|octave| octave.from == from)
                .map_or((0, 0.0), |octave| (octave.count, octave.sum))
        };
        let ((count, ns), (cpu_count, cpu_part_ns)) = (of(&wall), of(&cpu));
        table.row([
            Cell::Ns(from as f64),
            Cell::Ns(to as f64),
            Cell::Count(count),
            share(count as f64, calls),
            share(ns, wall_ns),
            Cell::Count(cpu_count),
            share(cpu_part_ns, cpu_ns),
            Cell::Text(bar(ns, wall_ns)),
        ]);
    }
    table
}

pub(super) fn bins(name: &'static str, title: &str, spread: &LogHistogram) -> Table {
    let (sizes, latencies) = (name == "sizes", name == "latencies");
    let edges = if sizes { "from_bytes: from | to_bytes: below" } else { "from_ns: from | to_ns: below" };
    let others = "count | count_share: of count | sum_share: of sum | bar: share of count";
    let mut table = Table::new(name, title, &[edges, others].map(columns).concat());
    for octave in spread.octaves().into_iter().filter(|octave| octave.count > 0) {
        let edge = |value: u64| if sizes { Cell::Bytes(value) } else { Cell::Ns(value as f64) };
        let (count, all) = (octave.count as f64, spread.count() as f64);
        table.row([
            edge(octave.from),
            edge(octave.to),
            Cell::Count(octave.count),
            share(count, all),
            if latencies { Cell::Empty } else { share(octave.sum, spread.sum()) },
            Cell::Text(bar(count, all)),
        ]);
    }
    table
}

fn share(part: f64, whole: f64) -> Cell {
    Cell::Share(if whole > 0.0 { part / whole } else { 0.0 })
}

fn bar(part: f64, whole: f64) -> String {
    let long = if whole > 0.0 { BAR * part / whole } else { 0.0 };
    if long > 0.0 && long < 0.5 { ".".into() } else { "#".repeat(long.round() as usize) }
}
