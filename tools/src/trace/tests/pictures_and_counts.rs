//! Tests `timeline`, `histogram`, `outliers`, `chunks` and `comm` against independently computed figures.

use std::collections::BTreeMap;
use std::fs;

use caribou::report::SyncReport;
use caribou::trace::{
    Activity, ArrayId, End, Event, Name, NameId, Part, Profile, RUNTIME, RunRecord, Shape, What, Writer,
};
use serde_json::Value;
use trace_reader::Trace;

use super::{chunk, generated, idle, json, number, row, rows};
use crate::tests::{Scratch, caribou};

const COMMANDS: [&str; 5] = ["timeline", "histogram", "outliers", "chunks", "comm"];
const STEP: NameId = NameId(0);

fn handler(begin_ns: u64, end_ns: u64, key: u64, from: u64, number: u32, lost_ns: u64) -> Event {
    let from = if number == 0 { RUNTIME } else { chunk(from) };
    Event { begin_ns, end_ns, what: What::Handler { chunk: chunk(key), kind: STEP, from, number, lost_ns } }
}

fn send(at_ns: u64, from: u64, to: u64, rank: u32, number: u32, bytes: u64) -> Event {
    Event::point(at_ns, What::Send { chunk: chunk(from), to: chunk(to), rank, number, bytes })
}

/// A trace of ranks with one worker each and these events.
fn written(name: &str, run: &RunRecord, ranks: &[Vec<Event>]) -> Scratch {
    let dir = Scratch::new(name);
    for (rank, events) in (0..).zip(ranks) {
        let count = ranks.len() as u32;
        let (workers, hosts) = (vec![1; ranks.len()], vec!["here".into(), "here".into(), "there".into()]);
        let run = RunRecord { ranks: count, workers, hosts, rank, ..run.clone() };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        writer.arrays(&["Block".into()]).unwrap();
        writer.names(&[Name { array: Some(ArrayId(0)), text: "Step".into() }]).unwrap();
        let index = |key: u64| (chunk(key), format!("[{}, {}]", key / 2, key % 2));
        writer.chunks(&(0..4).map(index).collect::<Vec<_>>()).unwrap();
        writer.events(0, events).unwrap();
        let mut profile = Profile::default();
        profile.add(Activity::Kind(STEP), 0, 1000, 900, 3, 500);
        profile.add(Activity::Idle, 0, 1000, 100, 1, 100);
        writer.profile(0, &profile).unwrap();
        writer.finish(&End { elapsed_ns: 1000, ..End::default() }).unwrap();
    }
    dir
}

fn run_of(shape: Shape) -> RunRecord {
    RunRecord { run_id: "handmade".into(), shape, arrows: 1, ..RunRecord::default() }
}

/// The sum of a column of whole numbers.
fn sum(page: &Value, table: &str, column: &str) -> u64 {
    rows(page, table).iter().map(|row| number(&row[column])).sum::<f64>() as u64
}

#[test]
fn every_view_bears_a_trace_of_any_kind() {
    let nothing = written("b-nothing", &run_of(Shape::Arrays), &[vec![], vec![]]);
    let alone =
        written("b-alone", &run_of(Shape::Arrays), &[vec![handler(0, 10, 1, 0, 0, 0), idle(10, 1000)]]);
    let range = |begin_ns| Event {
        begin_ns,
        end_ns: begin_ns + 50,
        what: What::Range { first: begin_ns, count: 5, lost_ns: 20 },
    };
    let pool = vec![range(0), Event::point(50, What::PoolSend { rank: 1 }), range(60)];
    let pool = written("b-pool", &run_of(Shape::Pools), &[pool, vec![range(5)]]);
    let cut = generated("b-cut", 30_000);
    let file = cut.join("rank-00002.trace");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() * 2 / 3]).unwrap();
    for dir in [&nothing, &alone, &pool, &cut] {
        for command in COMMANDS {
            let svg = dir.join(&format!("{command}.svg"));
            let mut arguments = vec!["trace", command, dir.text()];
            if command != "outliers" {
                arguments.extend(["--svg", &svg]);
            } else {
                arguments.push("--noise");
            }
            for format in [&[][..], &["--json"], &["--csv"]] {
                caribou(&[&arguments[..], format].concat()).unwrap();
            }
            let drawn = fs::read_to_string(&svg).unwrap_or_default();
            assert!(drawn.is_empty() || drawn.trim_end().ends_with("</svg>"), "{command}");
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{command}");
        }
    }
    COMMANDS.iter().for_each(|command| assert!(caribou(&["trace", command, &file]).is_ok(), "{command}"));
}

#[test]
fn a_strip_shows_work_loss_and_idleness_where_they_were() {
    let first = vec![handler(0, 500, 0, 0, 0, 200), idle(500, 1000)];
    let what = What::Depart { chunk: chunk(3), rank: 0, bytes: 64 };
    let second = vec![
        Event { begin_ns: 0, end_ns: 100, what: What::Runtime { part: Part::Start, sync: 0 } },
        handler(100, 300, 3, 0, 0, 0),
        Event { begin_ns: 300, end_ns: 400, what },
    ];
    let dir = written("b-strip", &run_of(Shape::Arrays), &[first, second]);
    let page = json(&["timeline", dir.text(), "--width", "10"]);
    let strips: Vec<&str> = rows(&page, "rows").iter().map(|row| row["strip"].as_str().unwrap()).collect();
    assert_eq!(strips, ["AAA//.....", "#AA>      "]);
    assert_eq!(page["tables"]["rows"][0]["lost_share"], 0.2);
    let head = |arguments: &[&str]| {
        let text =
            caribou(&[&["trace", "timeline", dir.text(), "--width", "10"], arguments].concat()).unwrap();
        text.lines()
            .find(|line| line.starts_with("row "))
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!([head(&[]), head(&["--chunk", "Block[1, 1]"])], ["chunks", "running"], "busy would be more");
    let page = json(&["timeline", dir.text(), "--width", "10", "--chunk", "Block[1, 1]"]);
    let rows = rows(&page, "rows");
    assert_eq!((rows.len(), rows[0]["strip"].as_str().unwrap()), (1, " 11>      "));
    let wrong = caribou(&["trace", "timeline", dir.text(), "--chunk", "Rod"]).unwrap_err();
    assert_eq!(wrong, "no chunk named Rod is recorded in this time; Block[[0, 0]] is");
    let wrong = caribou(&["trace", "timeline", dir.text(), "--around-sync", "3"]).unwrap_err();
    assert!(wrong.contains("no such sync"), "{wrong}");
}

#[test]
fn the_picture_accounts_for_every_slice() {
    let dir = generated("b-picture", 30_000);
    let trace = Trace::open(dir.path()).unwrap();
    let (mut slices, pixel_ns) = (0usize, trace.elapsed_ns() as f64 / 300.0);
    trace.for_each(|_, _, event| {
        let slice = matches!(
            event.what,
            What::Handler { .. } | What::Idle | What::Runtime { .. } | What::Depart { .. }
        );
        slices += usize::from(slice && (event.duration_ns() as f64) < pixel_ns);
    });
    let svg = dir.join("b.svg");
    let text = caribou(&["trace", "timeline", dir.text(), "--pixels", "300", "--svg", &svg]).unwrap();
    let line = text.lines().find(|line| line.contains("shorter than a pixel")).unwrap();
    let merged: usize = line.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    // A slice that is alone in its pixel is drawn as it is.
    assert!(merged <= slices && merged + 4 * 300 >= slices, "{merged} of {slices}");
    let drawn = fs::read_to_string(&svg).unwrap();
    assert!(drawn.contains(line.strip_prefix("note: ").unwrap()), "the picture says it as well");
    assert!(drawn.matches("<rect").count() < 4 * 2 * 300 + 250, "bounded by pixels and arrows");
    assert_eq!(drawn.matches("<title>message from").count(), 200, "as many arrows as by default");
}

#[test]
fn the_histogram_agrees_with_sorted_lists() {
    let dir = generated("b-histogram", 40_000);
    let trace = Trace::open(dir.path()).unwrap();
    let (mut wall_ns, mut sent, mut begun) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    trace.for_each(|_, _, event| match event.what {
        What::Handler { from, number, .. } => {
            wall_ns.push(event.duration_ns());
            begun.insert((from, number), event.begin_ns);
        }
        What::Send { chunk, number, .. } => {
            sent.insert((chunk, number), event.end_ns);
        }
        _ => {}
    });
    let mut latency_ns: Vec<u64> =
        sent.iter().filter_map(|(key, at_ns)| Some(begun.get(key)?.saturating_sub(*at_ns))).collect();
    wall_ns.sort_unstable();
    latency_ns.sort_unstable();
    let page = json(&["histogram", dir.text()]);
    let table = rows(&page, "quantiles");
    for (name, list) in [("execution, wall", &wall_ns), ("message latency", &latency_ns)] {
        let row = row(table, "what", name);
        assert_eq!(row["count"], list.len(), "{name}");
        assert_eq!(row["longest"], *list.last().unwrap() as f64, "{name}");
        for (key, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let exact = list[(part * list.len() as f64).ceil() as usize - 1] as f64;
            let found = row[key].as_f64().unwrap();
            assert!((found - exact).abs() <= 0.032 * exact + 1.0, "{name} {key}: {found} for {exact}");
        }
    }
    let sum_of = |name: &str| &row(table, "what", name)["sum"];
    assert_eq!(*sum_of("execution, wall"), wall_ns.iter().sum::<u64>() as f64);
    assert_eq!(*sum_of("message latency"), Value::Null, "messages are under way at the same time");
    assert_eq!(page["tables"]["latencies"][0]["sum_share"], Value::Null);
    assert_eq!(sum(&page, "executions", "calls"), wall_ns.len() as u64);
    let executions = rows(&page, "executions");
    let shares: f64 = executions.iter().map(|row| row["wall_share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let short: Vec<&u64> = wall_ns.iter().filter(|ns| **ns < 20_000).collect();
    let of_calls = 100.0 * short.len() as f64 / wall_ns.len() as f64;
    let of_time = 100.0 * short.into_iter().sum::<u64>() as f64 / wall_ns.iter().sum::<u64>() as f64;
    let says =
        format!("{of_calls:.1} % of the calls are shorter than 20.00 us and make {of_time:.1} % of the time");
    assert!(page["says"][0].as_str().unwrap().starts_with(&says), "{says}: {}", page["says"][0]);
}

#[test]
fn a_message_is_found_even_if_clocks_say_it_was_handled_first() {
    let first = vec![
        handler(0, 100, 0, 0, 0, 0),
        send(100, 0, 1, 1, 1, 64),
        send(500, 0, 1, 1, 2, 64),
        send(600, 0, 1, 1, 3, 64),
    ];
    let second =
        vec![handler(130, 200, 1, 0, 1, 0), handler(300, 400, 1, 0, 2, 0), handler(400, 700, 1, 0, 3, 0)];
    let dir = written("b-clocks", &run_of(Shape::Arrays), &[first, second]);
    let page = json(&["histogram", dir.text()]);
    let row = row(rows(&page, "quantiles"), "what", "message latency");
    assert_eq!((&row["count"], &row["longest"]), (&Value::from(3), &Value::from(30.0)));
    assert!(page["notes"].to_string().contains("1 message handled before being sent"));
    assert!(
        caribou(&["trace", "histogram", dir.text(), "--kind", "Halo"]).unwrap_err().contains("Block::Step")
    );
}

#[test]
fn the_matrix_has_every_message_and_says_what_stays_local() {
    let events = vec![
        handler(0, 10, 0, 0, 0, 0),
        send(10, 0, 1, 0, 1, 100),
        send(10, 0, 1, 0, 2, 100),
        send(10, 0, 2, 1, 3, 300),
        send(10, 0, 3, 2, 4, 500),
    ];
    let others = [vec![handler(20, 30, 2, 0, 3, 0)], vec![handler(20, 30, 3, 0, 4, 0)]];
    for (name, every) in [("b-all", 1u32), ("b-some", 10)] {
        let run = RunRecord { arrows: every, ..run_of(Shape::Arrays) };
        let dir = written(name, &run, &[events.clone(), others[0].clone(), others[1].clone()]);
        let page = json(&["comm", dir.text(), "--over-time", "4"]);
        let times = u64::from(every);
        assert_eq!(sum(&page, "ranks", "messages"), 4 * times);
        assert_eq!(sum(&page, "ranks", "bytes"), 1000 * times);
        assert_eq!(sum(&page, "over_time", "remote_bytes"), 800 * times);
        assert_eq!(sum(&page, "kinds", "bytes"), 800 * times, "two were not handled");
        assert_eq!(page["tables"]["chunks"][0]["to"], "Block[[1, 1]]");
        assert_eq!(page["tables"]["chunks"][2]["messages"], 2 * times, "rows of pairs");
        let first = &page["tables"]["chunks"][0];
        assert_eq!((&first["from_rank"], &first["to_rank"]), (&0.into(), &2.into()));
        let text = caribou(&["trace", "comm", dir.text()]).unwrap();
        assert!(text.contains("blank for none, then .:-=+#@, the last for the most of any pair"), "{text}");
        let local = "within a rank 50.0 % of them and 20.0 % of the bytes, within a host 75.0 % and 50.0 %";
        assert_eq!(page["says"][1], local);
        let svg = dir.join("time.svg");
        caribou(&["trace", "comm", dir.text(), "--over-time", "4", "--svg", &svg]).unwrap();
        let drawn = fs::read_to_string(svg).unwrap();
        let away = format!("from 0 ns: {} to other ranks", crate::trace::page::bytes(800 * times));
        assert!(drawn.contains("over time") && drawn.contains(&away), "{drawn}");
        assert_eq!(page["notes"].to_string().contains("estimates"), every > 1);
    }
    let silent = RunRecord { arrows: 0, ..run_of(Shape::Arrays) };
    let dir = written("b-silent", &silent, &[vec![handler(0, 10, 0, 0, 0, 0)]]);
    assert!(caribou(&["trace", "comm", dir.text()]).unwrap().contains(
        "no sends were recorded: see \
        CARIBOU_TRACE_FILTER"
    ));
}

#[test]
fn a_trace_without_events_names_the_filter_that_left_them_out() {
    for (filter, why) in [
        ("none", "(the run recorded with CARIBOU_TRACE_FILTER=none; without it, all events are recorded)"),
        ("all", "(CARIBOU_TRACE records events)"),
        ("", "(CARIBOU_TRACE records events)"),
    ] {
        let run = RunRecord { filter: filter.into(), ..run_of(Shape::Arrays) };
        let dir = written("b-no-events", &run, &[vec![]]);
        for command in ["comm", "chunks", "timeline", "histogram", "outliers"] {
            let said = caribou(&["trace", command, dir.text()]).unwrap();
            assert!(said.contains("no events were recorded") && said.contains(why), "{command}: {said}");
        }
    }
}

#[test]
fn a_filtered_trace_does_not_claim_that_nothing_was_sent() {
    for (filter, counted) in [("all,array=Block", false), ("all", true)] {
        let run = RunRecord { filter: filter.into(), ..run_of(Shape::Arrays) };
        let dir = written("b-one-array", &run, &[vec![handler(0, 10, 0, 1, 1, 0)]]);
        let summary = caribou(&["trace", "summary", dir.text()]).unwrap();
        assert_eq!(summary.contains("messages within a rank"), counted, "{summary}");
        let comm = caribou(&["trace", "comm", dir.text()]).unwrap();
        let said = "no sends were recorded: `all,array=Block` keeps those of chunks of Block alone";
        assert_eq!(comm.contains(said), !counted, "{comm}");
    }
}

#[test]
fn chunks_have_the_loads_and_moves_that_were_recorded() {
    let dir = generated("b-chunks", 60_000);
    let trace = Trace::open(dir.path()).unwrap();
    let (mut load_ns, mut moves): (BTreeMap<String, f64>, BTreeMap<String, u64>) = Default::default();
    trace.for_each(|_, _, event| match event.what {
        What::Load { chunk, load_ns: ns, .. } => {
            *load_ns.entry(trace.chunk_name(chunk)).or_default() += ns as f64;
        }
        What::Depart { chunk, .. } => *moves.entry(trace.chunk_name(chunk)).or_default() += 1,
        _ => {}
    });
    assert!(!moves.is_empty());
    let page = json(&["chunks", dir.text(), "--top", "100", "--sort", "moves"]);
    let rows = rows(&page, "chunks");
    assert_eq!(rows.len(), load_ns.len());
    for row in rows {
        let name = row["chunk"].as_str().unwrap();
        assert!((row["load_ns"].as_f64().unwrap() - load_ns[name]).abs() < 2.0, "{row}");
        assert_eq!(row["moves"], moves.get(name).copied().unwrap_or(0), "{row}");
    }
    assert!(rows.windows(2).all(|pair| pair[0]["moves"].as_u64() >= pair[1]["moves"].as_u64()));
    let first = rows[0]["chunk"].as_str().unwrap();
    let one = json(&["chunks", dir.text(), "--index", first]);
    assert_eq!(sum(&one, "phases", "load_ns"), load_ns[first] as u64);
    assert_eq!(one["tables"]["moves"].as_array().unwrap().len() as u64, moves[first]);
    assert!(caribou(&["trace", "chunks", dir.text(), "--index", "Ring"]).unwrap_err().contains(
        "have this name, \
        choose one"
    ));
}

#[test]
fn a_chunk_without_syncs_is_as_heavy_as_its_handlers() {
    let load = |at_ns, key| {
        Event::point(at_ns, What::Load { chunk: chunk(key), sync: 0, load_ns: 100_000, bytes: 8 })
    };
    let first = vec![handler(0, 100_000, 0, 0, 0, 0), load(100_000, 0)];
    let second = vec![handler(0, 900_000, 1, 0, 0, 0)];
    let dir = written("b-without-sync", &run_of(Shape::Arrays), &[first, second]);
    let page = json(&["chunks", dir.text()]);
    let row = &page["tables"]["chunks"][0];
    assert_eq!((&row["chunk"], row["load_ns"].as_f64()), (&"Block[[0, 1]]".into(), Some(900_000.0)));
    assert_eq!((row["load_share"].as_f64(), &row["flags"]), (Some(0.9), &"too big".into()));
    let notes = page["notes"].to_string();
    assert!(notes.contains("1 chunk came to no sync") && !notes.contains("after the last"), "{notes}");
}

#[test]
fn flags_tell_chunks_that_are_big_small_or_lose_time() {
    let first = vec![handler(0, 900_000, 0, 0, 0, 0), handler(900_000, 901_000, 1, 0, 0, 0)];
    let second = vec![handler(0, 90_000, 2, 0, 0, 60_000)];
    let dir = written("b-flags", &run_of(Shape::Arrays), &[first, second]);
    let page = json(&["chunks", dir.text()]);
    let rows = rows(&page, "chunks");
    let flags: Vec<&str> = rows.iter().map(|row| row["flags"].as_str().unwrap()).collect();
    assert_eq!(flags, ["too big", "wall far above CPU", "too small"]);
}

#[test]
fn long_executions_are_work_if_the_cpu_was_busy_and_noise_if_not() {
    let mut events: Vec<Event> =
        (0..20).map(|step| handler(step * 100, step * 100 + 10, 0, 0, 0, 0)).collect();
    events.push(handler(2000, 2100, 0, 0, 0, 5));
    events.push(handler(3000, 3200, 0, 0, 0, 189));
    let dir = written("b-noise", &run_of(Shape::Arrays), &[events, vec![idle(0, 10)]]);
    let page = json(&["outliers", dir.text(), "--noise"]);
    let row = &page["tables"]["noise_by_rank"][0];
    let found =
        ["executions", "work", "work_ns", "noise", "noise_ns"].map(|key| row[key].as_f64().unwrap() as u64);
    assert_eq!(found, [22, 1, 90, 1, 190]);
    let longest = rows(&page, "longest");
    let longest: Vec<_> =
        longest.iter().map(|row| (row["wall_ns"].as_f64().unwrap(), row["by"].as_str().unwrap())).collect();
    assert_eq!(longest, [(200.0, "noise"), (100.0, "work")]);
}

#[test]
fn handlers_that_seldom_have_work_are_not_long_when_they_have() {
    let long = |step: u64| if step.is_multiple_of(4) { 80 } else { 1 };
    let events = (0..40).map(|step| handler(step * 100, step * 100 + long(step), 0, 0, 0, 0)).collect();
    let dir = written("b-bimodal", &run_of(Shape::Arrays), &[events, vec![idle(0, 10)]]);
    let page = json(&["outliers", dir.text(), "--noise"]);
    assert_eq!((sum(&page, "noise_by_rank", "work"), sum(&page, "noise_by_rank", "noise")), (0, 0));
    // A chunk is not too small if most of its work is in long executions, even if most executions are short.
    let long = |step: u64| if step.is_multiple_of(20) { 80_000 } else { 500 };
    let at = |step: u64| step * 100_000;
    let events = (0..40).map(|step| handler(at(step), at(step) + long(step), 0, 0, 0, 0)).collect();
    let dir = written("b-seldom", &run_of(Shape::Arrays), &[events, vec![idle(0, 10)]]);
    let page = json(&["chunks", dir.text()]);
    assert_eq!(page["tables"]["chunks"][0]["mean_ns"], 4475.0);
    assert_eq!(page["says"][1], "1 too big", "it is alone");
    let text = caribou(&["trace", "chunks", dir.text()]).unwrap();
    assert!(
        text.contains("note: too big: heavier than the average rank")
            && !text.contains("wall far above CPU:"),
        "{text}"
    );
}

#[test]
fn a_pool_has_workers_where_others_have_chunks() {
    let range = |begin_ns, end_ns, lost_ns| Event {
        begin_ns,
        end_ns,
        what: What::Range { first: begin_ns, count: 5, lost_ns },
    };
    let ranks = [vec![range(0, 100, 20), range(100, 200, 0)], vec![range(0, 900, 100)]];
    let dir = written("b-workers", &run_of(Shape::Pools), &ranks);
    let page = json(&["chunks", dir.text()]);
    assert_eq!((sum(&page, "workers", "cpu_ns"), sum(&page, "workers", "tail_ns")), (980, 700));
    let csv = caribou(&["trace", "chunks", dir.text(), "--csv"]).unwrap();
    assert!(csv.starts_with("rank,worker,ranges,") && csv.lines().count() == 3, "{csv}");
    let text = caribou(&["trace", "outliers", dir.text()]).unwrap();
    assert!(text.contains("`caribou trace histogram` shows how long its ranges were"), "{text}");
    assert!(
        text.contains("fewer than 3 ranks cannot be judged") && !text.contains("median of all"),
        "{text}"
    );
    let csv = caribou(&["trace", "summary", dir.text(), "--csv"]).unwrap();
    assert!(csv.starts_with("part,time_ns,share,from\niterations,"), "{csv}");
}

#[test]
fn the_rank_beside_a_neighbour_is_found() {
    let dir = generated("b-outliers", 40_000);
    let page = json(&["outliers", dir.text()]);
    let row = &page["tables"]["ranks"][0];
    assert_eq!((&row["rank"], &row["figure"]), (&Value::from("2"), &Value::from("lost share")));
    assert!(row["score"].as_f64().unwrap() > 5.0, "{row}");
    assert!(
        page["notes"]
            .to_string()
            .contains("score: distance from the median, over the median of all distances")
    );
}

#[test]
fn stretches_that_follow_each_other_add_up_in_a_histogram() {
    let dir = generated("histogram-stretches", 20_000);
    let elapsed_ns = Trace::open(dir.path()).unwrap().elapsed_ns();
    let counts = |time: &str| {
        let page = json(&["histogram", dir.text(), "--time", time]);
        let counts = rows(&page, "quantiles").iter();
        let count = |row: &Value| (row["what"].as_str().unwrap().to_owned(), row["count"].as_u64().unwrap());
        counts.map(count).collect::<BTreeMap<String, u64>>()
    };
    let whole = counts("..");
    let mut sum = BTreeMap::new();
    for quarter in 0..4 {
        let [from, to] = [quarter, quarter + 1].map(|part| elapsed_ns * part / 4);
        for (what, count) in counts(&format!("{from}ns..{to}ns")) {
            *sum.entry(what).or_insert(0) += count;
        }
    }
    for what in ["execution, wall", "execution, CPU", "idle"] {
        assert_eq!(sum[what], whole[what], "{what}");
    }
}

#[test]
fn a_rank_or_time_that_the_run_does_not_have_is_refused_by_all() {
    let dir = generated("no-such-part", 2_000);
    let out = dir.join("out");
    for command in ["profile", "timeline", "utilisation", "chunks", "histogram", "comm", "critical-path"] {
        for (part, said) in [
            (["--rank", "9"], "--rank: expected ranks of the trace, which are 0, 1"),
            (["--time", "70s..80s"], "--time begins after the run, which took "),
        ] {
            let line = caribou(&["trace", command, dir.text(), part[0], part[1]]).unwrap_err();
            assert!(line.starts_with(said), "{command}: {line}");
        }
    }
    let export = |more: &[&str]| {
        let arguments = ["trace", "export", dir.text(), "-o", &out];
        caribou(&[&arguments[..], more].concat()).unwrap_err()
    };
    assert!(export(&["--to", "csv", "--rank", "9"]).starts_with("--rank: expected ranks of the trace"));
    assert_eq!(export(&["--to", "csv", "--flows", "all"]), "--flows is for --to perfetto and chrome");
    assert_eq!(export(&["--to", "text", "--phase", "1"]), "--phase is for --to snapshot");
    assert!(
        export(&["--to", "snapshot", "--rank", "0"]).starts_with("a snapshot is of all ranks at one sync")
    );
    assert!(!fs::exists(out).unwrap());
}

#[test]
fn a_chunk_that_comes_back_late_is_no_ping_pong_wherever_one_looks() {
    let sync = |sync: u64| {
        let mut report = SyncReport::default();
        (report.sync, report.at_ns) = (sync, 100 * (sync + 1));
        report
    };
    let load = |sync: u64| {
        Event::point(100 * sync + 50, What::Load { chunk: chunk(1), sync, load_ns: 10, bytes: 8 })
    };
    let depart = |at_ns, to| Event::point(at_ns, What::Depart { chunk: chunk(1), rank: to, bytes: 8 });
    let arrive = |at_ns| Event::point(at_ns, What::Arrive { chunk: chunk(1), bytes: 8 });
    // The chunk is away for six phases, and the first rank has no events of them.
    let home = vec![load(0), depart(110, 1), arrive(730), load(7)];
    let away: Vec<Event> =
        [arrive(120)].into_iter().chain((1..7).map(load)).chain([depart(720, 0)]).collect();
    let dir = Scratch::new("late-return");
    for (rank, events) in [home, away].into_iter().enumerate() {
        let run = RunRecord { ranks: 2, rank: rank as u32, workers: vec![1; 2], ..RunRecord::default() };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        writer.events(0, &events).unwrap();
        if rank == 0 {
            writer.syncs(&(0..8).map(sync).collect::<Vec<_>>()).unwrap();
        }
        writer.finish(&End { elapsed_ns: 1000, ..End::default() }).unwrap();
    }
    for part in [&[][..], &["--rank", "0"]] {
        let text = caribou(&[&["trace", "chunks", dir.text()], part].concat()).unwrap();
        assert!(!text.contains("ping-pong"), "{text}");
    }
}
