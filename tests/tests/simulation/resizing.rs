//! Runs that are shrunk and expanded at any moment, by seed: everything arrives exactly once, and no chunk that may move is on
//! an inactive rank once a decision is carried out.

use std::time::Duration;

use caribou::config::Period;
use caribou::{Chunk, Ctx, Reducer, Report, Target};
use caribou_tests::{expected, run_array, simulated};
use serde::{Deserialize, Serialize};

use super::seeds;

const CHUNKS: u32 = 20;
const STEPS: u64 = 24;
const PERIOD: u64 = 3;
/// Of a usual sweep.
const SEEDS: u64 = 200;
/// Groups decide whenever all ranks are active.
const IN_GROUPS: &str = "hierarchical,group=2,every=1,between=0";

/// A member of a ring: each step it sends to its right neighbour what it has heard from its left one.
#[derive(Serialize, Deserialize)]
struct Member {
    step: u64,
    heard: u64,
    /// Number of ranks, and the seed of what it asks for.
    ranks: u32,
    seed: u64,
}

impl Member {
    fn send(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % CHUNKS, (self.step, self.heard));
    }

    /// A member asks for another number of active ranks now and then.
    fn resize(&self, ctx: &mut Ctx<'_, Self>) {
        let drawn = (self.seed + 1) * (self.step * 31 + u64::from(ctx.index()) * 17 + 7);
        if drawn.is_multiple_of(29) {
            ctx.resize(1 + (drawn / 29 % u64::from(self.ranks)) as u32);
        }
    }
}

impl Chunk for Member {
    type Index = u32;
    type Message = (u64, u64);

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.send(ctx);
    }

    fn ready(&self, (step, _): &(u64, u64)) -> bool {
        *step == self.step
    }

    fn receive(&mut self, (step, heard): (u64, u64), ctx: &mut Ctx<'_, Self>) {
        assert_eq!(step, self.step, "one message a step");
        (self.step, self.heard) = (step + 1, heard + 1);
        self.resize(ctx);
        match self.step {
            STEPS => ctx.contribute(0, Reducer::Sum, vec![self.heard], Target::Exit),
            step if ctx.sync_due(step) => ctx.at_sync(),
            _ => self.send(ctx),
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.send(ctx);
    }
}

fn simulate(seed: u64, ranks: u32, period: Period) -> Report {
    let lb = ["refine", "greedy", IN_GROUPS, "random", "rotate", "program"][(seed % 6) as usize];
    let config = simulated(seed)
        .ranks(ranks)
        .balance(period)
        .mail_limit([u64::MAX, 1, 300][(seed / 6 % 3) as usize])
        .wire_always(seed % 2 == 1)
        .lb(lb)
        .expect("listed");
    let report = run_array(config, CHUNKS, move |_| Member { step: 0, heard: 0, ranks, seed });
    report.expect("it ends")
}

/// Checks all seeds: no chunk goes to an inactive rank. Returns the number of chunks that leave one, and of those that stay
/// there, where no rank stops for a while.
fn check(period: Period) -> (u64, u64) {
    let (mut leave, mut stay) = (0, 0);
    for seed in seeds(SEEDS) {
        let ranks = 2 + (seed % 5) as u32;
        let report = simulate(seed, ranks, period);
        assert_eq!(report.value(), Ok(vec![u64::from(CHUNKS) * STEPS]));
        assert_eq!(report.undelivered.messages, 0);
        for (before, sync) in report.syncs.iter().zip(report.syncs.iter().skip(1)) {
            let active = sync.active.expect("the run has told") as usize;
            for (&before, &now) in before.chunks_per_rank.iter().zip(&sync.chunks_per_rank).skip(active) {
                assert!(now <= before, "{sync:?}");
                leave += u64::from(before - now);
                stay += if seed % 4 == 1 { 0 } else { u64::from(now) };
            }
        }
    }
    (leave, stay)
}

#[test]
fn inactive_ranks_are_emptied_at_a_sync() {
    let (leave, stay) = check(Period::Steps(PERIOD));
    assert!(leave >= expected(1_001, SEEDS) && stay == 0, "{leave} {stay}");
}

/// A chunk that has not run since the last window stays: it cannot be asked whether it may move.
#[test]
fn inactive_ranks_are_emptied_in_windows() {
    let (leave, stay) = check(Period::Every(Duration::from_micros(1)));
    let few = expected(1, SEEDS) == 0;
    assert!(leave >= expected(2_001, SEEDS) && (few || stay < leave / 4), "{leave} {stay}");
}
