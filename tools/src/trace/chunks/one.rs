//! Prints one chunk in all its phases, for `caribou trace chunks --index`.

use caribou::trace::ChunkId;
use trace_reader::Trace;

use super::history::{Detail, LISTED_MAX};
use super::{Chunks, ranks_named};
use crate::trace::page::{Cell, Page, Table, duration, plural};

/// Length of a line of block characters.
const SPARKS: usize = 100;

impl Chunks {
    /// Fills the page of `--index`.
    pub(super) fn tell_one(&self, trace: &Trace, chunk: ChunkId, detail: &Detail, page: &mut Page) {
        let Some(history) = self.histories.get(&chunk) else { return };
        let (name, rank_ns) = (trace.chunk_name(chunk), self.rank_ns());
        let flags = self.flags(history, rank_ns);
        let load = duration(history.load_ns());
        let counts =
            [(history.phases(), "phase"), (history.executions, "execution"), (history.moves, "move")];
        let [phases, executions, moves] = counts.map(|(count, word)| plural(count as usize, word));
        page.says.push(format!("{name}: load {load} in {phases}, {executions}, {moves}"));
        if !flags.is_empty() {
            page.says.push(flags.join(", "));
        }
        let loads: Vec<f64> = detail.loads.iter().map(|load| load.load_ns as f64).collect();
        if !loads.is_empty() {
            let most = loads.iter().copied().fold(0.0, f64::max);
            page.says.push(format!("load by phase, up to {}: {}", duration(most), sparks(&loads)));
        }
        page.says.push(format!("ranks in their order: {}", ranks_named(&history.visited)));
        let columns = [("sync", "sync"), ("rank", "rank"), ("load_ns", "load"), ("bytes", "size")];
        let mut phases = Table::new("phases", "", &columns).text_rows(20);
        for load in &detail.loads {
            let rank = Cell::Count(u64::from(load.rank));
            phases.row([
                Cell::Count(load.sync),
                rank,
                Cell::Ns(load.load_ns as f64),
                Cell::Bytes(load.bytes),
            ]);
        }
        page.tables.push(phases);
        let mut moves =
            Table::new("moves", "", &[("at_ns", "moved at"), ("from", "from rank"), ("to", "to rank")])
                .text_rows(20);
        for &(at_ns, from, to) in &detail.moves {
            moves.row([Cell::Ns(at_ns as f64), Cell::Count(u64::from(from)), Cell::Count(u64::from(to))]);
        }
        if !detail.moves.is_empty() {
            page.tables.push(moves);
        }
        if detail.cut {
            page.notes.push(format!("only the first {LISTED_MAX} phases and moves are listed"));
        }
    }
}

/// Draws values as a line of block characters. For many values each character shows the largest of several.
fn sparks(values: &[f64]) -> String {
    const BLOCKS: [char; 8] =
        ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
    let most = values.iter().copied().fold(0.0, f64::max);
    let each = values.len().div_ceil(SPARKS).max(1);
    let largest = values.chunks(each).map(|part| part.iter().copied().fold(0.0, f64::max));
    largest.map(|value| BLOCKS[if most > 0.0 { (7.0 * value / most).round() as usize } else { 0 }]).collect()
}
