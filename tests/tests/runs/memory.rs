//! Limits of memory: no strategy lets the chunks of a rank exceed them.

use caribou::lb::ARRAYS;
use caribou::{Chunk, Config, Ctx, Reducer, Target};
use caribou_tests::run_array;
use serde::{Deserialize, Serialize};

const RANKS: u32 = 4;
const CHUNKS: u32 = 16;
const SYNCS: u64 = 4;
const MIB: u64 = 1 << 20;

/// A chunk of `mib` MiB. If loads are unequal, one chunk on rank 0 and one on rank 1 have so much load that all others
/// should go to ranks 2 and 3.
#[derive(Serialize, Deserialize)]
struct Large {
    syncs: u64,
    mib: u64,
    unequal: bool,
}

impl Chunk for Large {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.resume(ctx);
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.charge(if self.unequal && [0, 4].contains(&ctx.index()) { 20_000_000 } else { 1_000_000 });
        if self.syncs == SYNCS {
            // The MiB of each rank at the end.
            let mut of_rank = vec![0; RANKS as usize];
            of_rank[ctx.rank().index()] = self.mib;
            return ctx.contribute(0, Reducer::Sum, of_rank, Target::Exit);
        }
        self.syncs += 1;
        ctx.at_sync();
    }

    fn state_bytes(&self) -> u64 {
        self.mib * MIB
    }
}

/// The most chunks that a rank ever had.
fn most_chunks(lb: &str, limit: Option<u64>) -> u32 {
    let config = Config::default().ranks(RANKS).lb(lb).expect("listed").period(1).lb_memory(limit);
    let report = run_array(config, CHUNKS, |_| Large { syncs: 0, mib: 1, unequal: true }).expect("it ends");
    report.syncs.iter().flat_map(|sync| sync.chunks_per_rank.iter().copied()).max().unwrap_or(0)
}

#[test]
fn no_strategy_exceeds_the_limit() {
    let mut exceed = 0;
    for entry in ARRAYS.iter() {
        exceed += u32::from(most_chunks(entry.name, None) > 5);
        assert!(most_chunks(entry.name, Some(5 * MIB)) <= 5, "{}", entry.name);
    }
    assert!(exceed > 3, "without a limit many strategies place more: {exceed}");
}

#[test]
fn a_rank_above_the_limit_gives_chunks_away() {
    for lb in ["refine", "comm"] {
        let config =
            Config::default().ranks(RANKS).lb(lb).expect("listed").period(1).lb_memory(Some(6 * MIB));
        // The four chunks of rank 0 have 2 MiB each.
        let large = |index| Large { syncs: 0, mib: if index < 4 { 2 } else { 1 }, unequal: false };
        let report = run_array(config, CHUNKS, large).expect("it ends");
        let of_rank = report.value::<Vec<u64>>().expect("the sum");
        assert!(of_rank.iter().all(|&mib| mib <= 6), "{lb}: {of_rank:?}");
    }
}

#[test]
fn a_run_whose_chunks_fit_nowhere_goes_on() {
    for lb in ["none", "refine", "comm", "greedy"] {
        let config =
            Config::default().ranks(RANKS).lb(lb).expect("listed").period(1).lb_memory(Some(3 * MIB));
        let report =
            run_array(config, CHUNKS, |_| Large { syncs: 0, mib: 1, unequal: true }).expect("it ends");
        assert_eq!((report.syncs.len() as u64, report.syncs[0].moved), (SYNCS, 0), "{lb}");
    }
}
