//! Tests forged files.

use caribou::trace::block::{HEADER, Header, INDEX_MAGIC, RAW_MAX};
use caribou::trace::encoding::Encoder;

use super::*;

#[test]
fn foreign_files_are_refused_with_one_line_that_says_what_was_expected() {
    let dir = Scratch::new("foreign");
    let says = |bytes: &[u8], what: &str| {
        let line = refused(dir.open(bytes));
        assert!(line.contains("rank-00000.trace: it ") && line.contains(what), "{line}");
    };
    says(b"", "is empty: a Caribou trace begins with `caribou-trace 2`");
    says(b"caribou-tr", "ends too early");
    says(b"hello, this is a text file\n", "is something else");
    says(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is something else");
    says(b"caribou-trace 3\n........", "has version 3 of the format, expected 1 or 2");
    says(b"caribou-trace 17 ...", "has version 17 of the format");
    says(b"caribou-trace 1\r\n.......", "is something else");
    says(MAGIC, "has no run record");
    says(&[&MAGIC[..], &[0; 4000]].concat(), "has no run record that can be read (no block begins here");
}

#[test]
fn directories_without_a_trace_or_with_several_are_refused_with_one_line() {
    let dir = Scratch::new("directories");
    let open = || Trace::open(&dir.0);
    assert!(refused(open()).contains("no trace is in there: expected rank-00000.trace"));
    assert!(refused(Trace::open(&dir.0.join("nowhere"))).contains("nowhere: cannot be read"));
    fs::create_dir(dir.0.join("rank-00003.trace")).unwrap();
    assert!(refused(open()).contains("rank-00003.trace: it is not a file"));
    fs::remove_dir(dir.0.join("rank-00003.trace")).unwrap();
    small(&dir.0.join("run-10"), 0, 1);
    assert_eq!(open().unwrap().events(), 29);
    small(&dir.0.join("run-9"), 0, 1);
    let line = refused(open());
    assert!(line.ends_with("2 runs are in there, name one of them: run-9, run-10"), "{line}");
}

#[cfg(unix)]
#[test]
fn pipes_and_unreadable_files_are_told_and_do_not_hang() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Scratch::new("pipes");
    small(&dir.0, 0, 3);
    let pipe = dir.0.join(file_name(1));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let secret = dir.file(&file_name(2), b"caribou-trace 1\n");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let trace = Trace::open(&dir.0).unwrap();
    assert_eq!(trace.ranks.len(), 1);
    let told: Vec<String> = trace.problems.iter().map(Problem::to_string).collect();
    let said = |what: &str| assert!(told.iter().any(|line| line.contains(what)), "{what}: {told:?}");
    said("rank-00001.trace: byte 0: left out: it is not a file");
    // Root can read the file, and finds no trace in it.
    said("rank-00002.trace: byte 0: left out: it ");
}

#[test]
fn of_two_runs_in_one_directory_the_second_leaves_nothing_behind() {
    let dir = Scratch::new("mixed");
    let mut first = Writer::create(&dir.0, &run_record(0, 3, 1)).unwrap();
    first.events(0, &[Event { begin_ns: 0, end_ns: 9, what: What::Idle }]).unwrap();
    first.finish(&End::default()).unwrap();
    let other = RunRecord { run_id: "another\nrun\u{1b}[31m".into(), ..run_record(1, 3, 1) };
    let mut second = Writer::create(&dir.0, &other).unwrap();
    second.arrays(&["Foreign".into()]).unwrap();
    second.chunks(&[(chunk(0), "foreign".into())]).unwrap();
    second.syncs(&[sync_report(0)]).unwrap();
    second.finish(&End::default()).unwrap();
    let again = dir.file("rank-again.trace", &fs::read(dir.0.join(file_name(0))).unwrap());
    let trace = Trace::open(&dir.0).unwrap();
    assert_eq!((trace.ranks.len(), trace.syncs.len(), trace.arrays.len()), (1, 0, 0));
    assert_eq!(trace.chunk_index(chunk(0)), None);
    let told: Vec<String> = trace.problems.iter().map(Problem::to_string).collect();
    let said = |what: &str| assert!(told.iter().any(|line| line.contains(what)), "{what}: {told:?}");
    said(r"it belongs to run another\nrun\u{1b}[31m, not to run of the tests");
    said("rank 0 has another file");
    said("the file of rank 2 is missing");
    assert!(
        told.iter().all(|line| !line.contains("the file of rank 1 is missing")),
        "it is left out: {told:?}"
    );
    assert!(trace.problems.iter().any(|problem| problem.file == again));
    assert!(told.iter().all(|line| !line.contains('\n')));
}

#[test]
fn a_block_that_promises_four_gigabytes_is_not_believed() {
    let dir = Scratch::new("promises");
    for (raw, stored, what) in [
        (u32::MAX, 10, "a block of more than 4 MiB"),
        (10, u32::MAX, "a block of more than 4 MiB"),
        (RAW_MAX as u32, RAW_MAX as u32, "the file ends within a block"),
    ] {
        let header = Header { raw, stored, ..run_block().header };
        let bytes = [&bytes_of(&[run_block()])[..], &header.to_bytes(), &[0; 10]].concat();
        let trace = dir.open(&bytes).unwrap();
        assert!(trace.problems[0].what.starts_with(what), "{:?}", trace.problems);
    }
    let many = Header { kind: Kind::Events, raw: 1 << 20, items: 1 << 20, ..run_block().header };
    let trace = dir.open(&[&bytes_of(&[run_block()])[..], &many.to_bytes()].concat()).unwrap();
    assert!(trace.problems[0].what.starts_with("a block of more than 2^18 events"), "{:?}", trace.problems);
}

#[test]
fn records_that_unpack_to_more_than_memory_are_left_out() {
    let dir = Scratch::new("bombs");
    // 16 KiB in the file, 4 MiB of JSON, and at least 50 MiB in memory.
    let many = RAW_MAX / 3 - 10;
    let json = format!("[{}{{}}]", "{},".repeat(many - 1));
    let looks = format!("[{{\"takers\":{json}}}]");
    let bombs = [
        Block::new(Kind::Samples, 0, many, (0, 0), json.as_bytes()),
        Block::new(Kind::Looks, 0, 1, (0, 0), looks.as_bytes()),
    ];
    for bomb in bombs {
        let mut blocks = vec![run_block()];
        blocks.extend((0..6).map(|_| Block { header: bomb.header, bytes: bomb.bytes.clone() }));
        let bytes = bytes_of(&blocks);
        assert!(bytes.len() < 1 << 18);
        let trace = dir.open(&bytes).unwrap();
        let too_many = trace.problems.iter().filter(|problem| problem.what.contains("more than 256 MiB"));
        assert!(too_many.count() >= 2, "{:?}", trace.problems);
        let rank = &trace.ranks[0];
        let takers: usize = rank.looks.iter().map(|look| look.takers.len()).sum();
        let kept = rank.samples.len() * size_of::<Sample>() + takers * size_of::<Taker>();
        assert!(kept <= 256 << 20, "{kept}");
    }
}

#[test]
fn records_of_any_content_are_read_or_left_out_with_one_line() {
    let dir = Scratch::new("records");
    let nested = format!("{{\"a\": {}", "[".repeat(100_000));
    let long = format!("{{\"elapsed_ns\": \"{}\n\"}}", "x".repeat(100_000));
    let cases: [(Kind, &str); 14] = [
        (Kind::End, &nested),
        (Kind::End, &long),
        (Kind::End, "{\"elapsed_ns\": 1e999}"),
        (Kind::End, "{\"elapsed_ns\": -1}"),
        (Kind::End, "\u{0}"),
        (Kind::End, "{\"elapsed_ns\": 1} and more"),
        (Kind::Samples, "[{\"share\": 1}, {}]"),
        (Kind::Samples, "{}"),
        (Kind::Looks, "[{\"takers\": [{\"pid\": -1}]}]"),
        (Kind::Syncs, "[{\"capacity\": [\"fast\"]}]"),
        (Kind::Names, "{\"names\": [{\"text\": 3}]}"),
        (Kind::Profile, "{\"bin_ns\": 0, \"rows\": []}"),
        (
            Kind::Profile,
            "{\"rows\": [{\"activity\": \"idle\", \"ns\": [1], \"calls\": [], \"longest_ns\": []}]}",
        ),
        (
            Kind::Profile,
            "{\"rows\": [{\"activity\": \"idle\", \"ns\": [18446744073709551615], \"calls\": [1], \"longest_ns\": [1]}]}",
        ),
    ];
    for (kind, json) in cases {
        let shown = &json[..json.len().min(60)];
        let block = Block::new(kind, 0, 1, (0, 0), json.as_bytes());
        let trace = dir.open(&bytes_of(&[run_block(), block])).unwrap();
        let lines: Vec<&str> = trace.problems.iter().map(|problem| problem.what.as_str()).collect();
        let left_out = format!("the {} cannot be read", kind.name());
        let line = lines.iter().find(|line| line.starts_with(&left_out));
        let line = line.unwrap_or_else(|| panic!("{shown}: {lines:?}"));
        assert!(!line.contains('\n') && line.len() < 400, "{shown}: {line}");
    }
}

#[test]
fn a_profile_of_too_many_bins_is_left_out_and_a_wide_one_is_no_time() {
    let dir = Scratch::new("columns");
    let column = |bins: usize| vec!["1"; bins].join(",");
    let row = |bins: usize| {
        let column = column(bins);
        format!("{{\"activity\":\"lost\",\"ns\":[{column}],\"calls\":[{column}],\"longest_ns\":[{column}]}}")
    };
    let opened = |bin_ns: u64, bins: usize| {
        let json = format!("{{\"bin_ns\": {bin_ns}, \"rows\": [{}]}}", row(bins));
        dir.open(&bytes_of(&[run_block(), Block::new(Kind::Profile, 0, 1, (0, 0), json.as_bytes())])).unwrap()
    };
    let left_out = |trace: Trace, why| trace.problems.iter().any(|problem| problem.what.contains(why));
    assert!(left_out(opened(1000, 1001), "columns do not match"));
    assert!(left_out(opened(u64::MAX, 10), "an invalid width"));
    let trace = opened(1 << 53, 1000);
    assert_eq!(trace.elapsed_ns(), 1 << 53, "the longest there is");
}

/// The bytes of a file with this index. Each entry is an offset and a header.
fn with_index(blocks: &[Block], entries: &[(u64, Header)]) -> Vec<u8> {
    let mut bytes = bytes_of(blocks);
    let raw: Vec<u8> = entries
        .iter()
        .flat_map(|(at, header)| [&at.to_le_bytes()[..], &header.to_bytes()].concat())
        .collect();
    let at = bytes.len() as u64;
    let index = Block::new(Kind::Index, 0, entries.len(), (0, 0), &raw);
    bytes.extend_from_slice(&index.header.to_bytes());
    bytes.extend_from_slice(&index.bytes);
    bytes.extend_from_slice(&at.to_le_bytes());
    bytes.extend_from_slice(INDEX_MAGIC);
    bytes
}

#[test]
fn an_index_that_points_anywhere_but_at_each_block_once_is_not_believed() {
    let dir = Scratch::new("index");
    let header = run_block().header;
    let first = MAGIC.len() as u64;
    let index_at = first + HEADER as u64 + u64::from(header.stored);
    let itself = Header { kind: Kind::Index, ..header };
    let bad: [&[(u64, Header)]; 7] = [
        &[],
        &[(first, header), (first, header)],
        &[(first + 1, header)],
        &[(index_at, itself)],
        &[(first, itself)],
        &[(u64::MAX, header)],
        &[(first, Header { stored: header.stored + 1, ..header })],
    ];
    for entries in bad {
        let trace = dir.open(&with_index(&[run_block()], entries)).unwrap();
        assert!(trace.problems[0].what.contains("the index is damaged"), "{entries:?}: {:?}", trace.problems);
        assert_eq!(trace.run, run_record(0, 1, 1));
    }
    assert_eq!(dir.open(&with_index(&[run_block()], &[(first, header)])).unwrap().problems, []);
    for at in [0, first, u64::MAX, u64::MAX - 20] {
        let mut bytes = with_index(&[run_block()], &[(first, header)]);
        let place = bytes.len() - 24;
        bytes[place..place + 8].copy_from_slice(&at.to_le_bytes());
        assert_eq!(dir.open(&bytes).unwrap().problems.len(), 1, "an index at {at}");
    }
}

#[test]
fn ranks_and_workers_that_are_only_claimed_cost_nothing() {
    let dir = Scratch::new("claimed");
    let run = RunRecord { ranks: u32::MAX, workers: vec![u32::MAX], ..run_record(0, 1, 1) };
    let block = Block::new(Kind::Run, 0, 1, (0, 0), &serde_json::to_vec(&run).unwrap());
    dir.file("rank-00000.trace", &bytes_of(&[block]));
    let trace = Trace::open(&dir.0).unwrap();
    assert_eq!(trace.ranks[0].workers, 4096);
    assert_eq!(trace.problems.len(), 1 + 8, "the end, and eight of the ranks that are missing");
}

#[test]
fn a_block_with_more_or_fewer_records_than_it_promises_is_left_out() {
    let dir = Scratch::new("counts");
    let row = "{\"activity\":\"lost\",\"ns\":[1],\"calls\":[1],\"longest_ns\":[1]}";
    let cases = [
        (Kind::Samples, "[{}, {}]".to_owned()),
        (Kind::Looks, "[{}, {}]".to_owned()),
        (Kind::Syncs, "[{}, {}]".to_owned()),
        (Kind::Names, "{\"names\": [{\"text\": \"a\"}], \"chunks\": [[0, 0, \"a\"]]}".to_owned()),
        (Kind::Profile, format!("{{\"rows\": [{row}, {row}]}}")),
    ];
    for (kind, json) in cases {
        for items in 1..=3 {
            let block = Block::new(kind, 0, items, (0, 0), json.as_bytes());
            let trace = dir.open(&bytes_of(&[run_block(), block])).unwrap();
            let left_out = trace.problems.iter().any(|problem| problem.what.contains("cannot be read"));
            assert_eq!(left_out, items != 2, "{items} {}: {:?}", kind.name(), trace.problems);
        }
    }
}

#[test]
fn a_block_with_more_events_than_it_promises_takes_no_more_memory_than_those() {
    let dir = Scratch::new("events");
    let (mut bytes, mut encoder) = (Vec::new(), Encoder::default());
    let event = Event::point(7, What::Idle);
    (0..100_000).for_each(|_| encoder.encode(&event, &mut bytes));
    let block = |items| Block::new(Kind::Events, 0, items, (7, 7), &bytes);
    for (items, said) in [(1, "more than the 1 events"), (100_001, "100000 events where 100001 should be")] {
        let trace = dir.open(&bytes_of(&[run_block(), block(items)])).unwrap();
        let mut stream = trace.ranks[0].stream(0);
        let problem = stream.next_block().unwrap().unwrap_err();
        assert!(problem.what.contains(said), "{problem}");
        assert!(stream.capacity() < 2 * items + 8, "{}", stream.capacity());
    }
}
