//! Back-pressure by seed: whoever is fast waits for whoever is slow, and who wait for each other go on.

use std::time::Duration;

use caribou::{Chunk, Config, Ctx, Placement, Reducer, Report, Target};
use caribou_tests::full_ring::FullRing;
use serde::{Deserialize, Serialize};

use super::{repeat, seeds};

const CHAINS: u32 = 3;
const STAGES: u32 = 3;
const ITEMS: u64 = 80;
/// Bytes beside an item; with its letter it takes up some 350.
const PAD: usize = 200;
/// What a handler of a stage leaves at most: an item and a word to itself.
const BURST: u64 = 800;

/// A stage of a chain: the first makes items, the others pass them on, the last one is slow.
#[derive(Serialize, Deserialize)]
struct Stage {
    seen: u64,
}

#[derive(Serialize, Deserialize)]
enum Item {
    Next,
    Item { number: u64, pad: Vec<u8> },
}

impl Stage {
    fn pass_on(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (number, stage) = (self.seen, ctx.index() % STAGES);
        self.seen += 1;
        if stage + 1 < STAGES {
            ctx.send(ctx.index() + 1, Item::Item { number, pad: vec![0; PAD] });
        }
        ctx.charge(if stage + 1 < STAGES { 10 } else { 1_000_000 });
        if self.seen == ITEMS {
            ctx.contribute(0, Reducer::Sum, vec![self.seen], Target::Exit);
        } else if stage == 0 {
            ctx.send(ctx.index(), Item::Next);
        }
    }
}

impl Chunk for Stage {
    type Index = u32;
    type Message = Item;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index().is_multiple_of(STAGES) {
            self.pass_on(ctx);
        }
    }

    fn receive(&mut self, item: Item, ctx: &mut Ctx<'_, Self>) {
        if let Item::Item { number, pad } = item {
            assert_eq!((number, pad.len()), (self.seen, PAD), "items come once, and in order");
        }
        self.pass_on(ctx);
    }
}

fn chains(seed: u64, ranks: u32, limit: u64) -> Report {
    let config = Config::default().simulate(seed).ranks(ranks).mail_limit(limit);
    let report = caribou::run(config.wire_always(seed % 2 == 1), |setup| {
        setup.array_with(CHAINS * STAGES, Placement::RoundRobin, |_| Stage { seen: 0 });
    })
    .unwrap_or_else(|error| panic!("seed {seed}: {error}\nrepeat with: {}", repeat(seed)));
    let sums: Vec<u64> = report.value().expect("all chunks have contributed");
    assert_eq!(sums, [u64::from(CHAINS * STAGES) * ITEMS]);
    report
}

#[test]
fn a_chain_makes_no_more_than_its_slow_end_takes() {
    for seed in seeds(200) {
        let (ranks, limit) = (1 + (seed % 4) as u32, [1, 2000, 6000][(seed / 4 % 3) as usize]);
        let waiting = chains(seed, ranks, limit).waiting_bytes_max;
        // The windows of all other ranks are a quarter of the limit, and each chunk has run once more. A limit below what a
        // maker of items sends itself to go on is doubled until it is above.
        let bursts = u64::from(CHAINS * STAGES) * BURST;
        let bound = limit.max(2 * bursts) / 4 * 5 + bursts;
        let repeat = repeat(seed);
        assert!(
            waiting <= bound,
            "seed {seed}: {waiting} bytes have waited, of {bound}; repeat with: {repeat}"
        );
    }
    let hardly_bounded = (1..4).map(|seed| chains(seed, STAGES, 200_000).waiting_bytes_max).max();
    assert!(hardly_bounded > Some(40_000), "{hardly_bounded:?}: there is something to bound");
}

const RING: FullRing = FullRing { members: 8, tokens: 10, hops: 30, bytes: PAD };

/// Looks at a clock for as long as the run lasts: there is always something left to do.
#[derive(Serialize, Deserialize)]
struct Watch;

impl Chunk for Watch {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.receive((), ctx);
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.send_after(Duration::from_micros(50), ());
    }
}

#[test]
fn a_ring_of_full_mailboxes_goes_on_also_where_somebody_else_is_busy() {
    for seed in seeds(200) {
        let (ranks, limit) = (1 + (seed % 5) as u32, [1, 700, 4000][(seed / 5 % 3) as usize]);
        let watched = seed / 2 % 2 == 1;
        let config = Config::default().simulate(seed).ranks(ranks).mail_limit(limit);
        let report = caribou::run(config, |setup| {
            setup.array(RING.members, |_| RING.member());
            if watched {
                setup.array(2, |_| Watch);
            }
        });
        let repeat = repeat(seed);
        let report = report.unwrap_or_else(|error| panic!("seed {seed}: {error}\nrepeat with: {repeat}"));
        let sums: Vec<u64> = report.value().expect("all members have contributed");
        assert_eq!(sums, [RING.passed()], "seed {seed}; repeat with: {repeat}");
    }
}
