//! Chunks that join reductions, by seed: each hears the results of those that it has a part in, and of no others.

use caribou::{Chunk, Ctx, Placement, Reducer, Target, Values};
use caribou_tests::{run_array_with, simulated, whole_number};
use serde::{Deserialize, Serialize};

use super::seeds;

const FIRST: u32 = 5;
const ROUNDS: u32 = 8;

/// Contributes once a round. One of the first inserts another one, in turn, when it hears how many they are.
#[derive(Serialize, Deserialize)]
struct Member {
    round: u32,
}

#[derive(Serialize, Deserialize)]
struct Heard {
    round: u32,
    members: u64,
}

impl Member {
    fn contribute(&self, ctx: &mut Ctx<'_, Self>) {
        let target = if self.round < ROUNDS { Target::All } else { Target::Exit };
        ctx.contribute(self.round, Reducer::Sum, vec![1u64], target);
    }
}

impl Chunk for Member {
    type Index = u32;
    type Message = Heard;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.contribute(ctx);
    }

    fn reduced(round: u32, values: Values) -> Heard {
        Heard { round, members: whole_number(values) }
    }

    fn receive(&mut self, heard: Heard, ctx: &mut Ctx<'_, Self>) {
        assert_eq!((heard.round, heard.members), (self.round, u64::from(FIRST + self.round)));
        self.round += 1;
        if ctx.index() == heard.round % FIRST {
            ctx.insert(FIRST + heard.round, Member { round: self.round });
        }
        self.contribute(ctx);
    }
}

#[test]
fn a_chunk_that_joins_hears_of_no_reduction_before() {
    for seed in seeds(200) {
        let config = simulated(seed).ranks(1 + (seed % 4) as u32);
        let report = run_array_with(config, FIRST, Placement::RoundRobin, |_| Member { round: 0 });
        let report = report.expect("it ends");
        assert_eq!(report.value::<Vec<u64>>().expect("all have contributed"), [u64::from(FIRST + ROUNDS)]);
    }
}

/// Chunk 0 inserts one chunk before it comes to a reduction and a sync, and another one after that, in one handler.
#[derive(Serialize, Deserialize)]
struct Orderly {
    round: u32,
}

impl Chunk for Orderly {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let inserts = ctx.index() == 0 && self.round == 0;
        if inserts {
            ctx.insert(1, Orderly { round: 0 });
        }
        let target = if self.round == 0 { Target::Chunk(0) } else { Target::Exit };
        ctx.contribute(self.round, Reducer::Sum, vec![1u64], target);
        ctx.at_sync();
        if inserts {
            ctx.insert(2, Orderly { round: 1 });
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.round += 1;
        self.start(ctx);
    }

    fn reduced(_: u32, values: Values) -> u64 {
        whole_number(values)
    }

    fn receive(&mut self, members: u64, _: &mut Ctx<'_, Self>) {
        assert_eq!(members, 2, "those of the first round");
    }
}

#[test]
fn what_a_handler_inserts_takes_part_in_what_the_handler_comes_to_afterwards() {
    for seed in seeds(100) {
        let config = simulated(seed).ranks(1 + (seed % 4) as u32);
        let report = run_array_with(config.lb("rotate").expect("listed"), 1, Placement::RoundRobin, |_| {
            Orderly { round: 0 }
        });
        let report = report.expect("it ends");
        assert_eq!(report.value::<Vec<u64>>().expect("all have contributed"), [3]);
    }
}
