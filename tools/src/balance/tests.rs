use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caribou::config::{Period, Pin};
use caribou::report::SyncReport;
use caribou::trace::{End, RunRecord, Writer};
use caribou::{Chunk, Config, Ctx, Load, Reducer, Target, Values};
use lb_strategies::balancer::PhaseReport;
use lb_strategies::{ARRAYS, Rank};
use serde::{Deserialize, Serialize};
use trace_reader::Trace;

use crate::tests::{Scratch, caribou, json, refused};

const SYNCS: u32 = 6;

/// Comes to some syncs and sets its own load.
#[derive(Serialize, Deserialize)]
struct Weight {
    ticks: u64,
    syncs: u32,
}

impl Chunk for Weight {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.syncs < SYNCS {
            ctx.at_sync();
        } else {
            ctx.contribute(0, Reducer::Sum, vec![1.0], Target::Chunk(0));
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.syncs += 1;
        self.start(ctx);
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn reduced(_: u32, _: Values) {}

    fn load(&self) -> Load {
        if self.ticks > 0 { Load::Ticks(self.ticks) } else { Load::Measured }
    }
}

/// Records a run in a directory that no other test uses.
fn record(name: &str, reports: bool) -> Scratch {
    record_within(name, reports, None)
}

/// Records a run with a limit of memory.
fn record_within(name: &str, reports: bool, limit: Option<u64>) -> Scratch {
    let dir = Scratch::new(name);
    let config =
        Config::default().ranks(2).pin(Pin::Off).period(20).lb("refine,tolerance=0.01").expect("listed");
    let config = config.lb_memory(limit);
    caribou::run(config.trace(dir.path()).lb_reports(reports), |setup| {
        let ticks = |index: u32| if index.is_multiple_of(3) { 0 } else { u64::from(index) * 1_000_000 };
        setup.array(12, move |index| Weight { ticks: ticks(index), syncs: 0 });
    })
    .expect("it ends");
    dir
}

/// The output of `caribou balance` as a list of syncs.
fn rows(arguments: &[&str]) -> Vec<serde_json::Value> {
    let rows = json(&[&["balance"], arguments].concat());
    rows.as_array().expect("a list").clone()
}

#[test]
fn the_strategy_of_a_recorded_run_decides_each_of_its_syncs_again() {
    let dir = record("balance-again", true);
    let trace = Trace::open(dir.path()).expect("it was recorded");
    let rows = rows(&["--trace", dir.text()]);
    assert_eq!(rows.len(), SYNCS as usize);
    assert!(trace.syncs.iter().any(|sync| sync.moved > 0));
    for (row, sync) in rows.iter().zip(&trace.syncs) {
        let again =
            ["sync", "proposed", "moved", "expected_gain_ns", "needed_gain_ns", "makespan_predicted_ns"]
                .map(|field| row[field].as_u64().expect("a number"));
        let SyncReport { sync, proposed, moved, gain_ns, needed_ns, makespan_predicted_ns, .. } = *sync;
        assert_eq!(again, [sync, proposed, moved, gain_ns, needed_ns, makespan_predicted_ns]);
    }
    let text =
        caribou(&["balance", "--trace", dir.text(), "--lb", "greedy;none"]).expect("others can be asked");
    assert!(text.starts_with("Each sync starts from the placement that the run had at it"), "{text}");
    assert_eq!(text.lines().count(), 5 + 2 * SYNCS as usize, "{text}");
    assert!(text.lines().rev().nth(3).is_some_and(|line| line.starts_with("none ")), "{text}");
}

#[test]
fn a_recorded_run_is_decided_within_its_memory() {
    // All ranks are above the limit from the start, so they get no chunks.
    let dir = record_within("balance-memory", true, Some(1));
    let trace = Trace::open(dir.path()).expect("it was recorded");
    assert_eq!(trace.run.memory_limit, Some(1));
    assert!(trace.syncs.iter().all(|sync| sync.moved == 0));
    for lb in ["refine,tolerance=0.01", "greedy", "random"] {
        let rows = rows(&["--trace", dir.text(), "--lb", lb]);
        assert!(rows.iter().all(|row| row["moved"] == 0 && row["proposed"] == 0), "{lb}: {rows:?}");
    }
    let file = Scratch::new("balance-memory.json");
    let export = ["trace", "export", dir.text(), "--to", "snapshot", "-o", file.text()];
    caribou(&export).expect("it has loads");
    let snapshot: lb_strategies::Snapshot = serde_json::from_str(&file.read()).expect("a snapshot");
    assert_eq!(snapshot.memory.expect("limited").limits, [1, 1]);
}

#[test]
fn options_for_snapshots_are_refused_for_a_trace_with_what_works_there() {
    let dir = record("balance-options", true);
    let svg = Scratch::new("balance-options.svg");
    for options in [&["--moves", "3"][..], &["--front"], &["--svg", svg.text()]] {
        let arguments = [&["balance", "--trace", dir.text()], options].concat();
        refused(
            caribou(&arguments),
            &format!("{} is not for --trace, where `--lb comm,moves=3`", options[0]),
        );
        refused(caribou(&arguments), "`caribou trace export --to snapshot` or `lbdata`");
    }
    let rows = rows(&["--trace", dir.text(), "--lb", "comm,moves=3"]);
    assert!(rows.iter().all(|row| row["moved"].as_u64() <= Some(3)), "{rows:?}");
}

/// Handles messages for `BUSY`. In the second half of that time, chunks with a low index take ten times as long.
#[derive(Serialize, Deserialize)]
struct Busy;

const BUSY: Duration = Duration::from_millis(600);

impl Chunk for Busy {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send(ctx.index(), ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        let passed = Duration::from_nanos(ctx.elapsed_ns());
        let spins = if passed > BUSY / 2 && ctx.index() < 6 { 200_000 } else { 20_000 };
        std::hint::black_box((0..spins).map(std::hint::black_box::<u64>).sum::<u64>());
        if passed < BUSY {
            // The next chunk waits for this message, so that a rank with less work is idle.
            ctx.send((ctx.index() + 1) % 12, ());
        } else {
            ctx.exit();
        }
    }
}

#[test]
fn a_run_in_windows_is_decided_again_as_it_was() {
    let dir = Scratch::new("balance-windows");
    let period = Period::Every(Duration::from_millis(10));
    let config = Config::default().ranks(2).pin(Pin::Off).balance(period).lb("refine").expect("listed");
    caribou::run(config.trace(dir.path()).lb_reports(true), |setup| {
        setup.array(12, |_| Busy);
    })
    .expect("it ends");
    let trace = Trace::open(dir.path()).expect("it was recorded");
    assert!(!trace.syncs.is_empty() && trace.syncs.iter().all(|sync| sync.window));
    let rows = rows(&["--trace", dir.text()]);
    let again =
        rows.iter().map(|row| ["proposed", "moved", "expected_gain_ns"].map(|field| row[field].as_u64()));
    let run = trace.syncs.iter().map(|sync| [sync.proposed, sync.moved, sync.gain_ns].map(Some));
    assert!(again.eq(run), "{rows:?}");
}

/// Writes the edited syncs of the trace in `dir` as another trace.
fn edited(dir: &Scratch, lb: &str, edit: impl FnOnce(&mut [SyncReport])) -> Scratch {
    let Trace { run, mut syncs, .. } = Trace::open(dir.path()).expect("it was recorded");
    edit(&mut syncs);
    let dir = Scratch::new(&format!("balance-edited-{lb}"));
    let mut writer =
        Writer::create(dir.path(), &RunRecord { lb: lb.into(), ..run }).expect("a new directory");
    writer.syncs(&syncs).expect("it can be written");
    writer.finish(&End::default()).expect("it can be written");
    dir
}

#[test]
fn the_strategy_of_the_run_takes_as_long_as_it_did_and_others_no_time() {
    const LONG_NS: u64 = 1_000_000_000_000;
    let dir = record("balance-slow", true);
    let slow = |syncs: &mut [SyncReport]| syncs.iter_mut().for_each(|sync| sync.decide_ns = LONG_NS);
    let edited = edited(&dir, "refine,tolerance=0.01", slow);
    let costs = |arguments: &[&str]| -> Vec<u64> {
        let rows = rows(&[&["--trace", edited.text()], arguments].concat());
        rows.iter().map(|row| row["needed_gain_ns"].as_u64().expect("a number")).collect()
    };
    for own in [&[][..], &["--lb", "refine,tolerance=0.01"]] {
        let costs = costs(own);
        assert!(
            costs[0] < LONG_NS / 2 && costs[1..].iter().all(|&cost_ns| cost_ns > LONG_NS / 2),
            "{costs:?}"
        );
    }
    assert!(costs(&["--lb", "greedy"]).iter().all(|&cost_ns| cost_ns < LONG_NS / 2));
}

#[test]
fn a_trace_that_cannot_be_decided_again_is_refused_with_the_reason() {
    let dir = record("balance-edited", true);
    for (lb, edit, expected) in [
        (
            "refine",
            (|report| report.chunks[0].load.rank = Rank(2)) as fn(&mut PhaseReport),
            "sync 1: a chunk is on rank 2",
        ),
        ("refine", |report| report.chunks[0].wish = Some(Rank(7)), "sync 1: a chunk is to go to rank 7"),
        ("refine", |report| report.ranks.truncate(1), "sync 1 has reports of 1 ranks, expected 2"),
        ("my-own", |_| (), "used strategy \"my-own\", which this command does not have: name one with --lb"),
    ] {
        let change =
            |syncs: &mut [SyncReport]| edit(Arc::make_mut(syncs[1].reported.as_mut().expect("kept")));
        refused(caribou(&["balance", "--trace", edited(&dir, lb, change).text()]), expected);
    }
    let edited = edited(&dir, "refine", |syncs| syncs[2].reported = None);
    let expected = "the reports of ranks to sync 2 are missing in the trace";
    refused(caribou(&["balance", "--trace", edited.text()]), expected);
}

#[test]
fn a_trace_without_reports_is_refused_with_what_would_record_them() {
    let dir = record("balance-without", false);
    refused(caribou(&["balance", "--trace", dir.text()]), "CARIBOU_LB_REPORTS=on");
}

#[test]
fn a_recorded_run_is_simulated_again_with_other_ranks_and_periods() {
    let dir = record("balance-simulated", true);
    let simulate = |more: &[&str]| {
        let cost = format!("recorded:{}", dir.text());
        caribou(
            &[
                &["simulate", "array", "--cost", &cost, "--compare", "none,refine", "--exchange", "none"],
                more,
            ]
            .concat(),
        )
        .expect("it is recorded")
    };
    let trace = Trace::open(dir.path()).expect("it was recorded");
    let chunks = trace.syncs[0].reported.as_ref().expect("kept").chunks.len();
    let same = simulate(&["--period", "1"]);
    assert!(
        same.starts_with(&format!("period 1: 2 x 1 workers, {chunks} chunks, {SYNCS} iterations")),
        "{same}"
    );
    let more = simulate(&["--period", "2,5ms", "--ranks", "3"]);
    assert!(
        more.contains(&format!("period 2: 3 x 1 workers, {chunks} chunks, {SYNCS} iterations")),
        "{more}"
    );
    let other = caribou(&["balance", "--trace", dir.text(), "--ranks", "3"]);
    refused(
        other,
        &format!("`caribou simulate array --cost recorded:{} --ranks 3` runs it on others", dir.text()),
    );
    let without = record("balance-simulated-without", false);
    let cost = format!("recorded:{}", without.text());
    refused(caribou(&["simulate", "array", "--cost", &cost]), "CARIBOU_LB_REPORTS=on");
}

/// A folder with these files of LB data, named `s.RANK.json`.
fn lbdata(name: &str, files: &[&str]) -> Scratch {
    let folder = Scratch::new(&format!("lbdata-{name}"));
    fs::create_dir(folder.path()).expect("a new folder");
    for (rank, content) in files.iter().enumerate() {
        fs::write(folder.join(&format!("s.{rank}.json")), content).expect("it can be written");
    }
    folder
}

/// Four chunks on two ranks in two phases. All chunks of rank 0 use a block; chunk 0 sends 3 MiB to chunk 3.
fn two_ranks(name: &str) -> Scratch {
    let task = |id: u64, seconds: f64| {
        format!(
            r#"{{"entity": {{"id": {id}, "home": 0, "migratable": true, "type": "object"}}, "node": 0,
                "time": {seconds:?}, "user_defined": {{"shared_id": 1, "shared_bytes": 5000000.0,
                "task_footprint_bytes": 1000000.0, "rank_working_bytes": 2000000.0}}}}"#
        )
    };
    let phase = |id: u64, tasks: &[String]| {
        let edge = r#"{"type": "SendRecv", "messages": 3, "bytes": 3145728.0,
            "from": {"type": "object", "id": 0}, "to": {"type": "object", "id": 3}}"#;
        format!(r#"{{"id": {id}, "tasks": [{}], "communications": [{edge}]}}"#, tasks.join(","))
    };
    let file = |phases: [String; 2]| format!(r#"{{"type": "LBDatafile", "phases": [{}]}}"#, phases.join(","));
    let heavy = |seconds: f64| [task(0, seconds), task(1, seconds), task(2, seconds)];
    let light = |seconds: f64| [task(3, seconds)];
    lbdata(
        name,
        &[
            &file([phase(4, &heavy(0.1)), phase(9, &heavy(0.2))]),
            &file([phase(4, &light(0.1)), phase(9, &light(0.4))]),
        ],
    )
}

#[test]
fn recorded_loads_are_balanced_by_phase() {
    let folder = two_ranks("phases");
    let stem = folder.join("s");
    let last = json(&["balance", "--lbdata", &stem, "--lb", "none,greedy"]);
    assert_eq!((&last["phase"], &last["chunks"], &last["ranks"]), (&9.into(), &4.into(), &2.into()));
    assert_eq!(
        (&last["rows"][0]["before_ns"], &last["rows"][0]["bound_ns"]),
        (&600_000_000.into(), &500_000_000.into())
    );
    let first = json(&["balance", "--lbdata", &stem, "--phase", "4", "--lb", "none,greedy"]);
    let after: Vec<f64> =
        [0, 1].map(|row| first["rows"][row]["max_over_avg_after"].as_f64().expect("a number")).into();
    assert_eq!(after, [1.5, 1.0]);
    let all = json(&["balance", "--lbdata", &stem, "--phase", "all", "--lb", "none,greedy"]);
    assert_eq!(all["phases"][0]["rows"][1]["moved_chunks"], first["rows"][1]["moved_chunks"]);
    let none = &all["summary"][0];
    assert_eq!((&none["strategy"], &none["max_over_avg_after"]["worst"]), (&"none".into(), &1.5.into()));
    let text =
        caribou(&["balance", "--lbdata", &stem, "--phase", "all", "--lb", "none,greedy"]).expect("read");
    assert!(text.starts_with("phase  strategy  imbalance before "), "{text}");
    assert!(text.contains("\n2 phases: median and worst imbalance"), "{text}");
    refused(
        caribou(&["balance", "--lbdata", &stem, "--phase", "5"]),
        "expected one of the 2 phases from 4 to 9, or all",
    );
    refused(
        caribou(&["balance", "--lbdata", &stem, "--phase", "x"]),
        "expected the number of a phase, or all",
    );
    for other in [&[][..], &["--chunks", "10"], &["--workload", "ramp"], &["--snapshot", "file.json"]] {
        let arguments = [&["balance", "--phase", "1"], other].concat();
        refused(caribou(&arguments), "--phase is for --lbdata");
    }
}

#[test]
fn messages_cost_what_the_options_say() {
    let folder = two_ranks("messages");
    let stem = folder.join("s");
    let none = |more: &[&str]| {
        let report = json(&[&["balance", "--lbdata", &stem, "--phase", "4", "--lb", "none"], more].concat());
        ["predicted_ns", "bytes_between_ranks", "bytes_between_hosts"]
            .map(|field| report["rows"][0][field].as_u64().expect("a number"))
    };
    let bytes = 3 << 20;
    assert_eq!(none(&[]), [300_000_000, bytes, bytes], "each rank has its own host");
    assert_eq!(none(&["--byte-ns", "10"]), [300_000_000 + 10 * bytes, bytes, bytes]);
    assert_eq!(none(&["--message-ns", "1e3"]), [300_003_000, bytes, bytes]);
    let one_host = ["--ranks-per-host", "2", "--byte-ns", "10"];
    assert_eq!(none(&one_host), [300_000_000 + 10 * bytes, bytes, 0]);
    let cheap = [&one_host[..], &["--byte-ns-within-host", "0.5", "--message-ns-within-host", "2"]].concat();
    assert_eq!(none(&cheap), [300_000_006 + bytes / 2, bytes, 0]);
    for wrong in ["-1", "nan", "x"] {
        refused(caribou(&["balance", "--byte-ns", wrong]), "expected nanoseconds, a number from 0 to 1e12");
    }
}

#[test]
fn the_memory_of_a_rank_includes_what_it_uses_besides_its_chunks() {
    let folder = two_ranks("memory");
    let stem = folder.join("s");
    let row = |limit: &str| {
        let report = json(&["balance", "--lbdata", &stem, "--memory-limit", limit, "--lb", "none"]);
        ["memory_max_bytes", "memory_over_bytes"]
            .map(|field| report["rows"][0][field].as_u64().expect("a number"))
    };
    assert_eq!(row("20e6"), [10_000_000, 0], "2 MB of the rank, three chunks of 1 MB, one block of 5 MB");
    assert_eq!(row("9e6"), [10_000_000, 1_000_000]);
    let front =
        |limit| json(&["balance", "--lbdata", &stem, "--memory-limit", limit, "--lb", "none", "--front"]);
    assert_eq!(
        ["20e6", "9e6"].map(|limit| front(limit)["rows"].as_array().map(Vec::len)),
        [Some(1), Some(0)]
    );
    let text =
        caribou(&["balance", "--lbdata", &stem, "--memory-limit", "9e6", "--lb", "none"]).expect("read");
    assert!(text.lines().nth(2).is_some_and(|line| line.contains(" over ")), "{text}");
    let synthetic =
        json(&["balance", "--chunks", "4", "--ranks", "2", "--memory-limit", "1e9", "--lb", "none"]);
    assert_eq!(synthetic["rows"][0]["memory_max_bytes"], 2 * 65_536);
}

#[test]
fn the_front_has_what_nothing_else_beats() {
    let lb = ["--lb", "none,rotate,random,refine,greedy,refine-paper,refine,tolerance=0.5"];
    let all = json(&[&["balance", "--chunks", "200", "--ranks", "8"], &lb[..]].concat());
    let result = |row: &serde_json::Value| {
        (
            row["moved_chunks"].as_u64().expect("a number"),
            row["max_over_avg_after"].as_f64().expect("a number"),
        )
    };
    let rows = all["rows"].as_array().expect("a list");
    let mut front = Vec::new();
    for (position, row) in rows.iter().enumerate() {
        let (moved, imbalance) = result(row);
        let is_beaten = rows.iter().map(result).zip(0..).any(|((others, lower), other)| {
            let is_better = others < moved || lower < imbalance || other < position;
            others <= moved && lower <= imbalance && is_better
        });
        assert_eq!(row["on_front"], !is_beaten, "{row}");
        front.extend((!is_beaten).then_some((moved, row["strategy"].clone())));
    }
    assert!(front.len() > 1 && front.len() < rows.len(), "{front:?}");
    front.sort_by_key(|(moved, _)| *moved);
    let kept = json(&[&["balance", "--chunks", "200", "--ranks", "8", "--front"], &lb[..]].concat());
    let names = kept["rows"].as_array().expect("a list").iter().map(|row| row["strategy"].clone());
    assert!(names.eq(front.into_iter().map(|(_, name)| name)), "{kept}");
}

#[test]
fn a_strategy_with_a_budget_runs_once_with_each() {
    let takes = |parameters: &[lb_strategies::Parameter]| {
        parameters.iter().any(|parameter| parameter.name == "moves")
    };
    let entry = ARRAYS.iter().find(|entry| takes(entry.parameters));
    let run =
        |lb: &str| caribou(&["balance", "--chunks", "50", "--ranks", "4", "--moves", "0,5", "--lb", lb]);
    refused(
        run("none,refine"),
        "--moves: no strategy in the list has a parameter `moves`, expected one that has",
    );
    if let Some(entry) = entry {
        let text = run(&format!("none,{}", entry.name)).expect("it has a budget");
        for budget in [0, 5] {
            let spec = format!("{},moves={budget} ", entry.name);
            assert_eq!(text.lines().filter(|line| line.starts_with(&spec)).count(), 1, "{text}");
        }
    }
}

#[test]
fn a_picture_whose_dots_are_in_one_place_has_axes() {
    for size in [["--chunks", "100", "--ranks", "1"], ["--chunks", "4", "--ranks", "4"]] {
        let file = Scratch::new("one-place.svg");
        let options = ["balance", "--workload", "equal", "--lb", "none", "--svg", file.text()];
        caribou(&[&options[..], &size[..]].concat()).expect("it is drawn");
        assert!(file.read().contains("imbalance by chunks moved"));
    }
}

#[test]
fn the_picture_has_each_strategy_and_the_front() {
    let (folder, svg) = (two_ranks("picture"), Scratch::new("balance-picture.svg"));
    let stem = folder.join("s");
    let draw = |phase: &str| {
        caribou(&["balance", "--lbdata", &stem, "--phase", phase, "--lb", "none,greedy", "--svg", svg.text()])
    };
    draw("all").expect("two phases");
    let text = svg.read();
    for (words, count) in
        [(">greedy<", 4), (">front<", 4), ("imbalance by chunks moved", 2), ("MiB between ranks", 2)]
    {
        assert_eq!(text.matches(words).count(), count, "{words}: {text}");
    }
    let phases: Vec<String> = (0..21).map(|id| format!(r#"{{"id": {id}, "tasks": [{TASK}]}}"#)).collect();
    let many = lbdata("many", &[&format!(r#"{{"phases": [{}]}}"#, phases.join(","))]);
    let all = ["balance", "--lbdata", &many.join("s"), "--phase", "all", "--svg", svg.text()];
    refused(caribou(&all), "--svg: panels of 21 phases, expected 20 at most");
}

const TASK: &str = r#"{"time": 1.0, "entity": {"id": 1, "migratable": true}}"#;

#[test]
fn damaged_lb_data_is_one_line_with_the_place() {
    let good = format!(r#"{{"phases": [{{"id": 0, "tasks": [{TASK}]}}]}}"#);
    let nan = good.replace("1.0", "NaN");
    let typed = good.replace("true", "1");
    for (name, files, expected) in [
        ("cut", &[&good[..40]][..], "s.0.json:1: no LB data of vt: EOF while parsing"),
        ("nan", &[&nan], "s.0.json:1: no LB data of vt: expected value at line 1 column"),
        ("type", &[&typed], "s.0.json:1: no LB data of vt: invalid type: integer `1`, expected a boolean"),
        ("list", &["[1]"], "s.0.json:1: no LB data of vt: invalid"),
        ("empty", &[""], "s.0.json:1: no LB data of vt: EOF while parsing"),
        ("none", &[r#"{"phases": []}"#], "s.0.json and those beside it: no load in any file"),
        ("twice", &[&good, &good], "s.1.json: object 1 has two loads in phase 0, one in "),
    ] {
        let folder = lbdata(name, files);
        refused(caribou(&["balance", "--lbdata", &folder.join("s")]), expected);
    }
    let folder = lbdata("names", &[&good]);
    fs::write(folder.join("s.2.json"), &good).expect("it can be written");
    fs::write(folder.join("s_more.1.json"), &good).expect("it can be written");
    let read = || caribou(&["balance", "--lbdata", &folder.join("s")]);
    refused(read(), "s.1.json is missing, expected a file for each rank from 0 to 2");
    fs::remove_file(folder.join("s.2.json")).expect("it is there");
    read().expect("one rank");
    fs::write(folder.join("s.0.json.br"), &good).expect("it can be written");
    refused(read(), "are both of rank 0, expected one file for each rank");
    fs::remove_file(folder.join("s.0.json.br")).expect("it is there");
    // A stored block of brotli that should hold more bytes.
    fs::write(folder.join("s.0.json"), [0x8b, 0x00, 0x80, b'{']).expect("it can be written");
    refused(read(), "s.0.json: neither JSON (expected value at line 1 column 1) nor compressed by brotli (");
}

/// The values are those of the sets of LBAF in the folder beside this repository, where present.
#[test]
fn shared_sets_are_read_whole() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/lbaf");
    if !Path::new(root).is_dir() {
        println!("skip: {root} not found");
        return;
    }
    for (stem, ranks, chunks, before) in [
        ("nolb-8color-16nodes-11firstphases/data", 32, 480, 1.0977061),
        ("user-defined-memory-toy-problem/toy_mem", 4, 32, 2.17143),
        ("user-defined-memory-toy-problem/toy_mem_README", 4, 32, 1.0285714),
        ("synthetic-blocks/synthetic-dataset-blocks", 4, 9, 2.0),
        ("nolb-data/data", 8, 64, 2.8718),
    ] {
        let report = json(&["balance", "--lbdata", &format!("{root}/{stem}"), "--lb", "none"]);
        assert_eq!((&report["ranks"], &report["chunks"]), (&ranks.into(), &chunks.into()), "{stem}");
        let imbalance = report["rows"][0]["max_over_avg_before"].as_f64().expect("a number");
        assert!((imbalance - before).abs() < 1e-5, "{stem}: {imbalance}");
    }
}
