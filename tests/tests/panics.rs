//! A handler that panics ends the run once, on all ranks, with an error that says where.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use caribou::{Chunk, Config, Ctx, Error, Placement, Reducer, Setup, Target, Values};
use caribou_tests::events::listen;
use caribou_tests::{at_syncs, run_array, run_array_in_time, run_array_with_service, with_timeout};
use serde::{Deserialize, Serialize};
use tracing::{Level, Metadata};

const CHUNKS: u32 = 6;
/// The chunk that panics; the last one, so that it is not on rank 0.
const CLUMSY: u32 = CHUNKS - 1;

/// The place where the clumsy chunk panics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Place {
    Start,
    Ready,
    Receive,
    Resume,
    Reduced,
    Depart,
    Arrive,
    StateBytes,
}

const PLACES: [Place; 8] = [
    Place::Start,
    Place::Ready,
    Place::Receive,
    Place::Resume,
    Place::Reduced,
    Place::Depart,
    Place::Arrive,
    Place::StateBytes,
];

/// Comes to two syncs, then pokes everybody, then counts everybody.
#[derive(Serialize, Deserialize)]
struct Juggler {
    place: Option<Place>,
    syncs: u32,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Poke { with: u32 },
    Counted,
}

impl Juggler {
    fn drop_if(&self, place: Place) {
        assert!(self.place != Some(place), "dropped in {place:?}");
    }
}

const COUNT: u32 = 1;
const BROKEN_COUNT: u32 = 2;

impl Chunk for Juggler {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.drop_if(Place::Start);
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.syncs += 1;
        if self.syncs < 2 {
            return ctx.at_sync();
        }
        self.drop_if(Place::Resume);
        ctx.send((ctx.index() + 1) % CHUNKS, Message::Poke { with: 7 });
    }

    fn ready(&self, _: &Message) -> bool {
        self.drop_if(Place::Ready);
        true
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Poke { .. } => {
                self.drop_if(Place::Receive);
                let broken = ctx.service::<Option<Place>>() == &Some(Place::Reduced);
                let tag = if broken { BROKEN_COUNT } else { COUNT };
                ctx.contribute(tag, Reducer::Sum, vec![1u64], Target::Chunk(CLUMSY));
            }
            Message::Counted => ctx.exit(),
        }
    }

    fn reduced(tag: u32, _: Values) -> Message {
        assert!(tag == COUNT, "dropped in Reduced");
        Message::Counted
    }

    fn state_bytes(&self) -> u64 {
        self.drop_if(Place::StateBytes);
        8
    }

    fn on_depart(&mut self) {
        self.drop_if(Place::Depart);
    }

    fn on_arrive(&mut self) {
        self.drop_if(Place::Arrive);
    }
}

fn run(config: Config, place: Option<Place>) -> Result<caribou::Report, Error> {
    let make = move |index| Juggler { place: place.filter(|_| index == CLUMSY), syncs: 0 };
    with_timeout(&format!("{place:?}, {config:?}"), move || {
        run_array_with_service(config, place, CHUNKS, make)
    })
}

#[test]
fn nobody_panics_if_nobody_is_clumsy() {
    for ranks in [1, 3] {
        run(at_syncs(ranks, "rotate"), None).expect("it ends");
    }
}

#[test]
fn a_panic_names_rank_chunk_message_and_phase() {
    let known = |place| match place {
        // The size is asked before every handler.
        Place::Start | Place::StateBytes => ("start", 0),
        Place::Receive | Place::Ready => ("Poke", 2),
        Place::Resume => ("resume", 2),
        Place::Reduced => ("reduced", 2),
        Place::Depart => ("on_depart", 1),
        Place::Arrive => ("on_arrive", 1),
    };
    for (ranks, place) in [1, 3].into_iter().flat_map(|ranks| PLACES.map(|place| (ranks, place))) {
        if ranks == 1 && matches!(place, Place::Depart | Place::Arrive) {
            continue;
        }
        let what = format!("{place:?} on {ranks} ranks");
        let Err(error) = run(at_syncs(ranks, "rotate"), Some(place)) else { panic!("{what}: no error") };
        let Error::HandlerPanicked { rank, chunk, message, phase, panic } = &error else {
            panic!("{what}: {error}");
        };
        assert_eq!((message.as_str(), *phase), known(place), "{what}: {error}");
        // It starts on the last rank, and every sync moves it to the next.
        let moves = match place {
            Place::Start | Place::Depart | Place::StateBytes => 0,
            Place::Arrive => 1,
            _ => 2,
        };
        assert_eq!(rank.0, (ranks - 1 + moves) % ranks, "{what}: {error}");
        assert_eq!(chunk, "Juggler[5] of array 0", "{what}");
        assert_eq!(panic, &format!("dropped in {place:?}"), "{what}");
    }
}

#[test]
fn the_phase_counts_syncs_that_moved_nobody_too() {
    let Err(Error::HandlerPanicked { phase, .. }) = run(at_syncs(2, "none"), Some(Place::Receive)) else {
        panic!("the clumsy chunk panics");
    };
    assert_eq!(phase, 2);
}

#[test]
fn a_panic_while_a_chunk_is_made_or_set_up_ends_the_run_too() {
    for ranks in [1, 3] {
        for in_setup in [true, false] {
            let calls = Arc::new(AtomicU32::new(0));
            let what = format!("{ranks} ranks, in setup: {in_setup}");
            let result = with_timeout(&what, move || {
                caribou::run(at_syncs(ranks, "none"), |setup| {
                    // On one rank only: the others have to hear of it.
                    setup.service(None::<Place>);
                    let mine = calls.fetch_add(1, SeqCst) == ranks - 1;
                    assert!(!(in_setup && mine), "dropped");
                    setup.array(CHUNKS, move |index| {
                        assert!(in_setup || index != CLUMSY, "dropped");
                        Juggler { place: None, syncs: 0 }
                    });
                })
            });
            let Err(Error::SetupPanicked { doing, panic, .. }) = &result else {
                panic!("{what}: {result:?}");
            };
            let place = if in_setup { "in its setup" } else { "while it created Juggler[CLUMSY] of array 0" };
            assert_eq!((doing, panic.as_str()), (&place.replace("CLUMSY", &CLUMSY.to_string()), "dropped"));
        }
    }
}

/// A service.
struct Falls;

impl Drop for Falls {
    fn drop(&mut self) {
        panic!("it falls");
    }
}

#[test]
fn a_service_that_panics_when_it_is_dropped_ends_the_run_with_an_error() {
    for config in [at_syncs(1, "none"), at_syncs(2, "none"), at_syncs(2, "none").simulate(3)] {
        let result = with_timeout("a service that panics", move || {
            caribou::run(config, |setup| {
                setup.service(Falls);
                setup.array(1, |_| Leaves);
            })
        });
        let error = result.expect_err("it panics").to_string();
        assert!(error.ends_with("it panicked outside of a handler: it falls"), "{error}");
    }
}

/// Ends the run.
#[derive(Serialize, Deserialize)]
struct Leaves;

impl Chunk for Leaves {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Every chunk of every rank panics at once.
#[derive(Serialize, Deserialize)]
struct Domino;

impl Chunk for Domino {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        panic!("{} falls", ctx.index());
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

#[test]
fn of_many_panics_one_is_the_error() {
    for (ranks, workers) in [(1, 1), (3, 1), (2, 2)] {
        let config = at_syncs(ranks, "none").workers(workers);
        let result = run_array_in_time(&format!("{ranks} x {workers}"), config, 12, |_| Domino);
        let Err(Error::HandlerPanicked { chunk, panic, .. }) = result else { panic!("no panic") };
        let index = panic.split(' ').next().expect("it says which chunk falls");
        assert_eq!(chunk, format!("Domino[{index}] of array 0"), "one error, from one panic");
    }
}

/// A message that cannot be encoded: it panics.
#[derive(Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("it cannot be written");
    }
}

/// Every chunk of rank 0 sends one to every chunk of rank 1.
#[derive(Serialize, Deserialize)]
struct Writes;

impl Chunk for Writes {
    type Index = u32;
    type Message = Unwritable;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() < 6 {
            (6..12).for_each(|reader| ctx.send(reader, Unwritable));
        }
    }

    fn receive(&mut self, _: Unwritable, _: &mut Ctx<'_, Self>) {}
}

#[test]
fn many_messages_that_panic_when_they_are_encoded_end_the_run_once() {
    for workers in [1, 2] {
        for _ in 0..20 {
            let config = at_syncs(2, "none").workers(workers).wire_always(true);
            let result = run_array_in_time(&format!("{workers} workers"), config, 12, |_| Writes);
            let Err(Error::Wire { what, why, .. }) = result else { panic!("{result:?}") };
            assert!(what.starts_with("a message to Writes["), "{what}");
            assert_eq!(why, "`Unwritable` panicked when it was encoded: it cannot be written");
        }
    }
}

/// The warnings of the runtime.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn told() -> MutexGuard<'static, Vec<String>> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(_: &Metadata<'_>, fields: &[(&str, String)]) {
    told().push(fields.iter().map(|(name, value)| format!("{name}={value} ")).collect());
}

/// Keeps what the runtime warns of from now on, in whichever test.
fn keep_warnings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| listen(|metadata| *metadata.level() <= Level::WARN, keep));
}

/// Waits until the runtime has told what contains all these.
fn wait_until_told(words: &[&str]) {
    while !told().iter().any(|line| words.iter().all(|word| line.contains(word))) {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Chunk 0 panics while chunk 1, on another rank, waits in its handler until the panic and the wait have been told.
#[derive(Serialize, Deserialize)]
struct Waits;

#[derive(Serialize, Deserialize)]
enum Wait {
    ForOthers,
}

impl Chunk for Waits {
    type Index = u32;
    type Message = Wait;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        match ctx.index() {
            0 => ctx.send(1, Wait::ForOthers),
            _ => ctx.send(0, Wait::ForOthers),
        }
    }

    fn receive(&mut self, _: Wait, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 1 {
            wait_until_told(&["the run has failed", "the first falls"]);
            let waits = "rank 1, worker 0 has run Waits[1] of array 0 in its handler of `ForOthers` for";
            wait_until_told(&[waits, "the run has failed and ends when that returns"]);
            return;
        }
        wait_until_told(&["rank 1, worker 0 has run Waits[1] of array 0 in its handler of `ForOthers` for"]);
        panic!("the first falls");
    }
}

#[test]
fn a_failure_is_told_when_it_happens_and_so_is_the_handler_that_the_end_waits_for() {
    keep_warnings();
    let config = at_syncs(2, "none").watchdog(Duration::from_millis(40));
    let result = run_array_in_time("a handler that waits", config, 2, |_| Waits);
    let Err(Error::HandlerPanicked { panic, .. }) = result else { panic!("no panic") };
    assert_eq!(panic, "the first falls");
    with_timeout("a handler of a simulation that waits", || {
        let config = at_syncs(2, "none").watchdog(Duration::from_millis(40)).simulate(7);
        run_array(config, 2, |_| Simulated)
    })
    .expect("it was told");
}

#[test]
fn a_handler_that_comes_again_after_a_decision_is_told_by_its_kind() {
    keep_warnings();
    let config = at_syncs(1, "rotate").watchdog(Duration::from_millis(40));
    run_array_in_time("a handler that waits after two decisions", config, 1, |_| Resumes { left: 3 })
        .expect("it was told");
}

/// Comes to syncs, and waits in its last `resume` until it is told of.
#[derive(Serialize, Deserialize)]
struct Resumes {
    left: u32,
}

impl Chunk for Resumes {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.left -= 1;
        if self.left > 0 {
            return ctx.at_sync();
        }
        wait_until_told(&["worker 0 has run Resumes[0] of array 0 in its handler of `resume` for"]);
        ctx.exit();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

#[test]
fn a_rank_without_work_is_not_told_of() {
    keep_warnings();
    let config = at_syncs(2, "none").watchdog(Duration::from_millis(400));
    run_array_in_time("a handler that waits beside a rank without work", config, 2, |_| Lingers)
        .expect("it was told twice");
    // Another test may listen for less than this one's 0.4 s.
    let idle_s = |line: &String| {
        let (_, rest) = line.split_once("rank 0, worker 0 has run internal work of the runtime for ")?;
        rest.split(' ').next()?.parse::<f64>().ok()
    };
    let lines = told();
    assert!(lines.iter().filter_map(idle_s).all(|seconds| seconds < 0.4), "it had nothing to do: {lines:?}");
}

/// Chunk 1 waits until it has been told of twice, while chunk 0, on another rank, has nothing to do.
#[derive(Serialize, Deserialize)]
struct Lingers;

impl Chunk for Lingers {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let lingers = |line: &&String| line.contains("rank 1, worker 0 has run Lingers[1] of array 0");
        if ctx.index() == 1 {
            while told().iter().filter(lingers).count() < 2 {
                thread::sleep(Duration::from_millis(5));
            }
            ctx.exit();
        }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Waits until it is told of.
#[derive(Serialize, Deserialize)]
struct Simulated;

impl Chunk for Simulated {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 1 {
            wait_until_told(&["rank 1, worker 0 has run Simulated[1] of array 0 for"]);
            ctx.exit();
        }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// The first chunk contributes, and then lets the second one do so: its part comes to rank 0 by a packet.
#[derive(Serialize, Deserialize)]
struct Contributes;

impl Chunk for Contributes {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            self.receive((), ctx);
            ctx.send(1, ());
        }
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Chunk(99));
    }

    fn reduced(_: u32, _: Values) {}
}

#[test]
fn a_panic_while_a_packet_is_handled_is_told_as_of_the_runtime() {
    let error = with_timeout("a placement that panics", || {
        caribou::run(at_syncs(2, "none"), |setup| {
            let place = |index: u32, _| if index < 2 { index } else { panic!("{index} is nowhere") };
            setup.array_with(2, Placement::by(place), |_| Contributes);
        })
    })
    .expect_err("it panics");
    assert_eq!(error.to_string(), "rank 0 panicked while the runtime handled a packet: 99 is nowhere");
}

/// Lasts for a bit more than a second, and comes to no sync.
#[derive(Serialize, Deserialize)]
struct Naps;

impl Chunk for Naps {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.send_after(Duration::from_millis(1_050), ());
        }
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }
}

#[test]
fn a_strategy_that_keeps_to_syncs_and_finds_none_is_told_of() {
    keep_warnings();
    let run = |config: Config, arrays: fn(&mut Setup)| {
        let before = told().len();
        with_timeout("a run without syncs", move || caribou::run(config, arrays)).expect("nothing is wrong");
        let told = told();
        told[before..]
            .iter()
            .any(|line| line.contains("no chunk was moved: with this strategy or CARIBOU_LB_PERIOD"))
    };
    let naps = |setup: &mut Setup| {
        setup.array(4, |_| Naps);
    };
    assert!(run(at_syncs(2, "rotate"), naps));
    assert!(run(at_syncs(2, "refine"), naps));
    assert!(!run(Config::default().ranks(2).workers(1), naps), "windows need no sync");
    assert!(!run(at_syncs(2, "none"), naps), "it moves nothing anyway");
    assert!(!run(at_syncs(1, "rotate"), naps), "there is one rank");
}
