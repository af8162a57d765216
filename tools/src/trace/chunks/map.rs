//! Draws the indices of an array as a line or a map, coloured by load and by rank.

use std::collections::BTreeMap;

use caribou::trace::{ArrayId, ChunkId};
use presentation::svg::{Anchor, Area, Svg};
use trace_reader::Trace;

use super::history::History;
use crate::trace::page::duration;
use crate::trace::palette;

/// Largest number of cells along one side. More chunks share cells.
const SIDE_MAX: usize = 200;
/// Approximate width of a map in pixels.
const MAP_WIDE: f64 = 420.0;
/// Arrays that are drawn.
const ARRAYS_MAX: usize = 4;
/// Ranks in the legend.
const RANKS_NAMED: usize = 12;

/// A chunk with the row and column of its index.
type Placed<'h> = (ChunkId, [i64; 2], &'h History);

/// The chunks of one cell.
#[derive(Clone, Copy, Default)]
struct Cell {
    load_ns: f64,
    chunks: u32,
    /// Load, rank and name of the heaviest chunk.
    heaviest_ns: f64,
    rank: Option<u32>,
    chunk: Option<ChunkId>,
}

/// Draws two maps per array, of loads and of ranks at the end. Also returns notes about omissions.
pub(super) fn draw<'c>(
    trace: &Trace,
    chunks: impl Iterator<Item = (ChunkId, &'c History)>,
) -> (Svg, Vec<String>) {
    let mut arrays: BTreeMap<ArrayId, Vec<Placed<'_>>> = BTreeMap::new();
    let mut without = 0u64;
    for (chunk, history) in chunks {
        match trace.chunk_index(chunk).and_then(place_of) {
            Some(place) => arrays.entry(chunk.array).or_default().push((chunk, place, history)),
            None => without += 1,
        }
    }
    let mut notes = Vec::new();
    if without > 0 {
        notes.push(format!(
            "map: {without} chunks whose index is not a number or a pair of numbers are left out"
        ));
    }
    if arrays.len() > ARRAYS_MAX {
        notes.push(format!("map: {} more arrays are left out", arrays.len() - ARRAYS_MAX));
    }
    let panels: Vec<Panel> =
        arrays.iter().take(ARRAYS_MAX).map(|(&array, chunks)| Panel::new(array, chunks)).collect();
    let high: f64 = panels.iter().map(|panel| panel.high() + 70.0).sum();
    let mut svg = Svg::new(2.0 * MAP_WIDE + 100.0, 30.0 + high.max(20.0), "Loads and places of chunks");
    svg.text((20.0, 18.0), Anchor::Start, &trace.run.run_id);
    let mut top = 44.0;
    for panel in &panels {
        panel.draw(trace, &mut svg, top);
        top += panel.high() + 70.0;
    }
    (svg, notes)
}

struct Panel {
    array: ArrayId,
    cells: BTreeMap<(usize, usize), Cell>,
    columns: usize,
    rows: usize,
    /// Whether a cell has several chunks.
    shared: bool,
}

impl Panel {
    fn new(array: ArrayId, chunks: &[Placed<'_>]) -> Panel {
        let side = |dimension: usize| {
            let of = || chunks.iter().map(|(_, place, _)| place[dimension]);
            Side::new(of().min().unwrap_or(0), of().max().unwrap_or(0))
        };
        let (down, across) = (side(0), side(1));
        let mut cells: BTreeMap<_, Cell> = BTreeMap::new();
        for &(chunk, place, history) in chunks {
            let cell = cells.entry((down.cell(place[0]), across.cell(place[1]))).or_default();
            let load_ns = history.load_ns();
            if cell.chunk.is_none() || load_ns > cell.heaviest_ns {
                (cell.heaviest_ns, cell.rank, cell.chunk) = (load_ns, history.rank, Some(chunk));
            }
            cell.load_ns += load_ns;
            cell.chunks += 1;
        }
        let shared = cells.values().any(|cell| cell.chunks > 1);
        Panel { array, cells, columns: across.cells, rows: down.cells, shared }
    }

    /// Size of a cell in pixels.
    fn cell(&self) -> f64 {
        (MAP_WIDE / self.columns.max(self.rows) as f64).min(40.0)
    }

    fn high(&self) -> f64 {
        (self.cell() * self.rows as f64).max(20.0)
    }

    fn draw(&self, trace: &Trace, svg: &mut Svg, top: f64) {
        let mean = |cell: &Cell| cell.load_ns / f64::from(cell.chunks.max(1));
        let most_ns = self.cells.values().map(mean).fold(0.0, f64::max);
        let (name, longest) = (trace.array_name(self.array), duration(most_ns));
        let several = if self.shared { ", mean of those in a cell" } else { "" };
        let lefts = [20.0, 60.0 + MAP_WIDE];
        svg.text((lefts[0], top), Anchor::Start, &format!("{name}: load, darkest {longest}{several}"));
        svg.text((lefts[1], top), Anchor::Start, &format!("{name}: rank at the end"));
        let (size, high) = (self.cell(), if self.rows == 1 { 20.0 } else { self.cell() });
        let mut ranks = BTreeMap::new();
        for (&(row, column), cell) in &self.cells {
            let chunk = cell.chunk.map(|chunk| trace.chunk_name(chunk)).unwrap_or_default();
            let rank = cell.rank.map_or("?".into(), |rank| rank.to_string());
            let hint = format!("{chunk}: {} on rank {rank}", duration(mean(cell)));
            let shade = palette::shade(if most_ns > 0.0 { mean(cell) / most_ns } else { 0.0 });
            let colour = cell.rank.map_or("#ffffff", |rank| palette::numbered(u64::from(rank)));
            ranks.extend(cell.rank.map(|rank| (rank, colour)));
            for (left, fill) in lefts.into_iter().zip([shade.as_str(), colour]) {
                let at = (left + column as f64 * size, top + 8.0 + row as f64 * high);
                svg.rect(Area::at(at, (size * 0.96, high * 0.96)), fill, Some(&hint));
            }
        }
        let mut legend: Vec<(String, &str)> =
            ranks.iter().take(RANKS_NAMED).map(|(rank, &colour)| (rank.to_string(), colour)).collect();
        if ranks.len() > RANKS_NAMED {
            legend.push(("and so on".into(), "#ffffff"));
        }
        svg.legend(Area::at((lefts[1], top + self.high() + 16.0), (MAP_WIDE, 0.0)), &legend);
    }
}

/// One dimension of an index, divided into cells.
struct Side {
    least: i64,
    /// Number of possible values.
    span: u128,
    cells: usize,
}

impl Side {
    fn new(least: i64, largest: i64) -> Side {
        let span = (i128::from(largest) - i128::from(least) + 1).max(1) as u128;
        Side { least, span, cells: span.min(SIDE_MAX as u128) as usize }
    }

    fn cell(&self, value: i64) -> usize {
        let along = (i128::from(value) - i128::from(self.least)).max(0) as u128;
        ((along * self.cells as u128 / self.span) as usize).min(self.cells - 1)
    }
}

/// Row and column of an index: `3` is in row 0, `[3, 4]` and `(3, 4)` are in row 3.
fn place_of(index: &str) -> Option<[i64; 2]> {
    let inner = index.trim().trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
    let numbers: Option<Vec<i64>> = inner.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers?[..] {
        [column] => Some([0, column]),
        [row, column] => Some([row, column]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_one_and_two_numbers_have_a_place() {
        assert_eq!(place_of("7"), Some([0, 7]));
        assert_eq!(place_of("[3, -4]"), Some([3, -4]));
        assert_eq!(place_of("(3, 4)"), Some([3, 4]));
        assert_eq!(place_of("[1, 2, 3]"), None);
        assert_eq!(place_of("\"left\""), None);
    }

    #[test]
    fn the_farthest_indices_share_out_the_cells() {
        let side = Side::new(i64::MIN, i64::MAX);
        assert_eq!((side.cell(i64::MIN), side.cell(i64::MAX)), (0, SIDE_MAX - 1));
        let side = Side::new(5, 9);
        assert_eq!([5, 6, 7, 8, 9].map(|value| side.cell(value)), [0, 1, 2, 3, 4]);
    }
}
