//! Writes each event as a line: a log for people, or CSV for scripts. Events are in order of the trace, by worker.

use std::io::{self, Write};

use caribou::trace::{ChunkId, Event, What};
use trace_reader::{RankTrace, Trace};

use crate::output::csv_error;
use crate::trace::analysis::events::{Observer, Scope, WorkerRef, by_worker};
use crate::trace::open::warn;
use crate::trace::page::{bytes, duration};
use crate::trace::select::Selection;

/// Column heads.
const HEADS: [&str; 13] = [
    "rank", "worker", "begin_ns", "end_ns", "event", "name", "chunk", "other", "number", "to_rank", "bytes",
    "value", "lost_ns",
];

/// Columns of an event; empty where they do not apply.
#[derive(Default)]
struct EventRow {
    event: &'static str,
    name: String,
    chunk: String,
    /// The sender or the receiver of the message.
    other: String,
    number: Option<u64>,
    to_rank: Option<u32>,
    bytes: Option<u64>,
    value: Option<f64>,
    lost_ns: Option<u64>,
}

/// Writes all selected events.
pub(super) fn export(
    trace: &Trace,
    selection: &Selection,
    as_csv: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let form = if as_csv { Form::values(out)? } else { Form::Lines(out) };
    let mut listing = Listing { trace, form, written: Ok(()) };
    warn(&by_worker(&Scope::selected(trace, selection), &mut [&mut listing]));
    listing.written.and_then(|()| listing.form.finish())
}

/// The output format.
enum Form<'o> {
    Lines(&'o mut dyn Write),
    Values(Box<csv::Writer<&'o mut dyn Write>>),
}

impl<'o> Form<'o> {
    fn values(out: &'o mut dyn Write) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(HEADS).map_err(csv_error)?;
        Ok(Self::Values(Box::new(csv)))
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Lines(_) => Ok(()),
            Self::Values(mut csv) => csv.flush(),
        }
    }
}

/// Writes events until an error occurs.
struct Listing<'o> {
    trace: &'o Trace,
    form: Form<'o>,
    written: io::Result<()>,
}

impl Observer<'_> for Listing<'_> {
    fn see(&mut self, WorkerRef { rank, worker }: WorkerRef<'_>, event: &Event) {
        if self.written.is_err() {
            return;
        }
        let said = said(self.trace, event);
        self.written = match &mut self.form {
            Form::Lines(out) => line(rank, worker, event, &said, out),
            Form::Values(csv) => values(rank, worker, event, &said, csv),
        };
    }
}

fn values<W: Write>(
    rank: &RankTrace,
    worker: u32,
    event: &Event,
    said: &EventRow,
    csv: &mut csv::Writer<W>,
) -> io::Result<()> {
    let EventRow { event: what, name, chunk, other, number, to_rank, bytes, value, lost_ns } = said;
    let value = value.map(|value| value.to_string());
    let who = (rank.rank, worker, event.begin_ns, event.end_ns, what);
    csv.serialize((who, name, chunk, other, number, to_rank, bytes, value, lost_ns)).map_err(csv_error)
}

fn line(
    rank: &RankTrace,
    worker: u32,
    event: &Event,
    said: &EventRow,
    out: &mut dyn Write,
) -> io::Result<()> {
    let at_us = format!("{}.{:03}", event.begin_ns / 1000, event.begin_ns % 1000);
    write!(out, "{:>3}.{worker} {at_us:>16} us", rank.rank)?;
    match event.duration_ns() {
        0 => write!(out, " {:>10}", "")?,
        long_ns => write!(out, " {:>10}", duration(long_ns as f64))?,
    }
    write!(out, "  {:<10}", said.event)?;
    for word in [&said.name, &said.chunk].into_iter().filter(|word| !word.is_empty()) {
        write!(out, " {}", one_line(word))?;
    }
    match said.event {
        "handler" if !said.other.is_empty() => write!(out, " from {}", one_line(&said.other))?,
        _ if !said.other.is_empty() => write!(out, " to {}", one_line(&said.other))?,
        _ => {}
    }
    if let Some(to_rank) = said.to_rank {
        write!(out, " on rank {to_rank}")?;
    }
    if let Some(number) = said.number {
        write!(out, " #{number}")?;
    }
    if let Some(size) = said.bytes {
        write!(out, ", {}", bytes(size))?;
    }
    if let Some(value) = said.value {
        write!(out, " = {value}")?;
    }
    if let Some(lost_ns) = said.lost_ns.filter(|&ns| ns > 0) {
        write!(out, ", lost {}", duration(lost_ns as f64))?;
    }
    writeln!(out)
}

fn said(trace: &Trace, event: &Event) -> EventRow {
    let chunk = |chunk: ChunkId| trace.chunk_name(chunk);
    let of = |event: &'static str, who: ChunkId| EventRow { event, chunk: chunk(who), ..EventRow::default() };
    match event.what {
        What::Handler { chunk: who, kind, from, number, lost_ns } => EventRow {
            name: trace.name(kind),
            other: chunk(from),
            number: Some(u64::from(number)),
            lost_ns: Some(lost_ns),
            ..of("handler", who)
        },
        What::Send { chunk: who, to, rank, number, bytes } => EventRow {
            other: chunk(to),
            to_rank: Some(rank),
            number: Some(u64::from(number)),
            bytes: Some(bytes),
            ..of("send", who)
        },
        What::Idle => EventRow { event: "idle", ..EventRow::default() },
        What::Runtime { part, sync } => {
            EventRow { event: "runtime", name: part.name().into(), number: Some(sync), ..EventRow::default() }
        }
        What::Depart { chunk: who, rank, bytes } => {
            EventRow { to_rank: Some(rank), bytes: Some(bytes), ..of("depart", who) }
        }
        What::Arrive { chunk: who, bytes } => EventRow { bytes: Some(bytes), ..of("arrive", who) },
        What::Contribute { chunk: who, number } => EventRow { number: Some(number), ..of("contribute", who) },
        What::Load { chunk: who, sync, load_ns, bytes } => EventRow {
            number: Some(sync),
            bytes: Some(bytes),
            value: Some(load_ns as f64),
            ..of("load", who)
        },
        What::Mark { chunk: who, name } => EventRow { name: trace.name(name), ..of("mark", who) },
        What::Span { chunk: who, name } => EventRow { name: trace.name(name), ..of("span", who) },
        What::Counter { chunk: who, name, value } => {
            EventRow { name: trace.name(name), value: Some(value), ..of("counter", who) }
        }
        What::Range { first, count, lost_ns } => EventRow {
            event: "range",
            number: Some(first),
            value: Some(count as f64),
            lost_ns: Some(lost_ns),
            ..EventRow::default()
        },
        What::PoolSend { rank } => {
            EventRow { event: "pool send", to_rank: Some(rank), ..EventRow::default() }
        }
        What::Dropped { events } => {
            EventRow { event: "dropped", number: Some(events), ..EventRow::default() }
        }
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
