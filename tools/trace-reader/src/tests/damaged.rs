//! Tests files that were complete and then damaged.

use caribou::trace::block::INDEXED_MAX;
use caribou::trace::encoding::Encoder;

use super::*;

#[test]
fn a_file_cut_at_any_byte_yields_what_came_before_or_one_line() {
    let dir = Scratch::new("cut");
    let whole = fs::read(small(&dir.0, 0, 1)).unwrap();
    let trace = dir.open(&whole).unwrap();
    let all: [Vec<Event>; 2] = [0, 1].map(|worker| trace.ranks[0].stream(worker).collect());
    let (mut opened, mut most) = (0, 0);
    for length in 0..whole.len() {
        match dir.open(&whole[..length]) {
            Err(error) => {
                assert_eq!(opened, 0, "a longer file is refused: {length} bytes");
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            Ok(trace) => {
                opened += 1;
                assert_eq!(trace.problems.len(), 1, "{length} bytes: {:?}", trace.problems);
                for worker in 0..2u32 {
                    let mut stream = trace.ranks[0].stream(worker);
                    let found: Vec<Event> = stream.by_ref().collect();
                    assert_eq!(stream.problems(), []);
                    assert!(all[worker as usize].starts_with(&found), "{length} bytes");
                    most = most.max(found.len());
                }
            }
        }
    }
    assert!(opened > whole.len() / 2, "{opened} of {} lengths", whole.len());
    assert_eq!(most, all[0].len(), "without its index alone, everything is there");
}

#[test]
fn every_flipped_byte_is_found_and_no_event_is_made_up() {
    let dir = Scratch::new("flip");
    let whole = fs::read(small(&dir.0, 0, 1)).unwrap();
    let all = events(&dir.open(&whole).unwrap()).0;
    for at in 0..whole.len() {
        for flip in [1 << (at % 8), 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            let Ok(trace) = dir.open(&damaged) else { continue };
            let (found, problems) = events(&trace);
            let told = trace.problems.len() + problems.len() + trace.ranks[0].differing_headers().len();
            assert!(told > 0, "byte {at} xor {flip:#x} is not found");
            if trace.problems.is_empty() && problems.is_empty() {
                assert_eq!(found, all, "byte {at} xor {flip:#x} changes events unnoticed");
            }
            // Names may be lost with their block. All other data must be as written.
            let when =
                |(rank, worker, event): &(u32, u32, Event)| (*rank, *worker, event.begin_ns, event.end_ns);
            let mut rest = all.iter();
            assert!(found.iter().all(|event| rest.any(|other| when(other) == when(event))), "byte {at}");
        }
    }
}

#[test]
fn a_block_that_cannot_be_read_does_not_take_the_next_with_it() {
    let dir = Scratch::new("next-block");
    let early = Block::new(Kind::Events, 0, 2, (0, 1 << 52), &{
        // The second event is outside of the block's time. If it were accepted, all later events would be refused.
        let mut bytes = Vec::new();
        let mut encoder = Encoder::default();
        encoder.encode(&Event { begin_ns: 0, end_ns: 1 << 52, what: What::Idle }, &mut bytes);
        encoder.encode(&Event { begin_ns: 1 << 52, end_ns: (1 << 52) + 1, what: What::Idle }, &mut bytes);
        bytes
    });
    let mut bytes = Vec::new();
    let event = Event { begin_ns: 10, end_ns: 20, what: What::Idle };
    Encoder::default().encode(&event, &mut bytes);
    let good = Block::new(Kind::Events, 0, 1, (10, 20), &bytes);
    let trace = dir.open(&bytes_of(&[run_block(), early, good])).unwrap();
    let (found, problems) = events(&trace);
    assert_eq!(found, [(0, 0, event)]);
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn events_must_be_in_order_but_points_may_lie_in_the_handler_that_follows() {
    let dir = Scratch::new("order");
    let opened = |events: &[Event]| {
        let _ = fs::remove_file(dir.0.join(file_name(0)));
        let mut writer = Writer::create(&dir.0, &run_record(0, 1, 1)).unwrap();
        writer.events(0, events).unwrap();
        writer.finish(&End::default()).unwrap();
        super::events(&Trace::open(&dir.0).unwrap()).1.first().map(|problem| problem.what.clone())
    };
    let idle = |begin_ns, end_ns| Event { begin_ns, end_ns, what: What::Idle };
    let mark = |at_ns| Event::point(at_ns, What::Mark { chunk: chunk(0), name: NameId(0) });
    assert_eq!(opened(&[mark(5), idle(0, 10), mark(10), idle(10, 20)]), None);
    let says = |events: &[Event], what: &str| {
        let said = opened(events).expect("it should be refused");
        assert!(said.contains(what), "{said}");
    };
    says(&[idle(0, 10), mark(5)], "ends before the one before it");
    says(&[idle(0, 10), idle(9, 12)], "begins before the last one ended");
    let lost = What::Range { first: 0, count: 1, lost_ns: 11 };
    says(&[Event { begin_ns: 0, end_ns: 10, what: lost }], "lost more than it took");
}

#[test]
fn names_after_some_that_are_damaged_are_not_taken_for_them() {
    let dir = Scratch::new("lost-names");
    let names = |text: &str| {
        let json = format!(
            "{{\"names\": [{{\"array\": 0, \"text\": \"{text}\"}}], \"chunks\": [[0, 5, \"{text}\"]]}}"
        );
        Block::new(Kind::Names, 0, 2, (0, 0), json.as_bytes())
    };
    let mut bytes = Vec::new();
    let mark = |name| Event::point(5, What::Mark { chunk: chunk(0), name: NameId(name) });
    let mut encoder = Encoder::default();
    (0..2).for_each(|name| encoder.encode(&mark(name), &mut bytes));
    let marks = || Block::new(Kind::Events, 0, 2, (5, 5), &bytes);
    let shown = |blocks: &[Block]| {
        let trace = dir.open(&bytes_of(blocks)).unwrap();
        let name = |event: &Event| match event.what {
            What::Mark { name, .. } => trace.name(name),
            other => panic!("{other:?} was not written"),
        };
        let texts: Vec<String> = events(&trace).0.iter().map(|(_, _, event)| name(event)).collect();
        (texts, trace.chunk_index(chunk(5)).map(str::to_owned), trace.problems.len())
    };
    let (first, second) = (names("first"), names("second"));
    let whole = ["array 0::first".to_owned(), "array 0::second".to_owned()].to_vec();
    let (run, cut_off) = (run_block(), 1);
    assert_eq!(shown(&[run, first, second, marks()]), (whole, Some("first".into()), cut_off));
    let mut damaged = names("first");
    damaged.bytes[3] ^= 1;
    let unknown = vec![format!("name {}", u32::MAX); 2];
    assert_eq!(
        shown(&[run_block(), damaged, names("second"), marks()]),
        (unknown, Some("second".into()), 2 + cut_off),
        "the numbers of names are not known any more; those of chunks are"
    );
    let mut arrays = Block::new(Kind::Names, 0, 0, (0, 0), b"{\"arrays\": [\"Ring\"]}");
    arrays.bytes[3] ^= 1;
    let (texts, _, problems) = shown(&[run_block(), arrays, names("first"), names("second"), marks()]);
    assert_eq!((&texts[0][..], problems), ("array 0::first", 1 + cut_off), "arrays have no numbers to lose");
}

#[test]
fn a_file_with_too_many_blocks_for_an_index_was_not_cut_off() {
    let dir = Scratch::new("no-index");
    let mut writer = Writer::create(&dir.0, &run_record(0, 1, 1)).unwrap();
    // Together with the blocks of the run and of the end, one more than the index can list.
    let none = Block::new(Kind::Samples, 0, 0, (0, 0), b"[]");
    (0..INDEXED_MAX - 1).for_each(|_| writer.write(&none).unwrap());
    writer.finish(&end_record()).unwrap();
    assert_eq!(Trace::open(&dir.0).unwrap().problems, []);
    let file = dir.0.join("rank-00000.trace");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let problems = Trace::open(&dir.0).unwrap().problems;
    assert!(problems[0].what.contains("the file is read up to here"), "{problems:?}");
}
