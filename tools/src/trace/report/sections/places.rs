//! Builds the sections of ranks, of chunks, and of the messages between ranks.

use caribou::trace::{ChunkId, Sample, Shape};
use maud::{Markup, html};
use trace_reader::RankTrace;

use super::nothing;
use crate::trace::competing_processes;
use crate::trace::page::{Cell, bytes};
use crate::trace::palette::KINDS;
use crate::trace::report::Report;
use crate::trace::report::activities::State;
use crate::trace::report::charts::legend;
use crate::trace::report::chunks::Chunk;
use crate::trace::report::maps;
use crate::trace::report::plots::Matrix;
use crate::trace::report::tables::{Table, folded, percent};

/// Rows of the tables of chunks and of messages.
const ROWS_MAX: usize = 500;

pub(super) fn ranks(report: &Report<'_>) -> Markup {
    let by_rank = report.facts.spent.by_rank();
    let row = |rank: &RankTrace| {
        let parts = by_rank.get(&rank.rank).copied().unwrap_or_default();
        let [chunks, runtime, lost, idle] = State::ALL.map(|state| Cell::Ns(state.ns(&parts)));
        let sum = |value: fn(&Sample) -> u64| {
            if rank.samples.is_empty() {
                return Cell::Empty;
            }
            Cell::Ns(rank.samples.iter().map(|sample| value(sample) as f64).sum())
        };
        let speed = rank.samples.iter().map(|sample| sample.speed).sum::<f64>() / rank.samples.len() as f64;
        let last = match report.trace.run.shape {
            Shape::Arrays | Shape::Supersteps => rank.samples.last(),
            Shape::Pools => None,
        };
        let end = match &rank.end {
            None => "cut off",
            Some(end) if end.failed.is_some() => "failed",
            Some(_) => "ended",
        };
        vec![
            Cell::Count(rank.rank.into()),
            Cell::Text(rank.host.clone()),
            Cell::Count(rank.workers.into()),
            chunks,
            runtime,
            lost,
            idle,
            sum(|sample| sample.wait_ns),
            sum(|sample| sample.steal_ns),
            sum(|sample| sample.throttled_ns.min(sample.wait_ns)),
            // The speed of vCPUs of a pool is not measured, and a pool has no chunks.
            if speed.is_finite() && speed > 0.0 { Cell::Number(speed) } else { Cell::Empty },
            last.map_or(Cell::Empty, |sample| Cell::Count(sample.chunks)),
            Cell::Text(end.into()),
        ]
    };
    let table = Table {
        id: "rank-table",
        caption: "Ranks: how their workers spent their time, and what samples say of their vCPUs".into(),
        heads: "rank | host | workers | in chunks | runtime | lost | idle | waiting for the vCPU | \
               steal | throttled by a quota | speed, turns/us | chunks | end"
            .split(" | ")
            .collect(),
        rows: report.trace.ranks.iter().map(row).collect(),
        ..Table::default()
    };
    let takers = competing_processes::table(report.trace);
    html! {
        (table.html())
        @if let Some(takers) = &takers {
            (Table::of("taker-table", "Processes on the vCPUs of ranks that lost time", takers, ROWS_MAX, &report.figures).html())
        }
    }
}

pub(super) fn chunks(report: &Report<'_>) -> Markup {
    let chunks = report.figures.chunks.sorted();
    if chunks.is_empty() {
        return nothing(match report.trace.run.shape {
            Shape::Pools => "A pool has iterations, no chunks.",
            Shape::Arrays | Shape::Supersteps => "Chunks are known from events: run with CARIBOU_TRACE set.",
        });
    }
    let all_ns = chunks.iter().map(|(_, chunk)| chunk.cpu_ns as f64).sum::<f64>().max(1.0);
    let rest_ns = chunks.iter().skip(ROWS_MAX).map(|(_, chunk)| chunk.cpu_ns as f64).sum::<f64>();
    let row = |(id, chunk): &(ChunkId, &Chunk)| {
        let mean = chunk.cpu_ns as f64 / chunk.executions.max(1) as f64;
        vec![
            Cell::Text(report.trace.chunk_name(*id)),
            Cell::Count(chunk.rank.into()),
            Cell::ns(chunk.cpu_ns),
            Cell::Share(chunk.cpu_ns as f64 / all_ns),
            Cell::Count(chunk.executions),
            Cell::Ns(mean),
            Cell::ns(chunk.longest_ns),
            Cell::ns(chunk.lost_ns),
            chunk.load_ns.map_or(Cell::Empty, Cell::ns),
            Cell::Bytes(chunk.state_bytes),
            Cell::Count(chunk.moves),
        ]
    };
    let table = Table {
        id: "chunk-table",
        caption: "Chunks, by the CPU time of their handlers".into(),
        heads: "chunk | last rank | CPU time | of all | executions | mean | longest | lost | \
               last load | state | moves"
            .split(" | ")
            .collect(),
        rows: chunks.iter().take(ROWS_MAX).map(row).collect(),
        ..Table::default()
    };
    let longest = chunks.iter().take(ROWS_MAX).map(|(_, chunk)| chunk.longest).collect();
    let table = table.at(longest, &report.figures);
    html! {
        (places(report))
        p.scripted {
            label { "Search " input #chunk-search type="search" autocomplete="off"; }
            output #chunk-count aria-live="polite" { (table.rows.len()) " of " (table.rows.len()) }
        }
        @if chunks.len() > ROWS_MAX {
            p.note {
                "The " (ROWS_MAX) " heaviest of " (chunks.len()) " chunks; the others have " (percent(rest_ns / all_ns))
                " of the CPU time. " code { "caribou trace chunks" } " lists all."
            }
        }
        (table.html())
    }
}

/// The map of chunks over time, with its legend and notes.
fn places(report: &Report<'_>) -> Markup {
    let Some(map) = maps::chunks(report) else { return html! {} };
    let (ranks, known) = (report.trace.ranks.len(), report.figures.chunks.all().count());
    html! {
        h3 { "Where each chunk was" }
        (map)
        (legend(maps::rank_colours(report)))
        @if ranks > KINDS.len() { p.note { "Ranks from " (KINDS.len()) " on have these colours again." } }
        @if known > maps::CHUNKS_MAX { p.note { "The " (maps::CHUNKS_MAX) " of " (known) " chunks that moved most." } }
        @if report.figures.chunks.forgot_arrivals() { p.note { "Later moves are left out: there are too many." } }
        h3 { "All chunks" }
    }
}

pub(super) fn communication(report: &Report<'_>) -> Markup {
    let (trace, figures) = (report.trace, &report.figures);
    if figures.sent.is_empty() {
        return nothing("No sends were recorded: CARIBOU_TRACE with arrows records them.");
    }
    let matrix = Matrix::of(figures, trace.ranks.len());
    let rank_at = |place: usize| trace.ranks[place.min(trace.ranks.len() - 1)].rank;
    let messages: u64 = figures.sent.values().map(|sent| sent.0).sum();
    let local: u64 = figures.sent.iter().filter(|((from, to), _)| from == to).map(|(_, sent)| sent.0).sum();
    let size = figures.sent.values().fold(0u64, |sum, sent| sum.saturating_add(sent.1));
    let mut cells: Vec<_> = matrix.cells.iter().enumerate().filter(|(_, cell)| cell.0 > 0).collect();
    cells.sort_by_key(|(place, cell)| (std::cmp::Reverse(cell.0), *place));
    let row = |&(place, &(messages, bytes)): &(usize, &(u64, u64))| {
        let (from, to) = (place / matrix.side, place % matrix.side);
        let name = |number| Cell::Text(matrix.name(number, rank_at));
        vec![name(from), name(to), Cell::Count(messages), Cell::Bytes(bytes)]
    };
    let table = Table {
        id: "comm-table",
        caption: "Messages between ranks, most first".into(),
        heads: vec!["from rank", "to rank", "messages", "bytes"],
        rows: cells.iter().take(ROWS_MAX).map(row).collect(),
        ..Table::default()
    };
    html! {
        p {
            (messages) " messages of " (bytes(size)) " recorded, " (percent(local as f64 / messages.max(1) as f64))
            " of them within a rank."
            @if trace.run.arrows > 1 { " One in " (trace.run.arrows) " was recorded." }
            @if figures.sent_elsewhere > 0 { " " (figures.sent_elsewhere) " went to ranks that left no trace." }
            @if matrix.ranks_per_cell > 1 { " A cell is " (matrix.ranks_per_cell) " by " (matrix.ranks_per_cell) " ranks." }
        }
        (matrix.html(rank_at, |messages, size| format!("{messages} messages, {}", bytes(size))))
        @if cells.len() > ROWS_MAX { p.note { "The table has the " (ROWS_MAX) " largest of " (cells.len()) " cells." } }
        (folded("The same as a table", &table))
    }
}
