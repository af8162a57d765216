//! Formats the figures of `caribou top` as text. `--once` prints the text, and the screen shows parts of it.

use std::io::{self, Write};

use caribou::trace::Shape;

use super::dashboard::{Dashboard, Parts, RankRow, StepsPanel, SyncRow, occasion};
use crate::trace::page::{Cell, Table, bytes, columns, duration, plural};

/// Message kinds that `--once` lists.
const KINDS_MAX: usize = 10;

/// Writes all figures, as `--once` prints them.
pub(super) fn write(picture: &Dashboard, out: &mut dyn Write) -> io::Result<()> {
    for line in [title(picture, false), summary(picture)] {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    ranks(picture).write_text(out)?;
    if !picture.syncs.is_empty() {
        writeln!(out)?;
        syncs(picture).write_text(out)?;
    }
    if !picture.kinds.is_empty() {
        writeln!(out)?;
        kinds(picture).write_text(out)?;
    }
    picture.problems.iter().try_for_each(|problem| writeln!(out, "note: {problem}"))
}

/// The program and its state. A program may end before it can report its end, and a stopped program cannot answer.
pub(super) fn title(picture: &Dashboard, is_over: bool) -> String {
    let elapsed = clock(picture.elapsed_ns);
    let state = match &picture.failed {
        Some(why) => format!("failed after {elapsed}: {why}"),
        None if picture.finished => format!("ended after {elapsed}"),
        None if is_over => format!("does not answer, last answer after {elapsed}"),
        None => format!("running for {elapsed}"),
    };
    format!("{}  {state}", picture.program)
}

/// The figures of the whole run, in one line.
pub(super) fn summary(picture: &Dashboard) -> String {
    let Dashboard { run_id, lb, ranks_total, syncs_total, moved_total, .. } = picture;
    let occasion = occasion(&picture.syncs);
    // Names the time, because the imbalance at a sync counts capacities and the imbalance without syncs does not.
    let when = picture.syncs.last().map_or("now".into(), |sync| format!("{occasion} {}", sync.sync));
    let imbalance = picture
        .imbalance
        .map_or("imbalance -".into(), |imbalance| format!("imbalance {imbalance:.2} ({when})"));
    let seen = picture.ranks.len();
    let ranks = match usize::try_from(*ranks_total) {
        Ok(total) if total > seen => format!("{seen} of {total} ranks"),
        _ => plural(seen, "rank"),
    };
    let ranks = match picture.ranks_active.filter(|active| active < ranks_total) {
        Some(active) => format!("{ranks}, {active} active"),
        None => ranks,
    };
    if picture.shape == Shape::Pools {
        return format!("{lb}  {ranks}  {}  run {run_id}", progress(picture));
    }
    if picture.shape == Shape::Supersteps {
        return format!("{lb}  {ranks}  {}  run {run_id}", steps(picture));
    }
    let (syncs, moved) = (plural(syncs_total, occasion), plural(moved_total, "chunk"));
    format!("{lb}  {ranks}  {imbalance}  {syncs}  {moved} moved  run {run_id}")
}

/// Steps and divisions so far.
fn steps(picture: &Dashboard) -> String {
    let Some(steps) = &picture.steps else { return "steps: see the process of rank 0".into() };
    let StepsPanel { steps, steps_per_s, divisions, moved, copies, .. } = steps;
    let copies = if *copies > 1 { format!("  {copies} copies") } else { String::new() };
    let (steps, divisions) = (plural(steps, "step"), plural(divisions, "division"));
    format!("{steps}  {} steps/s  {divisions}  {} moved{copies}", short(*steps_per_s), plural(moved, "unit"))
}

/// Iterations that the shown ranks have executed, of all.
fn progress(picture: &Dashboard) -> String {
    let done = picture.iterations;
    match picture.iterations_total {
        Some(total) if total > 0 => {
            let percent = 100.0 * done as f64 / total as f64;
            format!("{done} of {total} iterations ({percent:.1} %)")
        }
        _ => plural(done, "iteration"),
    }
}

fn ranks(picture: &Dashboard) -> Table {
    let columns = columns(match picture.shape {
        Shape::Arrays => {
            "rank | worker | chunks_share: in chunks | runtime | lost | idle | vcpu_share: vCPU share | \
             steal | chunks | messages_per_s: messages/s | waiting_bytes: message B waiting | \
             waiting_bytes_max: at most | host"
        }
        Shape::Supersteps => {
            "rank | worker | chunks_share: in shares | runtime | lost | idle | vcpu_share: vCPU share | \
             steal | units | messages_per_s: messages/s | host"
        }
        Shape::Pools => {
            "rank | worker | chunks_share: in iterations | runtime | lost | idle | vcpu_share: vCPU share | \
             steal | iterations | messages_per_s: ranges/s | host"
        }
    });
    let mut table = Table::new("ranks", "", &columns);
    for rank in &picture.ranks {
        for (number, (worker, parts)) in rank.workers.iter().enumerate() {
            let Parts { chunks, runtime, lost, idle } = *parts;
            let own = [Cell::Count(u64::from(rank.rank)), Cell::Count(u64::from(*worker))];
            let shares = [chunks, runtime, lost, idle].map(Cell::Share);
            let mut of_rank = of_rank(rank, picture.shape);
            if number > 0 {
                // Figures of the rank stand only in the row of its first worker.
                of_rank.fill(Cell::Empty);
            }
            table.row(own.into_iter().chain(shares).chain(of_rank));
        }
    }
    table
}

/// Cells of the figures that belong to the rank and not to one worker, one per column.
fn of_rank(rank: &RankRow, shape: Shape) -> Vec<Cell> {
    let mut cells = vec![
        rank.vcpu_share.map_or(Cell::Empty, Cell::Share),
        rank.steal.map_or(Cell::Empty, Cell::Share),
        work(rank, shape).map_or(Cell::Empty, Cell::Count),
        Cell::Count(rank.messages_per_s.round() as u64),
    ];
    if shape == Shape::Arrays {
        cells.extend([rank.waiting_bytes, rank.waiting_bytes_max].map(Cell::Count));
    }
    cells.push(Cell::Text(rank.host.clone()));
    cells
}

/// Number of chunks or units of the rank, or of iterations that it has executed.
fn work(rank: &RankRow, shape: Shape) -> Option<u64> {
    match shape {
        Shape::Arrays => Some(rank.chunks),
        Shape::Supersteps => rank.units,
        Shape::Pools => Some(rank.iterations),
    }
}

fn syncs(picture: &Dashboard) -> Table {
    let columns = columns("sync | at | before: imbalance | predicted | moved | bytes | cost");
    let occasion = occasion(&picture.syncs);
    let heads = columns.into_iter().map(|(key, head)| (key, if key == "sync" { occasion } else { head }));
    let mut table = Table::new("syncs", "", &heads.collect::<Vec<_>>());
    for sync in &picture.syncs {
        table.row([
            Cell::Count(sync.sync),
            Cell::Ns(sync.at_ns as f64),
            Cell::Number(sync.imbalance_before),
            Cell::Number(sync.imbalance_predicted),
            Cell::Count(sync.moved),
            Cell::Bytes(sync.moved_bytes),
            Cell::Ns(sync.cost_ns as f64),
        ]);
    }
    table
}

fn kinds(picture: &Dashboard) -> Table {
    let columns =
        [("kind", "kind"), ("share", "of CPU"), ("cpu", "CPU"), ("calls", "calls"), ("longest", "longest")];
    let mut table = Table::new("kinds", "", &columns).text_rows(KINDS_MAX);
    for kind in &picture.kinds {
        table.row([
            Cell::Text(kind.name.clone()),
            Cell::Share(kind.share),
            Cell::Ns(kind.cpu_ns as f64),
            Cell::Count(kind.calls),
            Cell::Ns(kind.longest_ns as f64),
        ]);
    }
    table
}

/// Cells of a sync: number, time, imbalance before, imbalance predicted, chunks moved, cost, bytes moved.
pub(super) fn sync_words(sync: &SyncRow) -> [String; 7] {
    [
        sync.sync.to_string(),
        clock(sync.at_ns),
        format!("{:.2}", sync.imbalance_before),
        format!("{:.2}", sync.imbalance_predicted),
        sync.moved.to_string(),
        duration(sync.cost_ns as f64),
        bytes(sync.moved_bytes),
    ]
}

/// A time since the run began: `12.3 s`, `4:05`, `1:02:03`.
pub(super) fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{:.1} s", ns as f64 / 1e9),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// A number in at most five columns: `987`, `12.3k`, `4.56M`.
pub(super) fn short(number: f64) -> String {
    match number {
        _ if number < 999.5 => format!("{number:.0}"),
        _ if number < 9.995e3 => format!("{:.2}k", number / 1e3),
        _ if number < 99.95e3 => format!("{:.1}k", number / 1e3),
        _ if number < 999.5e3 => format!("{:.0}k", number / 1e3),
        _ if number < 9.995e6 => format!("{:.2}M", number / 1e6),
        _ if number < 99.95e6 => format!("{:.1}M", number / 1e6),
        _ if number < 999.5e6 => format!("{:.0}M", number / 1e6),
        _ => format!("{number:.0e}"),
    }
}
