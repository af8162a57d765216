//! Writes the files of Projections, the viewer of Charm++: a row per worker, an entry per message kind and per activity
//! of the runtime. All versions of the viewer read them (VERSION 7.0). Begins and ends of slices are both rounded down
//! to us, so slices that did not overlap still do not.

mod log;
pub(super) mod record;
mod sum;
mod symbols;
mod syncs;

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::Path;

use caribou::trace::{ChunkId, Event, What};
use trace_reader::Trace;

use self::log::Log;
use self::record::{Record, Source, plain};
use self::sum::Sum;
use self::symbols::Symbols;
use super::arrows::{ArrowStart, Arrows};
use super::names::{self, MIGRATE_IN, MIGRATE_OUT};
use super::nested_slices::NestedSlice;
use super::rows::{Row, Rows};
use crate::Error;
use crate::trace::analysis::merge::Merge;
use crate::trace::page::bytes;
use crate::trace::select::Selection;

/// Writes the trace to an empty directory.
pub(super) fn export(
    trace: &Trace,
    selection: &Selection,
    dir: &Path,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let rows = Rows::new(trace, selection)?;
    let base = base_name(trace);
    let symbols = Symbols::new(trace);
    let file = dir.join(format!("{base}.sts"));
    fs::write(&file, symbols.text(trace, &rows))
        .map_err(|source| Error::Unwritable { file: file.clone(), source })?;
    let (window, count) = (selection.window(trace), rows.count);
    let sums = rows.rows.iter().map(|_| Sum::new(window, symbols.entries())).collect();
    let mut export = Export {
        trace,
        symbols,
        sums,
        logs: rows.rows.iter().map(|row| Log::create(dir, &base, row.number)).collect::<Result<_, _>>()?,
        due: syncs::due(trace, &rows, window),
        rows: rows.rows,
        arrows: Arrows::new(),
        phase_ends_ns: trace.syncs.iter().map(|sync| sync.at_ns).collect(),
        from_ns: window.from_ns,
    };
    let mut merged = Merge::of(trace, &export.rows, window);
    for (position, turn) in merged.by_ref() {
        export.turn(position, &turn)?;
    }
    super::warn_left_out(&merged);
    for (sum, row) in export.sums.iter().zip(&export.rows) {
        sum.save(dir, &base, row.number, count)?;
    }
    let (backwards, rows) = (export.arrows.backwards, export.rows.len());
    let size = export.finish(window.to_ns)?;
    writeln!(out, "{}: {rows} rows, {}", file.display(), bytes(size))?;
    super::say_backwards(backwards, out)
}

/// The name of the program, restricted to characters that are valid in the file names.
fn base_name(trace: &Trace) -> String {
    let program = trace.run.arguments.first().map_or("", String::as_str);
    let stem =
        Path::new(program).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let base: String = stem
        .chars()
        .take(100)
        .map(|letter| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '_' })
        .collect();
    if base.is_empty() { "caribou".into() } else { base }
}

/// The logs during the export.
struct Export<'t> {
    trace: &'t Trace,
    symbols: Symbols,
    sums: Vec<Sum>,
    rows: Vec<Row>,
    logs: Vec<Log>,
    /// Records of each row that do not depend on events, in order of time: (us, record).
    due: Vec<VecDeque<(u64, Record)>>,
    arrows: Arrows,
    phase_ends_ns: Vec<u64>,
    /// Time 0 of the logs.
    from_ns: u64,
}

impl Export<'_> {
    fn us(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.from_ns) / 1000
    }

    fn turn(&mut self, position: usize, turn: &NestedSlice) -> Result<(), Error> {
        let event = turn.event;
        let begin_us = self.us(event.begin_ns);
        self.due_until(position, begin_us)?;
        let row = self.rows[position].number;
        match event.what {
            What::Idle => {
                self.logs[position].write(begin_us, &Record::BeginIdle { row })?;
                self.due_until(position, self.us(event.end_ns))?;
                let end_us = self.us(event.end_ns);
                self.logs[position].write(end_us, &Record::EndIdle { row })
            }
            What::Handler { chunk, kind, from, number, .. } => {
                let left = self.arrows.handled(from, number, event.begin_ns);
                let source = self.source(position, left)?;
                self.entry(position, turn, self.symbols.kind(kind), source, self.ids(chunk))
            }
            What::Range { first, .. } => {
                let source = self.logs[position].own_source(0)?;
                self.entry(position, turn, self.symbols.iterations(), source, ids_of_key(first))
            }
            What::Runtime { part, .. } => {
                let source = self.logs[position].own_source(0)?;
                self.entry(position, turn, self.symbols.part(part), source, [0; 4])
            }
            What::Depart { chunk, .. } => {
                let source = self.logs[position].own_source(0)?;
                let ids = self.ids(chunk);
                self.entry(position, turn, self.symbols.runtime(MIGRATE_OUT), source, ids)
            }
            What::Arrive { chunk, .. } => self.arrive(position, turn, chunk),
            _ => self.inside(position, &event),
        }
    }

    /// The message that an entry handles. If its sender is unknown, a new message of the row itself.
    fn source(&mut self, position: usize, left: Option<ArrowStart>) -> Result<Source, Error> {
        match left {
            Some(ArrowStart { position, event, bytes, .. }) => {
                Ok(Source { row: self.rows[position].number, event, bytes })
            }
            None => self.logs[position].own_source(0),
        }
    }

    fn entry(
        &mut self,
        position: usize,
        turn: &NestedSlice,
        entry: u32,
        source: Source,
        ids: [i32; 4],
    ) -> Result<(), Error> {
        let event = turn.event;
        let cpu_us = self.logs[position].cpu_us();
        let begin = Record::BeginEntry { entry, source, ids, cpu_us };
        let begin_us = self.us(event.begin_ns);
        self.logs[position].write(begin_us, &begin)?;
        self.spans(position, turn)?;
        self.due_until(position, self.us(event.end_ns))?;
        if let What::Depart { chunk, rank, bytes } = event.what {
            let entry = self.symbols.runtime(MIGRATE_IN);
            let left = self.creation(position, event.begin_ns, event.end_ns, entry, bytes)?;
            self.arrows.departed(chunk, rank, left);
        }
        for point in &turn.points {
            self.inside(position, point)?;
        }
        let end_us = self.us(event.end_ns);
        self.sums[position].add(entry, event.begin_ns, event.end_ns);
        let log = &mut self.logs[position];
        log.cpu_ns += event.cpu_ns();
        let cpu_us = log.cpu_us();
        log.write(end_us, &Record::EndEntry { entry, source, cpu_us })
    }

    /// Writes the begin of an arrow at `left_ns`.
    fn creation(
        &mut self,
        position: usize,
        left_ns: u64,
        at_ns: u64,
        entry: u32,
        bytes: u64,
    ) -> Result<ArrowStart, Error> {
        let (at_us, row) = (self.us(at_ns), self.rows[position].number);
        let log = &mut self.logs[position];
        let event = log.next_event()?;
        log.write(at_us, &Record::Creation { entry, event, row, bytes })?;
        Ok(ArrowStart { position, event, at_ns: left_ns, bytes })
    }

    /// Writes the arrival of a chunk from another rank: an entry without length, at the end of its arrow if any.
    fn arrive(&mut self, position: usize, turn: &NestedSlice, chunk: ChunkId) -> Result<(), Error> {
        let rank = self.rows[position].rank;
        let came = self.arrows.is_in_flight(chunk, rank);
        let left = self.arrows.arrived(chunk, rank, turn.event.begin_ns);
        if !came {
            return Ok(());
        }
        let source = self.source(position, left)?;
        self.entry(position, turn, self.symbols.runtime(MIGRATE_IN), source, self.ids(chunk))
    }

    /// Writes a point.
    fn inside(&mut self, position: usize, point: &Event) -> Result<(), Error> {
        let (at_us, row) = (self.us(point.end_ns), self.rows[position].number);
        let log = &mut self.logs[position];
        match point.what {
            What::Send { chunk, to, number, bytes, .. } => {
                let entry = self.symbols.message_to(to);
                let left = self.creation(position, point.begin_ns, point.end_ns, entry, bytes)?;
                self.arrows.sent(chunk, number, left);
                Ok(())
            }
            What::PoolSend { .. } => {
                let entry = self.symbols.iterations();
                self.creation(position, point.end_ns, point.end_ns, entry, 0).map(|_| ())
            }
            What::Mark { name, .. } => {
                let (name, event) = (self.symbols.event(name), log.next_event()?);
                log.write(at_us, &Record::UserEvent { name, event, row })
            }
            What::Counter { name, value, .. } => {
                let Some(name) = self.symbols.statistic(name) else { return Ok(()) };
                let phase = self.phase_ends_ns.partition_point(|&end_ns| end_ns <= point.end_ns) as i64;
                log.write(at_us, &Record::Statistic { phase, value, row, name })
            }
            What::Dropped { events } => {
                let text = plain(&format!("{events} events were dropped"));
                log.write(at_us, &Record::Note { text })
            }
            _ => Ok(()),
        }
    }

    /// Writes the spans of a turn. Their begins and ends are in order, because spans nest.
    fn spans(&mut self, position: usize, turn: &NestedSlice) -> Result<(), Error> {
        let mut open: Vec<(u64, Record)> = Vec::new();
        for span in &turn.spans {
            let What::Span { name, .. } = span.what else { continue };
            while let Some((end_us, end)) = open.pop_if(|(end_us, _)| *end_us <= self.us(span.begin_ns)) {
                self.write_with_due(position, end_us, &end)?;
            }
            let (name, event) = (self.symbols.event(name), self.logs[position].next_event()?);
            let (row, depth) = (self.rows[position].number, open.len() as u32);
            let begin = Record::BeginSpan { name, event, row, depth };
            self.write_with_due(position, self.us(span.begin_ns), &begin)?;
            open.push((self.us(span.end_ns), Record::EndSpan { name, event, row, depth }));
        }
        while let Some((end_us, end)) = open.pop() {
            self.write_with_due(position, end_us, &end)?;
        }
        Ok(())
    }

    fn write_with_due(&mut self, position: usize, at_us: u64, record: &Record) -> Result<(), Error> {
        self.due_until(position, at_us)?;
        self.logs[position].write(at_us, record)
    }

    /// Writes the records in `due` up to `at_us`.
    fn due_until(&mut self, position: usize, at_us: u64) -> Result<(), Error> {
        while self.due[position].front().is_some_and(|&(due_us, _)| due_us <= at_us) {
            let Some((due_us, mut record)) = self.due[position].pop_front() else { break };
            let log = &mut self.logs[position];
            if let Record::UserEvent { event, .. } = &mut record {
                *event = log.next_event()?;
            }
            log.write(due_us, &record)?;
        }
        Ok(())
    }

    /// The four numbers that identify a chunk: its coordinates, or its key in three parts.
    fn ids(&self, chunk: ChunkId) -> [i32; 4] {
        let index = names::index_of(self.trace, chunk).filter(|index| index.len() <= 4);
        let numbers = index.and_then(|index| {
            let numbers = index.into_iter().map(|number| i32::try_from(number).ok());
            numbers.collect::<Option<Vec<i32>>>()
        });
        numbers.map_or_else(
            || ids_of_key(chunk.key),
            |numbers| std::array::from_fn(|place| numbers.get(place).copied().unwrap_or(0)),
        )
    }

    /// Ends all logs at the same time. Returns their total size.
    fn finish(mut self, to_ns: u64) -> Result<u64, Error> {
        for position in 0..self.logs.len() {
            self.due_until(position, u64::MAX)?;
        }
        let last_us = self.logs.iter().map(Log::last_us).max().unwrap_or(0);
        let end_us = last_us.max(self.us(to_ns));
        self.logs.into_iter().map(|log| log.finish(end_us)).sum()
    }
}

fn ids_of_key(key: u64) -> [i32; 4] {
    const LOW: u64 = (1 << 31) - 1;
    [(key & LOW) as i32, (key >> 31 & LOW) as i32, (key >> 62) as i32, 0]
}
