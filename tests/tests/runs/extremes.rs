//! Loads and sizes at the end of their range add up to the most there is, and harm no run.

use caribou::{Chunk, Config, Ctx, Load, Reducer, Target};
use caribou_tests::run_array_in_time;
use serde::{Deserialize, Serialize};

const SYNCS: u32 = 4;
const CHUNKS: u32 = 6;

/// The figure of a chunk that is as large as can be said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Extreme {
    Charge,
    Load,
    StateBytes,
    All,
}

#[derive(Serialize, Deserialize)]
struct Heavy {
    extreme: Extreme,
    syncs: u32,
}

impl Heavy {
    fn is(&self, extreme: Extreme) -> bool {
        [extreme, Extreme::All].contains(&self.extreme)
    }
}

impl Chunk for Heavy {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.is(Extreme::Charge) {
            ctx.charge(u64::MAX);
        }
        ctx.at_sync();
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.syncs += 1;
        match self.syncs {
            SYNCS => ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Exit),
            _ => self.start(ctx),
        }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}

    fn load(&self) -> Load {
        if self.is(Extreme::Load) { Load::Ticks(u64::MAX) } else { Load::Measured }
    }

    fn state_bytes(&self) -> u64 {
        if self.is(Extreme::StateBytes) { u64::MAX } else { 8 }
    }
}

#[test]
fn the_largest_loads_and_sizes_end_no_run() {
    for extreme in [Extreme::Charge, Extreme::Load, Extreme::StateBytes, Extreme::All] {
        for lb in ["rotate", "random", "refine", "greedy", "hierarchical"] {
            for config in [Config::default().ranks(3), Config::default().ranks(3).simulate(5)] {
                let what = format!("{extreme:?} under {lb}");
                let config = config.period(1).lb(lb).unwrap_or_else(|error| panic!("{error}"));
                let result = run_array_in_time(&what, config, CHUNKS, move |_| Heavy { extreme, syncs: 0 });
                let report = result.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(report.value::<Vec<u64>>(), Ok(vec![CHUNKS.into()]), "{what}");
            }
        }
    }
}
