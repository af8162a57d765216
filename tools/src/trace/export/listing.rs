//! Every event as a line: a log for people, or comma-separated values for scripts.
//!
//! Row by row, each in its order. No line says what others could not: this is the trace itself.

use std::io::{self, Write};

use caribou::trace::{ChunkId, Event, What};
use trace_reader::{RankTrace, Trace};

use crate::output::unwritten;
use crate::trace::analysis::events::{Observer, Place, Scope, by_worker};
use crate::trace::open::warn;
use crate::trace::page::{bytes, duration};
use crate::trace::select::Selection;

/// Heads of the values.
const HEADS: [&str; 13] = [
    "rank", "worker", "begin_ns", "end_ns", "event", "name", "chunk", "other", "number", "to_rank", "bytes",
    "value", "lost_ns",
];

/// Columns of an event, in words and numbers; empty where it says nothing.
#[derive(Default)]
struct Said {
    event: &'static str,
    name: String,
    chunk: String,
    /// Sender of the message, or its receiver.
    other: String,
    number: Option<u64>,
    to_rank: Option<u32>,
    bytes: Option<u64>,
    value: Option<f64>,
    lost_ns: Option<u64>,
}

/// Writes all events that were selected.
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

/// Lines of events.
enum Form<'o> {
    Lines(&'o mut dyn Write),
    Values(Box<csv::Writer<&'o mut dyn Write>>),
}

impl<'o> Form<'o> {
    fn values(out: &'o mut dyn Write) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(HEADS).map_err(unwritten)?;
        Ok(Self::Values(Box::new(csv)))
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Lines(_) => Ok(()),
            Self::Values(mut csv) => csv.flush(),
        }
    }
}

/// Writes events until it cannot.
struct Listing<'o> {
    trace: &'o Trace,
    form: Form<'o>,
    written: io::Result<()>,
}

impl Observer<'_> for Listing<'_> {
    fn see(&mut self, Place { rank, worker }: Place<'_>, event: &Event) {
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
    said: &Said,
    csv: &mut csv::Writer<W>,
) -> io::Result<()> {
    let Said { event: what, name, chunk, other, number, to_rank, bytes, value, lost_ns } = said;
    let value = value.map(|value| value.to_string());
    let who = (rank.rank, worker, event.begin_ns, event.end_ns, what);
    csv.serialize((who, name, chunk, other, number, to_rank, bytes, value, lost_ns)).map_err(unwritten)
}

fn line(rank: &RankTrace, worker: u32, event: &Event, said: &Said, out: &mut dyn Write) -> io::Result<()> {
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

fn said(trace: &Trace, event: &Event) -> Said {
    let chunk = |chunk: ChunkId| trace.chunk_name(chunk);
    let of = |event: &'static str, who: ChunkId| Said { event, chunk: chunk(who), ..Said::default() };
    match event.what {
        What::Handler { chunk: who, kind, from, number, lost_ns } => Said {
            name: trace.name(kind),
            other: chunk(from),
            number: Some(u64::from(number)),
            lost_ns: Some(lost_ns),
            ..of("handler", who)
        },
        What::Send { chunk: who, to, rank, number, bytes } => Said {
            other: chunk(to),
            to_rank: Some(rank),
            number: Some(u64::from(number)),
            bytes: Some(bytes),
            ..of("send", who)
        },
        What::Idle => Said { event: "idle", ..Said::default() },
        What::Runtime { part, sync } => {
            Said { event: "runtime", name: part.name().into(), number: Some(sync), ..Said::default() }
        }
        What::Depart { chunk: who, rank, bytes } => {
            Said { to_rank: Some(rank), bytes: Some(bytes), ..of("depart", who) }
        }
        What::Arrive { chunk: who, bytes } => Said { bytes: Some(bytes), ..of("arrive", who) },
        What::Contribute { chunk: who, number } => Said { number: Some(number), ..of("contribute", who) },
        What::Load { chunk: who, sync, load_ns, bytes } => {
            Said { number: Some(sync), bytes: Some(bytes), value: Some(load_ns as f64), ..of("load", who) }
        }
        What::Mark { chunk: who, name } => Said { name: trace.name(name), ..of("mark", who) },
        What::Span { chunk: who, name } => Said { name: trace.name(name), ..of("span", who) },
        What::Counter { chunk: who, name, value } => {
            Said { name: trace.name(name), value: Some(value), ..of("counter", who) }
        }
        What::Range { first, count, lost_ns } => Said {
            event: "range",
            number: Some(first),
            value: Some(count as f64),
            lost_ns: Some(lost_ns),
            ..Said::default()
        },
        What::PoolSend { rank } => Said { event: "pool send", to_rank: Some(rank), ..Said::default() },
        What::Dropped { events } => Said { event: "dropped", number: Some(events), ..Said::default() },
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
