//! A strategy that takes its time holds up no chunk that does not wait for it, and is not called where that cannot pay.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use caribou::lb::Terms;
use caribou::lb::{Assignment, Rank, Snapshot, Strategy};
use caribou::report::SyncReport;
use caribou::trace::{Part, What};
use caribou::{Chunk, Config, Ctx, Error, Load, Report};
use caribou_tests::{run_array, run_array_in_time, run_array_with_service, with_timeout};
use serde::{Deserialize, Serialize};

use super::traces::recorded;

/// A decision that took so long is followed by one beside the workers.
const LONG: Duration = Duration::from_millis(5);
/// Time after which a strategy no longer waits for what it waits for.
const PATIENCE_MS: u32 = 10_000;
const CHUNKS: u32 = 6;
/// Handlers on rank 0 during a decision from which on chunks have gone on.
const HANDLED: u32 = 200;

/// What a strategy and the chunks know of each other.
#[derive(Clone, Default)]
struct Scene {
    /// Handlers of messages on rank 0 so far.
    handled: Arc<AtomicU32>,
    thinks: Arc<AtomicBool>,
    /// The run has returned.
    over: Arc<AtomicBool>,
    /// Decisions in which chunks of rank 0 went on.
    passed: Arc<AtomicU32>,
}

/// What happens in the second decision.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Second {
    /// It waits until chunks of rank 0 have handled messages.
    WaitsForHandlers,
    /// The same, and then it panics, or answers with what is impossible.
    Panics,
    IsImpossible,
    /// It waits until the run is over.
    Outlives,
    /// Nobody has anything to do meanwhile, for longer than a run looks whether it has stalled.
    Rests,
}

struct Slow(Scene, Second, AtomicU32);

fn await_that(what: impl Fn() -> bool) -> bool {
    (0..PATIENCE_MS).any(|_| {
        thread::sleep(Duration::from_millis(1));
        what()
    })
}

impl Slow {
    /// True once chunks of rank 0 have handled messages.
    fn chunks_go_on(&self) -> bool {
        let before = self.0.handled.load(SeqCst);
        await_that(|| self.0.handled.load(SeqCst) >= before + HANDLED)
    }
}

impl Strategy for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let Slow(scene, second, asked) = self;
        let mut assignment = Assignment::current(snapshot);
        if asked.fetch_add(1, SeqCst) == 0 && snapshot.chunks.len() < 1000 {
            thread::sleep(LONG);
            return assignment;
        }
        scene.thinks.store(true, SeqCst);
        match second {
            Second::Rests => thread::sleep(Duration::from_millis(400)),
            Second::Outlives => assert!(await_that(|| scene.over.load(SeqCst)), "the run waits for it"),
            _ => drop(scene.passed.fetch_add(u32::from(self.chunks_go_on()), SeqCst)),
        }
        scene.thinks.store(false, SeqCst);
        match second {
            Second::Panics => panic!("no idea"),
            Second::IsImpossible => assignment.ranks[0] = Rank(77),
            // Everybody goes to the next rank.
            _ => assignment
                .ranks
                .iter_mut()
                .for_each(|to| *to = Rank((to.0 + 1) % snapshot.ranks.len() as u32)),
        }
        assignment
    }

    fn terms(&self) -> Terms {
        Terms { must_pay: false, ..Terms::default() }
    }
}

/// The end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum End {
    /// When some chunk has come back from this many syncs.
    Syncs(u32),
    /// While the strategy thinks.
    Exit,
    Fail,
    Panic,
}

/// Goes on at syncs and sends messages all the time: a letter goes from chunk to chunk, and with it from rank to rank.
#[derive(Serialize, Deserialize)]
struct Busy {
    syncs: u32,
    end: End,
    waits: bool,
}

impl Busy {
    fn comes(&self, ctx: &mut Ctx<'_, Self>) {
        if self.waits { ctx.at_sync() } else { ctx.at_sync_nowait() }
    }
}

impl Chunk for Busy {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if !self.waits && ctx.index() < CHUNKS {
            ctx.send((ctx.index() + 1) % CHUNKS, ());
        }
        self.comes(ctx);
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.syncs += 1;
        if self.end == End::Syncs(self.syncs) {
            return ctx.exit();
        }
        self.comes(ctx);
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        let scene: &Scene = ctx.service();
        if ctx.rank() == Rank(0) {
            scene.handled.fetch_add(1, SeqCst);
        }
        if scene.thinks.load(SeqCst) {
            match self.end {
                End::Syncs(_) => {}
                End::Exit => return ctx.exit(),
                End::Fail => return ctx.fail("it is enough"),
                End::Panic => panic!("it is too much"),
            }
        }
        ctx.send((ctx.index() + 1) % CHUNKS, ());
    }
}

/// Runs some chunks under the strategy; what it saw is in the scene.
fn run(config: &Config, second: Second, end: End, chunks: u32, scene: &Scene) -> Result<Report, Error> {
    let (given, lent) = (scene.clone(), scene.clone());
    let config = config.clone().strategy(Slow(given, second, AtomicU32::default()));
    let make = move |_| Busy { syncs: 0, end, waits: second == Second::Rests };
    with_timeout(&format!("{second:?}, {end:?}"), move || run_array_with_service(config, lent, chunks, make))
}

fn shapes() -> [(u32, Config); 4] {
    let shape = |(ranks, workers)| (ranks, Config::default().ranks(ranks).workers(workers));
    [(1, 1), (2, 1), (3, 1), (2, 2)].map(shape)
}

#[test]
fn chunks_that_go_on_handle_messages_while_the_strategy_thinks() {
    for (ranks, config) in shapes() {
        let scene = Scene::default();
        let report = run(&config, Second::WaitsForHandlers, End::Syncs(3), CHUNKS, &scene).expect("it ends");
        assert!(scene.passed.load(SeqCst) > 0, "all waited for it: {config:?}");
        let moved = report.syncs[1].moved;
        assert_eq!(moved, if ranks > 1 { u64::from(CHUNKS) } else { 0 }, "it is carried out");
        assert!(report.syncs[1].decide_ns > 0);
    }
}

#[test]
fn the_first_decision_on_many_chunks_is_expected_to_be_long() {
    let scene = Scene::default();
    let config = Config::default().ranks(2);
    run(&config, Second::WaitsForHandlers, End::Syncs(1), 20_000, &scene).expect("it ends");
    assert_eq!(scene.passed.load(SeqCst), 1);
}

#[test]
fn a_strategy_that_fails_beside_the_workers_ends_the_run_with_its_error() {
    for (ranks, config) in shapes() {
        for (second, expected) in [
            (Second::Panics, "it panicked: no idea".to_owned()),
            (
                Second::IsImpossible,
                format!("it assigned Busy[0] of array 0 to rank 77, but there are {ranks} ranks"),
            ),
        ] {
            let scene = Scene::default();
            let error = run(&config, second, End::Syncs(9), CHUNKS, &scene).expect_err("it fails");
            let Error::StrategyFailed { strategy, sync, why } = error else { panic!("{error}") };
            assert_eq!((strategy.as_str(), sync), ("slow", 1));
            assert!(why == expected, "{why}");
            assert_eq!(scene.passed.load(SeqCst), 1, "it was beside them");
        }
    }
}

#[test]
fn a_run_that_ends_does_not_wait_for_the_strategy() {
    for (_, config) in shapes() {
        for end in [End::Exit, End::Fail, End::Panic] {
            let scene = Scene::default();
            let result = run(&config, Second::Outlives, end, CHUNKS, &scene);
            assert!(scene.thinks.load(SeqCst), "{end:?}: it still thinks");
            scene.over.store(true, SeqCst);
            match (end, result) {
                (End::Exit, Ok(report)) => assert_eq!(report.syncs.len(), 1, "the second was not decided"),
                (End::Fail, Err(Error::Program { .. }))
                | (End::Panic, Err(Error::HandlerPanicked { .. })) => {}
                (end, result) => panic!("{end:?}: {result:?}"),
            }
        }
    }
}

#[test]
fn a_run_in_which_all_wait_for_the_strategy_has_not_stalled() {
    for (_, config) in shapes() {
        let report = run(&config, Second::Rests, End::Syncs(2), CHUNKS, &Scene::default()).expect("it ends");
        assert_eq!(report.syncs.len(), 2);
    }
}

/// One of two that come to each sync from a worker each, worker 1 last.
#[derive(Serialize, Deserialize)]
struct Twin(u32);

impl Chunk for Twin {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.service::<Arc<Barrier>>().wait();
        if thread::current().name() == Some("caribou 0.1") {
            thread::sleep(Duration::from_millis(20));
        }
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.0 += 1;
        if self.0 == 2 { ctx.exit() } else { self.start(ctx) }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

#[test]
fn whichever_worker_has_asked_is_woken_by_the_answer() {
    let config = Config::default().ranks(1).workers(2);
    let slow = Slow(Scene::default(), Second::Rests, AtomicU32::default());
    let report = with_timeout("worker 1 asks", || {
        run_array_with_service(config.strategy(slow), Arc::new(Barrier::new(2)), 2, |_| Twin(0))
    });
    assert_eq!(report.expect("it ends").syncs.len(), 2);
}

#[test]
fn a_trace_tells_what_a_worker_did_while_the_strategy_thought_beside_it() {
    let run = |config| run(&config, Second::WaitsForHandlers, End::Syncs(3), CHUNKS, &Scene::default());
    let (report, trace) = recorded(Config::default().ranks(1), run);
    report.expect("it ends");
    let (mut slices, mut handlers) = (Vec::new(), Vec::new());
    let problems = trace.for_each(|_, _, event| match event.what {
        What::Handler { .. } => handlers.push(event.begin_ns..event.end_ns),
        What::Runtime { part: Part::Decide, sync: 1 } => slices.push(event.begin_ns..event.end_ns),
        _ => {}
    });
    assert!(problems.is_empty() && trace.problems.is_empty(), "{problems:?}");
    let (asked, answered) = (slices.first().expect("recorded"), slices.last().expect("recorded"));
    let meanwhile =
        handlers.iter().filter(|handler| asked.end <= handler.start && handler.end <= answered.start);
    assert!(meanwhile.count() > 0, "handlers that the strategy waited for lie between the worker's slices");
    let overlaps = |handler: &Range<u64>| {
        slices.iter().any(|slice| slice.start < handler.end && handler.start < slice.end)
    };
    assert!(!handlers.iter().any(overlaps), "a slice of the decision holds the worker's own part alone");
}

/// Has so many ms of work, and comes to so many syncs.
#[derive(Serialize, Deserialize)]
struct Weight {
    ms: u64,
    syncs: u64,
}

impl Chunk for Weight {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.syncs -= 1;
        if self.syncs == 0 { ctx.exit() } else { ctx.at_sync() }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}

    fn load(&self) -> Load {
        Load::Ticks(self.ms * 1_000_000)
    }
}

/// Takes its time to find that all stay where they are; counts how often it is asked.
struct Thorough(Arc<AtomicU32>);

impl Strategy for Thorough {
    fn name(&self) -> &'static str {
        "thorough"
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        self.0.fetch_add(1, SeqCst);
        thread::sleep(LONG);
        Assignment::current(snapshot)
    }
}

/// For each of some syncs whether `Thorough` was asked, if each of two ranks has two chunks of so many ms.
fn asked_at(config: Config, ms: [[u64; 2]; 2], syncs: u64) -> Vec<bool> {
    let count = Arc::new(AtomicU32::default());
    let config = config.ranks(2).period(20).measure(false).strategy(Thorough(count.clone()));
    let make = move |index: u32| Weight { ms: ms.as_flattened()[index as usize], syncs };
    let report = run_array_in_time("a thorough strategy", config, 4, make);
    let syncs = report.expect("it ends").syncs;
    let asked: Vec<bool> = syncs.iter().map(SyncReport::was_asked).collect();
    assert_eq!(asked.iter().filter(|&&asked| asked).count(), count.load(SeqCst) as usize);
    assert!(syncs.iter().all(|sync| sync.was_asked() || sync.decide_ns == 0));
    asked
}

#[test]
fn a_strategy_is_asked_only_where_a_plan_could_pay_for_its_time() {
    for config in [Config::default(), Config::default().simulate(3)] {
        assert_eq!(
            asked_at(config, [[2, 2], [3, 1]], 4),
            [true, false, false, false],
            "nothing is to be gained"
        );
    }
    // Three of five ms: one less than it takes, but what stays undone adds up.
    let asked = asked_at(Config::default(), [[4, 3], [1, 0]], 50);
    assert!(
        !asked_at(Config::default(), [[7, 0], [1, 0]], 50)[1..].contains(&true),
        "one chunk is all that is late"
    );
    assert_eq!(asked[..2], [true, false]);
    assert!(asked[2..].contains(&true), "{asked:?}");
}

/// Works without declaring it, and comes to one sync.
#[derive(Serialize, Deserialize)]
struct Undeclared;

impl Chunk for Undeclared {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        std::hint::black_box((0..100_000_u64).map(std::hint::black_box).sum::<u64>());
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Keeps the load that it was told of, ticks.
struct Curious(Arc<AtomicU64>);

impl Strategy for Curious {
    fn name(&self) -> &'static str {
        "curious"
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        self.0.fetch_add(1 + snapshot.chunks.iter().map(|chunk| chunk.ticks).sum::<u64>(), SeqCst);
        Assignment::current(snapshot)
    }
}

#[test]
fn where_nothing_is_measured_a_chunk_that_declares_nothing_has_no_load() {
    let told = |config: Config| {
        let ticks = Arc::new(AtomicU64::default());
        let config = config.ranks(2).period(20).strategy(Curious(ticks.clone()));
        run_array(config, CHUNKS, |_| Undeclared).unwrap();
        ticks.load(SeqCst) - 1
    };
    assert!(told(Config::default()) > 0);
    for profile in [true, false] {
        for config in [Config::default(), Config::default().simulate(1)] {
            assert_eq!(told(config.measure(false).profile(profile)), 0, "profile {profile}");
        }
    }
}
