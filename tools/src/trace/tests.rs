//! Tests `caribou trace` from arguments to output, on synthetic traces.

mod overview;
mod pictures_and_counts;
mod supersteps;

use caribou::trace::{ArrayId, ChunkId, End, Event, NameId, RUNTIME, RunRecord, What, Writer};
use serde_json::Value;
use trace_reader::Trace;

use crate::tests::{Scratch, caribou};

/// The output of a subcommand of `caribou trace` as JSON.
pub(super) fn json(arguments: &[&str]) -> Value {
    crate::tests::json(&[&["trace"], arguments].concat())
}

/// The rows of a table of a page in JSON.
pub(super) fn rows<'v>(page: &'v Value, table: &str) -> &'v Vec<Value> {
    page["tables"][table].as_array().unwrap_or_else(|| panic!("no table {table} in {page}"))
}

/// The row with this value.
pub(super) fn row<'v>(rows: &'v [Value], key: &str, value: impl Into<Value>) -> &'v Value {
    let value = value.into();
    rows.iter().find(|row| row[key] == value).unwrap_or_else(|| panic!("no {key} {value} in {rows:?}"))
}

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The run record of one rank. Each rank has one worker.
pub(super) fn run_of(ranks: u32, rank: u32) -> RunRecord {
    let workers = vec![1; ranks as usize];
    RunRecord { ranks, rank, workers, run_id: "by hand".into(), arrows: 1, ..RunRecord::default() }
}

/// Writes a rank in which only one worker has events.
pub(super) fn write_rank(dir: &Scratch, run: &RunRecord, events: &[Event], elapsed_ns: u64) {
    let mut writer = Writer::create(dir.path(), run).unwrap();
    writer.events(0, events).unwrap();
    writer.finish(&End { elapsed_ns, ..End::default() }).unwrap();
}

/// A chunk of the first array.
pub(super) fn chunk(key: u64) -> ChunkId {
    ChunkId { array: ArrayId(0), key }
}

/// A handler of the first kind. Without a sender, the runtime sent its message.
pub(super) fn handler(begin_ns: u64, end_ns: u64, key: u64, from: Option<u64>, number: u32) -> Event {
    let from = from.map_or(RUNTIME, chunk);
    let what = What::Handler { chunk: chunk(key), kind: NameId(0), from, number, lost_ns: 0 };
    Event { begin_ns, end_ns, what }
}

pub(super) fn idle(begin_ns: u64, end_ns: u64) -> Event {
    Event { begin_ns, end_ns, what: What::Idle }
}

/// A message to rank 1.
pub(super) fn send(at_ns: u64, from: u64, to: u64, number: u32) -> Event {
    Event::point(at_ns, What::Send { chunk: chunk(from), to: chunk(to), rank: 1, number, bytes: 8 })
}

/// A synthetic trace of 4 ranks of 8 chunks, with about `events` events.
pub(super) fn generated(name: &str, events: u64) -> Scratch {
    let dir = Scratch::new(name);
    caribou(&["trace", "generate", dir.text(), "--events", &events.to_string()]).unwrap();
    dir
}

#[test]
fn a_made_up_trace_can_be_read_and_nothing_is_wrong_with_it() {
    let dir = generated("generate", 50_000);
    let trace = Trace::open(dir.path()).unwrap();
    let mut count = 0u64;
    let problems = trace.for_each(|_, _, _| count += 1);
    assert_eq!((problems, &trace.problems), (vec![], &vec![]));
    assert_eq!(count, trace.events());
    assert!((45_000..60_000).contains(&count), "{count}");
    assert!(trace.syncs.iter().any(|sync| sync.moved > 0));
}
