//! Implements `caribou trace chunks`: lists chunks by load, variation of load, moves or size.
//!
//! It reads all events once in order of time, and its memory grows with the number of chunks. The load of a chunk is
//! what the strategy used ([`What::Load`]), or its CPU time if it came to no sync.

mod history;
mod map;
mod one;
mod pool;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use caribou::trace::{ChunkId, Shape, What};
use clap::ValueEnum;
use presentation::count_parser;
use trace_reader::Trace;

use self::history::{Detail, History};
use super::analysis::events::{Events, Scope, no_events};
use super::open::{TracePart, warn};
use super::page::{Cell, Format, Page, Table, columns, duration, plural};
use crate::{Error, output};

/// A chunk with more than this fraction of its CPU time in short executions is too small.
const IN_SMALL_MAX: f64 = 0.5;
/// Ratio of wall to CPU time above which a chunk gets the flag.
const FAR_ABOVE: f64 = 1.5;
/// Ranks listed in a row.
const RANKS_NAMED: usize = 6;

/// Options of the command.
#[derive(clap::Args)]
#[command(after_help = "Flags are explained under the table.\nMemory: some hundred bytes a chunk.")]
pub(crate) struct Options {
    #[command(flatten)]
    trace: TracePart,
    /// Order of the chunks
    #[arg(long, value_enum, default_value_t = Order::Load)]
    sort: Order,
    /// Chunks to show
    #[arg(long, value_name = "CHUNKS", default_value_t = 20, value_parser = count_parser(0..=usize::MAX))]
    top: usize,
    /// One chunk in all its phases, such as Block[3]
    #[arg(long, value_name = "NAME")]
    index: Option<String>,
    /// Draw the indices to this file, coloured by load and by rank
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// Explanations of flags, for the user.
const FLAGS: [(&str, &str); 4] = [
    ("too big", "heavier than the average rank, so that nothing can balance it"),
    ("too small", "most of its CPU time is in executions of less than 20 us"),
    ("ping-pong", "back on a rank that it left up to 3 phases before"),
    ("wall far above CPU", "its handlers take more than 1.5 times their CPU time"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    /// The heaviest first
    Load,
    /// The least steady first: standard deviation over mean of the load of its phases
    Cv,
    /// Those that moved most first
    Moves,
    /// The largest state first
    Size,
}

/// Figures of all chunks.
#[derive(Default)]
struct Chunks {
    histories: BTreeMap<ChunkId, History>,
    detail: Option<(ChunkId, Detail)>,
    ranks: usize,
    /// Number of syncs with a load.
    phases: u64,
    /// Whether chunks are shares of units, which a new division can make smaller.
    divisible: bool,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.trace.open()?;
    let mut page = Page::new("chunks", &trace);
    if trace.events() == 0 {
        page.says.push(no_events(&trace));
        return Ok(page.write(options.format, out)?);
    }
    match trace.run.shape {
        Shape::Arrays | Shape::Supersteps => tell(options, &trace, &mut page)?,
        Shape::Pools => pool::tell(&trace, &options.trace.selection, &mut page),
    }
    Ok(page.write(options.format, out)?)
}

fn tell(options: &Options, trace: &Trace, page: &mut Page) -> Result<(), Error> {
    let chunks = Chunks::read(options, trace)?;
    if chunks.histories.is_empty() {
        page.says.push("no handlers or loads of chunks were recorded: see CARIBOU_TRACE_FILTER".into());
        return Ok(());
    }
    match &chunks.detail {
        Some((chunk, detail)) => chunks.tell_one(trace, *chunk, detail, page),
        None => chunks.tell_all(options, trace, page),
    }
    page.notes.extend(chunks.loads_are());
    if let Some(file) = &options.svg {
        let (drawing, notes) =
            map::draw(trace, chunks.histories.iter().map(|(&chunk, history)| (chunk, history)));
        output::write(file, drawing.finish())?;
        page.notes.extend(notes);
    }
    Ok(())
}

impl Chunks {
    fn read(options: &Options, trace: &Trace) -> Result<Chunks, Error> {
        let (ranks, divisible) =
            (options.trace.selection.ranks(trace).count(), trace.run.shape == Shape::Supersteps);
        let mut chunks = Chunks { ranks, divisible, ..Chunks::default() };
        let mut asked_for = Vec::new();
        let mut events = Events::new(Scope::selected(trace, &options.trace.selection));
        // Counts syncs along with the events, both in order of time: rank 0 need not be among the selected ranks.
        let mut syncs = trace.syncs.iter().peekable();
        let mut phase = 0;
        for (place, event) in &mut events {
            while let Some(sync) = syncs.next_if(|sync| sync.at_ns <= event.end_ns) {
                phase = sync.sync.saturating_add(1);
            }
            let Some(chunk) = chunk_of(&event.what) else { continue };
            let history = chunks.histories.entry(chunk).or_insert_with(|| {
                if options.index.as_deref().is_some_and(|name| is_called(trace, chunk, name)) {
                    asked_for.push(chunk);
                }
                History::default()
            });
            let asked = asked_for.first() == Some(&chunk);
            let detail =
                asked.then(|| &mut chunks.detail.get_or_insert_with(|| (chunk, Detail::default())).1);
            history.is_in(phase);
            history.see(place.rank.rank, &event, detail);
        }
        chunks.phases = chunks.histories.values().map(History::phases).max().unwrap_or(0);
        warn(&events.problems());
        match (&options.index, asked_for.len()) {
            (None, _) | (Some(_), 1) => Ok(chunks),
            (Some(name), 0) => {
                let mut arrays: Vec<&str> = trace.arrays.iter().map(String::as_str).collect();
                arrays.dedup();
                let known = match arrays.len() {
                    0 => String::new(),
                    _ => format!("; the arrays of this run: {}", arrays.join(", ")),
                };
                Err(Error::Usage(format!(
                    "--index {name}: nothing is recorded of a chunk of this name{known}"
                )))
            }
            (Some(name), several) => {
                Err(Error::Usage(format!("--index {name}: {several} chunks have this name, choose one")))
            }
        }
    }

    /// Notes that explain loads, where they differ from the time of handlers.
    fn loads_are(&self) -> Vec<String> {
        if self.phases == 0 {
            return vec!["there was no sync: loads are CPU time, and sizes are not known".into()];
        }
        let mut notes = Vec::new();
        let (at_syncs, others): (Vec<&History>, Vec<&History>) =
            self.histories.values().partition(|history| history.phases() > 0);
        let sum_ns = |of: fn(&History) -> f64| at_syncs.iter().map(|history| of(history)).sum::<f64>();
        let (load_ns, cpu_ns) = (sum_ns(History::load_ns), sum_ns(|history| history.cpu_ns));
        if cpu_ns > 1.02 * load_ns {
            let (load, cpu) = (duration(load_ns), duration(cpu_ns));
            notes.push(format!(
                "loads are those at syncs, {load}, while handlers took {cpu}: loads do not include the time after the \
                 last sync"
            ));
        }
        if !others.is_empty() {
            let chunks = plural(others.len(), "chunk");
            notes.push(format!("{chunks} came to no sync: their loads are the CPU time of their handlers"));
        }
        notes
    }

    /// The average load of a rank in a phase, in ns.
    fn rank_ns(&self) -> f64 {
        let sum: f64 = self.histories.values().map(|history| history.load_ns()).sum();
        sum / self.ranks.max(1) as f64 / self.phases.max(1) as f64
    }

    fn flags(&self, history: &History, rank_ns: f64) -> Vec<&'static str> {
        let phases = if history.phases() > 0 { history.phases() } else { self.phases.max(1) };
        let load_ns = history.load_ns() / phases as f64;
        let ran = history.executions > 0;
        let flags = [
            ("too big", self.ranks > 1 && !self.divisible && load_ns > rank_ns),
            ("too small", ran && history.small_ns > IN_SMALL_MAX * history.cpu_ns),
            ("ping-pong", history.returns > 0),
            ("wall far above CPU", ran && history.wall_ns > FAR_ABOVE * history.cpu_ns),
        ];
        flags.into_iter().filter_map(|(name, is)| is.then_some(name)).collect()
    }

    fn tell_all(&self, options: &Options, trace: &Trace, page: &mut Page) {
        let rank_ns = self.rank_ns();
        let mut flagged: BTreeMap<&str, u64> = BTreeMap::new();
        for history in self.histories.values() {
            self.flags(history, rank_ns).into_iter().for_each(|flag| *flagged.entry(flag).or_default() += 1);
        }
        let moves: u64 = self.histories.values().map(|history| history.moves).sum();
        let (count, phases) = (self.histories.len(), self.phases);
        let counts =
            [(count, "chunk"), (self.ranks, "rank"), (phases as usize, "phase"), (moves as usize, "move")];
        let [chunks, ranks, phases, moves] = counts.map(|(count, word)| plural(count, word));
        let never = self.histories.values().filter(|history| history.phases() == 0).count();
        let at_syncs = match self.phases > 0 && never > 0 {
            true => format!(" ({} came to a sync, {never} to none)", count - never),
            false => String::new(),
        };
        page.says.push(format!("{chunks}{at_syncs} on {ranks}, {phases}, {moves}"));
        let all = |count: u64| if count == self.histories.len() as u64 && count > 1 { "all " } else { "" };
        let word = |(flag, &count): (&&str, &u64)| format!("{}{count} {flag}", all(count));
        let words: Vec<String> = flagged.iter().map(word).collect();
        page.says.push(if words.is_empty() { "none has a flag".into() } else { words.join(", ") });
        let each = if self.phases > 0 { " a phase" } else { "" };
        page.says.push(format!("an average rank has a load of {}{each}", duration(rank_ns)));
        let mut sorted: Vec<(&ChunkId, &History)> = self.histories.iter().collect();
        let key = |history: &History| match options.sort {
            Order::Load => history.load_ns(),
            Order::Cv => history.variation(),
            Order::Moves => history.moves as f64,
            Order::Size => history.bytes as f64,
        };
        sorted.sort_by(|(a, one), (b, other)| key(other).total_cmp(&key(one)).then(a.cmp(b)));
        let columns = columns(
            "chunk | load_ns: load | load_share: of all | phase_ns: a phase | cv | moves | ranks | \
             executions: runs | mean_ns: mean | wall_over_cpu: wall/CPU | bytes: size | flags",
        );
        let mut table = Table::new("chunks", "", &columns);
        let all_ns: f64 = self.histories.values().map(|history| history.load_ns()).sum();
        for &(&chunk, history) in sorted.iter().take(options.top) {
            let load_ns = history.load_ns();
            table.row([
                Cell::Text(trace.chunk_name(chunk)),
                Cell::Ns(load_ns),
                Cell::Share(if all_ns > 0.0 { load_ns / all_ns } else { 0.0 }),
                if history.phases() > 0 { Cell::Ns(history.mean_ns()) } else { Cell::Empty },
                if history.phases() > 1 { Cell::Number(history.variation()) } else { Cell::Empty },
                Cell::Count(history.moves),
                Cell::Text(ranks_named(&history.visited)),
                Cell::Count(history.executions),
                if history.executions > 0 {
                    Cell::Ns(history.cpu_ns / history.executions as f64)
                } else {
                    Cell::Empty
                },
                if history.cpu_ns > 0.0 {
                    Cell::Number(history.wall_ns / history.cpu_ns)
                } else {
                    Cell::Empty
                },
                // Chunks are measured at syncs, and when they move.
                if history.phases() + history.moves > 0 { Cell::Bytes(history.bytes) } else { Cell::Empty },
                Cell::Text(self.flags(history, rank_ns).join(", ")),
            ]);
        }
        page.tables.push(table);
        let known = FLAGS.iter().filter(|(flag, _)| flagged.contains_key(flag));
        let known: Vec<String> = known.map(|(flag, what)| format!("{flag}: {what}")).collect();
        if !known.is_empty() {
            page.notes.push(known.join("; "));
        }
        let left = count.saturating_sub(options.top);
        if left > 0 {
            page.notes.push(format!("{left} more chunks: --top shows them"));
        }
    }
}

fn chunk_of(what: &What) -> Option<ChunkId> {
    match *what {
        What::Handler { chunk, .. }
        | What::Load { chunk, .. }
        | What::Arrive { chunk, .. }
        | What::Depart { chunk, .. } => Some(chunk),
        _ => None,
    }
}

/// Lists ranks in the order in which a chunk came to them.
fn ranks_named(ranks: &[u32]) -> String {
    let named: Vec<String> = ranks.iter().take(RANKS_NAMED).map(u32::to_string).collect();
    match ranks.len().checked_sub(RANKS_NAMED).filter(|&more| more > 0) {
        Some(more) => format!("{} and {more} more", named.join(" ")),
        None => named.join(" "),
    }
}

/// Returns whether `name` names this chunk (`Block[3]`, `Block[3, 4]`) or its array (`Block`).
pub(super) fn is_called(trace: &Trace, chunk: ChunkId, name: &str) -> bool {
    let plain = plain(name);
    plain == self::plain(&trace.chunk_name(chunk)) || plain == trace.array_name(chunk.array)
}

/// A name without blanks and double brackets, because an index is printed as `Block[[3, 4]]` or `Block[(3, 4)]`.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for letter in name.chars().filter(|letter| !letter.is_whitespace()) {
        let letter = match letter {
            '(' => '[',
            ')' => ']',
            other => other,
        };
        if !(matches!(letter, '[' | ']') && plain.ends_with(letter)) {
            plain.push(letter);
        }
    }
    plain
}
