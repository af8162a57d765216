//! Tests the exports: reads exports of random and hand-made traces and compares them with the trace.

use std::collections::BTreeMap;
use std::path::Path;

use caribou::trace::{ArrayId, End, Event, Name, NameId, Part, RUNTIME, RunRecord, What, Writer};
use proptest::prelude::*;
use trace_reader::Trace;

use self::parser::read_export;
use super::projections::record::quoted;
use crate::tests::{Scratch, caribou};
use crate::trace::tests::{chunk, generated};

/// Time in handlers in ns and number of handlers, by rank and kind.
type Totals = BTreeMap<(u32, String), (u64, u64)>;

/// Computes the totals of the trace without the code under test.
fn totals(trace: &Trace) -> Totals {
    let mut totals = Totals::new();
    let problems = trace.for_each(|rank, _, event| {
        let name = match event.what {
            What::Handler { kind, .. } => trace.name(kind),
            What::Range { .. } => "pool::iterations".into(),
            _ => return,
        };
        let total = totals.entry((rank.rank, name)).or_default();
        total.0 += event.duration_ns();
        total.1 += 1;
    });
    assert_eq!(problems, vec![]);
    totals
}

fn export(trace: &Scratch, to: &str, out: &Scratch, more: &[&str]) -> Result<String, String> {
    let target = if matches!(to, "projections" | "lbdata") { out.path().to_owned() } else { file(out) };
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    let arguments = ["trace", "export", trace.text(), "--to", to, "-o", target.to_str().unwrap()];
    caribou(&[&arguments[..], more].concat())
}

/// Path of an export that is one file.
fn file(out: &Scratch) -> std::path::PathBuf {
    out.path().join("file")
}

/// Next activity of one worker in the hand-made runs.
#[derive(Clone, Debug)]
enum Step {
    Idle(u64),
    Handler { kind: u32, ns: u64, sends: u32, spans: Vec<(u64, u64)> },
    Runtime(Part, u64),
    Range(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let spans = prop::collection::vec((0u64..3000, 0u64..3000), 0..3);
    let handler = (0u32..4, 0u64..5_000, 0u32..3, spans).prop_map(|(kind, ns, sends, spans)| Step::Handler {
        kind,
        ns,
        sends,
        spans,
    });
    let other = prop_oneof![
        (0u64..4_000).prop_map(Step::Idle),
        (prop::sample::select(Part::ALL.to_vec()), 0u64..4_000)
            .prop_map(|(part, ns)| Step::Runtime(part, ns)),
        (0u64..4_000).prop_map(Step::Range),
    ];
    prop::collection::vec(prop_oneof![3 => handler, 1 => other], 0..40)
}

const NAMES: [&str; 4] = ["plain", "say \"hi\" (twice", "gr\u{fc}n", "LONG"];

/// Writes a run of two ranks, the second with two workers. The workers perform these steps.
fn write(dir: &Path, workers: &[Vec<Step>]) {
    for (rank, of_rank) in [(0, &workers[..1]), (1, &workers[1..3])] {
        let run = RunRecord {
            run_id: "made \"up\"".into(),
            arguments: vec!["/bin/made.up".into(), "--name=\"x\ty\"".into()],
            ranks: 2,
            workers: vec![1, 2],
            hosts: vec!["a".into(), "b".into()],
            rank,
            ..RunRecord::default()
        };
        let mut writer = Writer::create(dir, &run).unwrap();
        writer.arrays(&["Ring".into()]).unwrap();
        let kinds = NAMES
            .iter()
            .map(|name| Name { array: Some(ArrayId(0)), text: name.replace("LONG", &"n".repeat(300)) });
        let given = ["span", "mark\n***", "count"].map(|name| Name { array: None, text: name.into() });
        writer.names(&kinds.chain(given).collect::<Vec<_>>()).unwrap();
        writer.chunks(&[(chunk(0), "[0, 1]".into()), (chunk(1), "far \"away\"".into())]).unwrap();
        for (worker, steps) in of_rank.iter().enumerate() {
            writer.events(worker as u32, &events(rank * 2 + worker as u32, steps)).unwrap();
        }
        writer.finish(&End { elapsed_ns: 1_000_000, ..End::default() }).unwrap();
    }
}

/// Events of worker `me`, which has one chunk. The chunk of the next worker handles its messages in order.
fn events(me: u32, steps: &[Step]) -> Vec<Event> {
    let (mut events, mut now_ns, mut sent, mut heard) = (Vec::new(), 777 * u64::from(me), 0, 0);
    let (ran, from) = (chunk(u64::from(me)), chunk(u64::from((me + 2) % 3)));
    for step in steps {
        let begin_ns = now_ns;
        match step {
            Step::Idle(ns) => {
                now_ns += ns;
                events.push(Event { begin_ns, end_ns: now_ns, what: What::Idle });
            }
            Step::Runtime(part, ns) => {
                now_ns += ns;
                let what = What::Runtime { part: *part, sync: 0 };
                events.push(Event { begin_ns, end_ns: now_ns, what });
            }
            Step::Range(ns) => {
                now_ns += ns;
                let what = What::Range { first: u64::MAX - 5, count: 3, lost_ns: ns / 2 };
                events.push(Event { begin_ns, end_ns: now_ns, what });
            }
            Step::Handler { kind, ns, sends, spans } => {
                now_ns += ns;
                heard += 1;
                for (from_ns, long_ns) in spans {
                    let begin_ns = begin_ns + (*from_ns).min(*ns);
                    let end_ns = (begin_ns + long_ns).min(now_ns);
                    events.push(Event { begin_ns, end_ns, what: What::Span { chunk: ran, name: NameId(4) } });
                }
                let what =
                    What::Handler { chunk: ran, kind: NameId(*kind), from, number: heard, lost_ns: ns / 3 };
                events.push(Event { begin_ns, end_ns: now_ns, what });
                for _ in 0..*sends {
                    sent += 1;
                    let (to, rank) = (chunk(u64::from((me + 1) % 3)), 0);
                    let what = What::Send { chunk: ran, to, rank, number: sent, bytes: u64::MAX };
                    events.push(Event::point(now_ns, what));
                }
                events.push(Event::point(now_ns, What::Mark { chunk: ran, name: NameId(5) }));
                let value = f64::MAX;
                events.push(Event::point(now_ns, What::Counter { chunk: ran, name: NameId(6), value }));
            }
        }
    }
    events
}

fn check_projections(dir: &Scratch, out: &Scratch) {
    let trace = Trace::open(dir.path()).unwrap();
    export(dir, "projections", out, &[]).unwrap();
    let read = read_export(out.path()).unwrap();
    let files = std::fs::read_dir(out.path()).unwrap().map(|file| file.unwrap().file_name());
    let sums = files.filter(|name| name.to_str().unwrap().ends_with(".sum")).count();
    assert_eq!(sums, read.rows.len());
    let rank_of_row: Vec<u32> =
        trace.ranks.iter().flat_map(|rank| vec![rank.rank; rank.workers as usize]).collect();
    assert_eq!(read.symbols.processors, rank_of_row.len() as i64);
    for ((rank, name), (ns, calls)) in totals(&trace) {
        let written = quoted(&name);
        let (us, times) = read.total_us(&written, |row| rank_of_row[row as usize] == rank);
        assert_eq!(times as u64, calls, "{name} on rank {rank}");
        let off_ns = (us * 1000 - ns as i64).unsigned_abs();
        assert!(off_ns <= 1000 * calls, "{name} on rank {rank}: {us} us, {ns} ns in {calls} calls");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_export_has_the_time_of_every_kind(workers in prop::collection::vec(steps(), 3)) {
        let (dir, out) = (Scratch::new("export-any"), Scratch::new("export-any-out"));
        write(dir.path(), &workers);
        check_projections(&dir, &out);
    }
}

#[test]
fn a_made_up_run_is_exported_to_projections() {
    let (dir, out) = (generated("export-ring", 20_000), Scratch::new("export-ring-out"));
    check_projections(&dir, &out);
    let read = read_export(out.path()).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    let across = read.rows.values().flat_map(|row| &row.slices).count();
    assert!(across > 10_000);
    let moved: u64 = trace.syncs.iter().map(|sync| sync.moved).sum();
    assert_eq!(read.total_us("runtime::migrate_in", |_| true).1 as u64, moved);
    // Each message of the ring is sent before it is handled, so all handlers but the starts have an arrow.
    let arrows = read.rows.values().flat_map(|row| &row.slices).filter(|slice| slice.bytes == 2048);
    let halos = read.total_us("Ring::Halo", |_| true).1;
    assert_eq!(arrows.count() as i64, halos);
    let steps = read.rows[&0].marks.iter().filter(|(event, _)| read.symbols.events[event] == "***LB step***");
    assert_eq!(steps.count(), trace.syncs.len());
    let phases =
        read.rows[&1].statistics.iter().filter(|(_, _, which)| *which == 6).map(|(phase, ..)| *phase);
    assert_eq!(
        phases.collect::<Vec<_>>(),
        (0..trace.syncs.len()).map(|sync| sync as f64).collect::<Vec<_>>()
    );
}

#[test]
fn a_directory_that_is_not_empty_is_refused() {
    let (dir, out) = (generated("export-twice", 1_000), Scratch::new("export-twice-out"));
    export(&dir, "projections", &out, &[]).unwrap();
    let again = export(&dir, "projections", &out, &[]).unwrap_err();
    assert!(again.ends_with("is not empty, expected an empty directory or a new name"), "{again}");
}

#[test]
fn a_large_log_is_compressed() {
    let (dir, out) = (generated("export-large", 120_000), Scratch::new("export-large-out"));
    check_projections(&dir, &out);
    let packed = std::fs::read_dir(out.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".log.gz"));
    assert!(packed.count() > 0);
}

mod others;
mod parser;
mod perfetto;
