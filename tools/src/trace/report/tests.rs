//! Tests pages of traces that are large, wide or hostile. Pages of ordinary traces are tested in a browser.

use caribou::report::SyncReport;
use caribou::trace::{
    Activity, ArrayId, ChunkId, End, Event, Name, NameId, Part, Profile, RUNTIME, RunRecord, Sample, Shape,
    What, Writer,
};
use serde_json::Value;
use trace_reader::Trace;

use super::Report;
use super::detail_windows::DetailWindows;
use crate::tests::{Scratch, caribou};
use crate::trace;
use crate::trace::tests::{chunk, generated, number, row, run_of, write_rank};

fn page(trace: &Scratch) -> String {
    let file = trace.join("report.html");
    caribou(&["trace", "report", trace.text(), "-o", &file]).unwrap();
    std::fs::read_to_string(file).unwrap()
}

/// The rows of a table: sort keys, or the text of cells without a key.
fn rows(html: &str, table: &str) -> Vec<Vec<String>> {
    let (_, table) = html.split_once(&format!("<table id=\"{table}\"")).unwrap();
    let rows = table.split("</table>").next().unwrap().split("<tr").skip(2);
    let cell = |cell: &str| match cell.split_once("data-v=\"") {
        Some((_, value)) => value.split('"').next().unwrap().to_owned(),
        None => cell.split(['>', '<']).nth(1).unwrap().to_owned(),
    };
    rows.map(|row| row.split("<t").skip(1).map(cell).collect()).collect()
}

fn handler(begin_ns: u64, end_ns: u64, number: u32) -> Event {
    let (chunk, from) = (chunk(1), chunk(2));
    Event { begin_ns, end_ns, what: What::Handler { chunk, kind: NameId(0), from, number, lost_ns: 0 } }
}

#[test]
fn what_is_merged_is_said_and_the_page_stays_small() {
    let trace = generated("report-large", 400_000);
    let html = page(&trace);
    assert!(html.len() < 6_000_000, "{}", html.len());
    let trace = Trace::open(trace.path()).unwrap();
    let report = Report::of(&trace);
    let DetailWindows { whole, all, .. } = &report.stretches;
    assert!(!whole && all.len() == 2, "a first stretch and a second one");
    let slices: u64 = report.figures.counts.iter().sum();
    let said = format!("Of {slices} slices, the {} that are not idle", report.stretches.slices());
    assert!(html.contains(&said), "{said}");
    assert!(html.contains("(to the most uneven sync)") && html.contains("(to the sync of median imbalance)"));
    assert!(all[0].to_ns <= all[1].from_ns, "they do not overlap");
    let inside = |at_ns: u64| all.iter().any(|stretch| (stretch.from_ns..stretch.to_ns).contains(&at_ns));
    assert!(inside(report.balance.focus_ns()));
    for stretch in all {
        for row in stretch.offsets.windows(2) {
            assert!(stretch.slices[row[0]..row[1]].is_sorted_by_key(|slice| slice.begin_ns));
        }
        assert!(stretch.slices.iter().any(|slice| slice.sent.is_some()));
    }
}

#[test]
fn a_slice_names_the_sender_place_and_time_of_its_message() {
    let scratch = Scratch::new("report-arrows");
    for rank in 0..2 {
        let sends = vec![trace::tests::send(40, 2, 1, 7)];
        let events = if rank == 0 { sends } else { vec![handler(90, 200, 7), handler(210, 220, 8)] };
        write_rank(&scratch, &run_of(2, rank), &events, 300);
    }
    let trace = Trace::open(scratch.path()).unwrap();
    let DetailWindows { all, names, .. } = Report::of(&trace).stretches;
    let sent: Vec<_> =
        all[0].slices.iter().map(|slice| (&names[usize::from(slice.sender)][..], slice.sent)).collect();
    assert_eq!(sent, [("array 0[#2]", Some((0, 40))), ("array 0[#2]", None)], "the second was sent nowhere");
}

#[test]
fn more_workers_than_rows_share_them_and_no_time_is_lost() {
    let scratch = Scratch::new("report-wide");
    for rank in 0..600 {
        write_rank(&scratch, &run_of(600, rank), &[handler(0, 1000 + u64::from(rank), 0)], 2000);
    }
    let html = page(&scratch);
    assert!(html.contains("A row is 3 workers"));
    assert!(html.len() < 6_000_000, "{}", html.len());
    let trace = Trace::open(scratch.path()).unwrap();
    let report = Report::of(&trace);
    assert_eq!(report.figures.rows.len(), 200);
    let sum: u64 = rows(&html, "worker-table").iter().map(|row| row[1].parse::<f64>().unwrap() as u64).sum();
    let stacked: u64 = report.figures.stack.values().flatten().sum();
    let expected = (0..600).map(|rank| 1000 + rank).sum::<u64>();
    assert_eq!((sum, stacked), (expected, expected));
}

#[test]
fn records_with_any_numbers_make_a_page() {
    let scratch = Scratch::new("report-any");
    let mut writer = Writer::create(scratch.path(), &RunRecord { ranks: u32::MAX, ..run_of(1, 0) }).unwrap();
    let mut sync = SyncReport::default();
    sync.at_ns = u64::MAX;
    sync.imbalance_before = 1e308;
    sync.imbalance_predicted = -1e308;
    sync.makespan_predicted_ns = 1;
    (sync.moved, sync.moved_bytes, sync.migrate_ns) = (u64::MAX, u64::MAX, u64::MAX);
    (sync.before_ns, sync.predicted_ns) = (vec![u64::MAX; 3], vec![0]);
    let mut other = SyncReport::default();
    other.before_ns = vec![u64::MAX; 1000];
    other.moved = 2;
    writer.syncs(&[sync.clone(), other, sync]).unwrap();
    let sample = Sample { wait_ns: u64::MAX, steal_ns: u64::MAX, speed: 1e308, ..Sample::default() };
    writer.samples(&[sample, sample]).unwrap();
    let chunk = ChunkId { array: ArrayId(9), key: u64::MAX };
    let events = [
        handler(0, 10, u32::MAX),
        Event::point(10, What::Send { chunk, to: RUNTIME, rank: u32::MAX, number: 1, bytes: u64::MAX }),
        Event::point(10, What::Send { chunk, to: RUNTIME, rank: 0, number: 1, bytes: u64::MAX }),
        Event::point(10, What::Send { chunk, to: RUNTIME, rank: 0, number: 1, bytes: u64::MAX }),
        Event::point(10, What::Counter { chunk, name: NameId(77), value: f64::NAN }),
        Event::point(10, What::Counter { chunk, name: NameId(77), value: -1e308 }),
        Event::point(10, What::Counter { chunk, name: NameId(77), value: 1e308 }),
    ];
    writer.events(0, &events).unwrap();
    let end = End { elapsed_ns: u64::MAX, dropped: u64::MAX, ..End::default() };
    writer.finish(&end).unwrap();
    let html = page(&scratch);
    assert!(html.contains("1 went to ranks that left no trace"));
    assert!(!html.contains("NaN"), "no place in a picture is without a number");
}

#[test]
fn kinds_beyond_those_told_apart_are_counted_as_one() {
    let scratch = Scratch::new("report-kinds");
    let mut writer = Writer::create(scratch.path(), &run_of(1, 0)).unwrap();
    let names: Vec<Name> =
        (0..300).map(|n| Name { array: Some(ArrayId(0)), text: format!("K{n}") }).collect();
    writer.names(&names).unwrap();
    let event = |n: u64| {
        let Event { what: What::Handler { chunk, from, .. }, .. } = handler(0, 0, 0) else { unreachable!() };
        let what = What::Handler { chunk, kind: NameId(n as u32), from, number: 0, lost_ns: 0 };
        Event { begin_ns: 10 * n, end_ns: 10 * n + 10, what }
    };
    writer.events(0, &(0..300).map(event).collect::<Vec<_>>()).unwrap();
    writer.finish(&End { elapsed_ns: 3000, ..End::default() }).unwrap();
    let html = page(&scratch);
    assert!(html.contains("100 kinds are merged into one"));
    let kinds = rows(&html, "profile-table");
    let column = |place: usize| kinds.iter().map(move |row| row[place].parse::<f64>().unwrap() as u64);
    assert_eq!((kinds.len(), column(2).sum::<u64>(), column(4).max()), (201, 3000, Some(100)));
}

#[test]
fn sums_of_time_are_those_of_the_summary_and_of_the_profile() {
    let scratch = Scratch::new("report-totals");
    for rank in 0..2u32 {
        let mut writer = Writer::create(scratch.path(), &run_of(2, rank)).unwrap();
        writer
            .names(&["Halo", "Edge"].map(|text| Name { array: Some(ArrayId(0)), text: text.into() }))
            .unwrap();
        writer.events(0, &[handler(0, 9_950_000 + u64::from(rank), 0)]).unwrap();
        // The profile is exact, and the events are nearly so.
        let mut profile = Profile::default();
        let mut add = |activity, at_ns, ns| profile.add(activity, at_ns, at_ns + ns, ns, 3, ns / 2);
        add(Activity::Kind(NameId(0)), 0, 7_000_003 + u64::from(rank));
        add(Activity::Kind(NameId(1)), 7_100_000, 1_000_001);
        add(Activity::Runtime(Part::Measure), 8_200_000, 900_007);
        add(Activity::Lost, 9_100_000, 500_009);
        add(Activity::Idle, 9_600_000, 300_011);
        writer.profile(0, &profile).unwrap();
        writer.finish(&End { elapsed_ns: 10_000_000, ..End::default() }).unwrap();
    }
    let html = page(&scratch);
    let json = |command| trace::tests::json(&[command, scratch.text()]);
    let (summary, profile) = (json("summary"), json("profile"));
    let of = |table: &Value, key: &str, name: &str| {
        number(&row(table.as_array().unwrap(), key, name)["time_ns"]) as u64
    };
    let parts = ["chunks", "runtime", "lost, unexplained", "idle", "unaccounted"];
    let parts = parts.map(|part| of(&summary["tables"]["time"], "part", part));
    assert_eq!(parts, [16_000_009, 1_800_014, 1_000_018, 600_022, 599_937]);
    let sum = |table: &str, column: usize| {
        rows(&html, table).iter().map(|row| row[column].parse::<f64>().unwrap() as u64).sum::<u64>()
    };
    assert_eq!([1, 2, 3, 4, 5].map(|column| sum("worker-table", column)), parts);
    assert_eq!([3, 4, 5, 6].map(|column| sum("rank-table", column)), parts[..4]);
    for head in ["waiting for the vCPU", "steal", "throttled by a quota"] {
        assert!(html.contains(&format!(">{head}</")), "as the summary calls it: {head}");
    }
    let kinds = rows(&html, "profile-table");
    assert_eq!(kinds.len(), 5);
    for row in kinds.iter().filter(|row| row[0] != "lost") {
        assert_eq!(
            row[2].parse::<f64>().unwrap() as u64,
            of(&profile["tables"]["activities"], "activity", &row[0])
        );
    }
    assert!(
        html.contains("of the workers' time 80.0\u{a0}% chunks, 9.0\u{a0}% runtime, 5.0\u{a0}% lost"),
        "{html}"
    );
}

#[test]
fn advice_is_that_of_the_summary() {
    let scratch = Scratch::new("report-advice");
    let chunk = chunk(1);
    for rank in 0..2 {
        let mut writer = Writer::create(scratch.path(), &run_of(2, rank)).unwrap();
        writer.arrays(&["Rod".into()]).unwrap();
        if rank == 0 {
            let load = What::Load { chunk, sync: 0, load_ns: 1_000_000, bytes: 8 };
            writer.events(0, &[handler(0, 1_000_000, 0), Event::point(1_000_000, load)]).unwrap();
            let mut sync = SyncReport::default();
            (sync.at_ns, sync.makespan_before_ns, sync.imbalance_before) = (1_000_000, 1_000_000, 2.0);
            sync.before_ns = vec![1_000_000, 0];
            writer.syncs(&[sync]).unwrap();
        }
        writer.finish(&End { elapsed_ns: 1_000_000, ..End::default() }).unwrap();
    }
    // Text between backticks is `code` in the page.
    let html = page(&scratch).replace("<code>", "`").replace("</code>", "`");
    let summary = caribou(&["trace", "summary", scratch.text()]).unwrap();
    let advice: Vec<&str> = summary.lines().filter_map(|line| line.strip_prefix("=> ")).collect();
    assert!(advice.iter().any(|line| line.starts_with("Rod[#1] is too heavy, 2.000 times")), "{summary}");
    for line in advice {
        assert!(html.contains(&line[1..]), "{line}");
    }
}

#[test]
fn a_pool_is_not_told_of_chunks() {
    let scratch = Scratch::new("report-pool");
    let run = RunRecord { shape: Shape::Pools, ..run_of(1, 0) };
    let mut writer = Writer::create(scratch.path(), &run).unwrap();
    let what = What::Range { first: 0, count: 3, lost_ns: 0 };
    writer.events(0, &[Event { begin_ns: 0, end_ns: 900_000, what }]).unwrap();
    writer.samples(&[Sample { at_ns: 900_000, ..Sample::default() }]).unwrap();
    writer.finish(&End { elapsed_ns: 1_000_000, ..End::default() }).unwrap();
    let html = page(&scratch);
    assert!(!html.contains("By chunk") && html.contains("None of the ranges is shorter"), "{html}");
    assert!(html.contains("efficiency-table") && !html.contains(">0.000<"), "{html}");
}

#[test]
fn the_same_trace_makes_the_same_page() {
    let trace = generated("report-same", 20_000);
    assert_eq!(page(&trace), page(&trace));
}

#[test]
fn a_file_that_cannot_be_written_is_one_line() {
    let trace = generated("report-unwritable", 2_000);
    let error = caribou(&["trace", "report", trace.text(), "-o", "/nowhere/report.html"]).unwrap_err();
    assert!(error.starts_with("/nowhere/report.html: cannot be written: "), "{error}");
}
