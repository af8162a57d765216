//! Tests that `check` passes valid traces, and finds each kind of fault with the name of its file.

use std::path::Path;

use caribou::report::SyncReport;
use caribou::trace::{
    Activity, ArrayId, End, Event, Name, NameId, Profile, RunRecord, Sample, Shape, StepRecord, StepWorker,
    What, Writer,
};

use crate::tests::{Scratch, caribou, caribou_says, exit_code_unread};
use crate::trace;
use crate::trace::tests::{chunk, generated, handler, run_of, send};

/// The recorded parts of one rank.
#[derive(Clone, Default)]
struct Rank {
    events: Vec<Event>,
    samples: Vec<Sample>,
    syncs: Vec<SyncReport>,
    steps: Vec<StepRecord>,
    profile: Profile,
    end: End,
}

/// Two ranks: chunk 1 on rank 0 sends a message to chunk 2 on rank 1.
fn two_ranks() -> [Rank; 2] {
    let end = End { elapsed_ns: 10_000_000, messages: 1, ..End::default() };
    let rank = |events| Rank { events, end: end.clone(), ..Rank::default() };
    let first = vec![handler(0, 1000, 1, None, 0), send(1000, 1, 2, 1)];
    [rank(first), rank(vec![handler(1500, 9000, 2, Some(1), 1)])]
}

fn write(dir: &Path, arrows: u32, ranks: &[Rank]) {
    for (number, rank) in (0..).zip(ranks) {
        let shape = if ranks[0].steps.is_empty() { Shape::Arrays } else { Shape::Supersteps };
        let run = RunRecord { shape, arrows, ..run_of(ranks.len() as u32, number) };
        let mut writer = Writer::create(dir, &run).unwrap();
        writer.arrays(&["Ring".into()]).unwrap();
        writer.names(&[Name { array: Some(ArrayId(0)), text: "Halo".into() }]).unwrap();
        writer.events(0, &rank.events).unwrap();
        writer.samples(&rank.samples).unwrap();
        writer.syncs(&rank.syncs).unwrap();
        writer.steps(&rank.steps).unwrap();
        writer.profile(0, &rank.profile).unwrap();
        writer.finish(&rank.end).unwrap();
    }
}

/// The output of the check, and whether the trace passed.
fn checked(name: &str, arrows: u32, ranks: &[Rank]) -> (String, bool) {
    let dir = Scratch::new(&format!("check-{name}"));
    write(dir.path(), arrows, ranks);
    let (text, error) = caribou_says(&["trace", "check", dir.text()]);
    assert_eq!(error.as_ref().map(|error| error.exit_code()).unwrap_or(0), u8::from(error.is_some()));
    (text, error.is_none())
}

#[track_caller]
fn finds(name: &str, ranks: &[Rank], what: &str) {
    let (text, sound) = checked(name, 1, ranks);
    assert!(!sound && text.contains(what), "{text}");
    assert!(text.lines().last().unwrap().starts_with("not sound: "), "{text}");
}

#[test]
fn a_made_up_trace_is_sound() {
    let dir = generated("check-sound", 20_000);
    let text = caribou(&["trace", "check", dir.text()]).unwrap();
    let verdict = text.lines().last().unwrap();
    assert!(verdict.starts_with("sound: ") && verdict.contains("of 4 files"), "{text}");
    assert!(text.contains("sent and never handled"), "the last are under way: {text}");
    let json = trace::tests::json(&["check", dir.text()]);
    assert_eq!((&json["sound"], &json["files"]), (&true.into(), &4.into()));
    assert_eq!(json["verdict"], verdict);
}

#[test]
fn two_sound_ranks_are_sound() {
    let (text, sound) = checked("two", 1, &two_ranks());
    assert!(sound, "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn the_verdict_is_in_the_exit_code_also_when_nobody_reads_it() {
    let mut ranks = two_ranks();
    for (name, code) in [("unread-sound", 0), ("unread", 1)] {
        let dir = Scratch::new(name);
        write(dir.path(), 1, &ranks);
        let checks: [&[&str]; 2] =
            [&["trace", "check", dir.text()], &["trace", "check", dir.text(), "--json"]];
        assert_eq!(checks.map(exit_code_unread), [code; 2], "{name}");
        // The handled message was never sent.
        ranks[0].events.pop();
    }
}

#[test]
fn a_message_that_is_handled_before_it_was_sent_is_found_unless_clocks_explain_it() {
    let mut ranks = two_ranks();
    // The handler began to look for the message before it was sent, and the sender continues after the send.
    ranks[0].events[1].begin_ns = 250;
    ranks[1].events = vec![handler(200, 300, 2, Some(1), 1)];
    assert!(checked("within", 1, &ranks).1);
    ranks[0].events[1].begin_ns = 1000;
    finds(
        "backwards",
        &ranks,
        "worker 0 at 300 ns: message 1 of Ring[#1] to Ring[#2] is handled 700 ns before",
    );
    ranks[1].events = vec![handler(100, 300, 2, Some(1), 1)];
    finds("backwards-long", &ranks, "is handled 700 ns before rank 0 sent it; clocks explain 0 ns");
    let clock = |error_ns| caribou::report::ClockOffset { begin_ns: 0, drift_ns: -100, error_ns };
    ranks[0].end.clocks = vec![caribou::report::ClockOffset::default(), clock(600)];
    let (text, sound) = checked("explained", 1, &ranks);
    assert!(
        sound && text.contains("1 of 1 messages are handled before they were sent, by at most 700 ns"),
        "{text}"
    );
    ranks[0].end.clocks[1] = clock(599);
    finds("unexplained", &ranks, "clocks explain 699 ns");
}

#[test]
fn a_message_that_nobody_sent_is_found_if_all_sends_are_recorded() {
    let mut ranks = two_ranks();
    ranks[0].events.pop();
    finds(
        "unsent",
        &ranks,
        "rank-00001.trace: worker 0 at 9000 ns: message 1 of Ring[#1] to Ring[#2] was handled",
    );
    let (text, sound) = checked("sampled", 10, &ranks);
    assert!(sound && text.contains("not every send is recorded"), "{text}");
    ranks[0].end.dropped = 1;
    let (text, sound) = checked("dropped", 1, &ranks);
    assert!(sound && text.contains("1 events were not kept"), "{text}");
}

#[test]
fn a_message_that_another_chunk_handled_is_found() {
    let mut ranks = two_ranks();
    ranks[1].events = vec![handler(1500, 9000, 3, Some(1), 1)];
    finds("astray", &ranks, "worker 0 at 9000 ns: message 1 of Ring[#1] to Ring[#2] is handled by Ring[#3]");
}

#[test]
fn one_number_for_two_messages_is_noted_since_a_chunk_that_is_inserted_again_counts_anew() {
    let mut ranks = two_ranks();
    ranks[0].events.push(send(1000, 1, 3, 1));
    ranks[1].end.messages = 2;
    ranks[1].events = vec![handler(1500, 9000, 2, Some(1), 1), handler(9000, 9500, 3, Some(1), 1)];
    let (text, sound) = checked("twice", 1, &ranks);
    assert!(sound && text.contains("was its sender removed and inserted again?"), "{text}");
    ranks[0].events.pop();
    finds("handled-twice", &ranks, "message 1 of Ring[#1] to Ring[#3] was handled, but never sent");
}

#[test]
fn a_chunk_at_two_places_is_found() {
    let mut ranks = two_ranks();
    ranks[0].events =
        vec![handler(0, 1000, 1, None, 0), send(1000, 1, 2, 1), handler(2000, 9500, 2, None, 0)];
    ranks[0].end.messages = 2;
    finds("overlap", &ranks, "Ring[#2] is handled here and by worker 0 of rank 1 at once, for 7000 ns");
}

#[test]
fn a_chunk_that_never_arrives_is_found() {
    let mut ranks = two_ranks();
    let arrive = |at_ns| Event::point(at_ns, What::Arrive { chunk: chunk(1), bytes: 0 });
    let what = What::Depart { chunk: chunk(1), rank: 1, bytes: 5 };
    ranks[0].events.insert(0, arrive(0));
    ranks[0].events.push(Event { begin_ns: 2000, end_ns: 2100, what });
    ranks[0].syncs = vec![sync_report(|sync| sync.moved = 1)];
    assert!(checked("under-way", 1, &ranks).1, "the run ended before it arrived");
    ranks[0].syncs[0].at_ns = 2001;
    finds("lost-before", &ranks, "Ring[#1] left for rank 1 1 times and arrived 0 times");
    ranks[0].syncs[0].at_ns = 0;
    ranks[0].syncs.push(sync_report(|sync| (sync.sync, sync.at_ns) = (1, 3000)));
    finds("lost-chunk", &ranks, "Ring[#1] left for rank 1 1 times and arrived 0 times");
    ranks[1].events.insert(0, arrive(1999));
    finds("early-chunk", &ranks, "worker 0 at 1999 ns: Ring[#1] arrived 1 ns before it left rank 0");
    ranks[1].events.remove(0);
    // The chunk is handed over during the handler.
    ranks[1].events.insert(1, arrive(9000));
    assert!(checked("found-chunk", 1, &ranks).1);
    ranks[1].events.push(arrive(9000));
    let (text, sound) = checked("doubled-chunk", 1, &ranks);
    assert!(sound && text.contains("Ring[#1] arrived 2 times more than it left; was it removed"), "{text}");
    ranks[1].events.pop();
    ranks[0].syncs.clear();
    finds("moves", &ranks, "syncs say that 0 chunks moved, 1 departed");
}

fn sync_report(change: impl FnOnce(&mut SyncReport)) -> SyncReport {
    let mut sync = SyncReport::default();
    change(&mut sync);
    sync
}

#[test]
fn totals_that_differ_are_found() {
    let mut ranks = two_ranks();
    ranks[0].profile.add(Activity::Kind(NameId(0)), 0, 3_000_000, 3_000_000, 1, 3_000_000);
    finds("profile", &ranks, "Ring::Halo: 3000000 ns in the profile, 1000 ns in events");
    let mut ranks = two_ranks();
    ranks[1].end.messages = 0;
    finds("count", &ranks, "1 deliveries were counted, 2 handlers are recorded");
}

#[test]
fn samples_that_cannot_be_are_found() {
    let sample = Sample { at_ns: 5_000_000, wall_ns: 5_000_000, cpu_ns: 9_000_000, ..Sample::default() };
    let mut ranks = two_ranks();
    ranks[0].samples = vec![sample];
    finds(
        "sample",
        &ranks,
        "samples until 5000000 ns have 9000000 ns of CPU time, but there were 5000000 ns",
    );
    // A handler of 9 ms counts when it ends.
    let quiet = Sample { cpu_ns: 0, ..sample };
    ranks[0].samples = vec![quiet, Sample { at_ns: 10_000_000, ..sample }];
    let (text, sound) = checked("late", 10, &ranks);
    assert!(sound, "{text}");
    ranks[0].samples = vec![sample, Sample { at_ns: 10_000_000, ..quiet }];
    finds("early", &ranks, "samples until 5000000 ns have 9000000 ns of CPU time");
    ranks[0].samples = vec![Sample { wall_ns: 50_000_000, cpu_ns: 0, ..sample }];
    finds("wall", &ranks, "samples cover 50000000 ns of its workers, the run has 10000000 ns");
    ranks[0].samples =
        vec![Sample { cpu_ns: 0, ..sample }, Sample { at_ns: 4, wall_ns: 0, cpu_ns: 0, ..sample }];
    finds("order", &ranks, "the sample at 4 ns comes after a later one");
}

#[test]
fn syncs_that_cannot_be_are_found() {
    let with = |change: fn(&mut SyncReport)| {
        let mut ranks = two_ranks();
        ranks[0].syncs = vec![
            sync_report(|_| ()),
            sync_report(|sync| {
                (sync.sync, sync.at_ns) = (1, 10);
                change(sync);
            }),
        ];
        ranks
    };
    assert!(checked("syncs", 1, &with(|_| ())).1);
    finds("sync-twice", &with(|sync| sync.sync = 0), "sync 0: is recorded twice");
    finds(
        "sync-late",
        &with(|sync| sync.at_ns = 20_000_000),
        "sync 1: was decided at 20000000 ns, the run ended",
    );
    finds(
        "sync-lists",
        &with(|sync| sync.share = vec![1.0; 3]),
        "has 3 values in share, the run had 2 ranks",
    );
    finds(
        "sync-slowest",
        &with(|sync| sync.before_ns = vec![9_000_000, 1]),
        "its slowest rank took 9000000 ns",
    );
}

#[test]
fn damage_is_found_with_its_byte_and_the_rest_is_still_compared() {
    let dir = generated("check-damage", 2_000);
    let file = dir.path().join("rank-00001.trace");
    let mut bytes = std::fs::read(&file).unwrap();
    let events = bytes.windows(5).position(|five| five == b"cblk\x02").unwrap();
    bytes[events + 60] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (text, error) = caribou_says(&["trace", "check", dir.text()]);
    let line = format!("rank-00001.trace: byte {events}: a block of events is left out: the checksum");
    assert!(text.contains(&line), "{line}\n{text}");
    assert!(text.contains("handled whose sends are not in the trace"), "{text}");
    assert!(error.unwrap().to_string().contains(": not sound, "), "{text}");
}

#[test]
fn what_is_no_trace_at_all_is_not_checked() {
    let dir = Scratch::new("check-none");
    std::fs::create_dir_all(dir.path()).unwrap();
    let (text, error) = caribou_says(&["trace", "check", dir.text()]);
    assert_eq!((text.as_str(), error.unwrap().exit_code()), ("", 2));
}

#[test]
fn only_so_many_messages_are_kept() {
    let dir = generated("check-bounded", 5_000);
    let text = caribou(&["trace", "check", dir.text(), "--messages-max", "10"]).unwrap();
    assert!(text.contains("messages not compared, --messages-max is too low"), "{text}");
}

/// Two workers of five units each. From step 1 on both compute all units, and one worker drops a job.
fn two_steps() -> [Rank; 2] {
    let worker = |computing_ns| StepWorker { units: 5, computing_ns, ..StepWorker::default() };
    let step = |step: u64| StepRecord {
        step,
        begin_ns: 100 * step,
        end_ns: 100 * step + 90,
        copies: 1,
        workers: vec![worker(80), worker(50)],
        ..StepRecord::default()
    };
    let mut ranks = two_ranks();
    let mut copied = StepRecord { copies: 2, moved: 10, divided: true, ..step(1) };
    (copied.workers[1].dropped, copied.workers[1].dropped_ns) = (1, 30);
    ranks[0].steps = vec![step(0), copied];
    ranks
}

#[test]
fn steps_that_cannot_be_are_found() {
    let (text, sound) = checked("steps", 1, &two_steps());
    assert!(sound, "{text}");
    /// Makes one value wrong.
    type Break = fn(&mut [StepRecord]);
    let broken: [(Break, &str); 15] = [
        (|steps| steps[1].end_ns = 99, "step 1: began at 100 ns and ended at 99 ns"),
        (|steps| steps[0].end_ns = 101, "step 1: began at 100 ns, before step 0 ended"),
        (|steps| steps[1].step = 0, "step 0: is recorded twice"),
        (|steps| steps[1].step = 2, "step 2: follows step 0"),
        (|steps| steps[0].step = 7, "step 1: is the first that is recorded"),
        (|steps| steps[1].workers.truncate(1), "step 1: has 1 workers, the run had 2"),
        (|steps| steps[1].copies = 3, "step 1: has 3 copies for 2 workers"),
        (|steps| steps[0].copies = 0, "step 0: has 0 copies for 2 workers"),
        (|steps| steps[1].divided = false, "step 1: moved 10 units without a new division"),
        (|steps| steps[1].moved = 9, "step 1: moved 9 units, between its shares and those before are 10"),
        (|steps| steps[1].workers[0].units = 4, "step 1: divides 9 units, and there were 10"),
        (|steps| (steps[1].divided, steps[1].moved) = (false, 0), "step 1: has other shares than"),
        (
            |steps| steps[1].workers[1].dropped_ns = 51,
            "1 jobs for 51 ns and dropped them, and computed 50 ns in all",
        ),
        (|steps| steps[1].workers[1].dropped = 0, "worker 1 computed 0 jobs for 30 ns and dropped them"),
        (
            |steps| steps[0].workers[0].dropped = 1,
            "step 0: worker 0 dropped 1 jobs, of which no worker had a copy",
        ),
    ];
    for (number, (break_it, what)) in broken.into_iter().enumerate() {
        let mut ranks = two_steps();
        break_it(&mut ranks[0].steps);
        finds(&format!("steps-{number}"), &ranks, what);
    }
    let mut ranks = two_steps();
    ranks[0].steps.remove(0);
    ranks[0].end.dropped = 1;
    let (text, sound) = checked("steps-dropped", 1, &ranks);
    assert!(sound, "what was dropped need not be there: {text}");
    let mut ranks = two_steps();
    ranks[0].steps.iter_mut().for_each(|step| step.step += 7);
    ranks[0].steps[0].restarted = true;
    let (text, sound) = checked("steps-restarted", 1, &ranks);
    assert!(sound, "a restarted run begins with any step: {text}");
}
