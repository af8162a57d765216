//! Implements `caribou trace comm`: the traffic between ranks and between chunks.
//!
//! It counts messages with a recorded send. If only one send in N is recorded, it multiplies numbers and bytes by N and
//! marks them as estimates. Memory grows with the pairs of ranks and the messages in flight. The table of pairs of
//! chunks is bounded ([`Heaviest`](heaviest::Heaviest)).

mod drawing;
mod heaviest;
mod matrix;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use caribou::trace::{ChunkId, NameId, Shape, What};
use presentation::count_parser;
use trace_reader::Trace;

use self::heaviest::Heaviest;
use self::matrix::{Matrix, Volume};
use super::analysis::event_counts::arrays_recorded;
use super::analysis::events::{Events, Scope, no_events};
use super::analysis::messages::Matcher;
use super::open::{TracePart, warn};
use super::page::{Cell, Format, Page, Table, bytes, columns};
use crate::{Error, output};

/// Largest number of pairs of chunks that are counted at the same time.
const PAIRS_MAX: usize = 1 << 17;
/// Pairs of ranks in the text.
const PAIRS_IN_TEXT: usize = 12;

/// Options of the command.
#[derive(clap::Args)]
#[command(
    after_help = "Needs sends: CARIBOU_TRACE_FILTER. --rank chooses the senders. Memory: at most 131072 pairs of chunks are \
        counted at the same time; a note says if there were more."
)]
pub(crate) struct Options {
    #[command(flatten)]
    trace: TracePart,
    /// Pairs of chunks to show
    #[arg(long, value_name = "PAIRS", default_value_t = 10, value_parser = count_parser(0..=usize::MAX))]
    top: usize,
    /// Also the change over time, in this number of intervals of equal length
    #[arg(long, value_name = "STRETCHES", value_parser = count_parser(1..=10_000u32))]
    over_time: Option<u32>,
    /// Draw the matrix of ranks to this file; with --over-time, messages and bytes over time
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// The traffic counted.
struct Counted {
    matrix: Matrix,
    pairs: Heaviest,
    kinds: BTreeMap<NameId, Volume>,
    /// For each span of time, all messages and the messages to other ranks.
    stretches: Vec<(Volume, Volume)>,
    /// Messages without a recorded handler.
    unmatched: u64,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.trace.open()?;
    let mut page = Page::new("comm", &trace);
    if trace.events() == 0 {
        page.says.push(no_events(&trace));
        return Ok(page.write(options.format, out)?);
    }
    let counted = count(options, &trace);
    if counted.matrix.all().messages == 0.0 {
        page.says.push(match options.trace.selection.is_part() {
            _ if trace.run.shape == Shape::Pools && trace.run.ranks == 1 => {
                "a pool on one rank sends nothing: its workers call the policy under a lock".into()
            }
            true => "nothing was sent there, or sends were not recorded".into(),
            false if trace.run.arrows > 0 && !arrays_recorded(&trace).is_empty() => format!(
                "no sends were recorded: `{}` keeps those of chunks of {} alone",
                trace.run.filter,
                arrays_recorded(&trace).join(" and ")
            ),
            false => {
                "no sends were recorded: see CARIBOU_TRACE_FILTER; multicasts, broadcasts and results of reductions \
                 do not count as sends"
                    .into()
            }
        });
        page.tables.push(counted.matrix.pairs().data_only());
        return Ok(page.write(options.format, out)?);
    }
    page.says.extend(says(&trace, &counted.matrix));
    // `--csv` writes the first table.
    page.tables.push(counted.matrix.pairs().text_rows(PAIRS_IN_TEXT));
    page.tables.push(counted.matrix.senders(&trace));
    let [kinds, chunks] = [kinds(&trace, &counted), chunks(&trace, &counted, options.top)];
    // A pool has no messages of chunks.
    let has_chunks = trace.run.shape != Shape::Pools;
    page.tables.extend([kinds, chunks].map(|table| if has_chunks { table } else { table.data_only() }));
    if options.over_time.is_some() {
        page.tables.push(over_time(options, &trace, &counted));
    }
    page.notes.extend(notes(&trace, &counted));
    if let Some(file) = &options.svg {
        let window = options.trace.selection.window(&trace);
        let drawing = match options.over_time {
            Some(_) => drawing::over_time(&trace.run.run_id, window, &counted.stretches),
            None => counted.matrix.draw(&trace),
        };
        output::write(file, drawing.finish())?;
    }
    Ok(page.write(options.format, out)?)
}

fn count(options: &Options, trace: &Trace) -> Counted {
    let window = options.trace.selection.window(trace);
    let stretches = options.over_time.unwrap_or(0) as usize;
    let mut counted = Counted {
        matrix: Matrix::default(),
        pairs: Heaviest::new(PAIRS_MAX),
        kinds: BTreeMap::new(),
        stretches: vec![Default::default(); stretches],
        unmatched: 0,
    };
    let (mut matcher, weight) = (Matcher::default(), weight(trace));
    let mut events = Events::new(Scope::of(&trace.ranks, window));
    for (place, event) in &mut events {
        let from = place.rank.rank;
        let selected = options.trace.selection.has(from);
        match event.what {
            What::Send { chunk, to, rank, bytes, .. } if selected => {
                let volume = Volume::of(weight, bytes);
                counted.matrix.add(from, rank, volume);
                counted.pairs.add((chunk, to), (from, rank), volume);
                counted.over_time(
                    window.overlap_ns(0, event.end_ns),
                    window.length_ns(),
                    volume,
                    from != rank,
                );
            }
            What::PoolSend { rank } if selected => {
                let volume = Volume { messages: 1.0, bytes: 0.0 };
                counted.matrix.add(from, rank, volume);
                counted.over_time(
                    window.overlap_ns(0, event.end_ns),
                    window.length_ns(),
                    volume,
                    from != rank,
                );
            }
            _ => {}
        }
        if let Some(message) = matcher.see(place, &event).other()
            && options.trace.selection.has(message.sent.worker.rank)
        {
            counted.kinds.entry(message.begun.kind).or_default().add(Volume::of(weight, message.sent.bytes));
        }
    }
    counted.unmatched = matcher.unhandled();
    warn(&events.problems());
    counted
}

/// Number of messages that each recorded message represents.
fn weight(trace: &Trace) -> f64 {
    f64::from(trace.run.arrows.max(1))
}

impl Counted {
    fn over_time(&mut self, along_ns: u64, long_ns: u64, volume: Volume, remote: bool) {
        let stretches = self.stretches.len();
        let number = u128::from(along_ns) * stretches as u128 / u128::from(long_ns.max(1));
        let Some((all, away)) = self.stretches.get_mut((number as usize).min(stretches.saturating_sub(1)))
        else {
            return;
        };
        all.add(volume);
        if remote {
            away.add(volume);
        }
    }
}

fn says(trace: &Trace, matrix: &Matrix) -> Vec<String> {
    let all = matrix.all();
    let of = |part: Volume| {
        let share = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
        (share(part.messages, all.messages), share(part.bytes, all.bytes))
    };
    let ((rank, rank_bytes), (host, host_bytes)) = (of(matrix.local()), of(matrix.on_host(trace)));
    let about = if trace.run.arrows > 1 { "about " } else { "" };
    if trace.run.shape == Shape::Pools {
        let ends = trace.ranks.iter().filter_map(|rank| rank.end.as_ref());
        let sent = ends.fold(0u64, |sum, end| sum.saturating_add(end.messages));
        return vec![format!(
            "{:.0} messages of the policy, sent by workers (the policy sent {sent} in all); their bytes are not recorded",
            all.messages
        )];
    }
    vec![
        format!("{about}{:.0} messages of {}", all.messages, bytes(all.bytes as u64)),
        format!(
            "within a rank {rank:.1} % of them and {rank_bytes:.1} % of the bytes, within a host {host:.1} % and {host_bytes:.1} %"
        ),
    ]
}

fn kinds(trace: &Trace, counted: &Counted) -> Table {
    let columns = [("kind", "kind"), ("messages", "messages"), ("bytes", "bytes"), ("mean_bytes", "mean")];
    let mut table = Table::new("kinds", "", &columns).text_rows(PAIRS_IN_TEXT);
    let mut kinds: Vec<_> = counted.kinds.iter().collect();
    kinds.sort_by(|(a, one), (b, other)| {
        other.bytes.total_cmp(&one.bytes).then(other.messages.total_cmp(&one.messages)).then(a.cmp(b))
    });
    for (&kind, volume) in kinds {
        let mean = Cell::Bytes((volume.bytes / volume.messages.max(1.0)) as u64);
        let [messages, bytes] = volume.cells();
        table.row([Cell::Text(trace.name(kind)), messages, bytes, mean]);
    }
    table
}

fn chunks(trace: &Trace, counted: &Counted, top: usize) -> Table {
    let columns = columns(
        "from: from chunk | to: to chunk | from_rank: last on rank | to_rank: to rank | messages | bytes",
    );
    let mut table = Table::new("chunks", "", &columns);
    for ((from, to), (from_rank, to_rank), volume) in counted.pairs.top(top) {
        let name = |chunk: ChunkId| Cell::Text(trace.chunk_name(chunk));
        let [messages, bytes] = volume.cells();
        let [on, at] = [from_rank, to_rank].map(|rank| Cell::Count(rank.into()));
        table.row([name(from), name(to), on, at, messages, bytes]);
    }
    table
}

fn over_time(options: &Options, trace: &Trace, counted: &Counted) -> Table {
    let columns =
        columns("from_ns: from | messages | bytes | remote_messages: to other ranks | remote_bytes: bytes");
    let mut table = Table::new("over_time", "", &columns).text_rows(40);
    let window = options.trace.selection.window(trace);
    let stretch_ns = window.length_ns() as f64 / counted.stretches.len().max(1) as f64;
    for (number, (all, remote)) in counted.stretches.iter().enumerate() {
        let from = Cell::Ns(window.from_ns as f64 + number as f64 * stretch_ns);
        table.row([from].into_iter().chain(all.cells()).chain(remote.cells()));
    }
    table
}

fn notes(trace: &Trace, counted: &Counted) -> Vec<String> {
    let mut notes = Vec::new();
    if trace.run.arrows > 1 {
        let one_in = trace.run.arrows;
        notes.push(format!("one in {one_in} messages has its send recorded: messages and bytes are {one_in} times those, estimates"));
    }
    if counted.unmatched > 0 {
        notes.push(format!(
            "{} recorded messages have no handler in this trace or time range, so their kind is unknown",
            counted.unmatched
        ));
    }
    if counted.pairs.has_any() {
        notes.push(
            "last on rank, to rank: the ranks of sender and receiver at the last message of the pair".into(),
        );
    }
    notes.extend(counted.pairs.note());
    if counted.matrix.merged() {
        notes.push(format!("more than {} pairs of ranks: the rest is in the sums alone", matrix::PAIRS_MAX));
    }
    notes
}
