//! Tests `diff` on runs that differ in one property each.

use caribou::report::SyncReport;
use caribou::trace::{ArrayId, End, Event, Name, NameId, Part, RUNTIME, RunRecord, What, Writer};
use serde_json::Value;

use crate::tests::{Scratch, caribou, caribou_says, exit_code_unread};
use crate::trace::tests::{chunk, generated, number, row, rows, run_of};

/// A run of `elapsed_ns` with two workers of one chunk each. They compute for `cpu_ns` and lose `lost_ns`.
fn run(name: &str, cpu_ns: [u64; 2], lost_ns: u64, elapsed_ns: u64) -> Scratch {
    let dir = Scratch::new(&format!("diff-{name}"));
    for rank in 0..2u32 {
        let run = RunRecord { run_id: name.into(), ..run_of(2, rank) };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        writer.arrays(&["Ring".into()]).unwrap();
        writer.names(&[Name { array: Some(ArrayId(0)), text: "Halo".into() }]).unwrap();
        let chunk = chunk(rank.into());
        let what = What::Handler { chunk, kind: NameId(0), from: RUNTIME, number: 0, lost_ns };
        let begin_ns = 100;
        let end_ns = begin_ns + cpu_ns[rank as usize] + lost_ns;
        let part = What::Runtime { part: Part::Start, sync: 0 };
        let events = [Event { begin_ns: 0, end_ns: begin_ns, what: part }, Event { begin_ns, end_ns, what }];
        writer.events(0, &events).unwrap();
        writer.finish(&End { elapsed_ns, ..End::default() }).unwrap();
    }
    dir
}

fn json(before: &str, after: &str) -> Value {
    crate::trace::tests::json(&["diff", before, after])
}

fn change(json: &Value, table: &str, key: &str, name: &str) -> (i64, Value) {
    let row = row(rows(json, table), key, name);
    (number(&row["change_ns"]) as i64, row["verdict"].clone())
}

#[test]
fn runs_that_are_not_alike_are_compared_with_a_warning() {
    let started = |name: &str, arguments: &str, messages| {
        let dir = Scratch::new(&format!("diff-{name}"));
        let arguments = arguments.split(' ').map(str::to_owned).collect();
        let run = RunRecord { ranks: 1, workers: vec![1], arguments, ..RunRecord::default() };
        let writer = Writer::create(dir.path(), &run).unwrap();
        writer.finish(&End { elapsed_ns: 1000, messages, ..End::default() }).unwrap();
        dir
    };
    let first = started("first", "/a/stencil2d --grid 64 --iterations 200", 1000);
    let warning = |name: &str, arguments: &str, messages| {
        let other = started(name, arguments, messages);
        let says = json(first.text(), other.text())["says"][0].as_str().unwrap().to_owned();
        says.strip_prefix("warning: ").map(str::to_owned)
    };
    assert_eq!(warning("alike", "/b/stencil2d --iterations 200 --grid 64", 1010), None);
    let said = warning("longer", "/a/stencil2d --grid 64 --iterations 300", 1500).unwrap();
    assert!(said.starts_with("the runs had different options, one `--iterations 200` and another `--iterations 300`; that may be"), "{said}");
    let said = warning("other", "/a/montecarlo", 1000).unwrap();
    assert!(said.starts_with("the runs are of different programs, stencil2d and montecarlo;"), "{said}");
    let said = warning("more", "/a/stencil2d --grid 64 --iterations 200", 1500).unwrap();
    assert!(said.starts_with("the runs did different amounts of work, 1000 and 1500 deliveries"), "{said}");
}

#[test]
fn the_causes_of_a_slower_run_add_up_to_its_change() {
    let before = run("causes-a", [1000, 1000], 0, 1500);
    let after = run("causes-b", [1000, 1800], 200, 2500);
    let found = json(before.text(), after.text());
    let of = |cause| change(&found, "causes", "cause", cause).0;
    // The average of 1000 and 1800 is 1400, and the busiest worker has 400 more. 2500 - 2100 is left over.
    let causes = ["cpu", "lost", "runtime", "imbalance", "waiting"].map(of);
    assert_eq!(causes, [400, 200, 0, 400, 0]);
    let ratio = |cause: &str| {
        let rows = found["tables"]["causes"].as_array().unwrap();
        rows.iter().find(|row| row["cause"] == cause).unwrap()["ratio"].clone()
    };
    assert_eq!([ratio("cpu"), ratio("waiting")], [Value::from(1.4), Value::from(1.0)]);
    assert_eq!(ratio("lost"), Value::Null, "there was nothing before");
    let (little, much) =
        (run("little", [100_000; 2], 20, 200_000), run("much", [100_000; 2], 90_000, 300_000));
    let grown = json(little.text(), much.text());
    let lost = &grown["tables"]["causes"].as_array().unwrap()[2];
    assert_eq!((&lost["cause"], &lost["ratio"]), (&"lost".into(), &Value::Null), "next to nothing: {lost}");
    assert_eq!(causes.iter().sum::<i64>(), of("total"));
    let says = found["says"][0].as_str().unwrap();
    assert!(
        says.starts_with("AFTER is 1.00 us (66.7 %) slower than BEFORE, 1.50 us -> 2.50 us: cpu +400 ns"),
        "{says}"
    );
    assert_eq!(found["tables"]["chunks"][0]["chunk"], "Ring[#1]");
    assert_eq!(change(&found, "chunks", "chunk", "Ring[#1]"), (800, Value::Null));
    assert_eq!(change(&found, "ranks", "rank", "rank 0").0, 0);
    assert_eq!(change(&found, "kinds", "kind", "Ring::Halo").0, 400, "as in cpu: the average of the workers");
    let causes = found["tables"]["causes"].to_string();
    assert!(!causes.contains("idle"), "part of others: {causes}");
    assert!(found["notes"].to_string().contains("one run per side: the noise is unknown"));
}

#[test]
fn imbalance_that_is_made_up_for_in_the_next_phase_is_imbalance() {
    const SECOND: u64 = 1_000_000_000;
    let phases = |name: &str, busy: [(u64, u64); 2]| {
        let dir = Scratch::new(&format!("diff-{name}"));
        for (rank, (begin_ns, end_ns)) in (0..2u32).zip(busy) {
            let run = RunRecord { ranks: 2, workers: vec![1; 2], rank, ..RunRecord::default() };
            let mut writer = Writer::create(dir.path(), &run).unwrap();
            let what =
                What::Handler { chunk: chunk(0), kind: NameId(0), from: RUNTIME, number: 0, lost_ns: 0 };
            writer.events(0, &[Event { begin_ns, end_ns, what }]).unwrap();
            let mut sync = SyncReport::default();
            sync.at_ns = SECOND;
            writer.syncs(&vec![sync; usize::from(rank == 0)]).unwrap();
            writer.finish(&End { elapsed_ns: 2 * SECOND, ..End::default() }).unwrap();
        }
        dir
    };
    let (even, uneven) =
        (phases("even", [(0, SECOND), (0, SECOND)]), phases("uneven", [(0, SECOND), (SECOND, 2 * SECOND)]));
    let found = json(even.text(), uneven.text());
    assert_eq!(change(&found, "causes", "cause", "imbalance").0, SECOND as i64);
    let limit = ["--fail-if", "imbalance > 1"];
    assert!(caribou(&[&["trace", "diff", even.text(), uneven.text()][..], &limit].concat()).is_err());
}

#[test]
fn a_change_within_the_spread_of_either_side_is_the_same() {
    let runs: Vec<Scratch> = [1000, 1300, 1100, 1350, 1500, 2000]
        .iter()
        .enumerate()
        .map(|(number, &cpu_ns)| run(&format!("spread-{number}"), [cpu_ns, cpu_ns], 0, 3000 + 10 * cpu_ns))
        .collect();
    let list = |numbers: &[usize]| numbers.iter().map(|&n| runs[n].text()).collect::<Vec<_>>().join(",");
    // The medians are 1100 and 1350, the spread is 300.
    let found = json(&list(&[0, 1, 2]), &list(&[3]));
    assert_eq!(change(&found, "causes", "cause", "cpu"), (250, "same".into()));
    assert!(found["says"][0].as_str().unwrap().starts_with("AFTER is as fast as BEFORE"));
    let found = json(&list(&[0, 1, 2]), &list(&[4, 4]));
    assert_eq!(change(&found, "causes", "cause", "cpu"), (400, "more".into()));
    let found = json(&list(&[4, 5]), &list(&[0]));
    // The median of two values is between them.
    assert_eq!(change(&found, "causes", "cause", "cpu"), (-750, "less".into()));
}

#[test]
fn a_limit_that_is_broken_is_exit_code_one_after_the_page() {
    let (before, after) = (run("limit-a", [1000; 2], 0, 2000), run("limit-b", [1000; 2], 0, 2200));
    let diff = |limit: &str| {
        let (text, error) = caribou_says(&["trace", "diff", before.text(), after.text(), "--fail-if", limit]);
        (text, error.map(|error| (error.exit_code(), error.to_string())))
    };
    assert_eq!(diff("total > 1.11").1, None);
    assert_eq!(diff("cpu<1").1, None);
    let (text, error) = diff("total > 1.05");
    assert!(text.contains("imbalance"), "the page comes first: {text}");
    assert_eq!(error, Some((1, "total is 1.1000 times what it was: --fail-if 'total > 1.05'".into())));
    let unread =
        |limit: &str| exit_code_unread(&["trace", "diff", before.text(), after.text(), "--fail-if", limit]);
    assert_eq!(["total > 1.11", "total > 1.05"].map(unread), [0, 1]);
    for (limit, what) in [
        ("speed > 1", "`speed` is none of total, cpu"),
        ("total", "expected a cause"),
        ("total > x", "expected"),
    ] {
        let (_, error) = diff(limit);
        let (code, line) = error.unwrap();
        assert!(code == 2 && line.contains(what), "{line}");
    }
}

#[test]
fn runs_of_different_ranks_and_chunks_are_compared_by_name() {
    let dir = Scratch::new("diff-ranks");
    caribou(&["trace", "generate", dir.text(), "--events", "3000", "--ranks", "2"]).unwrap();
    let other = generated("diff-more-ranks", 3000);
    let found = json(dir.text(), other.text());
    assert_eq!(found["tables"]["ranks"].as_array().unwrap().len(), 4);
    assert_eq!(found["tables"]["chunks"].as_array().unwrap().len(), 32);
    let same = json(dir.text(), dir.text());
    assert!(same["says"][0].as_str().unwrap().starts_with("AFTER is as fast as BEFORE"));
    assert!(same["tables"]["causes"].as_array().unwrap().iter().all(|row| row["change_ns"] == 0.0));
}

#[test]
fn a_run_that_is_not_whole_is_compared_and_not_judged() {
    let before = run("whole", [1000, 2000], 0, 3000);
    let after = run("missing", [1000, 2000], 0, 1000);
    std::fs::remove_file(after.path().join("rank-00001.trace")).unwrap();
    let diff = ["trace", "diff", before.text(), after.text()];
    assert!(json(before.text(), after.text())["notes"].to_string().contains("1 rank missing"));
    assert!(caribou_says(&diff).1.is_none());
    let error = caribou_says(&[&diff[..], &["--fail-if", "total > 1.05"]].concat()).1.unwrap();
    let why = error.to_string();
    assert_eq!(error.exit_code(), 1);
    assert!(why.starts_with("--fail-if needs complete runs: ") && why.ends_with("1 rank missing"), "{why}");
}
