//! Tests the critical path on runs that are small enough to check by hand.

use caribou::trace::{ArrayId, ChunkId, End, Event, Name, NameId, Part, RUNTIME, What, Writer};
use serde_json::Value;

use crate::tests::{Scratch, caribou};
use crate::trace;
use crate::trace::tests::{chunk, generated, handler, idle, row, rows, run_of, send};

fn part(begin_ns: u64, end_ns: u64, part: Part) -> Event {
    Event { begin_ns, end_ns, what: What::Runtime { part, sync: 0 } }
}

/// A handler `resume` of chunk 1 after a sync.
fn resume(begin_ns: u64, end_ns: u64) -> Event {
    let what = What::Handler { chunk: chunk(1), kind: NameId(1), from: RUNTIME, number: 0, lost_ns: 0 };
    Event { begin_ns, end_ns, what }
}

fn write(name: &str, ranks: &[Vec<Event>]) -> Scratch {
    let dir = Scratch::new(&format!("path-{name}"));
    for (rank, events) in (0..).zip(ranks) {
        let mut writer = Writer::create(dir.path(), &run_of(ranks.len() as u32, rank)).unwrap();
        let names = ["Halo", "resume"].map(|text| Name { array: Some(ArrayId(0)), text: text.into() });
        writer.names(&names).unwrap();
        writer.events(0, events).unwrap();
        writer.finish(&End::default()).unwrap();
    }
    dir
}

fn json(dir: &Scratch, more: &[&str]) -> Value {
    trace::tests::json(&[&["critical-path", dir.text()], more].concat())
}

/// The time in a row of a table.
#[track_caller]
fn time(json: &Value, table: &str, key: &str, name: &str) -> i64 {
    whole(&row(rows(json, table), key, name)["time_ns"])
}

/// Times are whole numbers of ns.
fn whole(ns: &Value) -> i64 {
    ns.as_f64().unwrap() as i64
}

fn parts(json: &Value) -> Vec<i64> {
    rows(json, "parts").iter().map(|row| whole(&row["time_ns"])).collect()
}

/// Rank 0 works for 1000 ns and sends. Rank 1 works for 300 ns, waits, handles the message from 1200 to 2000 ns.
fn waits_for_a_message() -> [Vec<Event>; 2] {
    let first = vec![handler(0, 1000, 1, None, 0), send(1000, 1, 2, 1)];
    let second = vec![handler(0, 300, 2, None, 0), idle(300, 1150), handler(1200, 2000, 2, Some(1), 1)];
    [first, second]
}

#[test]
fn a_worker_that_waited_for_a_message_passes_the_path_to_its_sender() {
    let found = json(&write("message", &waits_for_a_message()), &[]);
    // CPU, lost, queue, latency, reduction, sync, balancing, runtime, unknown.
    assert_eq!(parts(&found), [1800, 0, 50, 150, 0, 0, 0, 0, 0]);
    assert_eq!(time(&found, "ranks", "rank", "rank 0"), 1000);
    assert_eq!(time(&found, "ranks", "rank", "rank 1"), 800);
    assert_eq!(time(&found, "chunks", "chunk", "array 0[#2]"), 800);
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("it includes the wait of messages sent by `send_at_quiescence` or `send_after`"),
        "{notes}"
    );
    let bounds = &found["tables"]["bounds"];
    assert_eq!(whole(&bounds[0]["time_ns"]), 1050, "2100 ns of work on two workers");
    assert_eq!(whole(&bounds[1]["time_ns"]), 1100, "nothing was lost: the second worker has most to do");
    assert_eq!(whole(&bounds[2]["time_ns"]), 1100, "if nothing is waited for");
    assert_eq!(whole(&bounds[3]["time_ns"]), 1800, "the second chunk's 300 ns do not matter");
}

#[test]
fn a_worker_that_was_busy_keeps_the_path() {
    let [first, mut second] = waits_for_a_message();
    second[0] = handler(0, 1150, 3, None, 0);
    second.remove(1);
    let found = json(&write("busy", &[first, second]), &[]);
    assert_eq!(parts(&found), [1950, 0, 0, 0, 0, 0, 0, 50, 0]);
    assert_eq!(time(&found, "ranks", "rank", "rank 1"), 1950);
    assert_eq!(time(&found, "ranks", "rank", "waiting, latency"), 50, "ranks add up to the path");
    assert_eq!(found["tables"]["ranks"].as_array().unwrap().len(), 2);
}

#[test]
fn time_lost_in_a_handler_is_told_apart_from_its_work() {
    let [mut first, second] = waits_for_a_message();
    let What::Handler { lost_ns, .. } = &mut first[0].what else { panic!("it is a handler") };
    *lost_ns = 400;
    let found = json(&write("lost", &[first, second]), &[]);
    assert_eq!(parts(&found)[..4], [1400, 400, 50, 150]);
}

#[test]
fn a_wait_whose_sender_is_not_recorded_stays_on_the_worker_and_is_called_unknown() {
    let [mut first, second] = waits_for_a_message();
    first.pop();
    let found = json(&write("unknown", &[first, second]), &[]);
    assert_eq!(parts(&found), [1100, 0, 50, 0, 0, 0, 0, 0, 850]);
    let notes = found["notes"].to_string();
    assert!(notes.contains("1 message without a sender in this part of the trace"), "{notes}");
}

#[test]
fn a_message_that_was_handled_before_its_sender_had_ended_has_one() {
    let [first, mut second] = waits_for_a_message();
    second[2] = handler(600, 990, 2, Some(1), 1);
    second[1] = idle(300, 600);
    let found = json(&write("quick", &[first, second]), &[]);
    let notes = found["notes"].to_string();
    assert!(notes.contains("1 message handled before the sending handler ended"), "{notes}");
    assert!(!notes.contains("without a sender"), "{notes}");
}

#[test]
fn putting_messages_away_is_the_runtime_and_no_load_balancing() {
    let events = vec![
        handler(0, 400, 1, None, 0),
        part(400, 460, Part::Keep),
        part(460, 530, Part::Migrate),
        handler(530, 900, 1, None, 0),
    ];
    let found = json(&write("keep", &[events]), &[]);
    assert_eq!(parts(&found), [770, 0, 0, 0, 0, 0, 70, 60, 0]);
}

#[test]
fn a_sync_leads_to_the_rank_that_came_last() {
    // Rank 1 works until 900 ns. Both ranks measure, rank 0 decides, and its chunk resumes.
    let first = vec![
        handler(0, 400, 1, None, 0),
        idle(400, 910),
        part(910, 950, Part::Measure),
        part(960, 1000, Part::Decide),
        resume(1010, 1500),
    ];
    let second = vec![handler(0, 900, 2, None, 0), part(900, 940, Part::Measure)];
    let found = json(&write("sync", &[first, second]), &[]);
    // Work 490 + 900, balancing 40 + 40, sync from 900 to 910, runtime from 950 to 960 and from 1000 to 1010, in ns.
    assert_eq!(parts(&found), [1390, 0, 0, 0, 0, 10, 80, 20, 0]);
    assert_eq!(time(&found, "ranks", "rank", "rank 1"), 900);
}

#[test]
fn a_result_leads_to_the_chunk_that_contributed_last() {
    // Both ranks contribute, rank 1 at 900 ns. Its part reaches rank 0, where a chunk handles the result as a message.
    let contributes = |at_ns, key| {
        let chunk = ChunkId { array: ArrayId(0), key };
        Event { begin_ns: at_ns, end_ns: at_ns, what: What::Contribute { chunk, number: 0 } }
    };
    let first = vec![
        handler(0, 400, 1, None, 0),
        contributes(400, 1),
        part(400, 410, Part::Measure),
        idle(410, 930),
        handler(930, 1000, 1, None, 0),
    ];
    let second = vec![handler(0, 900, 2, None, 0), contributes(900, 2)];
    let found = json(&write("reduction", &[first, second]), &[]);
    assert_eq!(parts(&found), [970, 0, 0, 0, 30, 0, 0, 0, 0]);
    assert_eq!(time(&found, "ranks", "rank", "rank 1"), 900);
}

#[test]
fn a_stretch_of_time_has_its_own_path_and_no_more_events_than_allowed_are_kept() {
    let dir = write("window", &waits_for_a_message());
    let found = json(&dir, &["--time", "500ns.."]);
    assert_eq!(parts(&found)[..4], [1300, 0, 50, 150]);
    let error = caribou(&["trace", "critical-path", dir.text(), "--events-max", "2"]).unwrap_err();
    assert_eq!(
        error,
        "more than 2 slices of work: choose a stretch with --time, or allow more with --events-max"
    );
}

#[test]
fn the_path_of_a_whole_run_leaves_no_time_out() {
    let dir = generated("path-whole", 20_000);
    let found = json(&dir, &[]);
    let elapsed_ns = trace_reader::Trace::open(dir.path()).unwrap().elapsed_ns() as i64;
    let total_ns: i64 = parts(&found).iter().sum();
    let last_idle_ns = 2_000;
    assert!((elapsed_ns - last_idle_ns - total_ns).abs() < 200_000, "{total_ns} of {elapsed_ns}");
    let bounds = &found["tables"]["bounds"];
    assert!(bounds.as_array().unwrap().iter().all(|bound| whole(&bound["time_ns"]) < total_ns), "{bounds}");
    let text = caribou(&["trace", "critical-path", dir.text()]).unwrap();
    assert!(text.starts_with("path ") && text.contains("longest stretches"), "{text}");
}

#[test]
fn a_trace_without_events_has_no_path_and_says_so() {
    let text = caribou(&["trace", "critical-path", write("none", &[vec![]]).text()]).unwrap();
    assert!(text.starts_with("no handler ended there, or none is recorded"), "{text}");
}
