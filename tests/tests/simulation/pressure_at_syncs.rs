//! Back-pressure by seed where the slow come to syncs: what they keep meanwhile fills their ranks as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caribou::lb::Rank;
use caribou::{Array, Chunk, Config, Ctx, Placement, Reducer, Report, Target};
use caribou_tests::{run_array_with, simulated};
use serde::{Deserialize, Serialize};

use super::seeds;

const READERS: u32 = 2;
const ITEMS: u64 = 200;
/// Bytes beside an item; with its letter it takes up some 320.
const PAD: usize = 200;
const ITEM_BYTES: u64 = 330;

/// Items that were read, by reader; and the most that one of them had yet to read of those that were made.
#[derive(Default)]
struct Progress {
    read: [AtomicU64; READERS as usize],
    unread_max: AtomicU64,
}

impl Progress {
    fn makes(&self, made: u64) {
        let unread = self.read.iter().map(|read| made - read.load(Ordering::Relaxed)).max();
        self.unread_max.fetch_max(unread.unwrap_or_default(), Ordering::Relaxed);
    }
}

/// How readers come to their syncs, and how items come to them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Reading {
    /// Items that one handles between two syncs.
    phase: u64,
    /// They wait at a sync, and do not pass it.
    waits: bool,
    /// They move to the next rank with each.
    moves: bool,
    /// Items are told to all of them.
    broadcasts: bool,
}

/// Makes items as fast as it may, and comes to no syncs.
#[derive(Serialize, Deserialize)]
struct Feeder {
    readers: Array<Reader>,
    made: u64,
    broadcasts: bool,
}

impl Chunk for Feeder {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send(0, ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        let item = || Item { number: self.made, pad: vec![0; PAD] };
        if self.broadcasts {
            ctx.broadcast_to(self.readers, &item());
        } else {
            (0..READERS).for_each(|reader| ctx.send_to(self.readers, reader, item()));
        }
        ctx.service::<Arc<Progress>>().makes(self.made + 1);
        self.made += 1;
        ctx.charge(10);
        if self.made < ITEMS {
            ctx.send(0, ());
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Item {
    number: u64,
    pad: Vec<u8>,
}

/// Needs long for each item, and the second longer: the first waits for it at their syncs.
#[derive(Serialize, Deserialize)]
struct Reader {
    read: u64,
    reading: Reading,
}

impl Chunk for Reader {
    type Index = u32;
    type Message = Item;

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn receive(&mut self, Item { number, pad }: Item, ctx: &mut Ctx<'_, Self>) {
        assert_eq!((number, pad.len()), (self.read, PAD), "items come once, and in order");
        self.read += 1;
        ctx.service::<Arc<Progress>>().read[ctx.index() as usize].store(self.read, Ordering::Relaxed);
        ctx.charge(100_000 * (1 + u64::from(ctx.index())));
        if self.read == ITEMS {
            ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Exit);
        } else if self.read.is_multiple_of(self.reading.phase) {
            if self.reading.moves {
                ctx.migrate_to(Rank((ctx.rank().0 + 1) % ctx.ranks()));
            }
            if self.reading.waits {
                ctx.at_sync();
            } else {
                ctx.at_sync_nowait();
            }
        }
    }
}

/// A simulated run with syncs and with so little room for mail.
pub(super) fn syncing(seed: u64, ranks: u32, limit: u64) -> Config {
    let config = simulated(seed).ranks(ranks).period(20).mail_limit(limit);
    config.lb("refine").expect("it is listed").wire_always(seed % 2 == 1)
}

/// The most bytes that one of the readers had yet to read.
fn unread_max(seed: u64, ranks: u32, limit: u64, reading: Reading) -> u64 {
    let progress = Arc::new(Progress::default());
    let service = progress.clone();
    caribou::run(syncing(seed, ranks, limit), move |setup| {
        setup.service(service.clone());
        let readers = setup.array_with(READERS, Placement::RoundRobin, move |_| Reader { read: 0, reading });
        let broadcasts = reading.broadcasts;
        setup.array_without_sync(1, Placement::Block, move |_| Feeder { readers, made: 0, broadcasts });
    })
    .unwrap_or_else(|error| panic!("seed {seed}, {reading:?}: {error}"));
    progress.unread_max.load(Ordering::Relaxed) * ITEM_BYTES
}

#[test]
fn a_chunk_that_comes_to_syncs_and_reads_slowly_is_not_flooded() {
    for seed in seeds(200) {
        let by = |divisor| seed / divisor % 2 == 0;
        let phase = if by(16) { 1 } else { 10 };
        let reading = Reading { phase, waits: by(2), moves: by(4), broadcasts: by(8) };
        let (ranks, limit) = (1 + (seed / 32 % 4) as u32, [300, 6000][(seed / 128 % 2) as usize]);
        let unread = unread_max(seed, ranks, limit, reading);
        // What waits, a window under way, what a worker has not told, and items that the feeder adds. As much may have come to the
        // rank that a reader moves to before it does; and with each move broadcasts may be a window further.
        let at_once = limit + limit / 4 + limit / 8 + 4 * ITEM_BYTES;
        let bound = match reading {
            Reading { moves: true, broadcasts: true, phase: 1, .. } => continue,
            Reading { moves: true, .. } => 2 * at_once,
            _ => at_once,
        };
        assert!(unread <= bound, "{reading:?}, {ranks} ranks: {unread} bytes were unread, of {bound}");
    }
    let reading = Reading { phase: 10, waits: true, moves: false, broadcasts: false };
    let hardly_bounded = unread_max(2, 2, 200_000, reading);
    assert!(hardly_bounded > 25_000, "{hardly_bounded}: there is something to bound");
}

/// One of an array of two: the first waits at a sync, for which it takes the second, whose messages to it fill its rank.
#[derive(Serialize, Deserialize)]
struct Needed {
    sent: u64,
    phases: u64,
}

const PHASES: u64 = 3;
const MESSAGES: u64 = 20;

impl Needed {
    fn go_on(&self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 || self.sent == MESSAGES * (self.phases + 1) {
            ctx.at_sync();
        } else {
            ctx.send(1, Word::Next);
        }
    }
}

#[derive(Serialize, Deserialize)]
enum Word {
    Next,
    Pad(Vec<u8>),
}

impl Chunk for Needed {
    type Index = u32;
    type Message = Word;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.go_on(ctx);
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.phases += 1;
        if self.phases == PHASES {
            ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Exit);
        } else {
            self.go_on(ctx);
        }
    }

    fn receive(&mut self, word: Word, ctx: &mut Ctx<'_, Self>) {
        if let Word::Next = word {
            ctx.send(0, Word::Pad(vec![0; PAD]));
            self.sent += 1;
            self.go_on(ctx);
        }
    }
}

/// The first never reads: it comes to the next sync as soon as it resumes.
fn needed(seed: u64, ranks: u32, limit: u64) -> Report {
    let make = |_| Needed { sent: 0, phases: 0 };
    run_array_with(syncing(seed, ranks, limit), 2, Placement::RoundRobin, make).expect("it ends")
}

#[test]
fn a_sync_ends_that_waits_for_a_chunk_that_is_held_back_because_of_it() {
    for seed in seeds(200) {
        let (ranks, limit) = (1 + (seed % 3) as u32, [1, 700, 3000][(seed / 3 % 3) as usize]);
        let report = needed(seed, ranks, limit);
        let all = PHASES * MESSAGES * PAD as u64;
        assert_eq!(report.syncs.len() as u64, PHASES);
        assert!(report.waiting_bytes_max >= all, "it keeps all, and all count");
    }
}
