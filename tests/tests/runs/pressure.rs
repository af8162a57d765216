//! A consumer that is slow, and producers that are not: they wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use caribou::config::Period;
use caribou::lb::Rank;
use caribou::{Array, Chunk, Config, Ctx, Placement, Reducer, Target, Values};
use caribou_tests::full_ring::FullRing;
use caribou_tests::{run_array, run_array_in_time, with_timeout};
use serde::{Deserialize, Serialize};

const PRODUCERS: u32 = 3;
const ITEMS: u64 = 10_000;
const ITEM_BYTES: usize = 1024;
const LIMIT: u64 = 1 << 20;
/// Bytes of the letter of an item and of the word by which a producer goes on, at most.
const BURST: u64 = ITEM_BYTES as u64 + 600;

/// Bytes of items that exist, now and at most.
#[derive(Debug, Default)]
struct Alive {
    now: AtomicI64,
    most: AtomicI64,
}

impl Alive {
    fn add_item(&self) {
        let now = self.now.fetch_add(ITEM_BYTES as i64, Ordering::Relaxed) + ITEM_BYTES as i64;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn remove(&self, bytes: usize) {
        self.now.fetch_sub(bytes as i64, Ordering::Relaxed);
    }

    fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed).unsigned_abs()
    }

    /// Tells whether there have been so many at a time that a limit matters.
    fn were_many(&self) -> bool {
        self.most() > 500 * ITEM_BYTES as u64
    }
}

/// The time that a slow chunk needs for an item.
fn take_long<C: Chunk>(ctx: &Ctx<'_, C>) {
    let done_ns = ctx.elapsed_ns() + 20_000;
    while ctx.elapsed_ns() < done_ns {
        std::hint::spin_loop();
    }
}

/// An item, counted for as long as it exists.
#[derive(Serialize, Deserialize)]
struct Load {
    /// In bulk, so that a send that weighs its message takes far less time than the consumer: a byte at a time it does not.
    #[serde(with = "caribou::bulk")]
    bytes: Vec<u8>,
    #[serde(skip)]
    alive: Option<Arc<Alive>>,
}

impl Load {
    fn new(alive: &Arc<Alive>) -> Load {
        alive.add_item();
        Load { bytes: vec![7; ITEM_BYTES], alive: Some(alive.clone()) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(alive) = &self.alive {
            alive.remove(self.bytes.len());
        }
    }
}

/// Items that a producer makes at once that moves.
const BATCH: u64 = 50;

#[derive(Serialize, Deserialize)]
struct Producer {
    consumer: Array<Consumer>,
    made: u64,
    /// It makes some items at once, and moves to another rank after them.
    moves: bool,
}

impl Chunk for Producer {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.receive((), ctx);
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.receive((), ctx);
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        for _ in 0..if self.moves { BATCH } else { 1 } {
            let load = Load::new(ctx.service());
            ctx.send_to(self.consumer, 0, Item::Load { from: ctx.index(), number: self.made, load });
            self.made += 1;
        }
        if self.made == ITEMS {
            return;
        }
        if self.moves {
            ctx.migrate_to(Rank(1 + ctx.rank().0 % (ctx.ranks() - 1)));
            ctx.at_sync();
        } else {
            ctx.send(ctx.index(), ());
        }
    }
}

/// Needs long for each item.
#[derive(Default, Serialize, Deserialize)]
struct Consumer {
    /// So much may wait that its own messages are behind all items.
    unlimited: bool,
    /// It waits at a sync after some items.
    pauses: bool,
    next: [u64; PRODUCERS as usize],
    /// Looks at itself while it was waited for, and results of reductions.
    looks: u64,
    counted: u64,
}

#[derive(Serialize, Deserialize)]
enum Item {
    Load { from: u32, number: u64, load: Load },
    Look,
    Counted,
}

impl Chunk for Consumer {
    type Index = u32;
    type Message = Item;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send_after(Duration::from_millis(1), Item::Look);
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn receive(&mut self, item: Item, ctx: &mut Ctx<'_, Self>) {
        match item {
            Item::Load { from, number, load } => {
                assert_eq!(load.bytes, [7; ITEM_BYTES]);
                assert_eq!(self.next[from as usize], number, "items come once, and in order");
                self.next[from as usize] += 1;
                take_long(ctx);
                if self.pauses && self.next.iter().sum::<u64>().is_multiple_of(BATCH) {
                    ctx.at_sync();
                }
                if self.next == [ITEMS; PRODUCERS as usize] {
                    let get_through = self.looks > 3 && self.counted > 3;
                    assert!(get_through || self.unlimited, "the runtime's own messages get through");
                    ctx.exit();
                }
            }
            Item::Look => {
                self.looks += 1;
                ctx.send_after(Duration::from_millis(1), Item::Look);
                ctx.contribute(0, Reducer::Sum, vec![1u64], Target::All);
            }
            Item::Counted => self.counted += 1,
        }
    }

    fn reduced(_: u32, _: Values) -> Item {
        Item::Counted
    }
}

/// The chunks that come to syncs.
#[derive(Clone, Copy, PartialEq)]
enum Syncing {
    Nobody,
    /// Producers move.
    Producers,
    /// Messages that come meanwhile are kept.
    Consumer,
}

/// The most bytes of items that existed at once, and that waited on a rank as the report has it.
fn flood(ranks: u32, workers: u32, limit: u64, syncing: Syncing) -> (u64, u64) {
    let (moves, pauses) = (syncing == Syncing::Producers, syncing == Syncing::Consumer);
    let alive = Arc::new(Alive::default());
    let service = alive.clone();
    let config = Config::default().ranks(ranks).workers(workers).period(20).mail_limit(limit);
    let config = config.lb("program").expect("it is listed");
    let report = caribou::run(config, move |setup| {
        setup.service(service.clone());
        let unlimited = limit == u64::MAX;
        let consumer = move |_| Consumer { unlimited, pauses, ..Consumer::default() };
        let consumer = if pauses {
            setup.array_with(1, Placement::RoundRobin, consumer)
        } else {
            setup.array_without_sync(1, Placement::RoundRobin, consumer)
        };
        let producer = move |_| Producer { consumer, made: 0, moves };
        if pauses {
            setup.array_without_sync(PRODUCERS, Placement::RoundRobin, producer);
        } else {
            setup.array_with(PRODUCERS, Placement::RoundRobin, producer);
        }
    });
    let report = report.expect("all items are handled");
    assert_eq!(report.undelivered.messages, 0);
    (alive.most(), report.waiting_bytes_max)
}

#[test]
fn fast_producers_wait_for_a_slow_consumer_within_a_rank_and_from_another() {
    let shapes = [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(ranks, workers)| (ranks, workers, Syncing::Nobody));
    let at_syncs = [(1, 2), (2, 1)].map(|(ranks, workers)| (ranks, workers, Syncing::Consumer));
    for (ranks, workers, syncing) in shapes.into_iter().chain(at_syncs) {
        let (alive, waited) = flood(ranks, workers, LIMIT, syncing);
        // What waits, the windows of other ranks, and what each producer may add to either.
        let bound = LIMIT / 4 * 5 + u64::from(PRODUCERS) * BURST;
        // A worker tells only now and then what it has counted: an eighth of the limit, or 64 KiB.
        let untold = u64::from(workers) * (64 << 10);
        let what = format!("{ranks} ranks of {workers}: {alive} bytes existed, {waited} waited");
        assert!(alive <= bound + untold && waited <= bound + untold, "{what}, of {bound}");
    }
}

#[test]
fn a_chunk_that_moves_each_time_that_it_has_to_wait_waits_on_its_new_rank() {
    let (alive, waited) = flood(3, 1, LIMIT, Syncing::Producers);
    // As above, with a batch of each producer on either of the two ranks that it moves between.
    let bound = LIMIT / 4 * 5 + 2 * u64::from(PRODUCERS) * BATCH * BURST + (64 << 10);
    assert!(alive <= bound && waited <= bound, "{alive} bytes existed, {waited} waited, of {bound}");
}

#[test]
fn without_a_limit_they_do_not_wait() {
    let (alive, waited) = flood(1, 2, u64::MAX, Syncing::Nobody);
    assert!(alive > 2 * LIMIT && waited > 2 * LIMIT, "{alive} bytes existed, {waited} waited");
}

/// Set when the chunk that floods are for departs, which takes it long.
static DEPARTS: AtomicBool = AtomicBool::new(false);

/// Floods another while that is on its way.
#[derive(Serialize, Deserialize)]
struct Pursuer {
    traveller: Array<Traveller>,
    made: u64,
}

impl Chunk for Pursuer {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send(0, ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        if DEPARTS.load(Ordering::Relaxed) {
            ctx.send_to(self.traveller, 0, Load::new(ctx.service()));
            self.made += 1;
        }
        if self.made < ITEMS {
            ctx.send(0, ());
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Traveller {
    come: u64,
}

impl Chunk for Traveller {
    type Index = u32;
    type Message = Load;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.migrate_to(Rank(2));
        ctx.at_sync();
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn on_depart(&mut self) {
        DEPARTS.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
    }

    fn receive(&mut self, _: Load, ctx: &mut Ctx<'_, Self>) {
        self.come += 1;
        if self.come == ITEMS {
            ctx.exit();
        }
    }
}

#[test]
fn a_chunk_that_sends_to_one_on_its_way_waits_until_that_one_has_landed() {
    let alive = Arc::new(Alive::default());
    let service = alive.clone();
    let report = caribou::run(Config::default().ranks(3).period(20).mail_limit(LIMIT), move |setup| {
        setup.service(service.clone());
        let traveller = setup.array_with(1, Placement::by(|_: u32, _| 1), |_| Traveller { come: 0 });
        setup.array_without_sync(1, Placement::Block, move |_| Pursuer { traveller, made: 0 });
    });
    let waited = report.expect("all items come").waiting_bytes_max;
    let bound = LIMIT / 4 * 5 + BURST + (64 << 10);
    let what = format!("{} bytes existed, {waited} waited, of {bound}", alive.most());
    assert!(alive.most() <= bound && waited <= bound, "{what}");
    assert!(alive.most() > LIMIT / 2, "{what}: they came while it was away");
}

/// Numbers that travel beside the bytes of their message.
const LONG_BYTES: usize = 64 << 10;
/// Messages with such numbers: 6 MB, several times the limit.
const LONG_ITEMS: u64 = 100;

/// The second of two sends the first what it has to wait with.
#[derive(Serialize, Deserialize)]
struct Long {
    come: u64,
}

#[derive(Serialize, Deserialize)]
enum LongItem {
    Numbers(#[serde(with = "caribou::bulk")] Vec<u8>),
    Next { made: u64 },
}

impl Chunk for Long {
    type Index = u32;
    type Message = LongItem;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 1 {
            ctx.send(1, LongItem::Next { made: 0 });
        }
    }

    fn receive(&mut self, item: LongItem, ctx: &mut Ctx<'_, Self>) {
        match item {
            LongItem::Next { made: LONG_ITEMS } => {}
            LongItem::Next { made } => {
                ctx.send(0, LongItem::Numbers(vec![7; LONG_BYTES]));
                ctx.send(1, LongItem::Next { made: made + 1 });
            }
            LongItem::Numbers(_) => {
                std::thread::sleep(Duration::from_millis(1));
                self.come += 1;
                if self.come == LONG_ITEMS {
                    ctx.exit();
                }
            }
        }
    }
}

#[test]
fn numbers_that_travel_beside_the_bytes_of_a_message_wait_like_those_in_it() {
    for wire in [false, true] {
        // A chunk that moved would bring the messages that wait for it.
        let config = Config::default().ranks(2).mail_limit(LIMIT).wire_always(wire).lb("none");
        let report = run_array(config.expect("it is in the table"), 2, |_| Long { come: 0 });
        let waited = report.expect("all come").waiting_bytes_max;
        let item = LONG_BYTES as u64 + BURST;
        assert!((LIMIT..LIMIT / 4 * 5 + 4 * item).contains(&waited), "encoded: {wire}: {waited} bytes");
    }
}

/// The first floods the second, which handles nothing until the third, on the rank of the first, has gone on for a while.
#[derive(Serialize, Deserialize)]
struct Beside;

#[derive(Serialize, Deserialize)]
enum Small {
    Flood { left: u32 },
    Drop { left: u32 },
    Tick { left: u32 },
}

impl Chunk for Beside {
    type Index = u32;
    type Message = Small;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        match ctx.index() {
            0 => ctx.send(0, Small::Flood { left: 400_000 }),
            1 => {}
            _ => ctx.send(2, Small::Tick { left: 300 }),
        }
    }

    fn receive(&mut self, message: Small, ctx: &mut Ctx<'_, Self>) {
        let went_on: &Arc<AtomicBool> = ctx.service();
        match message {
            Small::Flood { left: 0 } => {}
            Small::Flood { left } => {
                ctx.send(1, Small::Drop { left: left - 1 });
                ctx.send(0, Small::Flood { left: left - 1 });
            }
            Small::Drop { left } => {
                while !went_on.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                if left == 0 {
                    ctx.exit();
                }
            }
            Small::Tick { left: 0 } => went_on.store(true, Ordering::Relaxed),
            Small::Tick { left } => ctx.send_after(Duration::from_millis(1), Small::Tick { left: left - 1 }),
        }
    }
}

#[test]
fn a_chunk_that_sends_nothing_to_a_slow_rank_goes_on_beside_one_that_does() {
    let run = || {
        let went_on = Arc::new(AtomicBool::new(false));
        caribou::run(Config::default().ranks(2), |setup| {
            setup.service(went_on.clone());
            setup.array_with(3, Placement::RoundRobin, |_| Beside);
        })
    };
    with_timeout("a rank of which one chunk floods another", run).expect("all has come");
}

/// The first broadcasts items to all, and the second needs long for each.
#[derive(Serialize, Deserialize)]
struct Crier {
    made: u64,
    heard: u64,
}

#[derive(Serialize, Deserialize)]
enum Cry {
    Next,
    News {
        number: u64,
        #[serde(with = "caribou::bulk")]
        bytes: Vec<u8>,
    },
}

impl Chunk for Crier {
    type Index = u32;
    type Message = Cry;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.send(0, Cry::Next);
        }
    }

    fn receive(&mut self, cry: Cry, ctx: &mut Ctx<'_, Self>) {
        // Bytes of broadcasts that were made, and that the slow chunk has not heard.
        let unheard: &Arc<Alive> = ctx.service();
        match cry {
            Cry::Next => {
                unheard.add_item();
                ctx.broadcast(&Cry::News { number: self.made, bytes: vec![7; ITEM_BYTES] });
                self.made += 1;
                if self.made < ITEMS {
                    ctx.send(0, Cry::Next);
                }
            }
            Cry::News { number, bytes } => {
                assert_eq!((number, bytes.len()), (self.heard, ITEM_BYTES), "news come once, and in order");
                self.heard += 1;
                if ctx.index() == 1 {
                    unheard.remove(bytes.len());
                    // Longer until it is behind, however slow the machine lets the first chunk be.
                    match unheard.were_many() {
                        true => take_long(ctx),
                        false => std::thread::sleep(Duration::from_millis(1)),
                    }
                }
                if self.heard == ITEMS {
                    ctx.contribute(0, Reducer::Sum, vec![self.heard], Target::Exit);
                }
            }
        }
    }
}

/// What waits on a rank at most while one of four chunks broadcasts to them and another is slow.
fn broadcast_bound(workers: u32) -> u64 {
    // What waits, with a letter for each of three other chunks that may be here, a window under way, what the crier adds
    // to it at once, and what a worker has not told.
    LIMIT / 4 * 5 + 4 * BURST + u64::from(workers) * (64 << 10)
}

#[test]
fn a_chunk_that_broadcasts_waits_for_slow_chunks_on_any_rank() {
    let shapes = [(1, 2, false), (2, 1, false), (2, 1, true), (3, 2, false)];
    let periods = [Period::Steps(0), Period::Auto];
    for ((ranks, workers, wire), period) in
        shapes.into_iter().flat_map(|shape| periods.map(|period| (shape, period)))
    {
        let unheard = Arc::new(Alive::default());
        let service = unheard.clone();
        let config = Config::default().ranks(ranks).workers(workers).mail_limit(LIMIT).wire_always(wire);
        let report = caribou::run(config.balance(period), move |setup| {
            setup.service(service.clone());
            setup.array_with(4, Placement::RoundRobin, |_| Crier { made: 0, heard: 0 });
        });
        let report = report.expect("all news are heard");
        assert_eq!(report.value(), Ok(vec![4 * ITEMS]));
        let (most, waited, moves) = (unheard.most(), report.waiting_bytes_max, report.sync_totals.moved);
        let bound = broadcast_bound(workers);
        let what = format!("{ranks} ranks of {workers}, {period}, {moves} moves: {most} bytes were unheard");
        assert!(period == Period::Auto || moves == 0, "{what}");
        assert!(unheard.were_many(), "{what}: there is something to bound");
        // A chunk that moves lets the crier be a window further ahead. It brings what waits for it to a rank that has its
        // own.
        assert!(most <= bound + moves * LIMIT / 4, "{what}, {waited} waited, of {bound}");
        assert!(waited <= bound + bound / 2 + moves * bound, "{what}, {waited} waited");
    }
}

const RING: FullRing = FullRing { members: 12, tokens: 20, hops: 200, bytes: ITEM_BYTES };

#[test]
fn chunks_that_wait_for_each_other_go_on() {
    for (ranks, workers, limit) in [(1, 1, 1), (1, 3, 1), (1, 3, 5000), (2, 2, 1), (2, 2, 5000), (4, 1, 5000)]
    {
        let what = format!("{ranks} ranks of {workers}, with room for {limit} bytes");
        let config = Config::default().ranks(ranks).workers(workers).mail_limit(limit);
        let report = run_array_in_time(&what, config, RING.members, |_| RING.member()).expect("it ends");
        assert_eq!(report.value(), Ok(vec![RING.passed()]), "{what}");
    }
}
