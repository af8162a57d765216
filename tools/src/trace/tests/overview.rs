//! Tests `summary`, `profile`, `utilisation` and `lb` against sums over the events and records.
#![expect(clippy::float_cmp, reason = "sums of whole numbers below 2^53 are exact")]

use std::collections::BTreeMap;

use caribou::report::SyncReport;
use caribou::trace::{
    Activity, ArrayId, End, Event, Name, NameId, Part, Profile, Row, RunRecord, Sample, Shape, What, Writer,
};
use serde_json::Value;
use trace_reader::Trace;

use super::{chunk, generated, json, number, row, rows, run_of, write_rank};
use crate::tests::{Scratch, caribou};

#[track_caller]
fn near(one: f64, other: f64, within: f64) {
    assert!((one - other).abs() <= within, "{one} is not {other}");
}

/// Time, calls and longest call of each activity of a rank between two times: the sum over the overlaps of all events.
type Sums = BTreeMap<(u32, String), (f64, u64, u64)>;

fn sums(trace: &Trace, from_ns: u64, to_ns: u64) -> Sums {
    let mut sums = Sums::new();
    let problems = trace.for_each(|rank, _, event| {
        let overlap_ns = event.end_ns.min(to_ns).saturating_sub(event.begin_ns.max(from_ns));
        let mut add = |name: &str, ns: u64| {
            if overlap_ns == 0 {
                return;
            }
            let (sum, calls, longest) = sums.entry((rank.rank, name.to_owned())).or_default();
            *sum += ns as f64 * overlap_ns as f64 / event.duration_ns() as f64;
            *calls += u64::from(event.end_ns > from_ns && event.end_ns <= to_ns);
            *longest = (*longest).max(ns);
        };
        match event.what {
            What::Handler { kind, lost_ns, .. } => {
                add(&trace.name(kind), event.duration_ns() - lost_ns);
                if lost_ns > 0 {
                    add("lost", lost_ns);
                }
            }
            What::Idle => add("idle", event.duration_ns()),
            What::Runtime { part, .. } => add(part.name(), event.duration_ns()),
            What::Depart { .. } => add("migrate", event.duration_ns()),
            _ => {}
        }
    });
    assert_eq!(problems, vec![]);
    sums
}

/// The sums over all ranks.
fn of_all(sums: &Sums, name: &str) -> (f64, u64, u64) {
    let mine = sums.iter().filter(|((_, other), _)| other == name).map(|(_, sum)| *sum);
    mine.fold((0.0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2.max(one.2)))
}

#[test]
fn the_profile_of_the_run_is_the_sum_of_its_events() {
    let dir = generated("profile", 30_000);
    let trace = Trace::open(dir.path()).unwrap();
    let (page, sums) = (json(&["profile", dir.text(), "--by", "rank"]), sums(&trace, 0, u64::MAX));
    let activities = rows(&page, "activities");
    for name in ["Ring::Halo", "Ring::start", "idle", "measure", "decide", "start"] {
        let (row, (ns, calls, longest_ns)) = (row(activities, "activity", name), of_all(&sums, name));
        assert_eq!((&row["time_ns"], &row["calls"]), (&Value::from(ns), &Value::from(calls)), "{name}");
        near(number(&row["mean_ns"]), ns / calls as f64, 1.0);
        assert_eq!(row["longest_ns"], Value::from(longest_ns as f64), "{name}");
    }
    let lost = activities.iter().filter(|row| row["part"] == "lost").map(|row| number(&row["time_ns"]));
    near(lost.sum(), of_all(&sums, "lost").0, 2.0);
    let shares: f64 = activities.iter().map(|row| number(&row["share"])).sum();
    near(shares, 1.0, 1e-9);
    for ((rank, name), (ns, ..)) in &sums {
        let of_rank = rows(&page, "activities_by_rank")
            .iter()
            .find(|row| row["rank"] == *rank && row["activity"] == name.as_str());
        // The synthetic profile has no departures.
        assert!(name == "migrate" || of_rank.unwrap()["time_ns"] == *ns, "{rank} {name}");
    }
}

#[test]
fn a_stretch_of_time_is_made_from_events_and_bins_add_up_to_it() {
    let dir = generated("stretch", 30_000);
    let trace = Trace::open(dir.path()).unwrap();
    let page =
        json(&["profile", dir.text(), "--time", "20.5ms..31.25ms", "--rank", "2-3", "--over-time", "7"]);
    let sums: Sums =
        sums(&trace, 20_500_000, 31_250_000).into_iter().filter(|((rank, _), _)| *rank >= 2).collect();
    for name in ["Ring::Halo", "idle", "measure"] {
        let (row, (ns, calls, _)) = (row(rows(&page, "activities"), "activity", name), of_all(&sums, name));
        near(number(&row["time_ns"]), ns, 2.0);
        assert_eq!(row["calls"], Value::from(calls), "{name}");
    }
    let bins = rows(&page, "bins");
    assert_eq!((bins.len(), &bins[6]["to_ns"]), (7, &Value::from(31_250_000.0)));
    let worker_ns = |bin: &Value| 2.0 * (number(&bin["to_ns"]) - number(&bin["from_ns"]));
    let idle: f64 = bins.iter().map(|bin| number(&bin["idle"]) * worker_ns(bin)).sum();
    near(idle, of_all(&sums, "idle").0, 20.0);
    assert!(page["notes"].to_string().contains("from events"), "{}", page["notes"]);
}

#[test]
fn the_disturbed_rank_is_the_least_busy_and_loses_time_in_the_middle() {
    let dir = generated("utilisation", 60_000);
    let trace = Trace::open(dir.path()).unwrap();
    let page = json(&["utilisation", dir.text(), "--bins", "30"]);
    let ranks = rows(&page, "ranks");
    assert_eq!(ranks[0]["rank"], Value::from(2), "the least busy comes first");
    for row in ranks.iter().chain(rows(&page, "bins")).chain(rows(&page, "cells")) {
        let parts = ["chunks", "runtime", "idle", "lost_not_stolen", "steal", "rest"];
        near(parts.iter().map(|part| number(&row[part])).sum(), 1.0, 0.002);
    }
    let (sums, wall_ns) = (sums(&trace, 0, u64::MAX), trace.elapsed_ns() as f64);
    near(number(&ranks[0]["lost_not_stolen"]), sums[&(2, "lost".to_owned())].0 / wall_ns, 1e-9);
    let bins = rows(&page, "bins");
    assert!(number(&bins[2]["lost_not_stolen"]) < 1e-9 && number(&bins[27]["lost_not_stolen"]) < 1e-9);
    assert!(number(&bins[15]["lost_not_stolen"]) > 0.08, "{}", bins[15]);
    let by_rank = json(&["utilisation", dir.text(), "--sort", "rank"]);
    assert_eq!(rows(&by_rank, "ranks")[0]["rank"], Value::from(0));
}

#[test]
fn steal_is_told_from_what_else_was_lost() {
    let dir = Scratch::new("steal");
    let mut writer = Writer::create(dir.path(), &run_of(1, 0)).unwrap();
    writer.events(0, &[handler(0, 1_000_000, 400_000), handler(1_000_000, 2_000_000, 0)]).unwrap();
    let sample = Sample { at_ns: 1_000_000, steal_ns: 100_000, wait_ns: 100_000, ..Sample::default() };
    writer.samples(&[sample]).unwrap();
    writer.finish(&End { elapsed_ns: 2_000_000, ..End::default() }).unwrap();
    let page = json(&["utilisation", dir.text(), "--bins", "2"]);
    let first = &rows(&page, "bins")[0];
    let parts = ["chunks", "lost_not_stolen", "steal"].map(|part| number(&first[part]));
    parts.into_iter().zip([0.6, 0.3, 0.1]).for_each(|(part, expected)| near(part, expected, 1e-9));
    let page = json(&["profile", dir.text()]);
    let of = |name: &str| number(&row(rows(&page, "activities"), "activity", name)["time_ns"]);
    assert_eq!([of("waiting for the vCPU"), of("steal"), of("lost, unexplained")], [1e5, 1e5, 2e5]);
}

#[test]
fn a_map_in_text_shows_ten_ranks_and_the_extremes() {
    let dir = Scratch::new("many");
    caribou(&["trace", "generate", dir.text(), "--ranks", "50", "--chunks", "2", "--events", "20000"])
        .unwrap();
    let text = caribou(&["trace", "utilisation", dir.text(), "--sort", "rank", "--bins", "40"]).unwrap();
    assert!(text.contains("from blank for 0 % of a bin to █ for 100 %"), "{text}");
    let strips: Vec<&str> = text.lines().filter(|line| line.contains('|')).collect();
    // All ranks, ten at even distances, the least busy and the busiest.
    assert!((12..=13).contains(&strips.len()), "{text}");
    let widths = strips.iter().map(|line| line.chars().skip_while(|&c| c != '|').count());
    assert!(widths.into_iter().all(|width| width == 42), "{text}");
    let page = json(&["utilisation", dir.text(), "--bins", "40"]);
    let ranks = rows(&page, "ranks");
    assert_eq!(ranks.len(), 50, "programs get all");
    for extreme in [&ranks[0]["rank"], &ranks[49]["rank"]] {
        let begin = format!("{extreme} ");
        assert!(strips.iter().any(|line| line.trim_start().starts_with(&begin)), "no {extreme} in {text}");
    }
}

#[test]
fn workers_around_a_sync_are_shown_before_and_after_it() {
    let dir = generated("around", 60_000);
    let trace = Trace::open(dir.path()).unwrap();
    let most = trace.syncs.iter().map(|sync| (sync.moved, sync.gain_ns)).max().unwrap();
    let at = trace.syncs.iter().position(|sync| (sync.moved, sync.gain_ns) == most).unwrap();
    let svg = dir.join("around.svg");
    let page = json(&["utilisation", dir.text(), "--before-after", "--svg", &svg]);
    assert!(page["says"][0].as_str().unwrap().starts_with(&format!("sync {at} ")), "{}", page["says"]);
    let [last, sync, next] = [at - 1, at, at + 1].map(|at| &trace.syncs[at]);
    let begin_ns = |sync: &SyncReport| sync.at_ns - sync.collect_ns - sync.decide_ns;
    let (before, after) =
        ((last.at_ns + last.migrate_ns, begin_ns(sync)), (sync.at_ns + sync.migrate_ns, begin_ns(next)));
    for ((from_ns, to_ns), key) in [(before, "idle_before"), (after, "idle_after")] {
        let sums = sums(&trace, from_ns, to_ns);
        for rank in 0..4 {
            let shown = number(&row(rows(&page, "workers"), "rank", rank)[key]);
            let idle_ns = sums.get(&(rank, "idle".to_owned())).map_or(0.0, |sum| sum.0);
            near(shown, idle_ns / (to_ns - from_ns) as f64, 1e-6);
        }
    }
    let text = std::fs::read_to_string(svg).unwrap();
    // The average and four workers, twice.
    assert_eq!(text.matches(", Ring::Halo:").count(), 10);
    let chosen = json(&["utilisation", dir.text(), "--around-sync", "1"]);
    assert!(chosen["says"][0].as_str().unwrap().starts_with("sync 1 "));
}

#[test]
fn a_sync_is_held_against_the_next_one() {
    let dir = generated("lb", 60_000);
    let trace = Trace::open(dir.path()).unwrap();
    let page = json(&["lb", dir.text()]);
    let syncs = rows(&page, "syncs");
    assert_eq!(syncs.len(), trace.syncs.len());
    for (at, (shown, sync)) in syncs.iter().zip(&trace.syncs).enumerate() {
        assert_eq!(number(&shown["imbalance_before"]), sync.imbalance_before);
        assert_eq!(shown["moved"], Value::from(sync.moved));
        let Some(next) = trace.syncs.get(at + 1) else {
            assert_eq!(
                (&shown["imbalance_actual"], &shown["prediction_error"]),
                (&Value::Null, &Value::Null)
            );
            continue;
        };
        assert_eq!(number(&shown["imbalance_actual"]), next.imbalance_before);
        let length = next.deliveries as f64 / sync.deliveries_predicted as f64;
        let ratio = next.makespan_before_ns as f64 / sync.makespan_predicted_ns as f64 / length;
        near(number(&shown["prediction_error"]), ratio - 1.0, 1e-12);
    }
    let moving = trace.syncs.iter().filter(|sync| sync.moved > 0).count();
    let says = page["says"][0].as_str().unwrap();
    assert!(
        says.starts_with(&format!("{} syncs, {moving} with moves ({moving} chunks, ", syncs.len())),
        "{says}"
    );
}

/// A trace of one rank with nothing but these syncs.
fn synced(name: &str, syncs: &[SyncReport]) -> Scratch {
    let dir = Scratch::new(name);
    let mut writer = Writer::create(dir.path(), &run_of(1, 0)).unwrap();
    writer.syncs(syncs).unwrap();
    writer.finish(&End::default()).unwrap();
    dir
}

#[test]
fn a_prediction_that_no_sync_has_checked_says_so() {
    let mut sync = SyncReport::default();
    (sync.moved, sync.proposed, sync.gain_ns) = (3, 3, 1_000_000);
    let dir = synced("unchecked", &[sync]);
    let text = caribou(&["trace", "lb", dir.text()]).unwrap();
    assert!(text.contains("; predicted to save 1.00 ms, which no later sync measured; "), "{text}");
}

#[test]
fn savings_that_were_measured_are_told_from_those_that_were_not() {
    let sync = |sync: u64, gain_ns| {
        let mut report = SyncReport::default();
        (report.sync, report.moved, report.proposed, report.gain_ns) = (sync, 3, 3, gain_ns);
        (report.makespan_before_ns, report.makespan_unmoved_ns) = (5_000_000, 5_900_000);
        (report.waited, report.decide_ns, report.migrate_ns) =
            (Some(0), 20_000, 3_000_000 + 1_000_000 * sync);
        report
    };
    let dir = synced("half-checked", &[sync(0, 1_000_000), sync(1, 40_000)]);
    let text = caribou(&["trace", "lb", dir.text()]).unwrap();
    let savings = "; predicted to save 1.00 ms, saved 900.00 us in the one phase after each move (later phases are not \
                   counted: `trace diff` compares whole runs), and another 40.00 us was predicted of moves that no later \
                   sync measured; deciding took 40.00 us while chunks went on (`profile` has all that workers spent on \
                   balancing); moves were under way for 7.00 ms, the longest 4.00 ms; ";
    assert!(text.contains(savings), "{text}");
}

#[test]
fn under_none_no_window_is_balanced_already() {
    let dir = Scratch::new("none");
    let run = RunRecord { lb: "none".into(), ..run_of(1, 0) };
    let mut writer = Writer::create(dir.path(), &run).unwrap();
    let mut window = SyncReport::default();
    (window.window, window.waited, window.imbalance_before) = (true, Some(0), 1.05);
    writer.syncs(&[window]).unwrap();
    writer.finish(&End::default()).unwrap();
    let text = caribou(&["trace", "lb", dir.text()]).unwrap();
    let line = text.lines().next().unwrap();
    assert!(line.starts_with("1 window, none with moves; deciding took 0 ns"), "{line}");
    assert!(line.ends_with("; `none` never moves chunks") && text.contains("  never moves  "), "{text}");
    assert!(text.contains("\nwindow  "), "{text}");
    let text = caribou(&["trace", "lb", dir.text(), "--sync", "0"]).unwrap();
    assert!(text.starts_with("window 0 at 0 ns: imbalance 1.050; `none` never moves chunks; "), "{text}");
}

#[test]
fn one_sync_lists_its_moves_with_their_loads() {
    let dir = generated("moves", 60_000);
    let trace = Trace::open(dir.path()).unwrap();
    let sync = trace.syncs.iter().filter(|sync| sync.moved > 0).nth(1).unwrap();
    let (mut departs, mut loads) = (Vec::new(), BTreeMap::new());
    trace.for_each(|rank, _, event| match event.what {
        What::Depart { chunk, rank: to, bytes } => {
            departs.push((event.begin_ns, rank.rank, to, bytes, chunk));
        }
        What::Load { chunk, sync: of, load_ns, .. } if of == sync.sync => {
            loads.insert(chunk, load_ns);
        }
        _ => {}
    });
    departs.sort_by_key(|depart| depart.0);
    let &(at_ns, from, to, bytes, chunk) = departs.iter().find(|depart| depart.0 >= sync.at_ns).unwrap();
    let svg = dir.join("lb.svg");
    let page = json(&["lb", dir.text(), "--sync", &sync.sync.to_string(), "--svg", &svg]);
    let expected = serde_json::json!({
        "chunk": trace.chunk_name(chunk), "from": from, "to": to, "bytes": bytes, "load_ns": loads[&chunk] as f64,
        "at_ns": at_ns as f64,
    });
    assert_eq!(rows(&page, "moves"), &vec![expected]);
    let next = trace.syncs.iter().find(|next| next.sync == sync.sync + 1).unwrap();
    for (rank, shown) in rows(&page, "ranks").iter().enumerate() {
        let times = [&shown["before_ns"], &shown["predicted_ns"], &shown["measured_ns"]].map(number);
        let expected = [sync.before_ns[rank], sync.predicted_ns[rank], next.before_ns[rank]];
        assert_eq!(times, expected.map(|ns| ns as f64));
    }
    let bars = std::fs::read_to_string(svg).unwrap();
    assert_eq!(bars.matches("<title>rank ").count(), 12, "three bars for each of four ranks");
    let wrong = caribou(&["trace", "lb", dir.text(), "--sync", "999"]).unwrap_err();
    assert!(wrong.starts_with("there is no sync 999: the trace has those from 0 to "), "{wrong}");
}

#[test]
fn the_load_of_a_move_is_that_of_its_own_sync() {
    let dir = Scratch::new("own-load");
    let mut writer = Writer::create(dir.path(), &run_of(2, 0)).unwrap();
    let chunk = chunk(1);
    let load = |at_ns, sync, load_ns| Event::point(at_ns, What::Load { chunk, sync, load_ns, bytes: 8 });
    let depart = Event { begin_ns: 210, end_ns: 220, what: What::Depart { chunk, rank: 1, bytes: 8 } };
    writer.events(0, &[load(100, 0, 50), load(200, 1, 60), depart, load(300, 2, 70)]).unwrap();
    let sync = |sync: u64, moved| {
        let mut report = SyncReport::default();
        (report.sync, report.at_ns, report.moved, report.proposed) = (sync, 100 * sync + 105, moved, moved);
        report
    };
    writer.syncs(&[sync(0, 0), sync(1, 1), sync(2, 0)]).unwrap();
    writer.finish(&End { elapsed_ns: 400, ..End::default() }).unwrap();
    let moves = |sync: &str| {
        let page = json(&["lb", dir.text(), "--sync", sync]);
        page["tables"]["moves"]
            .as_array()
            .map(|moves| moves.iter().map(|one| number(&one["load_ns"])).collect())
    };
    assert_eq!([moves("0"), moves("1"), moves("2")], [None, Some(vec![60.0]), None]);
}

#[test]
fn a_refusal_shows_its_gain_and_cost() {
    let mut sync = SyncReport::default();
    (sync.proposed, sync.gain_ns, sync.needed_ns) = (3, 1_000_000, 2_500_000);
    let dir = synced("refusal", &[sync]);
    let page = json(&["lb", dir.text()]);
    let shown = &rows(&page, "syncs")[0];
    assert_eq!(shown["verdict"], "refused: gain < cost");
    assert_eq!((number(&shown["gain_ns"]), number(&shown["needed_gain_ns"])), (1e6, 2.5e6));
    let text = caribou(&["trace", "lb", dir.text(), "--sync", "0"]).unwrap();
    assert!(text.contains("refused 3 moves: gain 1.00 ms < 2.50 ms needed"), "{text}");
    let text = caribou(&["trace", "lb", dir.text()]).unwrap();
    assert!(text.contains("1 sync, none with moves, 1 refused; "), "{text}");
    assert!(text.contains("  predicted saving  measured saving  "), "{text}");
    let verdicts = text.lines().find(|line| line.starts_with("note: verdict: ")).unwrap();
    for verdict in
        ["moved: ", "balanced already: ", "never moves: ", "nothing proposed: ", "refused: ", "not asked: "]
    {
        assert!(verdicts.contains(verdict), "{verdicts}");
    }
}

#[test]
fn a_sync_without_a_decision_shows_what_it_would_have_cost() {
    let mut sync = SyncReport::default();
    (sync.gain_ns, sync.needed_ns) = (1_000_000, 2_500_000);
    let dir = synced("unasked", &[sync]);
    let page = json(&["lb", dir.text()]);
    let shown = &rows(&page, "syncs")[0];
    assert_eq!(shown["verdict"], "not asked: gain < cost");
    assert_eq!((number(&shown["gain_ns"]), number(&shown["needed_gain_ns"])), (1e6, 2.5e6));
    let text = caribou(&["trace", "lb", dir.text(), "--sync", "0"]).unwrap();
    let why = "not asked: at most 1.00 ms to gain < 2.50 ms to decide and to move anything";
    assert!(text.contains(why), "{text}");
    let text = caribou(&["trace", "lb", dir.text()]).unwrap();
    assert!(text.contains("1 sync, none with moves, 1 not asked"), "{text}");
}

#[test]
fn a_summary_counts_events_and_messages_and_names_the_disturbed_rank() {
    let dir = generated("summary", 60_000);
    let trace = Trace::open(dir.path()).unwrap();
    let (mut handlers, mut local, mut remote) = (0u64, (0u64, 0u64), (0u64, 0u64));
    trace.for_each(|rank, _, event| match event.what {
        What::Handler { .. } => handlers += 1,
        What::Send { rank: to, bytes, .. } => {
            let sum = if to == rank.rank { &mut local } else { &mut remote };
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
        _ => {}
    });
    let page = json(&["summary", dir.text()]);
    let traffic = rows(&page, "traffic");
    assert_eq!(row(traffic, "what", "handlers")["count"], Value::from(handlers));
    for (name, (messages, bytes)) in [("messages within a rank", local), ("messages to other ranks", remote)]
    {
        let shown = row(traffic, "what", name);
        assert_eq!((&shown["count"], &shown["bytes"]), (&Value::from(messages), &Value::from(bytes)));
    }
    let events: u64 = rows(&page, "events").iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(events, trace.events());
    let time = rows(&page, "time");
    let (parts, all) = time.split_at(time.len() - 1);
    near(parts.iter().map(|row| number(&row["time_ns"])).sum(), number(&all[0]["time_ns"]), 10.0);
    let verdict = page["says"][1].as_str().unwrap();
    assert!(verdict.contains("the work was even, but rank 2 had only 50.0 % of its vCPU"), "{verdict}");
    let quick = json(&["info", dir.text(), "--quick"]);
    assert_eq!(rows(&quick, "time"), rows(&page, "time"));
    assert!(
        quick["tables"]["events"].is_null() && quick["notes"].to_string().contains("events were not read")
    );
}

fn handler(begin_ns: u64, end_ns: u64, lost_ns: u64) -> Event {
    let chunk = chunk(1);
    let what = What::Handler { chunk, kind: NameId(0), from: chunk, number: 1, lost_ns };
    Event { begin_ns, end_ns, what }
}

/// Runs all commands in all forms.
fn all_commands(dir: &Scratch) -> Vec<(Vec<String>, Result<String, String>)> {
    let svg = dir.join("any.svg");
    let commands = [
        "summary",
        "summary --json",
        "summary --quick",
        "profile --svg SVG",
        "profile --by rank --over-time 5 --svg SVG",
        "profile --time ..1ms",
        "utilisation --svg SVG",
        "utilisation --part lost --sort rank --json",
        "utilisation --before-after --svg SVG",
        "lb --csv",
        "lb --svg SVG",
        "lb --sync 0",
    ];
    let call = |command: &str| {
        let mut words: Vec<String> = command.split(' ').map(|word| word.replace("SVG", &svg)).collect();
        words.insert(1, dir.text().to_owned());
        words.insert(0, "trace".into());
        let said = caribou(&words.iter().map(String::as_str).collect::<Vec<_>>());
        (words, said)
    };
    commands.map(call).into()
}

#[test]
fn a_profile_without_events_is_enough() {
    let dir = Scratch::new("profile-only");
    let mut writer = Writer::create(dir.path(), &run_of(1, 0)).unwrap();
    writer.arrays(&["A<b>".into()]).unwrap();
    writer.names(&[Name { array: Some(ArrayId(0)), text: "Go".into() }]).unwrap();
    let mut profile = Profile::default();
    profile.add(Activity::Kind(NameId(0)), 0, 6_000_000, 6_000_000, 3, 4_000_000);
    profile.add(Activity::Idle, 6_000_000, 7_000_000, 1_000_000, 1, 1_000_000);
    writer.profile(0, &profile).unwrap();
    writer.finish(&End { elapsed_ns: 8_000_000, messages: 3, ..End::default() }).unwrap();
    let page = json(&["profile", dir.text()]);
    let shown = row(rows(&page, "activities"), "activity", "A<b>::Go");
    assert_eq!((number(&shown["time_ns"]), number(&shown["share"])), (6e6, 0.75));
    assert_eq!(number(&row(rows(&page, "activities"), "activity", "unaccounted")["time_ns"]), 1e6);
    let part = json(&["profile", dir.text(), "--time", "5.5ms..6.5ms"]);
    near(number(&row(rows(&part, "activities"), "activity", "A<b>::Go")["time_ns"]), 5e5, 1.0);
    assert!(part["notes"].to_string().contains("evenly within a bin"), "{}", part["notes"]);
    for (words, said) in all_commands(&dir) {
        let needs_syncs = words.iter().any(|word| ["--before-after", "--sync"].contains(&word.as_str()))
            || (words[1] == "lb" && words.contains(&"--svg".to_owned()));
        assert_eq!(said.is_err(), needs_syncs, "{words:?}: {said:?}");
        assert!(said.is_ok_and(|text| !text.is_empty()) || needs_syncs);
    }
    let svg = std::fs::read_to_string(dir.join("any.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
    let svg = dir.join("bars.svg");
    caribou(&["trace", "profile", dir.text(), "--svg", &svg]).unwrap();
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("A&lt;b&gt;::Go") && !svg.contains("A<b>"));
}

#[test]
fn a_pool_has_iterations_and_no_syncs() {
    let dir = Scratch::new("pool");
    for rank in 0..2u64 {
        let run = RunRecord { shape: Shape::Pools, ..run_of(2, rank as u32) };
        let range = |at: u64| {
            let what = What::Range { first: at, count: 10, lost_ns: 1_000 };
            Event { begin_ns: at * 10_000, end_ns: (at + 1) * 10_000, what }
        };
        let count = if rank == 0 { 30 } else { 90 };
        write_rank(&dir, &run, &(0..count).map(range).collect::<Vec<_>>(), 900_000);
    }
    let page = json(&["summary", dir.text()]);
    assert_eq!(number(&row(rows(&page, "time"), "part", "iterations")["time_ns"]), 120.0 * 9_000.0);
    assert_eq!(row(rows(&page, "traffic"), "what", "ranges of iterations")["count"], Value::from(120));
    let verdict = page["says"][1].as_str().unwrap();
    assert!(
        verdict.contains("1.500 times as long as the average") && verdict.contains("smaller ranges"),
        "{verdict}"
    );
}

#[test]
fn a_trace_that_was_cut_off_is_read_as_far_as_it_goes() {
    let dir = generated("cut-off", 60_000);
    let whole = Trace::open(dir.path()).unwrap();
    let file = &whole.ranks[1].path;
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    let page = json(&["summary", dir.text()]);
    assert_eq!(row(rows(&page, "run"), "what", "state")["value"], "cut off on 1 rank");
    assert_eq!(row(rows(&page, "time"), "part", "chunks")["from"], "events", "its profile is gone");
    let trace = Trace::open(dir.path()).unwrap();
    let halo = of_all(&sums(&trace, 0, u64::MAX), "Ring::Halo").0
        + of_all(&sums(&trace, 0, u64::MAX), "Ring::start").0;
    near(number(&row(rows(&page, "time"), "part", "chunks")["time_ns"]), halo, 2.0);
    for (words, said) in all_commands(&dir) {
        assert!(said.is_ok(), "{words:?}: {said:?}");
    }
}

#[test]
fn a_trace_without_its_last_byte_is_not_complete() {
    let dir = generated("last-byte", 60_000);
    let state = || row(rows(&json(&["summary", dir.text()]), "run"), "what", "state")["value"].clone();
    assert_eq!(state(), "complete");
    let file = &Trace::open(dir.path()).unwrap().ranks[1].path;
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(state(), "damaged: 1 problem");
}

#[test]
fn records_may_say_anything() {
    let dir = Scratch::new("hostile");
    let mut run = run_of(1, 0);
    (run.workers, run.hosts, run.started_unix_ns) = (vec![2], vec!["a".into(); 3], u64::MAX);
    (run.ranks, run.arrows) = (4_000_000_000, u32::MAX);
    let mut writer = Writer::create(dir.path(), &run).unwrap();
    writer.events(0, &[handler(0, 5_000, 5_000)]).unwrap();
    let most = u64::MAX;
    let sample = |at_ns: u64| {
        let mut sample = Sample { at_ns, sync: Some(most), wall_ns: most, cpu_ns: most, ..Sample::default() };
        (sample.wait_ns, sample.steal_ns, sample.throttled_ns) = (most, most, most);
        sample
    };
    writer.samples(&[sample(most), sample(0), sample(3), sample(most)]).unwrap();
    let mut syncs = Vec::new();
    for sync in [0, 0, 1, most, most] {
        let mut report = SyncReport::default();
        (report.sync, report.at_ns) = (sync, if sync == 1 { 2_500 } else { most });
        (report.moved, report.proposed, report.moved_bytes) = (most, most, most);
        (report.gain_ns, report.needed_ns) = (most, most);
        (report.collect_ns, report.decide_ns, report.migrate_ns) = (most, most, most);
        (report.imbalance_before, report.imbalance_predicted) = (-1e300, 1e308);
        (report.makespan_before_ns, report.makespan_predicted_ns) = (most, 1);
        (report.before_ns, report.predicted_ns) = (vec![most; 70], vec![most; 3]);
        (report.capacity, report.share) = (vec![0.0, -1e308, 1e308], vec![0.0; 9]);
        report.chunks_per_rank = vec![u32::MAX; 80];
        syncs.push(report);
    }
    writer.syncs(&syncs).unwrap();
    writer.finish(&End { elapsed_ns: most, messages: most, dropped: most, ..End::default() }).unwrap();
    for (words, said) in all_commands(&dir) {
        let around = words.contains(&"--before-after".to_owned());
        assert!(said.is_ok() || around, "{words:?}: {said:?}");
    }
    // An odd trace may have no phase on one side of the sync.
    let around = caribou(&["trace", "utilisation", dir.text(), "--around-sync", "1"]);
    assert!(around.is_ok() || around.is_err_and(|line| line.contains("no phase both before and after")));
}

#[test]
fn a_part_of_the_runtime_is_no_chunk() {
    let dir = Scratch::new("parts");
    let flush = What::Runtime { part: Part::Flush, sync: 0 };
    let events = [handler(0, 600, 0), Event { begin_ns: 600, end_ns: 900, what: flush }];
    write_rank(&dir, &run_of(1, 0), &events, 1_000);
    let text = caribou(&["trace", "profile", dir.text()]).unwrap();
    let expected =
        "worker-time 1.00 us: chunks 60.0 %, runtime 30.0 %, idle 0.0 %, lost 0.0 %, unaccounted 10.0 %";
    assert_eq!(text.lines().next(), Some(expected));
    assert!(!text.contains("decide"), "{text}");
    let wrong = caribou(&["trace", "profile", dir.text(), "--rank", "7"]).unwrap_err();
    assert_eq!(wrong, "--rank: expected ranks of the trace, which are 0");
}

#[test]
fn a_profile_says_that_the_time_of_deciding_includes_waiting() {
    let dir = Scratch::new("decide");
    let decide = What::Runtime { part: Part::Decide, sync: 0 };
    write_rank(&dir, &run_of(1, 0), &[Event { begin_ns: 0, end_ns: 300, what: decide }], 1_000);
    let text = caribou(&["trace", "profile", dir.text()]).unwrap();
    let note = "note: measure, decide and migrate: wall time of workers for syncs, which includes waiting; the \
                strategy's own time is in `lb`";
    assert!(text.lines().any(|line| line == note), "{text}");
}

#[test]
fn a_pool_has_a_tail_until_its_last_iteration_and_then_collects_the_result() {
    let dir = Scratch::new("pool-end");
    for (rank, worked) in [(0, 2), (1, 5)] {
        let mut run = run_of(2, rank);
        (run.shape, run.lb) = (Shape::Pools, "ruper".into());
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        // Bins of 100 ns. The rank works in the first bins and is idle in the others.
        let row = |activity, bins: std::ops::Range<usize>| {
            let ns: Vec<u64> = (0..bins.end).map(|bin| if bins.contains(&bin) { 100 } else { 0 }).collect();
            Row { activity, calls: vec![1; ns.len()], longest_ns: ns.clone(), ns }
        };
        let rows = vec![row(Activity::Iterations, 0..worked), row(Activity::Idle, worked..20)];
        writer.profile(0, &Profile { bin_ns: 100, rows }).unwrap();
        writer.finish(&End { elapsed_ns: 2_000, ..End::default() }).unwrap();
    }
    let page = json(&["summary", dir.text()]);
    let time = |name: &str| number(&row(rows(&page, "time"), "part", name)["time_ns"]);
    let ending = ["idle", "idle, waiting for the last worker", "idle, collecting the result"].map(time);
    assert_eq!(ending, [0.0, 300.0, 3_000.0]);
    let says = page["says"].to_string();
    assert!(says.contains("workers waited for the last one for 7.5 % of the time"), "{says}");
    assert!(
        says.contains("for 75.0 % of the time nothing was left to execute, and `ruper` collected"),
        "{says}"
    );
}
