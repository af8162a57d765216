//! Traces of real runs: what they say happened is what happened, and what could not be recorded is said.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::{Deref, Range};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caribou::config::Pin;
use caribou::monitor::Status;
use caribou::pools::{Accumulator, Cancel};
use caribou::trace::{Activity, ArrayId, ChunkId, Event, Filter, NameId, RUNTIME, Shape, What};
use caribou::{Array, Chunk, Config, Ctx, Error, Placement, Pool, Reducer, Report, Setup, Target, pool};
use caribou_tests::{Scratch, run_array, run_array_with, run_array_with_service, scratch};
use serde::{Deserialize, Serialize};
use trace_reader::Trace;

const STRIPS: u32 = 12;
const STEPS: u64 = 40;
const PERIOD: u64 = 10;

/// A strip of a ring that swaps with its neighbours, comes to syncs, and tells what it does.
#[derive(Serialize, Deserialize)]
struct Strip {
    step: u64,
    heard: u32,
    panics: bool,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Halo { step: u64 },
    Sum,
}

impl Chunk for Strip {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        for neighbour in [(me + 1) % STRIPS, (me + STRIPS - 1) % STRIPS] {
            ctx.send(neighbour, Message::Halo { step: self.step });
        }
    }

    fn ready(&self, message: &Message) -> bool {
        !matches!(message, Message::Halo { step } if *step != self.step)
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        if let Message::Sum = message {
            return ctx.exit();
        }
        self.heard += 1;
        if self.heard < 2 {
            return;
        }
        let begin_ns = ctx.elapsed_ns();
        self.heard = 0;
        self.step += 1;
        assert!(!self.panics || self.step < STEPS / 2, "a strip gives up");
        if ctx.index() == 0 {
            ctx.counter("step", self.step as f64);
            ctx.span("update", begin_ns);
            ctx.mark("updated");
        }
        match self.step {
            STEPS => ctx.contribute(0, Reducer::Sum, vec![1.0], Target::Chunk(0)),
            step if step.is_multiple_of(PERIOD) => ctx.at_sync(),
            _ => self.start(ctx),
        }
    }

    fn reduced(_: u32, _: caribou::Values) -> Message {
        Message::Sum
    }
}

fn config(ranks: u32) -> Config {
    Config::default().ranks(ranks).pin(Pin::Off).period(PERIOD).lb("rotate").expect("it is in the table")
}

fn strips(config: Config) -> Report {
    try_strips(config, false).expect("nothing is wrong")
}

fn try_strips(config: Config, panics: bool) -> Result<Report, Error> {
    run_array(config, STRIPS, move |index| Strip { step: 0, heard: 0, panics: panics && index == 3 })
}

/// A trace, whose files are there as long as its value.
pub(crate) struct Recorded {
    trace: Trace,
    _dir: Scratch,
}

impl Deref for Recorded {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.trace
    }
}

/// What a run returns, and its trace.
pub(crate) fn recorded<T>(config: Config, run: impl FnOnce(Config) -> T) -> (T, Recorded) {
    let dir = scratch();
    let result = run(config.trace(&dir));
    let trace = Trace::open(&dir).unwrap_or_else(|error| panic!("{error}"));
    (result, Recorded { trace, _dir: dir })
}

/// All events with their ranks and workers; the trace must be sound.
fn events(trace: &Trace) -> Vec<(u32, u32, Event)> {
    let mut all = Vec::new();
    let problems = trace.for_each(|rank, worker, event| all.push((rank.rank, worker, *event)));
    assert_eq!((&problems, &trace.problems), (&vec![], &vec![]));
    all
}

#[test]
fn every_message_is_sent_and_handled_once_and_in_this_order() {
    for (ranks, workers) in [(1, 1), (2, 1), (2, 2)] {
        let (report, trace) = recorded(config(ranks).workers(workers), strips);
        let (mut sent, mut handled, mut kinds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (rank, _, event) in events(&trace) {
            match event.what {
                What::Send { chunk, to, rank: there, number, bytes } => {
                    assert!(bytes > 0);
                    assert_eq!(sent.insert((chunk, number), (to, there, event.begin_ns)), None);
                }
                What::Handler { chunk, kind, from, number, .. } => {
                    *kinds.entry(trace.name(kind)).or_insert(0u64) += 1;
                    if from != RUNTIME {
                        assert_eq!(handled.insert((from, number), (chunk, rank, event.end_ns)), None);
                    }
                }
                _ => {}
            }
        }
        let strips = u64::from(STRIPS);
        assert_eq!(kinds["Strip::Halo"], 2 * strips * STEPS);
        assert_eq!(kinds["Strip::start"], strips);
        assert_eq!(kinds["Strip::resume"], strips * (STEPS / PERIOD - 1));
        assert_eq!(kinds["Strip::Sum"], 1);
        assert_eq!(sent.keys().collect::<Vec<_>>(), handled.keys().collect::<Vec<_>>());
        for (name, (to, there, sent_ns)) in &sent {
            let (chunk, rank, handled_ns) = handled[name];
            assert_eq!((chunk, rank), (*to, *there), "{name:?}");
            assert!(*sent_ns <= handled_ns, "{name:?}: handled before it was sent");
        }
        assert_eq!(trace.syncs, report.syncs);
        let halos = 2 * strips * PERIOD;
        for sync in trace.syncs.iter().filter(|_| workers == 1) {
            assert_eq!((sync.deliveries, sync.deliveries_predicted), (halos, halos), "{sync:?}");
            assert_eq!(sync.waited, Some(strips));
            assert_eq!(sync.makespan_unmoved_ns > 0, sync.sync > 0, "{sync:?}");
        }
    }
}

/// Sends a message back to the array that it comes from.
#[derive(Serialize, Deserialize)]
struct Wall {
    begins_with: Option<Array<Wall>>,
}

impl Chunk for Wall {
    type Index = u32;
    /// How often it goes on, and the array that it comes from.
    type Message = (u32, Array<Wall>);

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if let Some(other) = self.begins_with {
            ctx.send_to(other, 0, (100, ctx.array()));
        }
    }

    fn receive(&mut self, (left, from): (u32, Array<Wall>), ctx: &mut Ctx<'_, Self>) {
        match left.checked_sub(1) {
            Some(left) => ctx.send_to(from, 0, (left, ctx.array())),
            None => ctx.exit(),
        }
    }
}

#[test]
fn handlers_of_two_arrays_of_one_type_are_told_apart_by_their_kinds() {
    let setup = |setup: &mut Setup| {
        let first = setup.array(1, |_| Wall { begins_with: None });
        setup.array(1, move |_| Wall { begins_with: Some(first) });
    };
    let (run, trace) = recorded(config(1), |config| caribou::run(config, setup));
    run.expect("nothing is wrong");
    let mut handled = [0; 2];
    for (_, _, event) in events(&trace) {
        if let What::Handler { chunk, kind, .. } = event.what {
            assert_eq!(trace.names[kind.0 as usize].array, Some(chunk.array), "{event:?}");
            handled[chunk.array.0 as usize] += 1;
        }
    }
    assert!(handled.iter().all(|&handled| handled > 40), "{handled:?}");
}

/// Sends at once, and stays in its handler until that was handled.
#[derive(Serialize, Deserialize)]
struct Early;

impl Chunk for Early {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() > 0 {
            return;
        }
        ctx.send(1, ());
        ctx.flush();
        while !ctx.service::<Arc<AtomicBool>>().load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        ctx.exit();
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.service::<Arc<AtomicBool>>().store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_message_that_is_handled_while_its_sender_still_runs_was_sent_before() {
    let handled = Arc::new(AtomicBool::new(false));
    let setup = |setup: &mut Setup| {
        setup.service(handled.clone());
        setup.array(2, |_| Early);
    };
    let (run, trace) = recorded(config(2), |config| caribou::run(config, setup));
    run.expect("nothing is wrong");
    let all = events(&trace);
    let sent =
        all.iter().find(|(_, _, event)| matches!(event.what, What::Send { .. })).expect("it is recorded").2;
    let handler = |event: &Event| matches!(event.what, What::Handler { number: 1, .. });
    let handled = all.iter().find(|(_, _, event)| handler(event)).expect("it is recorded").2;
    assert!(sent.begin_ns <= handled.end_ns, "{sent:?} {handled:?}");
}

/// Makes tasks by way of the first, which waits in a sync when it is asked.
#[derive(Serialize, Deserialize)]
struct Source {
    tasks: Array<Task>,
}

#[derive(Serialize, Deserialize)]
struct Task;

const TASKS: u32 = 6;

impl Chunk for Source {
    type Index = u32;
    type Message = ();

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        (1..TASKS).for_each(|task| ctx.insert_into(self.tasks, task, Task, 0));
        ctx.at_sync();
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}
}

impl Chunk for Task {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.send_to(*ctx.service::<Array<Source>>(), 0, ());
            return ctx.at_sync();
        }
        ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Exit);
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        // By way of itself: it comes after those that wait.
        ctx.send(0, ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Exit);
    }
}

#[test]
fn an_insertion_is_sent_and_made_once_and_what_it_inserts_arrives() {
    for (ranks, workers) in [(1, 1), (2, 1), (2, 2)] {
        let setup = |setup: &mut Setup| {
            let tasks = setup.array_with(1, Placement::Hash, |_| Task);
            let last = Placement::by(|_: u32, ranks| ranks - 1);
            let source = setup.array_with(1, last, move |_| Source { tasks });
            setup.service(source);
        };
        let (run, trace) = recorded(config(ranks).workers(workers), |config| caribou::run(config, setup));
        assert_eq!(run.and_then(|report| report.value()), Ok(vec![u64::from(TASKS)]));
        let (mut sent, mut made, mut arrived) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (_, _, event) in events(&trace) {
            match event.what {
                What::Send { chunk, to, number, .. }
                    if chunk.array == ArrayId(1) && to.array == ArrayId(0) =>
                {
                    assert_eq!(sent.insert(number, event.begin_ns), None);
                }
                What::Handler { kind, from, number, .. } if trace.name(kind) == "Task::insertion" => {
                    assert_eq!((from.array, made.insert(number, event.end_ns)), (ArrayId(1), None));
                }
                What::Arrive { chunk, .. } if chunk.array == ArrayId(0) && chunk.key > 0 => {
                    assert_eq!(arrived.insert(chunk.key as u32, event.begin_ns), None);
                }
                _ => {}
            }
        }
        assert_eq!((sent.len() as u32, arrived.len() as u32), (TASKS - 1, TASKS - 1));
        assert!(sent.keys().eq(made.keys()));
        assert!(sent.values().zip(made.values()).all(|(sent, made)| sent <= made));
    }
}

/// Sends itself a message for later, and has migrated by then.
#[derive(Serialize, Deserialize)]
struct Late;

const DELAY_MS: u64 = 20;

impl Chunk for Late {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send_after(std::time::Duration::from_millis(DELAY_MS), ());
        ctx.at_sync();
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Exit);
    }
}

#[test]
fn a_message_for_later_is_sent_by_its_handler_and_its_wait_is_nobodys_work() {
    for (ranks, workers) in [(1, 1), (2, 1), (2, 2)] {
        let (run, trace) = recorded(config(ranks).workers(workers), |config| run_array(config, 4, |_| Late));
        run.expect("nothing is wrong");
        let all = events(&trace);
        let (mut sent, mut begun, mut handled) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        let mut idle_ns = vec![0; ranks as usize];
        for (rank, _, event) in &all {
            match event.what {
                What::Send { chunk, to, .. } => {
                    assert_eq!(chunk, to);
                    assert!(sent.insert(chunk));
                }
                What::Handler { chunk, from, .. } if from != RUNTIME => {
                    assert_eq!(chunk, from);
                    assert_eq!(handled.insert(from, event.end_ns), None);
                }
                // `start`, and later `resume`.
                What::Handler { chunk, .. } => {
                    let begin_ns = begun.entry(chunk).or_insert(event.begin_ns);
                    *begin_ns = event.begin_ns.min(*begin_ns);
                }
                What::Idle => idle_ns[*rank as usize] += event.duration_ns(),
                _ => {}
            }
        }
        assert_eq!((sent.len(), handled.len()), (4, 4));
        let late = |(chunk, begin_ns): (&_, &u64)| handled[chunk] >= begin_ns + DELAY_MS * 1_000_000;
        assert!(begun.len() == 4 && begun.iter().all(late), "{begun:?} {handled:?}");
        assert!(idle_ns.iter().all(|&idle_ns| idle_ns > 0), "{idle_ns:?}");
    }
}

#[test]
fn a_chunk_is_where_it_has_arrived_and_departs_from_there() {
    let (report, trace) = recorded(config(2), strips);
    let mut all = events(&trace);
    // It lands while the rank that it left may still be handing over others.
    let what = |event: &Event| u8::from(matches!(event.what, What::Arrive { .. }));
    all.sort_by_key(|(_, _, event)| (event.begin_ns, what(event)));
    let mut places: BTreeMap<ChunkId, u32> = BTreeMap::new();
    let (mut moves, mut loads) = (0, 0);
    for (rank, _, event) in all {
        match event.what {
            What::Arrive { chunk, .. } => assert_eq!(places.insert(chunk, rank), None, "{chunk:?}"),
            What::Depart { chunk, rank: to, .. } => {
                assert_eq!(places.remove(&chunk), Some(rank));
                assert_ne!(to, rank);
                moves += 1;
            }
            What::Load { .. } => loads += 1,
            _ => {}
        }
    }
    assert_eq!(places.len(), STRIPS as usize);
    assert_eq!(moves, report.syncs.iter().map(|sync| sync.moved).sum::<u64>());
    assert_eq!(loads, u64::from(STRIPS) * (STEPS / PERIOD - 1));
    assert!(moves > 0);
}

#[test]
fn the_slices_of_a_worker_leave_no_gap_and_the_profile_adds_up_to_them() {
    let (report, trace) = recorded(config(2), strips);
    for (rank, profile) in trace.ranks.iter().zip(&report.run.profiles) {
        let slices: Vec<Event> = rank
            .stream(0)
            .filter(|event| event.duration_ns() > 0)
            .filter(|event| !matches!(event.what, What::Span { .. } | What::Send { .. }))
            .collect();
        let handlers = slices.iter().filter(|event| matches!(event.what, What::Handler { .. }));
        let cpu_ns: u64 = handlers.map(Event::cpu_ns).sum();
        let all_ns: u64 = slices.iter().map(Event::duration_ns).sum();
        let span_ns = slices[slices.len() - 1].end_ns - slices[0].begin_ns;
        assert_eq!(all_ns, span_ns);
        let total_ns = |wanted: &dyn Fn(Activity) -> bool| -> u64 {
            profile.workers[0]
                .rows
                .iter()
                .filter(|row| wanted(row.activity))
                .map(caribou::trace::Row::total_ns)
                .sum()
        };
        let profiled_ns = total_ns(&|activity| matches!(activity, Activity::Kind(_)));
        assert_eq!(profiled_ns, cpu_ns);
        assert_eq!(total_ns(&|_| true), span_ns);
        assert_eq!(rank.profiles[0].rows.len(), profile.workers[0].rows.len());
        assert!(!rank.samples.is_empty() && rank.samples == profile.samples);
    }
}

#[test]
fn a_profile_counts_each_handler_including_those_that_share_a_slice() {
    // Halos that come early are kept, and handled one after the other when their step begins.
    let dir = scratch();
    for config in [config(1), config(2), config(2).trace(&dir)] {
        let report = strips(config);
        let workers = report.run.profiles.iter().flat_map(|profile| &profile.workers);
        let mut calls: Vec<u64> = workers
            .flat_map(|worker| &worker.rows)
            .filter(|row| matches!(row.activity, Activity::Kind(_)))
            .map(|row| row.calls())
            .collect();
        let strips = u64::from(STRIPS);
        // Each strip is started once, and resumes from each sync but the last, to which nobody comes. One hears the sum.
        let others = strips * (1 + STEPS / PERIOD - 1) + 1;
        assert_eq!(calls.iter().sum::<u64>(), 2 * strips * STEPS + others, "{calls:?}");
        calls.retain(|calls| *calls > 0);
        assert!(calls.len() >= 4, "a kind each: {calls:?}");
    }
}

/// Chunk 0 sends chunk 1 rows of short messages with a long one behind each.
#[derive(Serialize, Deserialize)]
struct Mixed;

#[derive(Serialize, Deserialize)]
enum Mix {
    Short,
    Long,
    Last,
}

const ROWS: u64 = 200;
const SHORT_A_ROW: u64 = 5;

impl Chunk for Mixed {
    type Index = u32;
    type Message = Mix;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            for _ in 0..ROWS {
                (0..SHORT_A_ROW).for_each(|_| ctx.send(1, Mix::Short));
                ctx.send(1, Mix::Long);
            }
            ctx.send(1, Mix::Last);
        }
    }

    fn receive(&mut self, message: Mix, ctx: &mut Ctx<'_, Self>) {
        match message {
            Mix::Short => {}
            Mix::Long => {
                black_box((0..20_000u64).fold(1u64, |sum, turn| black_box(sum.wrapping_mul(turn | 1))));
            }
            Mix::Last => ctx.exit(),
        }
    }
}

#[test]
fn handlers_that_share_a_slice_are_of_one_kind() {
    let report = run_array(config(1), 2, |_| Mixed);
    let profile = &report.expect("nothing is wrong").run.profiles[0];
    let of = |kind: &str| {
        let number = profile.names.iter().position(|name| name.text == kind).expect("it has run");
        let activity = Activity::Kind(NameId(number as u32));
        let row = profile.workers[0].rows.iter().find(|row| row.activity == activity);
        row.map_or((0, 0), |row| (row.calls(), row.total_ns()))
    };
    let ((short, short_ns), (long, long_ns)) = (of("Short"), of("Long"));
    assert_eq!((short, long), (ROWS * SHORT_A_ROW, ROWS));
    assert!(2 * short_ns < long_ns, "{short_ns} {long_ns}");
}

#[test]
fn what_a_program_tells_lies_in_the_handler_that_told_it() {
    let (_, trace) = recorded(config(2), strips);
    let (mut steps, mut spans, mut marks) = (Vec::new(), 0, 0);
    let mut told: Vec<(u32, Event)> = Vec::new();
    for (rank, _, event) in events(&trace) {
        match event.what {
            What::Counter { value, name, .. } => {
                assert_eq!(trace.name(name), "step");
                steps.push((event.end_ns, value));
                told.push((rank, event));
            }
            What::Span { .. } | What::Mark { .. } => {
                spans += u64::from(matches!(event.what, What::Span { .. }));
                marks += u64::from(matches!(event.what, What::Mark { .. }));
                told.push((rank, event));
            }
            What::Handler { .. } => {
                for (there, inside) in told.drain(..) {
                    assert_eq!(there, rank);
                    assert!(event.begin_ns <= inside.begin_ns && inside.end_ns <= event.end_ns);
                }
            }
            _ => {}
        }
    }
    steps.sort_by_key(|&(at_ns, _)| at_ns);
    let values: Vec<f64> = steps.into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, (1..=STEPS).map(|step| step as f64).collect::<Vec<_>>());
    assert_eq!((spans, marks), (STEPS, STEPS));
}

/// Comes to so many syncs, and exits.
#[derive(Serialize, Deserialize)]
struct Pilgrim {
    syncs: u64,
}

impl Chunk for Pilgrim {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        match self.syncs {
            0 => ctx.exit(),
            _ => ctx.at_sync(),
        }
        self.syncs = self.syncs.saturating_sub(1);
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

#[test]
fn every_sync_is_recorded_once_though_rank_0_has_no_chunks() {
    // Its chunk stays where it is.
    let config = config(2).lb("none").expect("it is in the table");
    let run = |config| run_array_with(config, 1, Placement::by(|_: u32, _| 1), |_| Pilgrim { syncs: 600 });
    let (report, trace) = recorded(config, run);
    assert_eq!(report.expect("nothing is wrong").sync_totals.syncs, 600);
    assert!(trace.syncs.iter().map(|sync| sync.sync).eq(0..600));
}

#[test]
fn a_filter_keeps_what_it_names_and_draws_one_message_in_four_by_its_name() {
    let kept = |filter: &str| {
        let filter: Filter = filter.parse().expect("it is one");
        let (_, trace) = recorded(config(2).trace_filter(filter.clone()), strips);
        assert_eq!(trace.run.filter, filter.to_string());
        assert!(trace.ranks.iter().all(|rank| !rank.profiles[0].rows.is_empty()));
        events(&trace)
    };
    assert_eq!(kept("none"), []);
    assert!(kept("idle").iter().all(|(_, _, event)| event.what == What::Idle));
    assert_eq!(kept("handlers,messages,array=Strap").len(), 0);
    let sends = || -> BTreeSet<(u64, u32)> {
        let name = |what: &What| match *what {
            What::Send { chunk, number, .. } => Some((chunk.key, number)),
            _ => None,
        };
        kept("messages=4").iter().filter_map(|(_, _, event)| name(&event.what)).collect()
    };
    let (drawn, all) = (sends(), u64::from(STRIPS) * 2 * STEPS);
    assert!((all / 8..all / 2).contains(&(drawn.len() as u64)), "{} of {all}", drawn.len());
    assert_eq!(sends(), drawn, "the same in every run");
}

#[test]
fn a_full_trace_says_how_many_events_it_dropped() {
    let (_, trace) = recorded(config(1).trace_limit(1), strips);
    let last: Vec<What> = events(&trace).into_iter().map(|(_, _, event)| event.what).collect();
    assert_eq!(last, [What::Dropped { events: trace.dropped() }]);
    // Samples and syncs are dropped as well: what is written ends with its limit.
    assert_eq!((trace.ranks[0].samples.len(), trace.syncs.len()), (0, 0));
    assert_eq!(trace.chunk_index(ChunkId { array: ArrayId(0), key: 0 }), None);
    assert!(trace.dropped() > 2 * u64::from(STRIPS) * STEPS, "{}", trace.dropped());
    assert!(!trace.ranks[0].profiles[0].rows.is_empty());
}

#[test]
fn a_run_in_a_directory_with_traces_takes_the_next_number() {
    let dir = scratch();
    let run = || PathBuf::from(strips(config(2).trace(&dir)).run.record.trace);
    let numbers = [1, 2, 8].map(|number| dir.join(format!("run-{number}")));
    assert_eq!([run(), run()], numbers[..2]);
    std::fs::create_dir(dir.join("run-7")).expect("it can be made");
    assert_eq!(run(), numbers[2]);
    assert!(numbers.iter().all(|run| Trace::open(run).is_ok()));
}

#[test]
fn a_directory_that_cannot_be_made_is_refused_in_one_line() {
    let dir = scratch();
    std::fs::write(&*dir, "a file").expect("it can be written");
    let error = try_strips(config(2).trace(&dir), false).expect_err("there is a file").to_string();
    std::fs::remove_file(&*dir).expect("it is there");
    let begin = format!("CARIBOU_TRACE: the directory {} cannot be created: ", dir.display());
    assert!(error.starts_with(&begin), "{error}");
    assert_eq!(error.lines().count(), 1);
}

/// Removes the directory, and ends the run.
#[derive(Serialize, Deserialize)]
struct Tidy(PathBuf);

impl Chunk for Tidy {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        std::fs::remove_dir_all(&self.0).expect("it is there");
        ctx.exit();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

#[test]
fn a_trace_that_is_removed_while_the_run_writes_it_is_told_of() {
    let dir = scratch();
    let its = dir.to_owned();
    let report = run_array(config(1).trace(&dir), 1, move |_| Tidy(its.clone()));
    let run = report.expect("the run goes on").run;
    assert_eq!(run.record.trace, "", "nobody is sent there");
    let broken = run.profiles[0].broken.as_deref();
    assert!(broken.is_some_and(|why| why.ends_with("it was removed while it was written")), "{broken:?}");
}

#[test]
fn the_trace_of_a_run_that_failed_says_why() {
    let (run, trace) = recorded(config(2), |config| try_strips(config, true));
    let error = run.expect_err("a strip gives up");
    let handlers = |of: u64| {
        let all = events(&trace).into_iter();
        let one = move |what| matches!(what, What::Handler { chunk, .. } if chunk.key == of);
        all.filter(|(_, _, event)| one(event.what)).count() as u64
    };
    // A start, and two halos a step; the last is the one that gave up.
    assert_eq!(handlers(3), 1 + 2 * (STEPS / 2) + 1, "with the resume of the one sync");
    for rank in &trace.ranks {
        let end = rank.end.as_ref().expect("the run ended in order");
        assert_eq!(end.failed.as_deref(), Some(error.to_string().as_str()));
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Count(u64);

impl Accumulator for Count {
    fn merge(&mut self, other: Count) {
        self.0 += other.0;
    }
}

#[test]
fn the_ranges_of_a_pool_are_all_its_iterations_once() {
    let count = |count: &mut Count, range: Range<u64>| count.0 += range.end - range.start;
    let config = Config::default().ranks(2).workers(2).pin(Pin::Off);
    let (outcome, trace) = recorded(config, |config| pool(&config, 20_000, Count::default, count));
    assert_eq!(outcome.expect("nothing is wrong").result.0, 20_000);
    assert_eq!((trace.run.shape, trace.run.workers.as_slice()), (Shape::Pools, &[2, 2][..]));
    let (mut ranges, mut ends_of_ranges) = (BTreeMap::new(), Vec::new());
    for (_, _, event) in events(&trace) {
        if let What::Range { first, count, lost_ns } = event.what {
            assert!(lost_ns <= event.duration_ns());
            assert_eq!(ranges.insert(first, count), None);
            ends_of_ranges.push(event.end_ns);
        }
    }
    let end = ranges.iter().fold(0, |next, (&first, &count)| {
        assert_eq!(next, first, "no iteration is missing, none came twice");
        first + count
    });
    assert_eq!(end, 20_000);
    let busy_ns: u64 =
        trace.ranks.iter().flat_map(|rank| &rank.profiles).map(|p| p.total_ns(Activity::Iterations)).sum();
    assert!(busy_ns > 0);
    assert!(trace.ranks.iter().all(|rank| rank.end.as_ref().is_some_and(|end| end.messages > 0)));
    // A worker's time has no gap, and it waits for the last of all.
    let last_ns = ends_of_ranges.into_iter().max().expect("there are ranges");
    let mut sampled_ns = 0;
    for rank in &trace.ranks {
        sampled_ns += rank.samples.iter().map(|sample| sample.chunk_ns).sum::<u64>();
        assert!(!rank.samples.is_empty(), "what others leave of its vCPUs is known");
        for worker in 0..rank.workers {
            let slices: Vec<Event> = rank.stream(worker).filter(|event| event.duration_ns() > 0).collect();
            assert!(slices.windows(2).all(|pair| pair[0].end_ns == pair[1].begin_ns), "{slices:?}");
            let last = slices.last().expect("it did something");
            assert!(last.what == What::Idle && last.end_ns >= last_ns, "{last:?}, {last_ns}");
        }
    }
    assert!(sampled_ns > 0);
}

#[test]
fn a_pool_that_panics_leaves_the_ranges_before() {
    let config =
        Config::default().ranks(1).workers(1).pin(Pin::Off).lb("guided").expect("it is in the table");
    let body = |_: &mut Count, range: Range<u64>| assert!(range.start < 500, "no more");
    let (outcome, trace) = recorded(config, |config| pool(&config, 2000, Count::default, body));
    assert!(matches!(outcome, Err(Error::Panicked { .. })));
    let ranges = events(&trace).into_iter();
    let ranges = ranges.filter(|(_, _, event)| matches!(event.what, What::Range { .. }));
    assert!(ranges.count() > 0, "those that began before 500");
}

#[test]
fn without_a_profile_and_a_trace_nothing_is_recorded() {
    let report = strips(config(2).profile(false));
    assert!(report.run.profiles.is_empty());
    let report = strips(config(2));
    assert_eq!(report.run.profiles.len(), 2);
    assert!(report.run.record.run_id.len() > 10 && !report.run.record.arguments.is_empty());
}

/// A token that travels until somebody says that it is enough.
#[derive(Serialize, Deserialize)]
struct Runner {
    handled: u64,
}

impl Chunk for Runner {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % 4, ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        self.handled += 1;
        if ctx.service::<Arc<AtomicBool>>().load(Ordering::Relaxed) {
            return ctx.exit();
        }
        if self.handled.is_multiple_of(500) {
            ctx.at_sync_nowait();
        }
        ctx.send((ctx.index() + 1) % 4, ());
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}
}

/// The status that the monitor tells, once it is the wanted one.
fn watched(port: u16, wanted: impl Fn(&Status) -> bool) -> Option<Status> {
    let ask = || -> Option<Status> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.write_all(b"GET /status HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    };
    (0..1000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        ask().filter(|status| wanted(status))
    })
}

#[test]
fn a_run_tells_how_it_is_doing_while_it_runs() {
    // Free a moment ago; if another program is faster, the run says so and fails.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let enough = Arc::new(AtomicBool::new(false));
    let said = enough.clone();
    let run = std::thread::spawn(move || {
        let config = config(2).monitor(port.to_string());
        run_array_with_service(config, said, 4, |_| Runner { handled: 0 })
    });
    let status = watched(port, |status| status.syncs_total > 2 && !status.kinds.is_empty());
    enough.store(true, Ordering::Relaxed);
    run.join().expect("it ends").expect("nothing is wrong");
    let status = status.expect("it tells of its syncs");
    assert_eq!(status.ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [0, 1]);
    assert!(status.ranks.iter().all(|rank| rank.workers[0].handlers > 0));
    assert!(status.syncs.windows(2).all(|pair| pair[0].sync + 1 == pair[1].sync));
    assert!(status.kinds.iter().any(|kind| kind.name == "Runner::message" || kind.name == "Runner::start"));
    let still = TcpStream::connect(("127.0.0.1", port));
    assert!(still.is_err(), "the port is free when the run has ended");
}

#[test]
fn a_pool_tells_how_far_it_is_while_it_runs() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let cancel = Cancel::default();
    let its = cancel.clone();
    let run = std::thread::spawn(move || {
        let config = config(2).lb("leases,chunk=0.001").expect("listed").workers(1).monitor(port.to_string());
        let nap = |_: &mut (), range: Range<u64>| {
            range.for_each(|_| std::thread::sleep(std::time::Duration::from_micros(100)));
        };
        Pool::new(&config, 1 << 40).cancelled_by(&its).run(|| (), nap)
    });
    let done = |status: &Status| status.ranks.iter().map(|rank| rank.iterations).sum::<u64>();
    let status = watched(port, |status| done(status) > 100);
    cancel.cancel();
    let outcome = run.join().expect("it ends").expect("nothing is wrong");
    let status = status.expect("it tells how far it is");
    assert!(done(&status) <= outcome.report.iterations);
    assert_eq!((status.shape, status.iterations_total), (Shape::Pools, Some(1 << 40)));
    assert_eq!(status.lb, "leases,chunk=0.001");
}

/// The program that is killed in the next test: this test itself, started once more.
const KILLED: &str = "CARIBOU_TESTS_RUN_TO_BE_KILLED";

#[test]
#[expect(clippy::disallowed_methods, reason = "this process may be the one that is to be killed")]
fn a_run_that_was_killed_can_be_read_up_to_the_last_block() {
    if let Ok(dir) = std::env::var(KILLED) {
        let config = Config::default().ranks(1).pin(Pin::Off).trace(dir);
        let _ = run_array(config, 4, |_| Forever);
        return;
    }
    let dir = scratch();
    let me = std::env::current_exe().expect("it runs");
    let mut command = Command::new(me);
    command
        .args(["--exact", "traces::a_run_that_was_killed_can_be_read_up_to_the_last_block"])
        .env(KILLED, &dir);
    let mut running = command.stdout(std::process::Stdio::null()).spawn().expect("it starts once more");
    let file = dir.join("run-1/rank-00000.trace");
    let long = || std::fs::metadata(&file).is_ok_and(|file| file.len() > 200_000);
    let patience = std::time::Duration::from_millis(20);
    let waited = (0..3000).find(|_| {
        std::thread::sleep(patience);
        long()
    });
    running.kill().expect("it has not ended");
    running.wait().expect("it was killed");
    assert!(waited.is_some(), "no block was written in a minute");
    let trace = Trace::open(&dir).expect("it can be read");
    assert!(trace.ranks[0].end.is_none());
    assert!(trace.problems.len() <= 1, "{:?}", trace.problems);
    let mut handlers = 0;
    let problems =
        trace.for_each(|_, _, event| handlers += u64::from(matches!(event.what, What::Handler { .. })));
    assert_eq!(problems, []);
    assert!(handlers > 1000, "{handlers}");
}

#[derive(Serialize, Deserialize)]
struct Forever;

impl Chunk for Forever {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % 4, 0);
    }

    fn receive(&mut self, count: u64, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % 4, count + 1);
    }
}
