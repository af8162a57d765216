//! Implements `caribou trace profile`: prints the time of all workers by message kind and state. Rows add up to the
//! wall time of all workers. Samples of the ranks determine the causes of time lost within handlers.

pub(super) mod drawing;
mod user;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use caribou::trace::{Activity, Part as SyncPart, Shape};
use presentation::count_parser;
use trace_reader::Trace;

use super::analysis::bins::{BINS_MAX, Bins};
use super::analysis::lost_time::LostTime;
use super::analysis::time_breakdown::{Line, Parts, TimeBreakdown, time_breakdown};
use super::open::{TracePart, warn};
use super::page::{Cell, Format, Page, Table, columns, duration};
use super::select::Selection;
use crate::{Error, output};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    trace: TracePart,
    /// A row a rank, and of each rank every kind
    #[arg(long, value_name = "WHAT")]
    by: Option<GroupBy>,
    /// Also cut the time into this number of bins
    #[arg(long, value_name = "BINS", value_parser = count_parser(1..=BINS_MAX as u16))]
    over_time: Option<u16>,
    /// The spans, marks and counters that the program itself named
    #[arg(long, conflicts_with_all = ["by", "over_time", "svg"])]
    user: bool,
    /// Draw a bar a rank, the average first; with --over-time, areas over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// The unit of a row.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum GroupBy {
    Rank,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.trace.open()?;
    if options.user {
        let (page, problems) = user::page(&trace, &options.trace.selection);
        warn(&problems);
        return Ok(page.write(options.format, out)?);
    }
    let window = options.trace.selection.window(&trace);
    let bins = Bins::new(window, options.over_time.map_or(1, usize::from));
    let spent = time_breakdown(&trace, &options.trace.selection, bins);
    warn(&spent.problems);
    if let Some(file) = &options.svg {
        let over_time = options.over_time.is_some();
        output::write(
            file,
            &if over_time { drawing::areas(&trace, &spent) } else { drawing::bars(&trace, &spent) },
        )?;
    }
    Ok(page(&trace, &spent, options).write(options.format, out)?)
}

fn page(trace: &Trace, spent: &TimeBreakdown, options: &Options) -> Page {
    let mut page = Page::new("profile", trace);
    page.says.push(answer(trace.run.shape, spent));
    if options.over_time.is_some() {
        page.tables.push(over_time(trace.run.shape, spent));
    }
    if options.by.is_some() {
        page.tables.push(by_rank(trace, spent));
    }
    page.tables.push(kinds(trace, spent, &options.trace.selection));
    if options.by.is_some() {
        page.tables.push(kinds_by_rank(trace, spent));
    }
    page.notes
        .push("time, mean and longest of kinds are CPU time: what handlers lost is a line of its own".into());
    let for_syncs = [SyncPart::Measure, SyncPart::Decide, SyncPart::Migrate].map(Activity::Runtime);
    if spent.total().keys().any(|activity| for_syncs.contains(activity)) {
        let is_pool = trace.run.shape == Shape::Pools;
        page.notes.push(if is_pool { OF_POLICY } else { FOR_SYNCS }.into());
    }
    page.notes.push(spent.note());
    page
}

/// Explanation of the runtime's activities for syncs, for the user.
const FOR_SYNCS: &str = "measure, decide and migrate: wall time of workers for syncs, which includes waiting; the strategy's \
    own time is in `lb`";

/// Explanation of the same of a pool.
const OF_POLICY: &str = "decide: wall time of workers in the policy of the pool, with waits for its lock";

/// The word for time in handlers or iterations.
fn busy(shape: Shape) -> &'static str {
    match shape {
        Shape::Arrays | Shape::Supersteps => "chunks",
        Shape::Pools => "iterations",
    }
}

/// Sets the head of the column `chunks`.
fn with_busy(shape: Shape, columns: Vec<(&'static str, &'static str)>) -> Vec<(&'static str, &'static str)> {
    let head = |(key, head)| (key, if key == "chunks" { busy(shape) } else { head });
    columns.into_iter().map(head).collect()
}

/// Describes the time of all workers in one line.
fn answer(shape: Shape, spent: &TimeBreakdown) -> String {
    let parts = spent.parts();
    let share = |ns: f64| format!("{:.1} %", 100.0 * parts.share(ns));
    format!(
        "worker-time {}: {} {}, runtime {}, idle {}, lost {}, unaccounted {}",
        duration(parts.wall_ns),
        busy(shape),
        share(parts.chunks_ns),
        share(parts.runtime_ns),
        share(parts.idle_ns),
        share(parts.lost_ns),
        share(parts.rest_ns)
    )
}

/// Table of kinds, the largest first, then activities of the runtime, then idle and lost time.
fn kinds(trace: &Trace, spent: &TimeBreakdown, selection: &Selection) -> Table {
    let parts = spent.parts();
    let total = spent.total();
    let columns =
        columns("activity | part | time_ns: time | share | calls | mean_ns: mean | longest_ns: longest");
    let mut table = Table::new("activities", "", &columns);
    for (activity, line) in in_order(&total) {
        if activity != Activity::Lost {
            let named = [trace.activity_name(activity), part(activity).into()].map(Cell::Text);
            table.row(named.into_iter().chain(cells(line, &parts)));
        }
    }
    let taken = LostTime::of_selection(trace, spent, selection);
    let named = [
        ("waiting for the vCPU", taken.wait_ns),
        ("throttled by a quota", taken.throttled_ns),
        ("steal", taken.steal_ns),
        ("lost, unexplained", taken.unexplained_ns),
    ];
    let lost = named.map(|(name, ns)| (name, "lost", ns));
    for (name, part, ns) in lost.into_iter().chain([("unaccounted", "rest", parts.rest_ns)]) {
        if ns > 0.0 {
            let mut row =
                vec![Cell::text_of(name), Cell::text_of(part), Cell::Ns(ns), Cell::Share(parts.share(ns))];
            row.resize(columns.len(), Cell::Empty);
            table.row(row);
        }
    }
    table
}

/// The cells of a row after name and part.
pub(crate) fn cells(line: &Line, parts: &Parts) -> [Cell; 5] {
    let calls = line.calls.round();
    [
        Cell::Ns(line.total_ns),
        Cell::Share(parts.share(line.total_ns)),
        Cell::Count(calls as u64),
        if calls > 0.0 { Cell::Ns(line.total_ns / line.calls) } else { Cell::Empty },
        Cell::Ns(line.longest_ns as f64),
    ]
}

/// The part of the time to which an activity belongs.
fn part(activity: Activity) -> &'static str {
    match activity {
        Activity::Kind(_) => "chunks",
        Activity::Iterations => "iterations",
        Activity::Runtime(_) => "runtime",
        Activity::Idle => "idle",
        Activity::Lost => "lost",
    }
}

/// Sorts activities by part: chunks, runtime, idle, lost. Within a part the largest is first.
pub(crate) fn in_order(total: &BTreeMap<Activity, Line>) -> Vec<(Activity, &Line)> {
    let place = |activity: Activity| {
        ["chunks", "iterations", "runtime", "idle", "lost"].iter().position(|&it| it == part(activity))
    };
    let there = |line: &Line| line.total_ns > 0.0 || line.calls > 0.0;
    let lines = total.iter().filter(|(_, line)| there(line));
    let mut lines: Vec<(Activity, &Line)> = lines.map(|(&activity, line)| (activity, line)).collect();
    lines.sort_by(|(one, one_line), (other, other_line)| {
        place(*one).cmp(&place(*other)).then(other_line.total_ns.total_cmp(&one_line.total_ns))
    });
    lines
}

fn by_rank(trace: &Trace, spent: &TimeBreakdown) -> Table {
    let columns =
        columns("rank | host | worker_ns: worker-time | chunks | runtime | idle | lost | rest: unaccounted");
    let columns = with_busy(trace.run.shape, columns);
    let mut table = Table::new("ranks", "by rank", &columns).text_rows(33);
    let row = |rank: Cell, host: Cell, parts: &Parts| {
        let shares = [parts.chunks_ns, parts.runtime_ns, parts.idle_ns, parts.lost_ns, parts.rest_ns];
        let mut row = vec![rank, host, Cell::Ns(parts.wall_ns)];
        row.extend(shares.map(|ns| Cell::Share(parts.share(ns))));
        row
    };
    let ranks = spent.by_rank();
    let mut average = spent.parts();
    average.divide(ranks.len() as f64);
    table.row(row(Cell::text_of("average"), Cell::Empty, &average));
    for (number, parts) in &ranks {
        let host = trace.ranks.iter().find(|rank| rank.rank == *number).map_or("", |rank| &rank.host);
        table.row(row(Cell::Count(u64::from(*number)), Cell::text_of(host), parts));
    }
    table
}

fn kinds_by_rank(trace: &Trace, spent: &TimeBreakdown) -> Table {
    let columns =
        columns("rank | activity | time_ns: time | share | calls | mean_ns: mean | longest_ns: longest");
    let mut table = Table::new("activities_by_rank", "activities by rank", &columns).text_rows(40);
    for (rank, (lines, parts)) in ranks(spent) {
        for (activity, line) in in_order(&lines) {
            let named = [Cell::Count(rank.into()), Cell::Text(trace.activity_name(activity))];
            table.row(named.into_iter().chain(cells(line, &parts)));
        }
    }
    table
}

/// Sums by activity and by part of time, for each rank.
fn ranks(spent: &TimeBreakdown) -> BTreeMap<u32, (BTreeMap<Activity, Line>, Parts)> {
    let mut ranks = BTreeMap::<u32, (BTreeMap<Activity, Line>, Parts)>::new();
    for worker in &spent.workers {
        let (lines, parts) = ranks.entry(worker.rank).or_default();
        worker.add_to(lines);
        *parts += worker.parts(&spent.bins);
    }
    ranks
}

fn over_time(shape: Shape, spent: &TimeBreakdown) -> Table {
    let columns = columns("from_ns: from | to_ns: to | chunks | runtime | idle | lost | rest: unaccounted");
    let columns = with_busy(shape, columns);
    let mut table = Table::new("bins", "over time", &columns).text_rows(40);
    for bin in 0..spent.bins.count {
        let window = spent.bins.bin(bin);
        let parts = spent.parts_in(bin);
        let shares = [parts.chunks_ns, parts.runtime_ns, parts.idle_ns, parts.lost_ns, parts.rest_ns];
        let mut row = vec![Cell::Ns(window.from_ns as f64), Cell::Ns(window.to_ns as f64)];
        row.extend(shares.map(|ns| Cell::Share(parts.share(ns))));
        table.row(row);
    }
    table
}
