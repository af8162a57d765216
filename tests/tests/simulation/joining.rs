//! Chunks that join reductions, by seed: each hears the results of those that it has a part in, and of no others.

use caribou::{Chunk, Config, Ctx, Placement, Reducer, Target, Values};
use serde::{Deserialize, Serialize};

use super::{repeat, seeds};

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
        let Values::U64(members) = values else { unreachable!("that is what they contribute") };
        Heard { round, members: members[0] }
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
fn who_joins_hears_of_no_reduction_before() {
    for seed in seeds(200) {
        let config = Config::default().simulate(seed).ranks(1 + (seed % 4) as u32);
        let report = caribou::run(config, |setup| {
            setup.array_with(FIRST, Placement::RoundRobin, |_| Member { round: 0 });
        });
        let report =
            report.unwrap_or_else(|error| panic!("seed {seed}: {error}\nrepeat with: {}", repeat(seed)));
        assert_eq!(report.value::<Vec<u64>>().expect("all have contributed"), [u64::from(FIRST + ROUNDS)]);
    }
}
