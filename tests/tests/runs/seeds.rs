//! Seeds that a program makes up: messages to chunks that cannot exist wait and are told, and no chunk gets such an index.

use caribou::{Chunk, Config, Ctx, Error, Index, Reducer, Report, Section, Seed, Target, Values};
use caribou_tests::{run_array, run_array_in_time};
use serde::{Deserialize, Serialize};

/// The index of a chunk that rank `rank` started, the `number`th.
fn spawned(rank: u64, number: u64) -> Seed {
    Seed::unpack((rank + 1) << 40 | number)
}

/// What the first chunk does with an index that it has made up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Deed {
    Send,
    Multicast,
    Target,
    Exit,
    Insert,
    InsertInto,
    InsertRoot,
}

#[derive(Serialize, Deserialize)]
struct Forger {
    deed: Deed,
    seed: Seed,
}

impl Chunk for Forger {
    type Index = Seed;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Forger { deed, seed } = *self;
        let other = Forger { deed: Deed::Send, seed };
        match deed {
            Deed::Send => ctx.send(seed, ()),
            Deed::Multicast => ctx.multicast(&Section::new([seed]), &()),
            Deed::Target => ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Chunk(seed)),
            Deed::Exit => {
                ctx.send(seed, ());
                ctx.exit();
            }
            Deed::Insert => ctx.insert(seed, other),
            Deed::InsertInto => ctx.insert_into(ctx.array(), seed, other, ctx.index()),
            Deed::InsertRoot => ctx.insert_root(ctx.array(), seed, other),
        }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}

    fn reduced(_: u32, _: Values) {}
}

fn configs() -> impl Iterator<Item = (String, Config)> {
    let threads = [(1, 1), (1, 2), (3, 1)].map(|(ranks, workers)| {
        (format!("{ranks} ranks of {workers}"), Config::default().ranks(ranks).workers(workers))
    });
    let simulated =
        [1, 3].map(|ranks| (format!("{ranks} simulated"), Config::default().simulate(1).ranks(ranks)));
    threads.into_iter().chain(simulated)
}

fn run(what: &str, config: Config, deed: Deed, seed: Seed) -> Result<Report, Error> {
    run_array_in_time(what, config, 1, move |_: Seed| Forger { deed, seed })
}

/// Indices of chunks that no rank has started, most of them of ranks that are not there.
const MADE_UP: [u64; 4] = [1 << 40 | 9, 5 << 40, 1 << 63 | 1, u64::MAX];

#[test]
fn a_message_to_a_seed_of_a_rank_that_is_not_there_waits_and_is_told() {
    for seed in MADE_UP.map(Seed::unpack) {
        for deed in [Deed::Send, Deed::Multicast, Deed::Target] {
            for (name, config) in configs() {
                let what = format!("{deed:?} {seed:?}, {name}");
                let Err(Error::Stalled { waiting }) = run(&what, config, deed, seed) else {
                    panic!("{what}")
                };
                let expected = format!("Forger[{seed:?}] of array 0 does not exist; 1 message waits for it");
                assert!(waiting.contains(&expected), "{what}: {waiting:?}");
            }
        }
        for (name, config) in configs() {
            let what = format!("exit after a message to {seed:?}, {name}");
            let report =
                run(&what, config, Deed::Exit, seed).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(report.undelivered.messages, 1, "{what}");
        }
    }
}

#[test]
fn an_index_that_only_a_rank_gives_is_refused_where_a_chunk_is_inserted() {
    for seed in MADE_UP.map(Seed::unpack) {
        for deed in [Deed::Insert, Deed::InsertInto, Deed::InsertRoot] {
            for (name, config) in configs() {
                let what = format!("{deed:?} {seed:?}, {name}");
                let result = run(&what, config, deed, seed);
                let Err(Error::HandlerPanicked { chunk, panic, .. }) = result else {
                    panic!("{what}: {result:?}")
                };
                assert_eq!(chunk, "Forger[0] of array 0", "{what}");
                let expected = format!(
                    "a chunk cannot be inserted under {seed:?}, because only spawned chunks have such an index: insert \
                     it under `Seed::first`, or spawn it"
                );
                assert_eq!(panic, expected, "{what}");
            }
        }
    }
}

#[test]
fn an_array_does_not_begin_with_an_index_that_only_a_rank_gives() {
    let seed = spawned(0, 3);
    let make = move |_: Seed| Forger { deed: Deed::Send, seed };
    let result = run_array(Config::default(), vec![Seed::first(0), seed], make);
    let Err(Error::Config { setting, why }) = result else { panic!("{result:?}") };
    assert_eq!(setting, "the extent of array 0 `Forger`");
    assert_eq!(why, "only spawned chunks have index 0.3, expected indices of `Seed::first`");
}

#[test]
fn a_chunk_is_inserted_under_a_first_index() {
    for (name, config) in configs() {
        let result = run(&name, config, Deed::Insert, Seed::first(7));
        let Err(Error::Stalled { waiting }) = result else { panic!("{name}: {result:?}") };
        assert_eq!(waiting, [] as [&str; 0], "{name}: it is there, and has sent itself a message");
    }
}
