//! A run that cannot go on ends with an error that names what waits, and for what.

use std::time::Duration;

use caribou::config::Period;
use caribou::{Array, Chunk, Config, Ctx, Error, Halos, Reducer, Section, Target, Values};
use caribou_tests::{run_array_in_time, with_timeout};
use serde::{Deserialize, Serialize};

const CHUNKS: u32 = 6;
/// The chunk that makes the run stall; the last one, so that it is not on rank 0.
const LAST: u32 = CHUNKS - 1;

/// Why a run stalls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Cause {
    Nobody,
    NeverReady,
    NoChunk,
    NoChunkElsewhere,
    NoParent,
    MissingAtSync,
    MissingInReduction,
    NewcomerMissing,
    NewcomerMissingAtStep,
    NewcomerMissingAtSync,
    MissingInSection,
    ReductionBehindSync,
    Removed,
    SentToRemoved,
    Halos,
    NothingToDo,
}

#[derive(Serialize, Deserialize)]
struct Waiter {
    cause: Cause,
    other: Array<Listener>,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Later,
    Done,
}

impl Chunk for Waiter {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let last = ctx.index() == LAST;
        match self.cause {
            Cause::Nobody if last => ctx.exit(),
            Cause::NeverReady if last => (0..3).for_each(|_| ctx.send(LAST, Message::Later)),
            Cause::NoChunk if last => (0..2).for_each(|_| ctx.send(99, Message::Done)),
            Cause::NoChunkElsewhere if last => ctx.send_to(self.other, 7, ()),
            Cause::NoParent if last => ctx.insert_into(self.other, 8, Listener, 7),
            Cause::MissingAtSync if !last => ctx.at_sync(),
            Cause::MissingInReduction if !last => self.contribute(ctx),
            Cause::NewcomerMissing | Cause::NewcomerMissingAtSync if ctx.index() < CHUNKS => {
                if last {
                    ctx.insert(CHUNKS, Waiter { ..*self });
                }
                match self.cause {
                    Cause::NewcomerMissing => self.contribute(ctx),
                    _ => ctx.at_sync(),
                }
            }
            Cause::NewcomerMissingAtStep if ctx.index() < CHUNKS => {
                if last {
                    ctx.insert(CHUNKS, Waiter { ..*self });
                }
                ctx.contribute_at(2, 3, Reducer::Sum, vec![1u64], Target::Chunk(0));
            }
            Cause::MissingInSection | Cause::Removed if last => ctx.remove(),
            Cause::MissingInSection => {
                let section = Section::new(0..CHUNKS);
                ctx.contribute_in(&section, 3, Reducer::Sum, vec![1u64], Target::All);
            }
            Cause::ReductionBehindSync => ctx.at_sync(),
            Cause::SentToRemoved if last => {
                ctx.remove();
                ctx.send(LAST, Message::Done);
            }
            _ => {}
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() != LAST {
            self.contribute(ctx);
        }
    }

    fn ready(&self, message: &Message) -> bool {
        matches!(message, Message::Done)
    }

    fn receive(&mut self, _: Message, ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn reduced(_: u32, _: Values) -> Message {
        Message::Done
    }

    fn waits_for(&self) -> Option<String> {
        (self.cause == Cause::Halos).then(|| Halos::<()>::new(2).to_string())
    }
}

impl Waiter {
    fn contribute(&self, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(3, Reducer::Sum, vec![1u64], Target::Chunk(0));
    }
}

/// Takes no part in syncs.
#[derive(Serialize, Deserialize)]
struct Listener;

impl Chunk for Listener {
    type Index = u32;
    type Message = ();

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

fn run(cause: Cause, ranks: u32, workers: u32) -> Result<(), Error> {
    let config = Config::default().ranks(ranks).workers(workers).period(20);
    run_with(cause, config.lb("rotate").expect("it is in the table"))
}

fn run_with(cause: Cause, config: Config) -> Result<(), Error> {
    with_timeout(&format!("{cause:?}, {config:?}"), move || {
        caribou::run(config, |setup| {
            let other = setup.array_without_sync(2, caribou::Placement::Block, |_| Listener);
            setup.array(CHUNKS, move |_| Waiter { cause, other });
            if cause == Cause::Removed {
                setup.array(0, |_: u32| Listener);
            }
        })
    })
    .map(|_| ())
}

#[test]
fn a_run_that_is_balanced_in_windows_stalls_too() {
    for period in
        [Period::Auto, Period::Every(Duration::from_micros(20)), Period::Every(Duration::from_millis(5))]
    {
        for ranks in 1..=4 {
            let end = run_with(Cause::NeverReady, Config::default().ranks(ranks).balance(period));
            assert!(matches!(end, Err(Error::Stalled { .. })), "{period} on {ranks} ranks: {end:?}");
        }
    }
}

/// Every line that the stall report must have.
fn stalls_with(cause: Cause, expected: &[&str]) {
    for (ranks, workers) in [(1, 1), (3, 1), (2, 2)] {
        let what = format!("{cause:?} on {ranks} ranks x {workers} workers");
        let Err(error) = run(cause, ranks, workers) else { panic!("{what}: no error") };
        let Error::Stalled { waiting } = &error else { panic!("{what}: {error}") };
        for line in expected {
            assert!(waiting.iter().any(|waits| waits == line), "{what}: `{line}` is missing in: {error}");
        }
        assert!(!expected.is_empty() || waiting.is_empty(), "{what}: {error}");
    }
}

#[test]
fn nothing_stalls_without_a_cause() {
    for (ranks, workers) in [(1, 1), (3, 1), (2, 2)] {
        run(Cause::Nobody, ranks, workers).expect("it exits");
    }
}

#[test]
fn a_chunk_that_is_never_ready_is_named_with_what_it_keeps() {
    stalls_with(Cause::NeverReady, &["Waiter[5] of array 1 has 3 messages for which it is not ready"]);
}

#[test]
fn a_chunk_that_does_not_exist_is_named_with_what_waits_for_it() {
    stalls_with(Cause::NoChunk, &["Waiter[99] of array 1 does not exist; 2 messages wait for it"]);
    stalls_with(Cause::NoChunkElsewhere, &["Listener[7] of array 0 does not exist; 1 message waits for it"]);
    let line =
        "Listener[7] of array 0 does not exist; 1 message waits for it, such as the insertion of Listener[8]";
    stalls_with(Cause::NoParent, &[line]);
}

#[test]
fn a_chunk_that_has_removed_itself_is_told_from_one_that_never_was() {
    let line = "Waiter[5] of array 1 no longer exists; 1 message waits for it";
    stalls_with(Cause::SentToRemoved, &[line]);
}

#[test]
fn a_sync_that_somebody_does_not_come_to_is_reported() {
    stalls_with(
        Cause::MissingAtSync,
        &["Waiter[0] of array 1 waits at a sync", "Waiter[5] of array 1 has not come to sync 0"],
    );
    for (ranks, workers) in [(1, 1), (3, 1), (2, 2)] {
        let Err(Error::Stalled { waiting }) = run(Cause::MissingAtSync, ranks, workers) else {
            panic!("no stall")
        };
        // On every rank but the last all have come: those that wait on the last count as well.
        let first = "sync 0: 5 of 6 chunks of array 1 `Waiter` have arrived";
        assert_eq!(waiting[0], first, "{ranks} ranks x {workers}");
    }
}

#[test]
fn a_reduction_that_somebody_does_not_contribute_to_is_reported() {
    let lines = [
        "reduction 0 of array 1 `Waiter` has 5 of 6 contributions",
        "Waiter[5] of array 1 has not contributed to reduction 0",
    ];
    for cause in [Cause::MissingInReduction, Cause::ReductionBehindSync] {
        stalls_with(cause, &lines);
        let Err(Error::Stalled { waiting }) = run(cause, 3, 1) else { panic!("no stall") };
        let missing = waiting.iter().filter(|line| line.contains("has not contributed")).count();
        assert_eq!(missing, 1, "{waiting:?}");
    }
}

#[test]
fn a_newcomer_counts_among_those_that_are_to_contribute_or_to_come() {
    let lines = [
        "reduction 0 of array 1 `Waiter` has 6 of 7 contributions",
        "Waiter[6] of array 1 has not contributed to reduction 0",
    ];
    stalls_with(Cause::NewcomerMissing, &lines);
    // It was announced to the first reduction, and all later ones wait for it too.
    let lines =
        [0, 1, 2].map(|step| format!("reduction {step} of array 1 `Waiter` has 6 of 7 contributions"));
    stalls_with(Cause::NewcomerMissingAtStep, &lines.each_ref().map(String::as_str));
    let lines = [
        "sync 0: 6 of 7 chunks of array 1 `Waiter` have arrived",
        "Waiter[6] of array 1 has not come to sync 0",
    ];
    stalls_with(Cause::NewcomerMissingAtSync, &lines);
}

#[test]
fn a_reduction_over_a_section_names_a_chunk_that_was_removed() {
    let line = "reduction 0 over a section of array 1 `Waiter` has 5 of 6 contributions, missing: Waiter[5] of array 1";
    stalls_with(Cause::MissingInSection, &[line]);
}

#[test]
fn a_chunk_that_only_removed_itself_is_not_waited_for_and_an_array_without_chunks_is_named() {
    for (ranks, workers) in [(1, 1), (3, 1), (2, 2)] {
        let Err(Error::Stalled { waiting }) = run(Cause::Removed, ranks, workers) else { panic!("no stall") };
        assert_eq!(waiting, ["array 2 `Listener` was set up without chunks"], "{ranks} ranks x {workers}");
    }
}

#[test]
fn a_chunk_says_what_it_waits_for() {
    stalls_with(Cause::Halos, &["Waiter[5] of array 1 waits for 2 of 2 messages of step 0"]);
}

#[test]
fn a_run_in_which_nobody_has_anything_to_do_stalls_too() {
    stalls_with(Cause::NothingToDo, &[]);
}

/// Sends itself a message after longer than the runtime waits before it asks whether anybody is still at work.
#[derive(Serialize, Deserialize)]
struct Patient {
    exits: bool,
}

impl Chunk for Patient {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == LAST {
            ctx.send_after(Duration::from_millis(400), ());
        }
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        if self.exits {
            ctx.exit();
        }
    }
}

#[test]
fn a_message_that_is_not_due_yet_is_no_stall_but_nothing_left_after_it_is() {
    for (ranks, workers) in [(1, 1), (1, 2), (3, 1), (2, 2)] {
        for exits in [true, false] {
            let what = format!("{ranks} ranks x {workers} workers");
            let config = Config::default().ranks(ranks).workers(workers);
            let end = run_array_in_time(&what, config, CHUNKS, move |_| Patient { exits });
            match end {
                Ok(report) => {
                    assert!(exits && report.messages == u64::from(CHUNKS) + 1, "{what}: {report:?}");
                }
                Err(error) => assert!(!exits && matches!(error, Error::Stalled { .. }), "{what}: {error}"),
            }
        }
    }
}

/// Works for longer than the runtime waits before it asks whether anybody is still at work.
#[derive(Serialize, Deserialize)]
struct Sleeper;

impl Chunk for Sleeper {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == LAST {
            std::thread::sleep(Duration::from_millis(400));
            ctx.send(0, ());
        }
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }
}

#[test]
fn a_long_handler_is_not_a_stall() {
    for (ranks, workers) in [(1, 2), (2, 1), (2, 2), (3, 1)] {
        let config = Config::default().ranks(ranks).workers(workers);
        run_array_in_time(&format!("{ranks} ranks x {workers} workers"), config, CHUNKS, |_| Sleeper)
            .unwrap_or_else(|error| panic!("{ranks} ranks x {workers} workers: {error}"));
    }
}
