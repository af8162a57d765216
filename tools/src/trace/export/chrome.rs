//! Writes Chrome JSON, which `chrome://tracing` and many other viewers read. It suits small traces; Perfetto's own
//! format suits large ones. Events are written one by one, with times in us and three decimals.

use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};
use trace_reader::Trace;

use super::rows::Row;
use super::viewer::{Arguments, Arrow, Count, Point, Slice, Track, Value, Viewer};

/// Largest file in bytes. Viewers of this format crashed on files of 900 MB and are slow far below.
const BYTES_MAX: u64 = 100 << 20;
/// JSON readers represent larger whole numbers inexactly.
const EXACT_MAX: u64 = 1 << 53;
const RUN_PID: u32 = 1;
const FIRST_PID: u32 = 10;

/// Writes one JSON object.
pub(super) struct Chrome<'w> {
    out: &'w mut dyn Write,
    line: Vec<u8>,
    written: u64,
}

/// Returns whether a write failed because the file would be too large.
pub(super) fn is_too_large(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

impl<'w> Chrome<'w> {
    /// Writes the run record and the names of all ranks and workers.
    pub(super) fn new(trace: &Trace, rows: &[Row], out: &'w mut dyn Write) -> io::Result<Chrome<'w>> {
        let run = &trace.run;
        let about = json!({
            "run_id": run.run_id, "command": run.arguments, "version": run.version, "git_hash": run.git_hash,
            "lb": run.lb, "ranks": run.ranks, "placement": run.placement,
        });
        write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{about},\"traceEvents\":[")?;
        let mut chrome = Chrome { out, line: Vec::new(), written: 0 };
        chrome.named(RUN_PID, "process_name", "run")?;
        for row in rows {
            if row.worker == 0 {
                let host =
                    trace.ranks.iter().find(|rank| rank.rank == row.rank).map(|rank| rank.host.as_str());
                let name = format!("rank {} @ {}", row.rank, host.unwrap_or(""));
                chrome.named(pid_of(row.rank), "process_name", &name)?;
                let order = json!({"sort_index": pid_of(row.rank)});
                chrome.event(&json!({
                    "ph": "M", "pid": pid_of(row.rank), "name": "process_sort_index", "args": order,
                }))?;
            }
            let name = json!({"name": format!("worker {}", row.worker)});
            let (pid, tid) = (pid_of(row.rank), row.worker + 1);
            chrome.event(&json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": name}))?;
        }
        Ok(chrome)
    }

    /// Ends the JSON object.
    pub(super) fn finish(self) -> io::Result<()> {
        writeln!(self.out, "\n]}}")
    }

    fn named(&mut self, pid: u32, what: &str, name: &str) -> io::Result<()> {
        self.event(&json!({"ph": "M", "pid": pid, "name": what, "args": {"name": name}}))
    }

    fn event(&mut self, event: &Json) -> io::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(if self.written == 0 { b"\n" } else { b",\n" });
        serde_json::to_writer(&mut self.line, event)?;
        self.written += self.line.len() as u64;
        if self.written > BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.out.write_all(&self.line)
    }

    /// Writes one end of an arrow.
    fn arrow(&mut self, phase: &str, row: Row, at_ns: u64, id: u64) -> io::Result<()> {
        let id = if id < EXACT_MAX { json!(id) } else { json!(id.to_string()) };
        let mut event = json!({
            "ph": phase, "pid": pid_of(row.rank), "tid": row.worker + 1, "cat": "message", "name": "message",
            "id": id, "ts": us(at_ns),
        });
        if phase == "f" {
            event["bp"] = json!("e");
        }
        self.event(&event)
    }
}

impl Viewer for Chrome<'_> {
    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let (pid, tid) = (pid_of(slice.row.rank), slice.row.worker + 1);
        let mut args = arguments(&slice.arguments);
        if let Some(cpu_ns) = slice.cpu_ns {
            args.insert("cpu_us".into(), us(cpu_ns));
        }
        self.event(&json!({
            "ph": "X", "pid": pid, "tid": tid, "cat": "entry", "name": slice.name,
            "ts": us(slice.begin_ns), "dur": us(slice.end_ns - slice.begin_ns), "args": args,
        }))?;
        for &(begin_ns, end_ns, name) in &slice.spans {
            self.event(&json!({
                "ph": "X", "pid": pid, "tid": tid, "cat": "span", "name": name,
                "ts": us(begin_ns), "dur": us(end_ns - begin_ns),
            }))?;
        }
        slice.arrows.iter().try_for_each(|&id| self.arrow("f", slice.row, slice.begin_ns, id))
    }

    fn point(&mut self, point: &Point<'_>) -> io::Result<()> {
        let (pid, tid, scope) = match point.place {
            Track::Run => (RUN_PID, 1, "g"),
            Track::Rank(rank) => (pid_of(rank), 1, "p"),
            Track::Worker(row) => (pid_of(row.rank), row.worker + 1, "t"),
        };
        // In this format the begin of an arrow is a separate event.
        if !matches!(point.arrow, Some(Arrow::Begins(_))) {
            self.event(&json!({
                "ph": "i", "s": scope, "pid": pid, "tid": tid, "name": point.name, "ts": us(point.at_ns),
                "args": arguments(&point.arguments),
            }))?;
        }
        let Track::Worker(row) = point.place else { return Ok(()) };
        match point.arrow {
            Some(Arrow::Begins(id)) => self.arrow("s", row, point.at_ns, id),
            Some(Arrow::Passes(id)) => self.arrow("t", row, point.at_ns, id),
            Some(Arrow::Ends(id)) => self.arrow("f", row, point.at_ns, id),
            None => Ok(()),
        }
    }

    /// Does nothing, because viewers of this format sort events.
    fn count(&mut self, count: &Count<'_>) -> io::Result<()> {
        let pid = match count.place {
            Track::Run => RUN_PID,
            Track::Rank(rank) | Track::Worker(Row { rank, .. }) => pid_of(rank),
        };
        let series = if count.unit.is_empty() { "value" } else { count.unit };
        self.event(&json!({
            "ph": "C", "pid": pid, "name": count.name, "ts": us(count.at_ns), "args": {series: count.value},
        }))
    }
}

/// Converts ns to us, with decimals.
fn us(ns: u64) -> Json {
    json!(ns as f64 / 1e3)
}

fn arguments(arguments: &Arguments) -> Map<String, Json> {
    let json = |value: &Value| match value {
        Value::Text(text) => json!(text),
        Value::Count(count) if *count >= EXACT_MAX => json!(count.to_string()),
        Value::Count(count) => json!(count),
        Value::Number(number) => json!(number),
    };
    arguments.iter().map(|(name, value)| ((*name).to_owned(), json(value))).collect()
}

fn pid_of(rank: u32) -> u32 {
    rank.saturating_add(FIRST_PID)
}
