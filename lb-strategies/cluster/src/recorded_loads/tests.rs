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
        ("0,7,1\n1,7,1\n1,7,1", "f.0:3: object 7 has two loads in phase 1, expected each object once"),
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
            "f.0: phases[0].tasks[0]: no id, expected entity.id or entity.seq_id",
        ),
        (
            &field(r#"{"time": -1, "entity": {"id": 1, "migratable": true}}"#),
            "f.0: phases[0].tasks[0]: \"-1\" is no load, expected seconds",
        ),
    ] {
        assert!(json(&[text]).unwrap_err().starts_with(expected), "{text:?}: {:?}", json(&[text]));
    }
    assert!(json(&[&"[".repeat(100_000)]).is_err());
    assert!(RecordedLoads::parse(LoadFormat::Vom, &[("f.0", &[0xff, b'\n'])]).is_err(), "not text");
    assert_eq!(
        vom(&["0,7,1\n", "0,7,1\n"]).unwrap_err(),
        "f.1:1: object 7 has two loads in phase 0, expected each object once"
    );
    assert!(vom(&[]).is_err());
}

#[test]
fn a_table_too_large_is_refused_before_it_is_made() {
    let lines: String = (0..8_000).map(|number| format!("{number},{number},1\n")).collect();
    let error = vom(&[&lines]).unwrap_err();
    assert!(error.ends_with("8000 objects in 8000 phases, expected 50000000 loads at most"), "{error}");
}
