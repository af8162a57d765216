//! Limits of memory: no strategy lets the chunks of a rank exceed them.

use caribou::lb::ARRAYS;
use caribou::{Chunk, Config, Ctx, Reducer, Target};
use caribou_tests::run_array;
use serde::{Deserialize, Serialize};

const CHUNKS: u32 = 16;
const SYNCS: u64 = 4;
const MIB: u64 = 1 << 20;

/// A chunk of 1 MiB. One chunk on rank 0 and one on rank 1 have so much load that all others should go to ranks 2 and 3.
#[derive(Serialize, Deserialize)]
struct Large {
    syncs: u64,
}

impl Chunk for Large {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.resume(ctx);
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.charge(if [0, 4].contains(&ctx.index()) { 20_000_000 } else { 1_000_000 });
        if self.syncs == SYNCS {
            return ctx.contribute(0, Reducer::Sum, vec![1_u64], Target::Exit);
        }
        self.syncs += 1;
        ctx.at_sync();
    }

    fn state_bytes(&self) -> u64 {
        MIB
    }
}

/// The most chunks that a rank ever had.
fn most_chunks(lb: &str, limit: Option<u64>) -> u32 {
    let config = Config::default().ranks(4).lb(lb).expect("listed").period(1).lb_memory(limit);
    let report = run_array(config, CHUNKS, |_| Large { syncs: 0 }).expect("it ends");
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
