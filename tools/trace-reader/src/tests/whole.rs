//! Tests that complete traces are read as written.

use std::sync::Arc;

use lb_strategies::balancer::{ChunkReport, PhaseReport};
use lb_strategies::{ArrayId, ChunkLoad, Rank};

use super::*;

#[test]
fn a_trace_is_read_as_it_was_written() {
    let dir = Scratch::new("whole");
    for rank in [1, 0] {
        small(&dir.0, rank, 2);
    }
    let trace = Trace::open(&dir.0).unwrap();
    assert_eq!(trace.problems, []);
    assert_eq!(trace.run, run_record(0, 2, 2));
    assert_eq!(trace.arrays, ["Ring"]);
    assert_eq!(trace.syncs, [sync_report(0), sync_report(1)]);
    assert_eq!(trace.steps, [step_record(0), step_record(1)]);
    assert_eq!((trace.elapsed_ns(), trace.events(), trace.dropped()), (900, 2 * 29, 10));
    assert_eq!(trace.chunk_name(chunk(1)), "Ring[1, 0]");
    assert_eq!(trace.chunk_name(chunk(17)), "Ring[#11]");
    for (number, rank) in trace.ranks.iter().enumerate() {
        assert_eq!((rank.rank, rank.workers), (number as u32, 2));
        assert_eq!(rank.host, format!("host{number}"));
        assert_eq!(rank.end, Some(end_record()));
        assert_eq!((rank.samples.len(), rank.samples[0].wall_ns), (1, 250));
        assert_eq!(rank.looks, [look()]);
        assert_eq!(rank.profiles[0], Profile::default());
        let Activity::Kind(kind) = rank.profiles[1].rows[0].activity else { panic!("a kind was written") };
        assert_eq!(trace.name(kind), "Ring::Halo");
        assert_eq!(rank.profiles[1].rows[0].total_ns(), 70);
        assert_eq!(rank.differing_headers(), []);
    }
}

#[test]
fn a_trace_of_the_version_before_is_read_and_sends_may_lie_inside_their_handlers() {
    let dir = Scratch::new("versions");
    let mut writer = Writer::create(&dir.0, &run_record(0, 1, 1)).unwrap();
    writer.names(&[Name { array: Some(ArrayId(0)), text: "Halo".into() }]).unwrap();
    let what = What::Handler { chunk: chunk(0), kind: NameId(0), from: RUNTIME, number: 0, lost_ns: 0 };
    let handler = Event { begin_ns: 10, end_ns: 90, what };
    let what = What::Send { chunk: chunk(0), to: chunk(1), rank: 0, number: 1, bytes: 8 };
    let send = Event { begin_ns: 40, end_ns: 90, what };
    let next = Event { begin_ns: 90, end_ns: 95, what: What::Idle };
    writer.events(0, &[handler, send, next]).unwrap();
    let path = writer.path().to_owned();
    writer.finish(&End::default()).unwrap();
    for version in [b'2', b'1'] {
        let mut bytes = fs::read(&path).unwrap();
        bytes[14] = version;
        fs::write(&path, bytes).unwrap();
        let (found, problems) = events(&Trace::open(&dir.0).unwrap());
        let found: Vec<Event> = found.into_iter().map(|(_, _, event)| event).collect();
        assert_eq!((found, problems), (vec![handler, send, next], vec![]));
    }
}

#[test]
fn a_name_has_one_number_in_events_of_every_kind_whatever_numbers_the_ranks_gave_it() {
    let dir = Scratch::new("names");
    let names = [["Halo", "only here"], ["Stop", "Halo"]];
    for (rank, names) in names.iter().enumerate() {
        let mut writer = Writer::create(&dir.0, &run_record(rank as u32, 2, 1)).unwrap();
        let names = names.map(|text| Name { array: Some(ArrayId(3)), text: text.into() });
        writer.names(&names).unwrap();
        let halo = names.iter().position(|name| name.text == "Halo").unwrap();
        let (chunk, name) = (chunk(0), NameId(halo as u32));
        let named = [
            What::Mark { chunk, name },
            What::Span { chunk, name },
            What::Counter { chunk, name, value: 0.5 },
            What::Handler { chunk, kind: name, from: RUNTIME, number: 0, lost_ns: 0 },
            What::Mark { chunk, name: NameId(77) },
        ];
        writer.events(0, &named.map(|what| Event::point(5, what))).unwrap();
        writer.finish(&End::default()).unwrap();
    }
    let trace = Trace::open(&dir.0).unwrap();
    let texts: Vec<&str> = trace.names.iter().map(|name| name.text.as_str()).collect();
    assert_eq!(texts, ["Halo", "only here", "Stop"]);
    let named = |mut event: Event| trace.name(*event.what.name_mut().expect("all have a name"));
    for rank in &trace.ranks {
        let names: Vec<String> = rank.stream(0).map(named).collect();
        let halo = "array 3::Halo";
        assert_eq!(names, [halo, halo, halo, halo, "name 4294967295"]);
    }
}

#[test]
fn events_of_all_kinds_come_back_in_order_worker_by_worker() {
    let dir = Scratch::new("events");
    let path = small(&dir.0, 0, 1);
    let trace = Trace::open(&path).unwrap();
    let (found, problems) = events(&trace);
    assert_eq!(problems, []);
    let written = one_of_each(0, NameId(1)).into_iter().chain(one_of_each(400, NameId(0)));
    let mut expected: Vec<_> = written.map(|event| (0, 0, event)).collect();
    expected.push((0, 1, Event { begin_ns: 10, end_ns: 20, what: What::Idle }));
    assert_eq!(found, expected);
}

#[test]
fn a_stretch_of_time_is_read_from_the_blocks_that_touch_it() {
    let dir = Scratch::new("between");
    let path = small(&dir.0, 0, 1);
    let trace = Trace::open(&path).unwrap();
    let starts = |from_ns, to_ns| trace.ranks[0].stream_between(0, from_ns, to_ns).next().map(|e| e.begin_ns);
    assert_eq!(starts(0, 50), Some(0));
    assert_eq!(starts(301, 399), None);
    assert_eq!(starts(301, 400), Some(400));
    assert_eq!(trace.ranks[0].stream(9).count(), 0);
}

#[test]
fn a_profile_that_is_written_again_replaces_the_first() {
    let dir = Scratch::new("profile-again");
    let mut writer = Writer::create(&dir.0, &run_record(0, 1, 1)).unwrap();
    let mut profile = Profile::default();
    for _ in 0..2 {
        profile.add(Activity::Idle, 0, 10, 10, 1, 10);
        writer.profile(0, &profile).unwrap();
    }
    writer.finish(&End::default()).unwrap();
    let trace = Trace::open(&dir.0).unwrap();
    assert_eq!(trace.ranks[0].profiles[0].total_ns(Activity::Idle), 20);
}

#[test]
fn the_file_of_one_rank_opens_all_ranks() {
    let dir = Scratch::new("one-file");
    for rank in [0, 1] {
        small(&dir.0, rank, 2);
    }
    let trace = Trace::open(&dir.0.join("rank-00001.trace")).unwrap();
    assert_eq!((trace.ranks.len(), trace.ranks[0].rank, &trace.problems), (1, 1, &vec![]));
}

#[test]
fn what_ranks_reported_to_a_sync_is_left_out_where_it_is_too_long_for_a_block_and_nothing_else_is() {
    let scratch = Scratch::new("long-reports");
    let sync = |sync, chunks: usize| {
        let load = ChunkLoad { id: chunk(7), rank: Rank(0), ticks: 1_000_000, bytes: 4096, migratable: true };
        let chunks = vec![ChunkReport { load, declared: false, wish: None, handled: 0 }; chunks];
        let reported = (chunks.len() > 1).then(|| Arc::new(PhaseReport { chunks, ..PhaseReport::default() }));
        let mut report = sync_report(sync);
        report.reported = reported;
        report
    };
    let syncs = [sync(0, 0), sync(1, 0), sync(2, 25_000), sync(3, 50_000), sync(4, 25_000)];
    let mut writer = Writer::create(&scratch.0, &run_record(0, 1, 1)).unwrap();
    writer.syncs(&syncs).unwrap();
    writer.finish(&end_record()).unwrap();
    let trace = Trace::open(&scratch.0).unwrap();
    assert_eq!(trace.problems, []);
    let mut cut = syncs[3].clone();
    cut.reported = None;
    assert!(trace.syncs.iter().eq([&syncs[0], &syncs[1], &syncs[2], &cut, &syncs[4]]));
}
