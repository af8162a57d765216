//! Prints one sync: the loads of all ranks, and the moved chunks.

use std::collections::BTreeMap;

use caribou::trace::{ChunkId, Event, What};
use trace_reader::Trace;

use super::super::analysis::events::{Observer, Scope, WorkerRef, by_worker};
use super::super::open::warn;
use super::super::page::{Cell, Page, Table, bytes, columns, duration, plural};
use super::super::select::Window;
use super::{never_moves, verdict};
use crate::trace::analysis::sync_effect::{
    Slowest, SyncEffect, SyncVerdict, began_ns, causes_text, error, finite, neighbours, occasion,
};

/// A chunk that left its rank.
struct Move {
    chunk: ChunkId,
    from: u32,
    to: u32,
    bytes: u64,
    at_ns: u64,
}

/// Ranks in the text; JSON has all.
const RANKS_IN_TEXT: usize = 64;

pub(super) fn page(trace: &Trace, outcome: &SyncEffect<'_>, all: &[SyncEffect<'_>], most: usize) -> Page {
    let mut page = Page::new("lb_sync", trace);
    page.says.push(answer(trace, outcome));
    page.tables.push(ranks(trace, outcome));
    let (left, measured) = times(trace, outcome, all);
    let sync = outcome.report.sync;
    let mut found = Found { left, sync, moves: Vec::new(), loads: BTreeMap::new() };
    warn(&by_worker(&Scope::of(&trace.ranks, measured), &mut [&mut found]));
    let Found { mut moves, loads, .. } = found;
    moves.sort_by_key(|one| (std::cmp::Reverse(one.bytes), one.at_ns, one.chunk));
    if (moves.len() as u64) < outcome.report.moved {
        page.notes.push(format!("{} of {} moves are in the events", moves.len(), outcome.report.moved));
    }
    if moves.len() > most {
        page.notes.push(format!("{} moves more; --moves lists more", moves.len() - most));
    }
    if !moves.is_empty() {
        let columns = columns("chunk | from | to | bytes | load_ns: load | at_ns: at");
        let mut table = Table::new("moves", "moves", &columns);
        for one in moves.iter().take(most) {
            table.row([
                Cell::text_of(trace.chunk_name(one.chunk)),
                Cell::Count(one.from.into()),
                Cell::Count(one.to.into()),
                Cell::Bytes(one.bytes),
                loads.get(&one.chunk).map_or(Cell::Empty, |&ns| Cell::Ns(ns as f64)),
                Cell::Ns(one.at_ns as f64),
            ]);
        }
        page.tables.push(table);
    }
    page
}

fn answer(trace: &Trace, outcome: &SyncEffect<'_>) -> String {
    let report = outcome.report;
    let occasion = occasion([report.window]);
    let found = format!("{occasion} {} at {}", report.sync, duration(report.at_ns as f64));
    let why = match (outcome.resize(), outcome.slowest()) {
        (Some((before, after)), _) => format!(", as {after} ranks are active from here on, {before} before"),
        (None, Some(Slowest { rank, causes })) if !causes.is_empty() => {
            format!(", as rank {rank} had {}", causes_text(&causes))
        }
        _ => String::new(),
    };
    let imbalance = finite(report.imbalance_before).unwrap_or(1.0);
    let did = match outcome.verdict() {
        SyncVerdict::Balanced if never_moves(trace) => did(trace, outcome),
        _ => format!("{} {}", trace.run.lb, did(trace, outcome)),
    };
    let then = match outcome.actual() {
        Some(actual) => format!("; predicted {:.3}, then measured {actual:.3}", report.imbalance_predicted),
        None => format!("; predicted {:.3}", report.imbalance_predicted),
    };
    format!("{found}: imbalance {imbalance:.3}{why}; {did}{then}")
}

/// Describes what the sync did, and why not more.
pub(super) fn did(trace: &Trace, outcome: &SyncEffect<'_>) -> String {
    let report = outcome.report;
    let [gain, needed, long] =
        [report.gain_ns, report.needed_ns, report.migrate_ns].map(|ns| duration(ns as f64));
    let (all, size) = (outcome.chunks(), bytes(report.moved_bytes));
    let moved = format!("moved {} of {all} chunks, {size}, in {long}", report.moved);
    match outcome.verdict() {
        SyncVerdict::Balanced if never_moves(trace) => "`none` never moves chunks".into(),
        SyncVerdict::Balanced => verdict(trace, outcome).to_owned(),
        SyncVerdict::Refused => {
            format!("refused {}: gain {gain} < {needed} needed", plural(report.proposed as usize, "move"))
        }
        SyncVerdict::Unasked => {
            format!("not asked: at most {gain} to gain < {needed} to decide and to move anything")
        }
        SyncVerdict::Resized => format!("{moved}, away from inactive ranks"),
        SyncVerdict::Moved => format!(
            "{moved}, for a gain of {}{} at a cost of {}",
            duration(outcome.gain_ns()),
            outcome.saved_ns().map_or(String::new(), |ns| format!(", saved {}", duration(ns))),
            duration(outcome.cost().all_ns())
        ),
    }
}

/// Table of the loads of all ranks.
pub(crate) fn ranks(trace: &Trace, outcome: &SyncEffect<'_>) -> Table {
    let report = outcome.report;
    let columns = columns(
        "rank | host | before_ns: before | predicted_ns: predicted | measured_ns: measured | \
         prediction_error: error | share | capacity | chunks: chunks after",
    );
    let title = if outcome.is_per_step() {
        "completion times, of as many steps as the phase before had"
    } else {
        "completion times"
    };
    let mut table = Table::new("ranks", title, &columns).text_rows(RANKS_IN_TEXT);
    let (predicted_ns, measured_ns) = (outcome.predicted_ns(), outcome.measured_ns().unwrap_or_default());
    let time = |times: &[u64], rank| times.get(rank).map_or(Cell::Empty, |&ns| Cell::Ns(ns as f64));
    for rank in 0..report.before_ns.len().max(predicted_ns.len()) {
        let off = measured_ns.get(rank).zip(predicted_ns.get(rank)).filter(|_| outcome.is_per_step());
        let off = off.and_then(|(&measured, &predicted)| error(measured as f64, predicted as f64));
        table.row([
            Cell::Count(rank as u64),
            trace.run.hosts.get(rank).map_or(Cell::Empty, Cell::text_of),
            time(&report.before_ns, rank),
            time(&predicted_ns, rank),
            time(&measured_ns, rank),
            off.map_or(Cell::Empty, Cell::Share),
            report.share.get(rank).map_or(Cell::Empty, |&share| Cell::Share(share)),
            report.capacity.get(rank).map_or(Cell::Empty, |&capacity| Cell::Number(capacity)),
            report.chunks_per_rank.get(rank).map_or(Cell::Empty, |&chunks| Cell::Count(chunks.into())),
        ]);
    }
    table
}

/// The times at which chunks of this sync can have left, and at which their loads can have been recorded.
fn times(trace: &Trace, outcome: &SyncEffect<'_>, all: &[SyncEffect<'_>]) -> (Window, Window) {
    let (before, next) = neighbours(all, outcome.report.sync);
    let to_ns = next.map_or(trace.elapsed_ns(), |next| began_ns(next.report));
    let from_ns = began_ns(outcome.report).min(to_ns);
    let since_ns = before.map_or(0, |before| before.report.at_ns).min(from_ns);
    (Window { from_ns, to_ns }, Window { from_ns: since_ns, to_ns })
}

/// Chunks that left in a span of time, and the loads of all chunks at the sync. Memory grows with the number of chunks.
struct Found {
    left: Window,
    sync: u64,
    moves: Vec<Move>,
    loads: BTreeMap<ChunkId, u64>,
}

impl Observer<'_> for Found {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        match event.what {
            What::Depart { chunk, rank: to, bytes }
                if (self.left.from_ns..=self.left.to_ns).contains(&event.begin_ns) =>
            {
                let (from, at_ns) = (place.rank.rank, event.begin_ns);
                self.moves.push(Move { chunk, from, to, bytes, at_ns });
            }
            What::Load { chunk, sync, load_ns, .. } if sync == self.sync => {
                self.loads.insert(chunk, load_ns);
            }
            _ => {}
        }
    }
}
