//! Implements `caribou trace utilisation`: shows when and on which ranks workers were not busy with the program.
//!
//! Idle time and lost time are always separate, because they have different cures. An idle worker needs work. A worker
//! that loses time needs another vCPU.

mod around;
mod drawing;
mod map;

use std::io::Write;
use std::path::PathBuf;

use caribou::trace::Shape;
use presentation::count_parser;
use trace_reader::Trace;

use self::map::{Map, Row};
use super::analysis::bins::{BINS_MAX, Bins};
use super::analysis::sync_effect::occasion_of;
use super::analysis::time_breakdown::{Parts, time_breakdown};
use super::open::{TracePart, warn};
use super::page::{Cell, Format, Page, Table, duration, plural};
use super::supersteps;
use crate::{Error, output};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    trace: TracePart,
    /// Bins to cut the time into
    #[arg(long, default_value_t = 60, value_parser = count_parser(1..=BINS_MAX as u16))]
    bins: u16,
    /// Order of ranks and workers: the least busy first, or by number
    #[arg(long, value_name = "ORDER", default_value = "busy")]
    sort: Sort,
    /// The part of the time that the map shows
    #[arg(long, value_name = "PART", default_value = "chunks")]
    part: Part,
    /// Each worker in the phases before and after the sync that moved most
    #[arg(long, conflicts_with_all = ["time", "part", "bins"])]
    before_after: bool,
    /// The same for this sync
    #[arg(long, value_name = "N", conflicts_with_all = ["time", "part", "bins"])]
    around_sync: Option<u64>,
    /// Draw the parts over time and maps of them, with lines at syncs; or the workers before and after a sync
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Busy,
    Rank,
}

/// A part of the time.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Handlers, or iterations
    Chunks,
    /// The runtime's own work
    Runtime,
    /// Nothing to do
    Idle,
    /// Time that was not CPU time within handlers: all that others took
    Lost,
}

impl Part {
    fn of(self, parts: &Parts) -> f64 {
        parts.share(match self {
            Part::Chunks => parts.chunks_ns,
            Part::Runtime => parts.runtime_ns,
            Part::Idle => parts.idle_ns,
            Part::Lost => parts.lost_ns,
        })
    }

    fn name(self, shape: Shape) -> &'static str {
        match self {
            Part::Chunks => busy(shape),
            Part::Runtime => "busy with the runtime",
            Part::Idle => "idle",
            Part::Lost => "lost to others",
        }
    }
}

/// Time in handlers or iterations, in words.
fn busy(shape: Shape) -> &'static str {
    match shape {
        Shape::Arrays | Shape::Supersteps => "busy with chunks",
        Shape::Pools => "busy with iterations",
    }
}

/// Ranks of the map in the text, besides the least and most busy rank.
const RANKS_IN_TEXT: usize = 10;

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.trace.open()?;
    if options.before_after || options.around_sync.is_some() {
        return around::run(&trace, options, out);
    }
    let bins = Bins::new(options.trace.selection.window(&trace), options.bins.into());
    let spent = time_breakdown(&trace, &options.trace.selection, bins);
    warn(&spent.problems);
    let mut map = Map::new(&trace, &spent, &options.trace.selection);
    if options.sort == Sort::Busy {
        map.rows.sort_by(|one, other| one.busy().total_cmp(&other.busy()).then(one.rank.cmp(&other.rank)));
    }
    if let Some(file) = &options.svg {
        output::write(file, drawing::svg(&trace, &map))?;
    }
    let mut page = page(&trace, &map, options);
    page.notes.push(spent.note());
    Ok(page.write(options.format, out)?)
}

fn page(trace: &Trace, map: &Map, options: &Options) -> Page {
    let mut page = Page::new("utilisation", trace);
    page.says.push(answer(map, trace.run.shape));
    page.says.extend(supersteps::dropped(trace));
    page.tables = vec![ranks(&map.rows), strips(map, options.part, trace), over_time(map), cells(map)];
    if !trace.steps.is_empty() {
        page.tables.push(supersteps::workers_table(trace));
        page.notes
            .push("computing, waiting and moving units are of all steps, whatever the time chosen".into());
        page.notes.extend(supersteps::for_vcpus(trace));
    }
    page.notes.push(
        "lost: wall time of handlers that was not CPU time; of it steal is sampled a rank, the rest measured a worker"
            .into(),
    );
    page
}

fn answer(map: &Map, shape: Shape) -> String {
    let parts = map.total.parts;
    let share = |ns: f64| format!("{:.1} %", 100.0 * parts.share(ns));
    let by_busy = |one: &&Row, other: &&Row| one.busy().total_cmp(&other.busy());
    let extremes = map.rows.iter().min_by(by_busy).zip(map.rows.iter().max_by(by_busy));
    let extremes = extremes.filter(|(least, most)| least.rank != most.rank).map(|(least, most)| {
        let (least_busy, most_busy) = (100.0 * least.busy(), 100.0 * most.busy());
        format!(
            "; rank {} least with {least_busy:.1} %, rank {} most with {most_busy:.1} %",
            least.rank, most.rank
        )
    });
    format!(
        "{} for {}: {} {}, runtime {}, idle {}, lost {}{}",
        plural(map.rows.len(), "rank"),
        duration(map.bins.window.length_ns() as f64),
        busy(shape),
        share(parts.chunks_ns),
        share(parts.runtime_ns),
        share(parts.idle_ns),
        share(parts.lost_ns),
        extremes.unwrap_or_default()
    )
}

/// Columns of the parts of time, common to several tables.
const PARTS: [(&str, &str); 6] = [
    ("chunks", "chunks"),
    ("runtime", "runtime"),
    ("idle", "idle"),
    ("lost_not_stolen", "lost, without steal"),
    ("steal", "steal"),
    ("rest", "unaccounted"),
];

fn shares(parts: &Parts, steal_ns: f64) -> [Cell; 6] {
    let not_stolen_ns = parts.lost_ns - steal_ns;
    [parts.chunks_ns, parts.runtime_ns, parts.idle_ns, not_stolen_ns, steal_ns, parts.rest_ns]
        .map(|ns| Cell::Share(parts.share(ns)))
}

fn ranks(rows: &[Row]) -> Table {
    let columns: Vec<_> = [("rank", "rank"), ("host", "host")].into_iter().chain(PARTS).collect();
    let mut table = Table::new("ranks", "", &columns).data_only();
    for row in rows {
        let named = [Cell::Count(row.rank.into()), Cell::text_of(&row.host)];
        table.row(named.into_iter().chain(shares(&row.total.parts, row.total.steal_ns)));
    }
    table
}

/// Table with a line of block characters per rank, and a line of syncs.
fn strips(map: &Map, part: Part, trace: &Trace) -> Table {
    let shape = trace.run.shape;
    let each = map.bins.window.length_ns() as f64 / map.bins.count as f64;
    let syncs = match shape {
        Shape::Arrays => format!(", ^ {}s", occasion_of(trace)),
        Shape::Supersteps => ", ^ new divisions".into(),
        Shape::Pools => String::new(),
    };
    let head = |(key, head)| match shape {
        Shape::Pools if key == "chunks" => (key, "iterations"),
        _ => (key, head),
    };
    let title = format!(
        "{}: {} bins of {}, from blank for 0 % of a bin to █ for 100 %{syncs}",
        part.name(shape),
        map.bins.count,
        duration(each)
    );
    let columns: Vec<_> =
        [("rank", "rank")].into_iter().chain(PARTS.map(head)).chain([("over_time", "over time")]).collect();
    let mut table = Table::new("map", title, &columns);
    let strip = |bins: &[map::Cut]| bins.iter().map(|cut| block(part.of(&cut.parts))).collect::<String>();
    let mut row = |name: Cell, whole: &map::Cut, bins: &[map::Cut]| {
        let shares = shares(&whole.parts, whole.steal_ns);
        let over_time = Cell::Text(format!("|{}|", strip(bins)));
        table.row([name].into_iter().chain(shares).chain([over_time]));
    };
    row(Cell::text_of("all"), &map.total, &map.all);
    for shown in shown(map) {
        row(Cell::Count(shown.rank.into()), &shown.total, &shown.bins);
    }
    let marks: String =
        (0..map.bins.count).map(|bin| if map.syncs.contains(&bin) { '^' } else { ' ' }).collect();
    if !map.syncs.is_empty() {
        let empty = PARTS.map(|_| Cell::Text(String::new()));
        let marks = Cell::Text(format!(" {marks}"));
        table.row([Cell::text_of("")].into_iter().chain(empty).chain([marks]));
    }
    table
}

/// All ranks if there are few. Otherwise ranks at even distances, and the least and most busy rank.
fn shown(map: &Map) -> Vec<&Row> {
    let count = map.rows.len();
    if count <= RANKS_IN_TEXT + 2 {
        return map.rows.iter().collect();
    }
    let busy = |place: &usize| map.rows[*place].busy();
    let by_busy = |one: &usize, other: &usize| busy(one).total_cmp(&busy(other));
    let even = (0..RANKS_IN_TEXT).map(|number| number * (count - 1) / (RANKS_IN_TEXT - 1));
    let extremes = [(0..count).min_by(by_busy), (0..count).max_by(by_busy)];
    let mut places: Vec<usize> = even.chain(extremes.into_iter().flatten()).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|place| &map.rows[place]).collect()
}

/// A block character that is higher for a larger share.
fn block(share: f64) -> char {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    BLOCKS[(share.clamp(0.0, 1.0) * 8.0).round() as usize]
}

fn over_time(map: &Map) -> Table {
    let columns: Vec<_> = [("from_ns", "from"), ("to_ns", "to")].into_iter().chain(PARTS).collect();
    let mut table = Table::new("bins", "", &columns).data_only();
    for (bin, cut) in map.all.iter().enumerate() {
        let window = map.bins.bin(bin);
        let times = [window.from_ns, window.to_ns].map(|ns| Cell::Ns(ns as f64));
        table.row(times.into_iter().chain(shares(&cut.parts, cut.steal_ns)));
    }
    table
}

fn cells(map: &Map) -> Table {
    let columns: Vec<_> = [("rank", "rank"), ("from_ns", "from")].into_iter().chain(PARTS).collect();
    let mut table = Table::new("cells", "", &columns).data_only();
    for row in &map.rows {
        for (bin, cut) in row.bins.iter().enumerate() {
            let named = [Cell::Count(row.rank.into()), Cell::Ns(map.bins.edge_ns(bin) as f64)];
            table.row(named.into_iter().chain(shares(&cut.parts, cut.steal_ns)));
        }
    }
    table
}
