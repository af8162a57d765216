//! Defines the columns of `caribou trace lb`, one line each.

use trace_reader::Trace;

use super::verdict;
use crate::trace::analysis::sync_effect::{SyncEffect, SyncVerdict, finite, occasion_of};
use crate::trace::page::{Cell, Table};

/// A column: its name in JSON and CSV with the unit, its head in text, and its cell. [`WORDS`] explains the heads.
type Column = (&'static str, &'static str, fn(&Trace, &SyncEffect<'_>) -> Cell);

const COLUMNS: [Column; 20] = [
    ("sync", "sync", |_, sync| Cell::Count(sync.report.sync)),
    ("at_ns", "at", |_, sync| Cell::ns(sync.report.at_ns)),
    ("strategy", "strategy", |trace, _| Cell::text_of(&trace.run.lb)),
    ("verdict", "verdict", |trace, sync| Cell::text_of(verdict(trace, sync))),
    ("ranks_active", "active", |_, sync| {
        sync.report.active.map_or(Cell::Empty, |active| Cell::Count(active.into()))
    }),
    ("imbalance_work", "work", |_, sync| number(sync.work())),
    ("imbalance_before", "imbalance", |_, sync| number(finite(sync.report.imbalance_before))),
    ("imbalance_predicted", "predicted", |_, sync| number(finite(sync.report.imbalance_predicted))),
    ("imbalance_actual", "actual", |_, sync| number(sync.actual())),
    ("prediction_error", "error", |_, sync| sync.error().map_or(Cell::Empty, Cell::Share)),
    ("moved", "moved", |_, sync| Cell::Count(sync.report.moved)),
    ("chunks", "of", |_, sync| Cell::Count(sync.chunks())),
    ("moved_bytes", "bytes", |_, sync| Cell::Bytes(sync.report.moved_bytes)),
    ("gain_ns", "predicted saving", |_, sync| if_proposed(sync, sync.proposed_gain_ns())),
    ("saved_ns", "measured saving", |_, sync| sync.saved_ns().map_or(Cell::Empty, Cell::Ns)),
    ("judged_gain_ns", "expected", |_, sync| if_proposed(sync, sync.report.gain_ns as f64)),
    ("needed_gain_ns", "needed", |_, sync| if_proposed(sync, sync.report.needed_ns as f64)),
    ("collect_ns", "collect", |_, sync| Cell::ns(sync.report.collect_ns)),
    ("decide_ns", "decide", |_, sync| Cell::ns(sync.report.decide_ns)),
    ("migrate_ns", "migrate", |_, sync| Cell::ns(sync.report.migrate_ns)),
];

/// Explanation of some heads, for the user.
pub(crate) const WORDS: &str = "active: ranks that have work from then on, the first ones; imbalance: completion time \
    of the slowest rank over the time with all work divided by the measured capacities, 1 is the best; work: largest \
    over average work of the ranks, as if all had equal speed and no competing process; predicted, actual: imbalance \
    of the next phase; error: how much longer a step of that phase took than predicted, with steps counted by messages \
    handled; predicted saving: of the next phase, for as many steps as that had; measured saving: how much longer that \
    phase would have taken without moves, by its own loads; expected: saving that the balancer expected of the moves \
    until its next likely decision; needed: the saving above which it makes moves: their cost; in a window, the larger \
    of cost and prediction error, divided by the part of predicted savings that earlier plans reached; collect: from the \
    first rank to the last, mostly waiting for the slowest; decide: the strategy's own time, on rank 0; migrate: until \
    the last chunk has arrived. What workers did for syncs, with snapshots and packing, is in `profile` as measure, \
    decide and migrate: wall time, which includes waiting";

/// Explanation of the verdicts, for the user.
pub(crate) const VERDICTS: &str = "verdict: moved: chunks moved; balanced already: the strategy had nothing to move; nothing \
    proposed: the same, though imbalance was above 1.1; refused: its moves would have saved less than needed; not \
    asked: even the best plan would have saved less than a decision and one move cost; resized: chunks left inactive \
    ranks, whatever the gain; never moves: the strategy is `none`, which leaves all chunks where they are";

/// A table with one row per sync.
pub(crate) fn table<'o>(trace: &Trace, syncs: impl IntoIterator<Item = &'o SyncEffect<'o>>) -> Table {
    let occasion = occasion_of(trace);
    let head = |key, head| if key == "sync" { occasion } else { head };
    let mut table = Table::new("syncs", "", &COLUMNS.map(|(key, text, _)| (key, head(key, text))));
    for sync in syncs {
        table.row(COLUMNS.map(|(_, _, cell)| cell(trace, sync)));
    }
    table
}

fn number(number: Option<f64>) -> Cell {
    number.map_or(Cell::Empty, Cell::Number)
}

/// The time; empty if the strategy proposed nothing, or if chunks left inactive ranks.
fn if_proposed(sync: &SyncEffect<'_>, ns: f64) -> Cell {
    match sync.verdict() {
        SyncVerdict::Balanced | SyncVerdict::Resized => Cell::Empty,
        SyncVerdict::Moved | SyncVerdict::Refused | SyncVerdict::Unasked => Cell::Ns(ns),
    }
}
