//! Tests Chrome JSON, LB data, snapshots and listings by reading them.

use caribou::report::SyncReport;
use caribou::trace::{Sample, Shape};
use lb_strategies::balancer::{EdgeReport, EdgeReports, PhaseReport};
use lb_strategies::metrics::completion_ns;
use lb_strategies::{Assignment, Background, LinkCosts, Snapshot};
use serde_json::Value;
use trace_reader::Trace;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn json(out: &Scratch) -> Value {
    serde_json::from_slice(&std::fs::read(file(out)).unwrap()).unwrap()
}

fn check_chrome(dir: &Scratch, out: &Scratch) -> Vec<Value> {
    let trace = Trace::open(dir.path()).unwrap();
    export(dir, "chrome", out, &["--flows", "all"]).unwrap();
    let events = json(out)["traceEvents"].as_array().unwrap().clone();
    let mut found = Totals::new();
    for event in
        events.iter().filter(|event| event["cat"] == "entry" && event["args"].get("cpu_us").is_some())
    {
        let rank = event["pid"].as_u64().unwrap() as u32 - 10;
        let total = found.entry((rank, event["name"].as_str().unwrap().to_owned())).or_default();
        total.0 += (event["dur"].as_f64().unwrap() * 1e3).round() as u64;
        total.1 += 1;
    }
    assert_eq!(found, totals(&trace));
    let of = |phase: &str| {
        let mut ids: Vec<String> =
            events.iter().filter(|event| event["ph"] == phase).map(|event| event["id"].to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(of("s"), of("f"), "every arrow has one beginning and one end");
    events
}

#[test]
fn a_made_up_run_is_exported_to_chrome_json() {
    let (dir, out) = (generated("chrome-ring", 5_000), Scratch::new("chrome-ring-out"));
    let events = check_chrome(&dir, &out);
    let arrows = events.iter().filter(|event| event["ph"] == "s").count();
    assert!(arrows > 1_000, "{arrows}");
    let names = events.iter().filter(|event| event["name"] == "process_name");
    let names: Vec<&str> = names.map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["run", "rank 0 @ host0", "rank 1 @ host0", "rank 2 @ host1", "rank 3 @ host1"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_run_is_exported_to_chrome_json(workers in prop::collection::vec(steps(), 3)) {
        let (dir, out) = (Scratch::new("chrome-any"), Scratch::new("chrome-any-out"));
        write(dir.path(), &workers);
        check_chrome(&dir, &out);
    }
}

/// Schema of LB data: a key, whether it is required, and a check of its value.
type Keys = [(&'static str, bool, fn(&Value) -> bool)];

fn valid(value: &Value, keys: &Keys) {
    let object = value.as_object().unwrap();
    for key in object.keys() {
        assert!(keys.iter().any(|(known, ..)| known == key), "{key} is no key of {value}");
    }
    for (key, required, right) in keys {
        match object.get(*key) {
            Some(value) => assert!(right(value), "{key} is {value}"),
            None => assert!(!required, "{key} is missing in {value}"),
        }
    }
}

const INTEGERS: fn(&Value) -> bool =
    |value| value.as_array().is_some_and(|all| all.iter().all(|one| one.is_i64() || one.is_u64()));
const OBJECT: fn(&Value) -> bool = |value| {
    valid(
        value,
        &[
            ("type", true, |kind| kind == "object"),
            ("id", false, Value::is_u64),
            ("seq_id", false, Value::is_u64),
            ("home", false, Value::is_u64),
            ("migratable", false, Value::is_boolean),
            ("collection_id", false, Value::is_u64),
            ("index", false, INTEGERS),
            ("objgroup_id", false, Value::is_u64),
        ],
    );
    value.get("id").is_some() || value.get("seq_id").is_some()
};
const TASKS: fn(&Value) -> bool = |value| {
    let task: &Keys = &[
        ("entity", true, OBJECT),
        ("node", true, Value::is_u64),
        ("resource", true, |resource| resource == "cpu"),
        ("time", true, Value::is_f64),
        ("subphases", false, Value::is_array),
        ("user_defined", false, Value::is_object),
        ("attributes", false, Value::is_object),
    ];
    value.as_array().unwrap().iter().for_each(|one| valid(one, task));
    true
};
const COMMUNICATIONS: fn(&Value) -> bool = |value| {
    let edge: &Keys = &[
        ("type", true, Value::is_string),
        ("from", true, OBJECT),
        ("to", true, OBJECT),
        ("messages", true, Value::is_u64),
        ("bytes", true, Value::is_f64),
    ];
    value.as_array().unwrap().iter().for_each(|one| valid(one, edge));
    true
};

fn check_lbdata(file: &Value) {
    valid(
        file,
        &[
            ("type", true, |kind| kind == "LBDatafile"),
            ("metadata", false, Value::is_object),
            ("phases", true, Value::is_array),
        ],
    );
    for phase in file["phases"].as_array().unwrap() {
        valid(
            phase,
            &[
                ("id", true, Value::is_u64),
                ("tasks", true, TASKS),
                ("communications", false, COMMUNICATIONS),
                ("user_defined", false, Value::is_object),
            ],
        );
    }
}

#[test]
fn the_examples_of_lb_data_pass_the_check_that_ours_must_pass() {
    let dir =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/lbaf/challenging_toy_fewer_tasks");
    if !dir.is_dir() {
        println!("skipped: {} is not there", dir.display());
        return;
    }
    for rank in 0..16 {
        let text = std::fs::read(dir.join(format!("toy.{rank}.json"))).unwrap();
        check_lbdata(&serde_json::from_slice(&text).unwrap());
    }
}

#[test]
fn lb_data_is_read_back_as_it_was_written() {
    let (dir, out) = (generated("lbdata-back", 20_000), Scratch::new("lbdata-back-out"));
    export(&dir, "lbdata", &out, &[]).unwrap();
    let loads = crate::recorded::read("", &out.join("data")).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    trace.for_each(|rank, _, event| {
        if let What::Load { sync, load_ns, bytes, .. } = event.what {
            expected.push((sync, rank.rank, load_ns, bytes));
        }
    });
    let mut sent = 0;
    for snapshot in loads.snapshots() {
        let chunks = snapshot.chunks.iter();
        found.extend(chunks.map(|chunk| (snapshot.phase, chunk.rank.0, chunk.ticks, chunk.bytes)));
        sent += snapshot.edges.iter().map(|edge| edge.bytes).sum::<u64>();
        assert_eq!(snapshot.ranks.iter().map(|rank| rank.host).collect::<Vec<_>>(), [0, 0, 1, 1]);
    }
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    let mut written = 0.0;
    for rank in 0..4u32 {
        let text = std::fs::read(out.path().join(format!("data.{rank}.json"))).unwrap();
        let file: Value = serde_json::from_slice(&text).unwrap();
        let edges = file["phases"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|phase| phase["communications"].as_array().unwrap());
        let others = edges.filter(|edge| edge["from"]["id"] != edge["to"]["id"]);
        written += others.map(|edge| edge["bytes"].as_f64().unwrap()).sum::<f64>();
    }
    assert_eq!(sent, written as u64);
    assert!(sent > 0);
}

#[test]
fn lb_data_has_every_load_of_every_phase_and_what_was_sent() {
    let (dir, out) = (generated("lbdata", 20_000), Scratch::new("lbdata-out"));
    export(&dir, "lbdata", &out, &[]).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    let mut loads: BTreeMap<(u64, u32), (u64, u64)> = BTreeMap::new();
    let mut sent = 0;
    let last_ns = trace.ranks[0].samples.iter().filter(|sample| sample.sync.is_some()).map(|s| s.at_ns).max();
    trace.for_each(|rank, _, event| match event.what {
        What::Load { sync, load_ns, .. } => {
            let load = loads.entry((sync, rank.rank)).or_default();
            *load = (load.0 + load_ns, load.1 + 1);
        }
        What::Send { bytes, .. } if event.end_ns <= last_ns.unwrap() => sent += bytes,
        _ => {}
    });
    let (mut found, mut found_sent, mut ids) = (BTreeMap::new(), 0.0, std::collections::BTreeSet::new());
    for rank in 0..4u32 {
        let text = std::fs::read(out.path().join(format!("data.{rank}.json"))).unwrap();
        let file: Value = serde_json::from_slice(&text).unwrap();
        check_lbdata(&file);
        assert_eq!(file["metadata"]["rank"], rank);
        let phases = file["phases"].as_array().unwrap();
        assert_eq!(phases.len(), trace.syncs.len());
        for (expected, phase) in (0u64..).zip(phases) {
            assert_eq!(phase["id"], expected);
            for task in phase["tasks"].as_array().unwrap() {
                let load = found.entry((expected, rank)).or_insert((0, 0));
                *load = (load.0 + (task["time"].as_f64().unwrap() * 1e9).round() as u64, load.1 + 1);
                let id = task["entity"]["id"].as_u64().unwrap();
                assert_eq!((id & 3, id >> 2 & 0xffff), (3, task["entity"]["home"].as_u64().unwrap()));
                ids.insert(id);
            }
            let edges = phase["communications"].as_array().unwrap();
            found_sent += edges.iter().map(|edge| edge["bytes"].as_f64().unwrap()).sum::<f64>();
        }
    }
    assert_eq!(found, loads);
    assert_eq!((found_sent as u64, ids.len()), (sent, 32));
}

#[test]
fn a_recorded_phase_can_be_balanced_again() {
    let (dir, out) = (generated("snapshot", 20_000), Scratch::new("snapshot-out"));
    let said = export(&dir, "snapshot", &out, &["--phase", "1"]).unwrap();
    assert!(said.ends_with("phase 1, 32 chunks on 4 ranks\n"), "{said}");
    let again = crate::tests::json(&["balance", "--snapshot", &out.join("file"), "--lb", "none;greedy"]);
    assert_eq!(again["rows"].as_array().unwrap().len(), 2);
    let snapshot = json(&out);
    assert_eq!(snapshot["edges"].as_array().unwrap().len(), 64);
    let refused = export(&dir, "snapshot", &out, &["--phase", "999"]).unwrap_err();
    assert!(refused.starts_with("no loads of phase 999 are in the trace; the last phase is "), "{refused}");
}

#[test]
fn a_phase_without_recorded_messages_has_those_that_ranks_reported() {
    let dir = Scratch::new("reported-edges");
    for rank in 0..2 {
        let run = RunRecord { rank, ranks: 2, workers: vec![1; 2], ..RunRecord::default() };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        writer.arrays(&["Ring".into()]).unwrap();
        let load = |key| What::Load { chunk: chunk(key), sync: 0, load_ns: SECOND_NS, bytes: 8 };
        let keys = [u64::from(rank), u64::from(rank) + 2];
        writer.events(0, &keys.map(|key| Event::point(SECOND_NS, load(key)))).unwrap();
        writer.samples(&[Sample { sync: Some(0), ..Sample::default() }]).unwrap();
        let edge = |from, to, messages| EdgeReport { from: chunk(from), to: chunk(to), messages, bytes: 10 };
        let report = |edges| PhaseReport { edges: EdgeReports::new(edges, 0), ..PhaseReport::default() };
        let window = report(vec![edge(0, 1, 5), edge(1, 2, u64::MAX)]);
        let edges = vec![edge(0, 1, 2), edge(1, 2, 3), edge(9, 0, 1)];
        let reported = PhaseReport { undecided: vec![window], ..report(edges) };
        let mut sync = SyncReport::default();
        sync.reported = Some(std::sync::Arc::new(reported));
        writer.syncs(&[sync]).unwrap();
        writer.finish(&End { elapsed_ns: SECOND_NS, ..End::default() }).unwrap();
    }
    let out = Scratch::new("reported-edges-out");
    export(&dir, "snapshot", &out, &[]).unwrap();
    let snapshot: Snapshot = serde_json::from_value(json(&out)).unwrap();
    let name = |position: usize| snapshot.chunks[position].id.key;
    let edges: Vec<_> =
        snapshot.edges.iter().map(|edge| (name(edge.from), name(edge.to), edge.messages)).collect();
    assert_eq!(edges, [(0, 1, 7), (1, 2, u64::MAX)], "sums saturate");
    let out = Scratch::new("reported-edges-lbdata");
    export(&dir, "lbdata", &out, &[]).unwrap();
    for (rank, messages) in [(0, 7), (1, u64::MAX)] {
        let text = std::fs::read(out.path().join(format!("data.{rank}.json"))).unwrap();
        let file: Value = serde_json::from_slice(&text).unwrap();
        let communications = file["phases"][0]["communications"].as_array().unwrap();
        assert_eq!((communications.len(), &communications[0]["messages"]), (1, &Value::from(messages)));
    }
}

#[test]
fn messages_of_a_chunk_that_moved_within_a_phase_are_with_its_load() {
    let dir = Scratch::new("moved-within");
    for rank in 0..2 {
        let run = RunRecord { rank, ranks: 2, workers: vec![1; 2], arrows: 1, ..RunRecord::default() };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        writer.arrays(&["Ring".into()]).unwrap();
        // Chunk 1 begins on rank 0 and sends there and on rank 1, which has its load. Chunk 9 has no load.
        let sent = |at_ns, from, bytes| {
            let to = chunk(2);
            Event::point(at_ns, What::Send { chunk: chunk(from), to, rank: 1, number: at_ns as u32, bytes })
        };
        let load = |key| {
            Event::point(SECOND_NS, What::Load { chunk: chunk(key), sync: 0, load_ns: SECOND_NS, bytes: 8 })
        };
        let events = match rank {
            0 => vec![sent(1, 1, 10), sent(2, 0, 1), sent(3, 1, 20), sent(4, 9, 5), load(0)],
            _ => vec![sent(5, 1, 40), load(1), load(2)],
        };
        writer.events(0, &events).unwrap();
        writer.samples(&[Sample { sync: Some(0), ..Sample::default() }]).unwrap();
        writer.finish(&End { elapsed_ns: SECOND_NS, ..End::default() }).unwrap();
    }
    let out = Scratch::new("moved-within-out");
    export(&dir, "snapshot", &out, &[]).unwrap();
    let snapshot: Snapshot = serde_json::from_value(json(&out)).unwrap();
    let edges: Vec<_> =
        snapshot.edges.iter().map(|edge| (edge.from, edge.to, edge.messages, edge.bytes)).collect();
    assert_eq!(edges, [(0, 2, 1, 1), (1, 2, 3, 70)], "one edge a pair");
    for ranks in [&[][..], &["--rank", "1"]] {
        let out = Scratch::new("moved-within-lbdata");
        export(&dir, "lbdata", &out, ranks).unwrap();
        for (rank, amount) in [(0, (1, 1.0)), (1, (3, 70.0))].into_iter().skip(ranks.len() / 2) {
            let text = std::fs::read(out.path().join(format!("data.{rank}.json"))).unwrap();
            let file: Value = serde_json::from_slice(&text).unwrap();
            let edges = file["phases"][0]["communications"].as_array().unwrap();
            let amounts = edges
                .iter()
                .map(|edge| (edge["messages"].as_u64().unwrap(), edge["bytes"].as_f64().unwrap()));
            assert_eq!(amounts.collect::<Vec<_>>(), [amount], "rank {rank}");
        }
    }
}

#[test]
fn a_sample_of_messages_is_scaled_unless_ranks_reported_all() {
    for (name, windows, expected) in [
        ("unreported", None, (32, 3200)),
        ("part", Some([0, 5]), (32, 3200)),
        ("reported", Some([2, 5]), (7, 20)),
    ] {
        let dir = Scratch::new(&format!("sampled-{name}"));
        let run = RunRecord { ranks: 1, workers: vec![1], arrows: 16, ..RunRecord::default() };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        writer.arrays(&["Ring".into()]).unwrap();
        let sent = |at_ns| {
            let what =
                What::Send { chunk: chunk(0), to: chunk(1), rank: 0, number: at_ns as u32, bytes: 100 };
            Event::point(at_ns, what)
        };
        let load = |key| {
            Event::point(SECOND_NS, What::Load { chunk: chunk(key), sync: 0, load_ns: SECOND_NS, bytes: 8 })
        };
        writer.events(0, &[sent(1), sent(2), load(0), load(1)]).unwrap();
        let edges = |messages: u64| {
            let edge = EdgeReport { from: chunk(0), to: chunk(1), messages, bytes: 10 };
            EdgeReports::new((messages > 0).then_some(edge).into_iter().collect(), 0)
        };
        let report = |messages| PhaseReport { edges: edges(messages), ..PhaseReport::default() };
        let mut sync = SyncReport::default();
        sync.reported = windows.map(|[undecided, decided]| {
            std::sync::Arc::new(PhaseReport { undecided: vec![report(undecided)], ..report(decided) })
        });
        writer.syncs(&[sync]).unwrap();
        writer.finish(&End { elapsed_ns: SECOND_NS, ..End::default() }).unwrap();
        let out = Scratch::new(&format!("sampled-{name}-out"));
        let said = export(&dir, "snapshot", &out, &[]).unwrap();
        let snapshot: Snapshot = serde_json::from_value(json(&out)).unwrap();
        let edges: Vec<_> = snapshot.edges.iter().map(|edge| (edge.messages, edge.bytes)).collect();
        assert_eq!(edges, [expected], "{name}");
        let out = Scratch::new(&format!("sampled-{name}-lbdata"));
        let said = said + &export(&dir, "lbdata", &out, &[]).unwrap();
        assert_eq!(said.matches("16 times those, estimates").count(), if expected.0 == 32 { 2 } else { 0 });
        let file: Value = serde_json::from_slice(&std::fs::read(out.join("data.0.json")).unwrap()).unwrap();
        let edge = &file["phases"][0]["communications"][0];
        assert_eq!(
            (edge["messages"].as_u64(), edge["bytes"].as_f64()),
            (Some(expected.0), Some(expected.1 as f64))
        );
    }
}

#[test]
fn a_trace_without_loads_is_refused_with_the_filter_that_left_them_out() {
    for (filter, why) in [
        ("none", "CARIBOU_TRACE_FILTER was `none`, without `chunks`; -messages keeps them"),
        ("handlers,messages=4", "CARIBOU_TRACE_FILTER was `handlers,messages=4`, without `chunks`"),
        ("all,array=Block", "no chunk came to a recorded sync"),
        ("handlers,chunks", "no chunk came to a recorded sync"),
        ("", "no chunk came to a recorded sync"),
    ] {
        let dir = Scratch::new("no-loads");
        let run = RunRecord { filter: filter.into(), ranks: 1, workers: vec![1], ..RunRecord::default() };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        writer.samples(&[Sample { sync: Some(9), ..Sample::default() }]).unwrap();
        writer.finish(&End { elapsed_ns: SECOND_NS, ..End::default() }).unwrap();
        for (to, more) in [("snapshot", &[][..]), ("snapshot", &["--phase", "9"]), ("lbdata", &[])] {
            let out = Scratch::new("no-loads-out");
            let expected = format!("the trace has no loads of chunks: {why}");
            crate::tests::refused(export(&dir, to, &out, more), &expected);
        }
    }
}

/// Begins the trace of a run on one rank.
fn of_one_rank(dir: &Scratch) -> Writer {
    let run = RunRecord { ranks: 1, workers: vec![1], ..RunRecord::default() };
    let mut writer = Writer::create(dir.path(), &run).unwrap();
    writer.arrays(&["Ring".into()]).unwrap();
    writer
}

#[test]
fn phases_without_the_loads_of_some_chunks_are_left_out() {
    let dir = Scratch::new("partial");
    let mut writer = of_one_rank(&dir);
    // The last phase has the load of one chunk of two.
    for (sync, chunks) in [(0, 2), (1, 2), (2, 1)] {
        let at_ns = (sync + 1) * SECOND_NS;
        let load =
            |key| Event::point(at_ns, What::Load { chunk: chunk(key), sync, load_ns: SECOND_NS, bytes: 8 });
        writer.events(0, &(0..chunks).map(load).collect::<Vec<_>>()).unwrap();
        let mut record = SyncReport::default();
        (record.sync, record.chunks_per_rank) = (sync, vec![2]);
        writer.syncs(&[record]).unwrap();
    }
    writer.finish(&End { elapsed_ns: 3 * SECOND_NS, ..End::default() }).unwrap();
    let left_out = "left out at the end: 1 phase without loads of some chunks";
    let out = Scratch::new("partial-out");
    let said = export(&dir, "snapshot", &out, &[]).unwrap();
    assert!(said.contains("phase 1, 2 chunks on 1 ranks") && said.contains(left_out), "{said}");
    let asked = export(&dir, "snapshot", &Scratch::new("partial-asked"), &["--phase", "2"]).unwrap();
    assert!(asked.ends_with("phase 2, 1 chunks on 1 ranks\n"), "{asked}");
    let out = Scratch::new("partial-lbdata");
    let said = export(&dir, "lbdata", &out, &[]).unwrap();
    assert!(said.contains("2 phases of 1 rank") && said.contains(left_out), "{said}");
}

#[test]
fn lb_data_has_the_work_of_chunks_and_the_speed_of_ranks() {
    let dir = Scratch::new("slow-rank");
    for (rank, speed) in [(0, 2.0), (1, 1.0)] {
        let run = RunRecord { rank, ranks: 2, workers: vec![1; 2], ..RunRecord::default() };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        writer.arrays(&["Ring".into()]).unwrap();
        let what = What::Load { chunk: chunk(u64::from(rank)), sync: 0, load_ns: SECOND_NS, bytes: 8 };
        writer.events(0, &[Event::point(SECOND_NS, what)]).unwrap();
        writer.samples(&[Sample { sync: Some(0), speed, ..Sample::default() }]).unwrap();
        writer.finish(&End { elapsed_ns: SECOND_NS, ..End::default() }).unwrap();
    }
    let out = Scratch::new("slow-rank-out");
    export(&dir, "lbdata", &out, &[]).unwrap();
    let loads = crate::recorded::read("", &out.join("data")).unwrap();
    let snapshot = &loads.snapshots()[0];
    let ticks: Vec<u64> = snapshot.chunks.iter().map(|chunk| chunk.ticks).collect();
    assert_eq!(ticks, [SECOND_NS, SECOND_NS / 2], "a slow rank does half the work in a second");
    let now = Assignment::current(snapshot);
    assert_eq!(completion_ns(snapshot, &now, Background::Share), [SECOND_NS, SECOND_NS]);
}

#[test]
fn windows_without_a_decision_belong_to_the_phase_of_the_next_decision() {
    let dir = Scratch::new("undecided");
    let mut writer = of_one_rank(&dir);
    for window in 0..3 {
        let end_ns = (window + 1) * SECOND_NS;
        // The first two windows end in phase 0.
        let sync = window / 2;
        let load = |key| {
            let load_ns = SECOND_NS / 4 * (key + 1);
            Event::point(end_ns, What::Load { chunk: chunk(key), sync, load_ns, bytes: 8 + window })
        };
        let sent = What::Send { chunk: chunk(0), to: chunk(1), rank: 0, number: window as u32, bytes: 100 };
        writer.events(0, &[Event::point(end_ns - 1, sent), load(0), load(1)]).unwrap();
        let sample = Sample { at_ns: end_ns, sync: Some(sync), background_ns: 7, ..Sample::default() };
        writer.samples(&[sample]).unwrap();
    }
    writer.finish(&End { elapsed_ns: 3 * SECOND_NS, ..End::default() }).unwrap();
    let out = Scratch::new("undecided-out");
    export(&dir, "snapshot", &out, &["--phase", "0"]).unwrap();
    let snapshot: Snapshot = serde_json::from_value(json(&out)).unwrap();
    let chunks: Vec<_> =
        snapshot.chunks.iter().map(|chunk| (chunk.id.key, chunk.ticks, chunk.bytes)).collect();
    assert_eq!(chunks, [(0, SECOND_NS / 2, 9), (1, SECOND_NS, 9)]);
    assert_eq!(snapshot.edges.iter().map(|edge| (edge.messages, edge.bytes)).collect::<Vec<_>>(), [(2, 200)]);
    assert_eq!((snapshot.ranks[0].background_ns, snapshot.links), (14, LinkCosts::assumed()));
    let out = Scratch::new("undecided-lbdata");
    export(&dir, "lbdata", &out, &[]).unwrap();
    let file: Value = serde_json::from_slice(&std::fs::read(out.join("data.0.json")).unwrap()).unwrap();
    let tasks =
        file["phases"].as_array().unwrap().iter().map(|phase| phase["tasks"].as_array().unwrap().len());
    assert_eq!(tasks.collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn a_rank_of_two_workers_finishes_when_it_did_under_both_models() {
    let (dir, out) = (Scratch::new("two-workers"), Scratch::new("two-workers-out"));
    let run = RunRecord { ranks: 1, workers: vec![2], ..RunRecord::default() };
    let mut writer = Writer::create(dir.path(), &run).unwrap();
    writer.arrays(&["Ring".into()]).unwrap();
    // Each worker got half of its vCPU for a second.
    let load = What::Load { chunk: chunk(0), sync: 0, load_ns: SECOND_NS, bytes: 8 };
    writer.events(0, &[Event::point(SECOND_NS, load)]).unwrap();
    writer.samples(&[Sample { sync: Some(0), background_ns: SECOND_NS, ..Sample::default() }]).unwrap();
    let mut sync = SyncReport::default();
    (sync.share, sync.capacity) = (vec![0.5], vec![1.0]);
    writer.syncs(&[sync]).unwrap();
    writer.finish(&End { elapsed_ns: SECOND_NS, ..End::default() }).unwrap();
    export(&dir, "snapshot", &out, &[]).unwrap();
    let snapshot: Snapshot = serde_json::from_value(json(&out)).unwrap();
    for model in [Background::Share, Background::Additive] {
        let current = Assignment::current(&snapshot);
        assert_eq!(completion_ns(&snapshot, &current, model), [SECOND_NS], "{model:?}");
    }
}

#[test]
fn a_listing_has_a_line_an_event() {
    let (dir, out) = (generated("listing", 2_000), Scratch::new("listing-out"));
    let events = Trace::open(dir.path()).unwrap().events() as usize;
    export(&dir, "csv", &out, &[]).unwrap();
    let text = std::fs::read_to_string(file(&out)).unwrap();
    assert_eq!(text.lines().count(), events + 1);
    let fields = |line: &str| line.split(',').count();
    assert!(text.lines().all(|line| fields(line) == 13), "{text}");
    export(&dir, "text", &out, &["--rank", "1"]).unwrap();
    let text = std::fs::read_to_string(file(&out)).unwrap();
    assert!(text.lines().all(|line| line.starts_with("  1.0 ")));
    assert!(text.contains("handler    Ring::Halo Ring[8] from Ring[7] #"), "{text}");
}

#[test]
fn runs_that_are_not_whole_can_be_exported() {
    for name in ["no-events", "pool", "cut"] {
        let dir = Scratch::new(&format!("export-{name}"));
        let shape = if name == "pool" { Shape::Pools } else { Shape::Arrays };
        let run = RunRecord { ranks: 3, workers: vec![2, 1, 1], shape, rank: 1, ..Default::default() };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        let range = What::Range { first: 7, count: 3, lost_ns: 1 };
        match name {
            "no-events" => writer.finish(&End { elapsed_ns: 5_000, ..End::default() }).unwrap(),
            "pool" => {
                let events = [
                    Event { begin_ns: 0, end_ns: 4_000, what: range },
                    Event::point(4_000, What::PoolSend { rank: 9 }),
                    Event::point(4_000, What::Dropped { events: u64::MAX }),
                ];
                writer.events(0, &events).unwrap();
                writer.finish(&End::default()).unwrap();
            }
            _ => {
                let kind = NameId(77);
                let what = What::Handler { chunk: RUNTIME, kind, from: chunk(1), number: 0, lost_ns: 0 };
                writer.events(0, &[Event { begin_ns: 1, end_ns: 9, what }]).unwrap();
            }
        }
        for to in ["projections", "perfetto", "chrome", "lbdata", "text", "csv"] {
            let out = Scratch::new(&format!("export-{name}-{to}"));
            let done = export(&dir, to, &out, &[]);
            if (name, to) == ("pool", "lbdata") {
                assert_eq!(done.unwrap_err(), "LB data is of chunks and syncs, and a pool has neither");
                continue;
            }
            if to == "lbdata" {
                let why = "the trace has no loads of chunks: the run had no sync, so no phase ended";
                assert_eq!(done.unwrap_err(), why);
                continue;
            }
            done.unwrap();
            if to == "projections" {
                let read = read_export(out.path()).unwrap();
                assert_eq!(
                    (read.symbols.processors, read.rows.len()),
                    (4, 1),
                    "rows of missing ranks are free"
                );
                assert!(read.rows.contains_key(&2));
            }
        }
        let out = Scratch::new(&format!("export-{name}-snapshot"));
        assert!(export(&dir, "snapshot", &out, &[]).is_err());
    }
}
