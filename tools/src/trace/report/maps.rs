//! Draws maps over time: how busy each rank was, and where each chunk was.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};

use super::Report;
use super::charts::{PLOT, Paths, left_word, named, over_time, row_height, row_name, x_of};
use super::chunks::Chunk;
use super::figures::Figures;
use crate::trace::palette::KINDS;

/// Number of shades in the heat map, which the style sheet also defines.
pub(super) const SHADES: usize = 16;
/// Largest number of cells in the heat map, and in one of its rows.
const CELLS_MAX: usize = 12_000;
const ROW_CELLS_MAX: usize = 264;
/// The heat maps: class, and index of the state in the shares of a bin.
const PARTS: [(&str, usize); 3] = [("busy", 0), ("lost", 2), ("idle", 3)];
/// Largest number of rows in the map of chunks.
pub(super) const CHUNKS_MAX: usize = 400;
/// Height of the map of chunks, and smallest and largest height of a row.
const CHUNKS_HIGH: f64 = 420.0;
const CHUNK_HIGH: (f64, f64) = (2.0, 16.0);
/// Letters of a name to the left of a row.
const NAME_MAX: usize = 15;

/// A name, and the shares of the states in each bin.
type Row = (String, Vec<[f64; 4]>);

/// One row per rank. If rows of the timeline have several workers, the rows of the timeline.
fn rows(figures: &Figures) -> Vec<Row> {
    let mut rows: Vec<(String, u32, Vec<[f64; 4]>, f64)> = Vec::new();
    for (number, row) in figures.rows.iter().enumerate() {
        let rank = figures.workers.get(number * figures.workers_per_row).map_or(0, |worker| worker.rank);
        let bins = row.level(0).map(|bin| bin.shares.map(|share| f64::from(share) / 255.0));
        match rows.last_mut().filter(|last| figures.workers_per_row == 1 && last.1 == rank) {
            Some((_, _, sums, workers)) => {
                *workers += 1.0;
                sums.iter_mut().zip(bins).for_each(|(sum, bin)| add(sum, &bin));
            }
            None => {
                let name = match figures.workers_per_row {
                    1 => format!("rank {rank}"),
                    _ => row_name(figures, number),
                };
                rows.push((name, rank, bins.collect(), 1.0));
            }
        }
    }
    let average = |(name, _, sums, workers): (String, u32, Vec<[f64; 4]>, f64)| {
        (name, sums.into_iter().map(|sum| sum.map(|share| share / workers)).collect())
    };
    rows.into_iter().map(average).collect()
}

fn add(sum: &mut [f64; 4], other: &[f64; 4]) {
    sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
}

/// Draws three maps, of the shares in which each rank was busy, lost time, and was idle.
pub(super) fn heat(report: &Report<'_>) -> Markup {
    let rows = rows(&report.figures);
    let high = row_height(rows.len());
    let mut maps = PARTS.map(|_| Paths::default());
    for (number, (_, bins)) in rows.iter().enumerate() {
        let top = number * high;
        for ((class, part), paths) in PARTS.iter().zip(&mut maps) {
            for (from, to, shade) in shades(bins, *part, rows.len()) {
                let class = format!("{class} h{shade}");
                paths.rectangle(&class, from, top as f64 + 1.0, to - from, high as f64 - 2.0);
            }
        }
    }
    let shapes = html! {
        path.ground d=(format!("M0 0h{PLOT}v{}h-{PLOT}z", rows.len() * high)) {}
        @for ((class, _), paths) in PARTS.iter().zip(&maps) { g class=(format!("heat-{class}")) { (paths.html()) } }
    };
    let names = html! {
        @for (number, (name, _)) in rows.iter().enumerate().filter(|(number, _)| named(*number, high)) {
            (left_word((number * high + high / 2) as f64, name))
        }
    };
    let label = "How busy each rank was over time; the table of workers has the figures.";
    over_time("heat", label, rows.len() * high, report, (&shapes, &names))
}

/// Merges neighbours of one shade: from, to, shade. Cells of shade 0 are left out.
fn shades(bins: &[[f64; 4]], part: usize, rows: usize) -> Vec<(usize, usize, usize)> {
    let cells = (CELLS_MAX / rows.max(1)).clamp(32, ROW_CELLS_MAX).min(bins.len());
    let mut shades: Vec<(usize, usize, usize)> = Vec::new();
    for cell in 0..cells {
        let bins = &bins[cell * bins.len() / cells..(cell + 1) * bins.len() / cells];
        let share = bins.iter().map(|bin| bin[part]).sum::<f64>() / bins.len() as f64;
        let shade = (share.clamp(0.0, 1.0) * SHADES as f64).round() as usize;
        let (from, to) = (cell * PLOT / cells, (cell + 1) * PLOT / cells);
        match shades.last_mut().filter(|last| last.1 == from && last.2 == shade) {
            Some(last) => last.1 = to,
            None if shade > 0 => shades.push((from, to, shade)),
            None => {}
        }
    }
    shades
}

/// Draws the rank of each chunk over time, coloured by rank; none if no arrival is recorded.
pub(super) fn chunks(report: &Report<'_>) -> Option<Markup> {
    let (trace, figures) = (report.trace, &report.figures);
    let mut chunks: Vec<_> = figures.chunks.all().filter(|(_, chunk)| !chunk.places.is_empty()).collect();
    if chunks.is_empty() {
        return None;
    }
    chunks.sort_by_key(|(id, chunk)| (Reverse(chunk.places.len()), *id));
    chunks.truncate(CHUNKS_MAX);
    chunks.sort_by_key(|(id, _)| *id);
    let high = (CHUNKS_HIGH / chunks.len() as f64).clamp(CHUNK_HIGH.0, CHUNK_HIGH.1);
    let all_high = (high * chunks.len() as f64).ceil();
    let shapes = html! {
        @for (number, (id, chunk)) in chunks.iter().enumerate() {
            @let name = trace.chunk_name(*id);
            g data-chunk=(name) {
                title { (name) ": " (visited(chunk)) }
                (stays(chunk, figures.elapsed_ns, high * number as f64, (high - 0.5).max(1.5)).html())
            }
        }
    };
    let every = (13.0 / high).ceil().max(1.0) as usize;
    let names = html! {
        @for (number, (id, _)) in chunks.iter().enumerate().step_by(every) {
            (left_word(high * (number as f64 + 0.5), &short(&trace.chunk_name(*id))))
        }
    };
    let label = "The rank that each chunk was on over time; the table of chunks has the number of its moves.";
    Some(over_time("chunk-map", label, all_high as usize, report, (&shapes, &names)))
}

/// The classes of the colours of ranks, and the names of the ranks.
pub(super) fn rank_colours(report: &Report<'_>) -> impl Iterator<Item = (String, String)> {
    let ranks = report.trace.ranks.iter().take(KINDS.len());
    ranks.map(|rank| (rank_class(rank.rank), format!("rank {}", rank.rank)))
}

fn rank_class(rank: u32) -> String {
    format!("k{}", rank as usize % KINDS.len())
}

/// The arrivals of a chunk in order of time.
fn in_order(chunk: &Chunk) -> Vec<(u64, u32)> {
    let by_time: BTreeMap<u64, u32> = chunk.places.iter().copied().collect();
    by_time.into_iter().collect()
}

fn stays(chunk: &Chunk, elapsed_ns: u64, top: f64, high: f64) -> Paths {
    let places = in_order(chunk);
    let mut paths = Paths::default();
    for (number, &(from_ns, rank)) in places.iter().enumerate() {
        let to_ns = places.get(number + 1).map_or(elapsed_ns, |next| next.0);
        let (from, to) = (x_of(from_ns, elapsed_ns) as usize, x_of(to_ns, elapsed_ns) as usize);
        paths.rectangle(&rank_class(rank), from, top, (to - from).max(1), high);
    }
    paths
}

fn visited(chunk: &Chunk) -> String {
    let ranks: Vec<String> = in_order(chunk).iter().take(12).map(|(_, rank)| rank.to_string()).collect();
    let more = if chunk.places.len() > 12 { ", ..." } else { "" };
    format!("rank {}{more}", ranks.join(", then "))
}

fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into(),
    }
}
