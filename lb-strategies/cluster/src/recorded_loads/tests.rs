use super::*;

fn vom(files: &[&str]) -> Result<RecordedLoads, String> {
    parse(LoadFormat::Vom, files)
}

fn json(files: &[&str]) -> Result<RecordedLoads, String> {
    parse(LoadFormat::Json, files)
}

fn parse(format: LoadFormat, texts: &[&str]) -> Result<RecordedLoads, String> {
    let names: Vec<String> = (0..texts.len()).map(|rank| format!("f.{rank}")).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().zip(texts).map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    RecordedLoads::parse(format, &files).map_err(|error| error.to_string())
}

fn costs(loads: &RecordedLoads, phase: u64) -> Vec<f64> {
    (0..loads.homes().len() as u32).map(|chunk| loads.costs(1.0).cost(chunk, phase)).collect()
}

#[test]
fn chunks_are_ordered_by_rank_and_cost_nothing_where_they_are_not() {
    let loads = vom(&["3,5,1\n3,2,2\r\n9,2,4\n\n", "9,1,0.5\n3,5,2,100.0,1\n"]).unwrap();
    assert_eq!((loads.ranks(), loads.phases()), (2, 2), "phases 3 and 9");
    let ranks: Vec<u32> = loads.homes().iter().map(|home| home.rank.0).collect();
    assert_eq!(ranks, [0, 0, 1]);
    assert_eq!([costs(&loads, 0), costs(&loads, 1)], [[2.0, 1.0, 0.0], [4.0, 0.0, 0.5]]);
    assert_eq!(costs(&loads, 2), costs(&loads, 0), "after the last phase the first comes again");
    assert_eq!(loads.mean_phase_s().to_bits(), 3.5_f64.to_bits());
}

#[test]
fn an_object_that_moved_begins_where_it_was_first() {
    let loads = vom(&["1,7,1\n", "0,7,1\n0,8,1\n"]).unwrap();
    assert!(loads.homes().iter().all(|home| home.rank.0 == 1), "{loads:?}");
}

#[test]
fn json_says_which_objects_are_pinned() {
    let task = |id: &str, migratable| {
        format!(r#"{{"time": 0.5, "entity": {{{id}, "migratable": {migratable}}}, "node": 0}}"#)
    };
    let tasks = [task(r#""id": 3"#, true), task(r#""seq_id": 4, "home": 0"#, false)].join(",");
    let loads = json(&[&format!(r#"{{"phases": [{{"id": 0, "tasks": [{tasks}]}}], "type": "LBDatafile"}}"#)]);
    let homes = loads.unwrap().homes();
    assert_eq!(homes.iter().map(|home| home.migratable).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn damaged_files_are_named_with_the_place_of_the_damage() {
    let field = |text: &str| format!(r#"{{"phases": [{{"id": 0, "tasks": [{text}]}}]}}"#);
    for (text, expected) in [
        ("0,7\n", "f.0:1: 2 fields, expected phase,object,seconds or the five fields of communication"),
        ("0,7,1\n0,8,-1\n", "f.0:2: \"-1\" is no load, expected seconds, a number from 0 to 1e6"),
        ("0,7,nan", "f.0:1: \"NaN\" is no load"),
        ("0,7,1e7", "f.0:1: \"10000000\" is no load"),
        ("x,7,1", "f.0:1: \"x\" is no phase, expected a whole number"),
        ("0,18446744073709551616,1", "f.0:1: \"18446744073709551616\" is no object, expected a whole number"),
        (
            "0,7,1\n1,7,1\n1,7,1",
            "f.0: object 7 has two loads in phase 1, one in f.0, expected each object once",
        ),
        ("0,7,1,1,[1.0]", "f.0:1: \"[1.0]\" is no kind of communication, expected a whole number"),
        ("0,7,1,x,1", "f.0:1: \"x\" is no number of bytes"),
        ("\n\n", "f.0 and those beside it: no load in any file, expected one at least"),
        ("", "f.0 and those beside it: no load in any file, expected one at least"),
    ] {
        assert!(vom(&[text]).unwrap_err().starts_with(expected), "{text:?}: {:?}", vom(&[text]));
    }
    for (text, expected) in [
        ("{", "f.0:1: no LB data of vt: EOF while parsing an object at line 1 column 1"),
        ("{}", "f.0:1: no LB data of vt: missing field `phases` at line 1 column 2"),
        ("\u{fffd}", "f.0:1: no LB data of vt: expected value"),
        (&field(r#"{"time": 1}"#), "f.0:1: no LB data of vt: missing field `entity`"),
        (&field("{\n\"time\": \"1\"}"), "f.0:2: no LB data of vt: invalid type: string \"1\", expected f64"),
        (
            &field(r#"{"time": 1, "entity": {"migratable": true}}"#),
            "f.0: phases[0].tasks[0]: no id, expected entity.id or entity.seq_id, a whole number",
        ),
        (
            &field(r#"{"time": -1, "entity": {"id": 1, "migratable": true}}"#),
            "f.0: phases[0].tasks[0]: \"-1\" is no load, expected seconds",
        ),
        (&field(r#"{"time": NaN}"#), "f.0:1: no LB data of vt: expected value"),
        (&field(r#"{"time": null}"#), "f.0:1: no LB data of vt: invalid type: null, expected f64"),
        (&field(r#"{"time": 1e999}"#), "f.0:1: no LB data of vt: number out of range"),
        (r#"{"phases": [{"id": 0.5}]}"#, "f.0: phases[0].id: 0.5, expected a whole number"),
        (r#"{"phases": [{"id": 3}, {"id": 3}]}"#, "f.0: phases[1]: phase 3 is there twice"),
        (
            r#"{"metadata": {"rank": 1}, "phases": []}"#,
            "f.0: metadata.rank: 1, expected 0, the rank in the name of the file",
        ),
        (
            r#"{"metadata": {"rank_alpha": -1.0}, "phases": []}"#,
            "f.0: metadata.rank_alpha: -1, expected a number",
        ),
        (
            &field(
                r#"{"time": 1, "entity": {"id": 1, "migratable": true}, "user_defined": {"shared_bytes": -2}}"#,
            ),
            "f.0: phases[0].tasks[0]: shared_bytes is -2, expected bytes, a number from 0 to 1e18",
        ),
        (
            r#"{"phases": [{"id": 0, "communications": [{"type": "SendRecv", "bytes": -1, "from": {}, "to": {}}]}]}"#,
            "f.0: phases[0].communications[0]: bytes is -1, expected bytes",
        ),
    ] {
        assert!(json(&[text]).unwrap_err().starts_with(expected), "{text:?}: {:?}", json(&[text]));
    }
    assert!(json(&[&"[".repeat(100_000)]).is_err());
    assert!(RecordedLoads::parse(LoadFormat::Vom, &[("f.0", &[0xff, b'\n'])]).is_err(), "not text");
    assert_eq!(
        vom(&["0,7,1\n", "0,7,1\n"]).unwrap_err(),
        "f.1: object 7 has two loads in phase 0, one in f.0, expected each object once"
    );
    assert!(vom(&[]).is_err());
}

#[test]
fn a_table_too_large_is_refused_before_it_is_made() {
    let lines: String = (0..8_000).map(|number| format!("{number},{number},1\n")).collect();
    let error = vom(&[&lines]).unwrap_err();
    assert!(error.ends_with("8000 objects in 8000 phases, expected 50000000 loads at most"), "{error}");
}

/// A task of an object with this id.
fn task(id: u64, more: &str) -> String {
    format!(r#"{{"time": 0.5, "entity": {{"id": {id}, "home": 0, "migratable": true}}{more}}}"#)
}

fn phase(id: u64, tasks: &[String], communications: &str) -> String {
    let tasks = tasks.join(",");
    format!(r#"{{"id": {id}, "tasks": [{tasks}], "communications": [{communications}]}}"#)
}

fn file(metadata: &str, phases: &[String]) -> String {
    format!(r#"{{"metadata": {metadata}, "phases": [{}]}}"#, phases.join(","))
}

#[test]
fn phases_that_are_listed_are_repeated_or_left_out() {
    let lists = |skipped: &str, repeated: &str| {
        format!(
            r#"{{"phases": {{"skipped": {{"list": [{skipped}], "range": []}},
                "identical_to_previous": {{"list": [], "range": [{repeated}]}}}}}}"#
        )
    };
    let phases = [phase(1, &[task(3, "")], ""), phase(6, &[task(3, ""), task(5, "")], "")];
    let loads = json(&[&file(&lists("5", "[2, 4], [7, 8]"), &phases)]).unwrap();
    let found: Vec<(u64, usize)> =
        loads.snapshots().iter().map(|snapshot| (snapshot.phase, snapshot.chunks.len())).collect();
    assert_eq!(found, [(1, 1), (2, 1), (3, 1), (4, 1), (6, 2), (7, 2), (8, 2)]);
    let repeated_twice = json(&[&file(&lists("5", "[3, 3], [7, 8], [2, 4], [3, 4]"), &phases)]).unwrap();
    assert_eq!(repeated_twice.snapshots(), loads.snapshots(), "ranges may overlap, in any order");
    let knows_five = file("{}", &[phase(5, &[task(9, "")], ""), phase(6, &[task(9, "")], "")]);
    let loads = json(&[&file(&lists("5", "[2, 4], [7, 8]"), &phases), &knows_five]).unwrap();
    let found: Vec<u64> = loads.snapshots().iter().map(|snapshot| snapshot.phase).collect();
    assert_eq!(found, [1, 2, 3, 4, 6, 7, 8], "of phase 5 one rank knows nothing");
    for (lists, expected) in [
        (lists("", "[2, 4], [7, 8]"), "f.0: phase 5 is missing, expected an entry, or its number in a list"),
        (lists("5", "[0, 4]"), "f.0: phase 0 is like the previous one, and there is none"),
        (
            lists("5", "[4, 2]"),
            "f.0: metadata.phases.identical_to_previous: 4 to 2, expected numbers of phases in order",
        ),
        (
            lists("5", "[2, 9e15]"),
            "f.0: metadata.phases lists 9000000000000000 phases, expected 1000000 at most",
        ),
    ] {
        let error = json(&[&file(&lists, &phases)]).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let many: Vec<String> = (0..30).map(|id| task(id, "")).collect();
    let error = json(&[&file(&lists("", "[1, 900000]"), &[phase(0, &many, "")])]).unwrap_err();
    let expected = "f.0 and those beside it: more than 20000000 ranks, loads and edges in all phases";
    assert!(error.starts_with(expected), "{error}");
    let edge = r#"{"type": "SendRecv", "bytes": 1, "from": {"id": 1}, "to": {"id": 2}}"#;
    let error =
        json(&[&file(&lists("", "[1, 99999]"), &[phase(0, &[], &[edge; 200].join(","))])]).unwrap_err();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn the_last_of_equal_edges_between_objects_with_loads_counts() {
    let end = |id: u64| format!(r#"{{"type": "object", "id": {id}}}"#);
    let edge = |kind: &str, from: u64, to: u64, bytes: u64| {
        let (from, to) = (end(from), end(to));
        format!(r#"{{"type": "{kind}", "from": {from}, "to": {to}, "messages": 2.0, "bytes": {bytes}}}"#)
    };
    let first = [
        edge("SendRecv", 3, 4325376508, 1),
        edge("SendRecv", 3, 4325376508, 10),
        edge("SendRecv", 3, 3, 100),
        edge("SendRecv", 3, 9, 100),
        edge("Broadcast", 3, 5, 100),
        r#"{"type": "WriteShared", "from": {"type": "shared_id", "id": 3}, "to": {"type": "object", "id": 5}, "bytes": 100}"#.to_owned(),
    ];
    let second = [edge("SendRecv", 5, 3, 7), edge("SendRecv", 3, 4325376508, 20)];
    let loads = json(&[
        &file("{}", &[phase(0, &[task(4325376508, ""), task(3, "")], &first.join(","))]),
        &file("{}", &[phase(0, &[task(5, "")], &second.join(","))]),
    ])
    .unwrap();
    let snapshot = &loads.snapshots()[0];
    let edges: Vec<_> =
        snapshot.edges.iter().map(|edge| (edge.from, edge.to, edge.messages, edge.bytes)).collect();
    assert_eq!(edges, [(0, 1, 2, 20), (2, 0, 2, 7)], "chunks 3, 4325376508 and 5");
}

#[test]
fn a_sequence_number_names_an_object_with_its_home_or_if_it_is_the_only_one() {
    let object = |sequence: u64, home: u64, migratable: bool| {
        format!(r#"{{"type": "object", "seq_id": {sequence}, "home": {home}, "migratable": {migratable}}}"#)
    };
    let task = |entity: String| format!(r#"{{"time": 1, "entity": {entity}}}"#);
    let edge = |from: &str, to: &str| format!(r#"{{"type": 1, "from": {from}, "to": {to}, "bytes": 1}}"#);
    let edges = [
        edge(&object(1, 0, true), &object(1, 1, true)),
        edge(&object(1, 1, false), r#"{"seq_id": 2}"#),
        edge(r#"{"seq_id": 1}"#, r#"{"seq_id": 2}"#),
    ];
    let tasks = [object(1, 0, true), object(1, 1, true), object(1, 1, false), object(2, 0, true)].map(task);
    let loads = json(&[&file("{}", &[phase(0, &tasks, &edges.join(","))])]).unwrap();
    let snapshot = &loads.snapshots()[0];
    let keys: Vec<u64> = snapshot.chunks.iter().map(|chunk| chunk.id.key).collect();
    assert_eq!(keys, [1 << 18 | 3, 1 << 18 | 1 << 2 | 2, 1 << 18 | 1 << 2 | 3, 2 << 18 | 3]);
    let edges: Vec<_> = snapshot.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    assert_eq!(edges, [(0, 2), (1, 3)], "sequence number 1 alone is ambiguous");
}

#[test]
fn hosts_speeds_and_memory_are_those_of_the_files() {
    let sizes = |working: u64, block: &str| {
        format!(
            r#", "user_defined": {{"shared_id": {block}, "shared_bytes": 100.0, "task_working_bytes": {working}.0,
                "task_footprint_bytes": 10.0, "task_serialized_bytes": 7.0, "rank_working_bytes": 1000.0}}"#
        )
    };
    let node = |id: u64, alpha: f64| {
        format!(
            r#"{{"rank_alpha": {alpha:?}, "shared_node": {{"id": {id}, "size": 2, "rank": 0, "num_nodes": 2}}}}"#
        )
    };
    let tasks = [task(3, &sizes(5, "4")), task(4, &sizes(6, "4")), task(5, &sizes(1, "-1"))];
    let state = task(6, r#", "attributes": {"state_bytes": 77}"#);
    let mut loads = json(&[
        &file(&node(7, 0.5), &[phase(0, &tasks, "")]),
        &file("{}", &[phase(0, &[state], "")]),
        &file(&node(9, 1.0), &[]),
        &file(&node(7, 0.0), &[]),
    ])
    .unwrap();
    loads.limit_memory(1_500);
    let snapshot = &loads.snapshots()[0];
    let ranks: Vec<(u32, f64)> = snapshot.ranks.iter().map(|rank| (rank.host, rank.speed)).collect();
    assert_eq!(ranks, [(0, 2.0), (1, 1.0), (2, 1.0), (0, 1e6)]);
    assert_eq!(snapshot.chunks.iter().map(|chunk| chunk.bytes).collect::<Vec<_>>(), [7, 7, 7, 77]);
    let memory = snapshot.memory.clone().unwrap();
    assert_eq!(memory.limits, [500, 1_500, 1_500, 1_500]);
    let bytes = metrics::memory_bytes(snapshot, &Assignment::current(snapshot));
    assert_eq!(
        bytes,
        [3 * 10 + 100 + 6, 0, 0, 0],
        "one block, the largest working memory; LBAF counts no state"
    );
}

#[test]
fn a_task_of_time_0_with_an_invalid_id_is_left_out() {
    let void = |id: &str| format!(r#"{{"time": 0.0, "entity": {{{id} "migratable": false}}}}"#);
    let voids = ["", r#""id": 0,"#, r#""id": 18446744073709551615,"#, r#""id": -1,"#].map(void);
    let text = |rank: u64| {
        let tasks = [&voids[..], &[task(rank, "")]].concat();
        file("{}", &[phase(0, &tasks, "")])
    };
    let loads = json(&[&text(1), &text(2)]).unwrap();
    assert_eq!(loads.homes().len(), 2);
}

#[test]
fn any_byte_that_is_changed_gives_loads_or_an_error() {
    let end = r#"{"type": "object", "id": 3}"#;
    let edge = format!(r#"{{"type": "SendRecv", "from": {end}, "to": {end}, "messages": 2, "bytes": 1.5}}"#);
    let metadata = r#"{"rank": 0, "phases": {"skipped": {"list": [1], "range": []},
        "identical_to_previous": {"list": [], "range": [[2, 4]]}}}"#;
    let whole = file(metadata, &[phase(0, &[task(3, ""), task(4, "")], &edge)]);
    assert!(json(&[&whole]).is_ok());
    for position in 0..whole.len() {
        for byte in [b'9', b'-', b'"', b'}', b'e'] {
            let mut bytes = whole.clone().into_bytes();
            bytes[position] = byte;
            if let Err(error) = RecordedLoads::parse(LoadFormat::Json, &[("f.0", &bytes)]) {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
}
