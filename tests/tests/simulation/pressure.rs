//! Back-pressure by seed: fast chunks wait for slow ones, and chunks that wait for each other go on.

use std::collections::BTreeSet;
use std::time::Duration;

use caribou::config::Period;
use caribou::lb::Rank;
use caribou::{Array, Chunk, Ctx, Placement, Reducer, Report, Target};
use caribou_tests::full_ring::FullRing;
use caribou_tests::{expected, run_array_with, simulated};
use serde::{Deserialize, Serialize};

use super::pressure_at_syncs::syncing;
use super::seeds;

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

fn chains(seed: u64, ranks: u32, limit: u64, period: Period) -> Report {
    let config = simulated(seed).ranks(ranks).balance(period).mail_limit(limit).wire_always(seed % 2 == 1);
    let report = run_array_with(config, CHAINS * STAGES, Placement::RoundRobin, |_| Stage { seen: 0 })
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(report.value(), Ok(vec![u64::from(CHAINS * STAGES) * ITEMS]));
    report
}

/// The bytes that may wait on a rank of chains whose chunks stay where they are.
fn chain_bound(limit: u64) -> u64 {
    // The windows of all other ranks are a quarter of the limit, and each chunk has run once more. A limit below what a
    // maker of items sends itself to go on is doubled until it is above.
    let bursts = u64::from(CHAINS * STAGES) * BURST;
    limit.max(2 * bursts) / 4 * 5 + bursts
}

/// Ranks and limit of a seed.
fn chain_shape(seed: u64) -> (u32, u64) {
    (1 + (seed % 4) as u32, [1, 2000, 6000][(seed / 4 % 3) as usize])
}

#[test]
fn a_chain_makes_no_more_than_its_slow_end_takes() {
    for seed in seeds(200) {
        let (ranks, limit) = chain_shape(seed);
        let waiting = chains(seed, ranks, limit, Period::Steps(0)).waiting_bytes_max;
        let bound = chain_bound(limit);
        assert!(waiting <= bound, "{waiting} bytes have waited, of {bound}");
    }
    let hardly_bounded = |seed| chains(seed, STAGES, 200_000, Period::Steps(0)).waiting_bytes_max;
    let hardly_bounded = (1..4).map(hardly_bounded).max();
    assert!(hardly_bounded > Some(40_000), "{hardly_bounded:?}: there is something to bound");
}

#[test]
fn a_chain_whose_chunks_move_makes_no_more_than_twice_that() {
    let mut moved = 0;
    for seed in seeds(200) {
        let (ranks, limit) = chain_shape(seed);
        for period in [Period::Auto, Period::Every(Duration::from_micros(200))] {
            let report = chains(seed, ranks, limit, period);
            let (waiting, moves) = (report.waiting_bytes_max, report.sync_totals.moved);
            // A chunk brings what waits for it, which was within the bound of its old rank, to a rank that has its own.
            // A rank that stalls with both allows itself as much.
            let bound = chain_bound(limit) * if moves > 0 { 2 } else { 1 };
            assert!(waiting <= bound, "{period}, {moves} moves: {waiting} bytes have waited, of {bound}");
            moved += moves;
        }
    }
    // A single seed, as when a failure is repeated, may move nothing.
    assert!(moved >= expected(1, 200), "some chunks move");
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
        let config = simulated(seed).ranks(ranks).mail_limit(limit);
        let report = caribou::run(config, |setup| {
            setup.array(RING.members, |_| RING.member());
            if watched {
                setup.array(2, |_| Watch);
            }
        });
        let report = report.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(report.value(), Ok(vec![RING.passed()]));
    }
}

const CRIERS: u32 = 2;
const NEWS: u64 = 40;

/// What a village is like.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Village {
    villagers: u32,
    criers: u32,
    /// Bytes of news. Where they are few the letters of those that hear them count.
    bytes: usize,
    /// Criers are thanked.
    thanks: bool,
    /// All come to syncs, where they are moved, and do not wait there.
    moves: bool,
}

/// The first chunks tell news to all, which may thank them; all but one hear them fast.
#[derive(Serialize, Deserialize)]
struct Villager {
    village: Village,
    told: u64,
    /// News of each crier, and thanks.
    heard: Vec<u64>,
    thanked: u64,
}

#[derive(Serialize, Deserialize)]
enum Saying {
    Next,
    News { from: u32, number: u64, pad: Vec<u8> },
    Thanks { pad: Vec<u8> },
}

impl Villager {
    fn new(village: Village) -> Villager {
        Villager { village, told: 0, heard: vec![0; village.criers as usize], thanked: 0 }
    }

    fn done_if_all_came(&self, ctx: &mut Ctx<'_, Self>) {
        let is_thanked = self.village.thanks && ctx.index() < self.village.criers;
        let thanks = if is_thanked { u64::from(self.village.villagers) * NEWS } else { 0 };
        if self.thanked == thanks && self.heard.iter().all(|&heard| heard == NEWS) {
            ctx.contribute(0, Reducer::Sum, vec![NEWS], Target::Exit);
        }
    }
}

impl Chunk for Villager {
    type Index = u32;
    type Message = Saying;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() < self.village.criers {
            self.receive(Saying::Next, ctx);
        }
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn receive(&mut self, saying: Saying, ctx: &mut Ctx<'_, Self>) {
        match saying {
            Saying::Next => {
                let pad = vec![7; self.village.bytes];
                ctx.broadcast(&Saying::News { from: ctx.index(), number: self.told, pad });
                self.told += 1;
                ctx.charge(10);
                if self.told < NEWS {
                    ctx.send(ctx.index(), Saying::Next);
                }
            }
            Saying::News { from, number, pad } => {
                assert_eq!((self.heard[from as usize], pad), (number, vec![7; self.village.bytes]));
                self.heard[from as usize] += 1;
                ctx.charge(if ctx.index() == self.village.criers { 1_000_000 } else { 10 });
                if self.village.thanks {
                    ctx.send(from, Saying::Thanks { pad: vec![0; PAD] });
                }
                let all = self.heard.iter().sum::<u64>();
                if self.village.moves && all.is_multiple_of(NEWS / 4) && all < NEWS {
                    ctx.at_sync_nowait();
                }
                self.done_if_all_came(ctx);
            }
            Saying::Thanks { pad } => {
                assert_eq!(pad.len(), PAD);
                self.thanked += 1;
                self.done_if_all_came(ctx);
            }
        }
    }
}

fn village(seed: u64, ranks: u32, limit: u64, village: Village) -> Report {
    let config = simulated(seed).ranks(ranks).mail_limit(limit).period(1);
    let strategy = if village.moves { "rotate" } else { "none" };
    let config = config.lb(strategy).expect("it is listed").wire_always(seed / 5 % 2 == 1);
    let Village { villagers, .. } = village;
    let report = run_array_with(config, villagers, Placement::RoundRobin, move |_| Villager::new(village))
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(report.value(), Ok(vec![u64::from(villagers) * NEWS]));
    report
}

const LONG_NEWS: Village = Village { villagers: 7, criers: CRIERS, bytes: 2000, thanks: false, moves: false };
const SHORT_NEWS: Village = Village { villagers: 40, bytes: 8, ..LONG_NEWS };

#[test]
fn a_chunk_that_broadcasts_makes_no_more_than_the_slowest_rank_takes() {
    for seed in seeds(126) {
        let (ranks, limit) = (1 + (seed / 6 % 7) as u32, [20_000, 40_000][(seed / 42 % 2) as usize]);
        let news = [LONG_NEWS, SHORT_NEWS][(seed / 2 % 2) as usize];
        let waiting = village(seed, ranks, limit, news).waiting_bytes_max;
        // As they wait on a rank, with a letter for each chunk there, and a word of each crier to itself. A worker tells an
        // eighth of the limit late that it counted it.
        let burst = news.bytes as u64 + 150 * (2 + u64::from(news.villagers.div_ceil(ranks)));
        let bound = limit + limit / 8 + limit / 4 + u64::from(CRIERS) * burst;
        assert!(waiting <= bound, "{waiting} bytes have waited, of {bound}");
    }
    for news in [LONG_NEWS, SHORT_NEWS] {
        let hardly_bounded = (1..4).map(|seed| village(seed, 3, 1_000_000, news).waiting_bytes_max).max();
        assert!(hardly_bounded > Some(40_000), "{hardly_bounded:?}: there is something to bound");
    }
}

#[test]
fn all_tell_all_where_hardly_anything_may_wait() {
    for seed in seeds(126) {
        let (ranks, limit) = (1 + (seed / 6 % 7) as u32, [1, 700, 9000][(seed / 42 % 3) as usize]);
        let criers = if seed % 5 < 2 { CRIERS } else { LONG_NEWS.villagers };
        let (thanks, moves) = (seed / 2 % 2 == 0, seed / 4 % 3 == 0);
        village(seed, ranks, limit, Village { criers, thanks, moves, ..LONG_NEWS });
    }
}

/// How one that makes items goes on, without a message to itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum GoesOn {
    /// It inserts another, which goes on for it, before or after it has sent an item.
    AsAnother { sends_first: bool },
    /// It moves to the next rank without the consumer after some items, and waits there at a sync or passes it.
    Elsewhere { waits: bool },
    /// It has kept a word for each item, until it resumes.
    WithKept,
}

const MAKERS: u32 = 3;
/// Items that a maker sends before it moves.
const BATCH: u64 = 4;
/// Those of an item, and of a word of a maker to itself, with their letters.
const MADE_BYTES: u64 = 372;
const WORD_BYTES: u64 = 112;

/// Makes items for one slow consumer.
#[derive(Clone, Serialize, Deserialize)]
struct Maker {
    goes_on: GoesOn,
    consumer: Array<Consumer>,
    made: u64,
}

impl Maker {
    fn send_item(&mut self, ctx: &mut Ctx<'_, Self>) {
        let item = Made { by: ctx.index() % MAKERS, number: self.made, pad: vec![0; PAD] };
        ctx.send_to(self.consumer, 0, item);
        self.made += 1;
        ctx.charge(10);
    }

    fn go_on(&mut self, ctx: &mut Ctx<'_, Self>) {
        match self.goes_on {
            GoesOn::AsAnother { sends_first } => {
                let next = Maker { made: self.made + 1, ..self.clone() };
                if sends_first {
                    self.send_item(ctx);
                }
                if next.made < ITEMS {
                    ctx.insert(ctx.index() + MAKERS, next);
                }
                if !sends_first {
                    self.send_item(ctx);
                }
                ctx.remove();
            }
            GoesOn::Elsewhere { waits } => {
                (0..BATCH).for_each(|_| self.send_item(ctx));
                if self.made < ITEMS {
                    ctx.migrate_to(Rank((ctx.rank().0 + 1) % (ctx.ranks() - 1)));
                    if waits { ctx.at_sync() } else { ctx.at_sync_nowait() }
                }
            }
            GoesOn::WithKept => {}
        }
    }
}

impl Chunk for Maker {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.goes_on == GoesOn::WithKept {
            (0..ITEMS).for_each(|_| ctx.send(ctx.index(), ()));
            ctx.at_sync();
        }
        self.go_on(ctx);
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.go_on(ctx);
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        self.send_item(ctx);
    }
}

#[derive(Serialize, Deserialize)]
struct Made {
    by: u32,
    number: u64,
    pad: Vec<u8>,
}

#[derive(Default, Serialize, Deserialize)]
struct Consumer {
    came: BTreeSet<(u32, u64)>,
    /// The last of each maker.
    last: [Option<u64>; MAKERS as usize],
    /// Makers stay the same: so what each sends comes in order.
    in_order: bool,
}

impl Chunk for Consumer {
    type Index = u32;
    type Message = Made;

    fn receive(&mut self, Made { by, number, pad }: Made, ctx: &mut Ctx<'_, Self>) {
        assert!(self.came.insert((by, number)) && pad.len() == PAD, "items come once");
        let before = self.last[by as usize].replace(number);
        assert!(!self.in_order || before < Some(number), "items come in order");
        ctx.charge(1_000_000);
        if self.came.len() as u64 == u64::from(MAKERS) * ITEMS {
            ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Exit);
        }
    }
}

fn made(seed: u64, ranks: u32, limit: u64, goes_on: GoesOn) -> Report {
    caribou::run(syncing(seed, ranks, limit), |setup| {
        let last = Placement::by(|_: u32, ranks| ranks - 1);
        let in_order = !matches!(goes_on, GoesOn::AsAnother { .. });
        let consumer =
            setup.array_without_sync(1, last, move |_| Consumer { in_order, ..Consumer::default() });
        // Not where the consumer is: a worker that is slow makes slowly.
        let others = Placement::by(|index: u32, ranks| index % (ranks - 1));
        setup.array_with(MAKERS, others, move |_| Maker { goes_on, consumer, made: 0 });
    })
    .unwrap_or_else(|error| panic!("seed {seed}, {goes_on:?}: {error}"))
}

#[test]
fn a_chunk_that_goes_on_as_another_elsewhere_or_with_what_it_kept_waits_as_well() {
    let [before, behind] = [true, false].map(|sends_first| GoesOn::AsAnother { sends_first });
    let [waits, passes] = [true, false].map(|waits| GoesOn::Elsewhere { waits });
    let ways = [before, behind, waits, passes, GoesOn::WithKept];
    for seed in seeds(200) {
        let goes_on = ways[(seed / 2 % 5) as usize];
        let (ranks, limit) = (2 + (seed / 10 % 3) as u32, 10_000);
        let waiting = made(seed, ranks, limit, goes_on).waiting_bytes_max;
        // Beside the windows of other ranks each maker adds what it sends at once, and so may the one that goes on for it, or
        // itself on another rank. What a worker has not told is an eighth of the limit.
        let at_once = match goes_on {
            GoesOn::AsAnother { .. } => 2 * MADE_BYTES,
            GoesOn::Elsewhere { .. } => u64::from(ranks - 1) * BATCH * MADE_BYTES,
            GoesOn::WithKept => ITEMS * WORD_BYTES,
        };
        let bound = limit / 4 * 5 + limit / 8 + u64::from(MAKERS) * at_once;
        assert!(waiting <= bound, "{goes_on:?}: {waiting} bytes have waited, of {bound}");
    }
    let accumulate = [before, behind, GoesOn::WithKept];
    let hardly_bounded = accumulate.map(|goes_on| made(1, 3, 200_000, goes_on).waiting_bytes_max);
    assert!(
        hardly_bounded.iter().all(|&waiting| waiting > 25_000),
        "{hardly_bounded:?}: all have something to bound"
    );
}
