//! The end of a run reaches every rank and worker, whatever else is under way.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use caribou::config::Period;
use caribou::report::Undelivered;
use caribou::{Chunk, Config, Ctx, Error, Placement, Reducer, Report, Target};
use caribou_tests::{run_array, run_array_in_time, run_array_with, with_timeout};
use serde::{Deserialize, Serialize};

/// The end of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Ending {
    Exit,
    Fail,
    Panic,
}

/// Chunk `ends` floods all others with messages and ends the run in the same handler.
#[derive(Serialize, Deserialize)]
struct Flooder {
    ends: u32,
    ending: Ending,
    messages: u32,
    pause_ms: u32,
}

impl Chunk for Flooder {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() != self.ends {
            // Nobody reads while the flood rises.
            return thread::sleep(Duration::from_millis(u64::from(self.messages / 2_000)));
        }
        for number in 0..self.messages {
            ctx.send(number % CHUNKS, u64::from(number));
        }
        // By now all other workers may sleep.
        thread::sleep(Duration::from_millis(u64::from(self.pause_ms)));
        match self.ending {
            Ending::Exit => ctx.exit(),
            Ending::Fail => ctx.fail("flooded"),
            Ending::Panic => {
                // What a handler has flushed is sent even if it does not return.
                ctx.flush();
                panic!("flooded");
            }
        }
    }

    fn receive(&mut self, _: u64, _: &mut Ctx<'_, Self>) {}
}

const CHUNKS: u32 = 12;

/// Fails whenever it handles a message.
#[derive(Serialize, Deserialize)]
struct Failing;

/// Messages that chunks of the type have handled.
static HANDLED: AtomicU32 = AtomicU32::new(0);

impl Chunk for Failing {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        (0..3).for_each(|_| ctx.send(0, ()));
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        HANDLED.fetch_add(1, Ordering::Relaxed);
        ctx.fail("once");
    }
}

#[test]
fn a_chunk_that_has_failed_handles_nothing_more() {
    let result = run_array(Config::default().ranks(1), 1, |_| Failing);
    assert!(matches!(result, Err(Error::Program { .. })), "{result:?}");
    assert_eq!(HANDLED.load(Ordering::Relaxed), 1, "of three messages");
}

fn flood(ranks: u32, workers: u32, ends: u32, ending: Ending, messages: u32, pause_ms: u32) {
    let what =
        format!("{ranks} ranks x {workers} workers, chunk {ends}, {ending:?} after {messages} messages");
    let config = Config::default().ranks(ranks).workers(workers);
    let result =
        run_array_in_time(&what, config, CHUNKS, move |_| Flooder { ends, ending, messages, pause_ms });
    match (ending, result) {
        (Ending::Exit, Ok(report)) => assert_eq!(report.undelivered.messages, 0, "{what}: all are under way"),
        (Ending::Fail, Err(Error::Program { chunk, why, .. })) => {
            assert_eq!((chunk, &*why), (format!("Flooder[{ends}] of array 0"), "flooded"), "{what}");
        }
        (Ending::Panic, Err(Error::HandlerPanicked { .. })) => {}
        (_, other) => panic!("{what}: {other:?}"),
    }
}

/// Ends the run in every chunk in turn, often: which worker runs it, and what the others do then, is a matter of luck.
fn end_everywhere(ending: Ending) {
    for (ranks, workers) in [(1, 1), (3, 1), (1, 3), (2, 2), (3, 2)] {
        for (ends, pause_ms) in (0..CHUNKS).cycle().zip([0, 2, 4].into_iter().cycle()).take(36) {
            flood(ranks, workers, ends, ending, 0, pause_ms);
        }
    }
}

#[test]
fn every_worker_of_every_rank_can_end_the_run() {
    end_everywhere(Ending::Exit);
}

#[test]
fn every_worker_of_every_rank_can_fail_the_run() {
    end_everywhere(Ending::Fail);
}

#[test]
fn a_panic_of_every_worker_of_every_rank_ends_the_run() {
    end_everywhere(Ending::Panic);
}

#[test]
fn an_exit_does_not_get_stuck_behind_messages_that_nobody_will_read() {
    [0, CHUNKS - 1].into_iter().for_each(|ends| flood(2, 1, ends, Ending::Exit, 20_000, 0));
}

#[test]
fn a_panic_does_not_get_stuck_behind_messages_that_nobody_will_read() {
    [0, CHUNKS - 1].into_iter().for_each(|ends| flood(2, 1, ends, Ending::Panic, 20_000, 0));
}

/// The way a value comes out of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Gives {
    /// A chunk hears of all others and ends the run with their sum.
    One,
    /// A reduction ends the run.
    Reduction,
    /// Every chunk ends the run with its own index.
    All,
}

#[derive(Serialize, Deserialize)]
struct Giver {
    gives: Gives,
    heard: Vec<u32>,
}

impl Chunk for Giver {
    type Index = u32;
    type Message = u32;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        match self.gives {
            Gives::One => ctx.send(LAST, me),
            Gives::Reduction => {
                ctx.contribute(0, Reducer::Sum, vec![i64::from(me), -1], Target::Exit);
            }
            Gives::All => ctx.exit_with(&(me, format!("chunk {me}"))),
        }
    }

    fn receive(&mut self, from: u32, ctx: &mut Ctx<'_, Self>) {
        self.heard.push(from);
        if self.heard.len() == CHUNKS as usize {
            self.heard.sort_unstable();
            ctx.exit_with(&self.heard);
        }
    }
}

/// Threads, and simulations of so many seeds.
fn configs(seeds: u64) -> impl Iterator<Item = Config> {
    let threads = [(1, 1), (3, 1), (1, 3), (2, 2)]
        .map(|(ranks, workers)| Config::default().ranks(ranks).workers(workers).wire_always(ranks == 3));
    threads.into_iter().chain((0..seeds).map(|seed| Config::default().ranks(3).simulate(seed)))
}

fn given(config: &Config, gives: Gives) -> Report {
    let (config, what) = (config.clone(), format!("{gives:?}: {config:?}"));
    run_array_in_time(&what, config, CHUNKS, move |_| Giver { gives, heard: Vec::new() })
        .unwrap_or_else(|error| panic!("{what}: {error}"))
}

#[test]
fn a_value_comes_out_of_every_kind_of_run() {
    for config in configs(50) {
        assert_eq!(given(&config, Gives::One).value::<Vec<u32>>(), Ok((0..CHUNKS).collect()));
        let sums = given(&config, Gives::Reduction).value::<Vec<i64>>();
        assert_eq!(sums, Ok(vec![66, -i64::from(CHUNKS)]));
        let (index, name): (u32, String) = given(&config, Gives::All).value().expect("all gave one");
        assert_eq!(name, format!("chunk {index}"));
    }
}

#[test]
fn a_value_that_nobody_gave_or_of_another_type_is_an_error() {
    let said = |result: Result<u64, Error>| result.expect_err("there is no such value").to_string();
    let report = given(&Config::default().ranks(2), Gives::Reduction);
    assert_eq!(said(report.value()), "the value of the run: it is `Vec<i64>`, not `u64`");
    let exits = |_| Flooder { ends: 0, ending: Ending::Exit, messages: 0, pause_ms: 0 };
    let none = run_array(Config::default(), CHUNKS, exits);
    assert_eq!(
        said(none.and_then(|report| report.value())),
        "the value of the run: the run ended without one, expected Ctx::exit_with or Target::Exit"
    );
}

/// A tree of chunks that nobody counts: its root hears of the leaves, and in the end that there are no more.
#[derive(Serialize, Deserialize)]
struct Tree {
    depth: u32,
    leaves: u64,
    /// Leaves that the root had heard of when nothing was left to do, each time.
    counts: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
enum Growth {
    Leaf,
    Grow,
    Still,
}

impl Tree {
    fn grow(&self, ctx: &mut Ctx<'_, Self>, first: u32) {
        let (leaves, counts) = (0, Vec::new());
        for child in [first, first + 1] {
            ctx.insert(child, Tree { depth: self.depth - 1, leaves, counts: counts.clone() });
        }
    }
}

impl Chunk for Tree {
    type Index = u32;
    type Message = Growth;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        match ctx.index() {
            1 => ctx.send_at_quiescence(1, Growth::Grow),
            _ if self.depth == 0 => return ctx.send(1, Growth::Leaf),
            _ => {}
        }
        self.grow(ctx, 2 * ctx.index());
    }

    fn receive(&mut self, growth: Growth, ctx: &mut Ctx<'_, Self>) {
        match growth {
            Growth::Leaf => self.leaves += 1,
            Growth::Grow => {
                self.counts.push(self.leaves);
                // Two more of depth 4, beside the first tree.
                self.grow(ctx, 1 << 20);
                ctx.send_at_quiescence(1, Growth::Still);
            }
            Growth::Still => {
                self.counts.push(self.leaves);
                ctx.exit_with(&self.counts);
            }
        }
    }
}

#[test]
fn a_message_at_quiescence_comes_when_all_else_is_done() {
    for config in configs(100) {
        let what = format!("{config:?}");
        let root = |_: u32| Tree { depth: 5, leaves: 0, counts: Vec::new() };
        let run = move || run_array_with(config, vec![1], Placement::Hash, root);
        let report = with_timeout(&what, run).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(report.value::<Vec<u64>>(), Ok(vec![32, 64]), "{what}");
        assert_eq!(report.undelivered.messages, 0, "{what}");
    }
}

/// Goes round after round, each when all messages of the last are done.
#[derive(Serialize, Deserialize)]
struct Rounds {
    heard: u32,
}

const ROUNDS: u32 = 60;

impl Chunk for Rounds {
    type Index = u32;
    /// The round that begins; none for a message of it.
    type Message = Option<u32>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.send_at_quiescence(0, Some(0));
        }
    }

    fn receive(&mut self, begins: Option<u32>, ctx: &mut Ctx<'_, Self>) {
        let Some(round) = begins else {
            self.heard += 1;
            return;
        };
        assert_eq!(self.heard, round, "all messages of the rounds before have come");
        if round == ROUNDS {
            return ctx.exit_with(&round);
        }
        ctx.send_at_quiescence(0, Some(round + 1));
        // To itself as well.
        (0..CHUNKS).for_each(|chunk| ctx.send(chunk, None));
    }
}

#[test]
fn quiescence_comes_as_often_as_a_program_asks() {
    let threads =
        [(2, 1), (1, 3), (2, 2)].map(|(ranks, workers)| Config::default().ranks(ranks).workers(workers));
    let windows = Period::Every(Duration::from_micros(20));
    let in_windows = [2, 3].map(|ranks| {
        Config::default().ranks(ranks).balance(windows).lb("rotate").expect("there is such a strategy")
    });
    let simulated = [Config::default().ranks(3).simulate(1)];
    for config in threads.into_iter().chain(in_windows).chain(simulated) {
        let what = format!("{config:?}");
        let report = run_array_in_time(&what, config, CHUNKS, |_| Rounds { heard: 0 })
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(report.value::<u32>(), Ok(ROUNDS), "{what}");
        assert_eq!(report.messages, u64::from(CHUNKS + ROUNDS * CHUNKS + ROUNDS + 1), "{what}");
    }
}

/// The way in which messages reach no chunk, or seem to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Loss {
    /// There is no chunk of that index.
    NoSuchIndex,
    /// The chunk has removed itself, or does so before it reads them.
    Removed,
    /// The chunk has sent them to itself for later, and removes itself before.
    RemovedBefore,
    /// The chunk was inserted, and may not have come to its rank.
    Inserted,
    /// The chunk may be between two ranks.
    Migrating,
    /// A chunk that does not exist is to insert another.
    NoParent,
    /// So is one that has removed itself, or does so before it goes on after a sync.
    ParentRemoved,
}

/// Chunk 0 sends to a chunk that may not be there, then lets the last chunk end the run.
#[derive(Serialize, Deserialize)]
struct Careless {
    loss: Loss,
    hops: u32,
}

#[derive(Debug, Serialize, Deserialize)]
enum Letter {
    Note,
    Hop(u32),
    Finish,
}

const LAST: u32 = CHUNKS - 1;
const NOBODY: u32 = 999;

impl Chunk for Careless {
    type Index = u32;
    type Message = Letter;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        match self.loss {
            Loss::NoSuchIndex if me == 0 => {
                (0..3).for_each(|_| ctx.send(NOBODY, Letter::Note));
                ctx.send(NOBODY, Letter::Hop(1));
                // To the same rank, so that it comes after them.
                ctx.send(LAST, Letter::Finish);
            }
            Loss::Removed if me == 0 => {
                (0..2).for_each(|_| ctx.send(0, Letter::Note));
                ctx.send(LAST, Letter::Finish);
                ctx.remove();
            }
            Loss::RemovedBefore if me == 0 => {
                (0..2).for_each(|_| ctx.send_after(Duration::from_millis(5), Letter::Note));
                ctx.remove();
            }
            Loss::RemovedBefore if me == LAST => ctx.send_at_quiescence(LAST, Letter::Finish),
            Loss::Inserted if me == 0 => {
                ctx.insert(NOBODY, Careless { loss: Loss::Removed, hops: 0 });
                // On a third rank.
                ctx.send(CHUNKS / 2, Letter::Hop(0));
            }
            Loss::Migrating if me == 0 => ctx.send(1, Letter::Hop(0)),
            Loss::NoParent if me == 0 => {
                ctx.insert_into(ctx.array(), NOBODY + 1, Careless { loss: Loss::Removed, hops: 0 }, NOBODY);
                ctx.send(LAST, Letter::Finish);
            }
            Loss::ParentRemoved if me == 0 => {
                ctx.insert_into(ctx.array(), NOBODY, Careless { loss: Loss::Removed, hops: 0 }, 0);
                if self.hops == 0 {
                    ctx.send(LAST, Letter::Finish);
                    return ctx.remove();
                }
            }
            _ => {}
        }
        match self.loss {
            Loss::Migrating => ctx.at_sync_nowait(),
            Loss::ParentRemoved => ctx.at_sync(),
            _ => {}
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.loss == Loss::Migrating {
            return ctx.at_sync_nowait();
        }
        if ctx.index() == 0 {
            ctx.send(LAST, Letter::Finish);
            ctx.remove();
        }
    }

    fn receive(&mut self, letter: Letter, ctx: &mut Ctx<'_, Self>) {
        match letter {
            Letter::Note => {}
            Letter::Finish => ctx.exit(),
            Letter::Hop(_) if self.loss == Loss::Inserted => {
                ctx.send(NOBODY, Letter::Note);
                ctx.exit();
            }
            Letter::Hop(hops) if hops == self.hops => {
                (0..CHUNKS).for_each(|chunk| ctx.send(chunk, Letter::Note));
                ctx.exit();
            }
            Letter::Hop(hops) => {
                ctx.send((ctx.index() + 5) % CHUNKS, Letter::Note);
                ctx.send((ctx.index() + 1) % CHUNKS, Letter::Hop(hops + 1));
            }
        }
    }
}

fn undelivered(config: Config, loss: Loss, hops: u32) -> Undelivered {
    let what = format!("{loss:?}: {config:?}");
    let report = run_array_in_time(&what, config, CHUNKS, move |_| Careless { loss, hops });
    report.unwrap_or_else(|error| panic!("{what}: {error}")).undelivered
}

#[test]
fn messages_to_an_index_that_no_chunk_has_are_counted_and_named() {
    for (ranks, workers) in [(1, 1), (3, 1), (1, 2)] {
        let lost = undelivered(Config::default().ranks(ranks).workers(workers), Loss::NoSuchIndex, 0);
        assert_eq!(
            lost.to_string(),
            "4 messages were not delivered: 1 `Hop` to Careless[999] of array 0, which does not exist; \
             3 `Note` to Careless[999] of array 0, which does not exist"
        );
    }
}

#[test]
fn messages_that_a_removed_chunk_has_not_read_are_counted_and_named() {
    for loss in [Loss::Removed, Loss::RemovedBefore] {
        for config in [Config::default().ranks(1), Config::default().ranks(3), Config::default().simulate(1)]
        {
            assert_eq!(
                undelivered(config, loss, 0).to_string(),
                "2 messages were not delivered: 2 `Note` to Careless[0] of array 0, which had removed itself"
            );
        }
    }
}

#[test]
fn insertions_that_no_parent_makes_are_counted_and_named() {
    for (ranks, wire) in [(1, false), (1, true), (3, false)] {
        let config = || Config::default().ranks(ranks).period(20).wire_always(wire);
        let lost = |loss, hops| undelivered(config(), loss, hops).to_string();
        assert_eq!(
            lost(Loss::NoParent, 0),
            "1 message was not delivered: 1 `insertion of Careless[1000]` to Careless[999] of array 0, which does not \
             exist"
        );
        let removed = "1 message was not delivered: 1 `insertion of Careless[999]` to Careless[0] of array 0, which had \
                       removed itself";
        assert_eq!(lost(Loss::ParentRemoved, 0), removed);
        // It waits in a sync when it is asked.
        assert_eq!(lost(Loss::ParentRemoved, 1), removed);
    }
}

#[test]
fn messages_that_were_still_on_their_way_are_not_called_lost() {
    for seed in 0..150 {
        let config = || Config::default().simulate(seed).ranks(3).lb("random").expect("it is in the table");
        for (loss, hops) in [(Loss::Inserted, 0), (Loss::Migrating, seed as u32 % 50)] {
            assert_eq!(undelivered(config(), loss, hops), Undelivered::default(), "seed {seed}");
        }
    }
}

/// Its guest leaves mail behind, and another one takes over the index.
#[derive(Serialize, Deserialize)]
enum House {
    Host,
    First,
    Second,
}

#[derive(Serialize, Deserialize)]
enum Post {
    Left,
    Arrived,
    ForTheFirst,
    ForTheSecond,
}

impl Chunk for House {
    type Index = u32;
    type Message = Post;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        match self {
            House::Host => ctx.insert(1, House::First),
            House::First => {
                ctx.send(1, Post::ForTheFirst);
                ctx.send(0, Post::Left);
                ctx.remove();
            }
            House::Second => ctx.send(0, Post::Arrived),
        }
    }

    fn receive(&mut self, post: Post, ctx: &mut Ctx<'_, Self>) {
        match (self, post) {
            (House::Host, Post::Left) => {
                ctx.insert(1, House::Second);
                ctx.send(1, Post::ForTheSecond);
            }
            (House::Host, Post::Arrived) => {}
            (House::Second, Post::ForTheSecond) => ctx.exit(),
            _ => panic!("this is for somebody else"),
        }
    }
}

#[test]
fn mail_of_a_removed_chunk_is_not_given_to_the_next_of_its_index() {
    for ranks in [1, 2] {
        let report = with_timeout("two guests", move || {
            caribou::run(Config::default().ranks(ranks), |setup| {
                let last = Placement::by(|index: u32, ranks| if index == 0 { 0 } else { ranks - 1 });
                setup.array_with(1, last, |_| House::Host);
            })
        });
        let lost = report.unwrap_or_else(|error| panic!("{ranks} ranks: {error}")).undelivered;
        assert_eq!((lost.messages, lost.addressees[0].removed), (1, true), "{lost}");
    }
}
