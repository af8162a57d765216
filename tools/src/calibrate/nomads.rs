//! Chunks that pass over their state again and again, and all move to another rank at each sync.

use std::hint::black_box;

use caribou::{Chunk, Config, Ctx, Error, Reducer, Report, Target};
use serde::{Deserialize, Serialize};

use super::clock::thread_cpu_ns;

/// Number of passes between two moves.
pub(super) const PASSES: u64 = 6;

/// What the nomads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Nomads {
    pub(super) chunks: u32,
    /// Size of the state of each.
    pub(super) bytes: usize,
    /// Number of syncs, at each of which all chunks move.
    pub(super) syncs: u64,
    /// True if chunks compute between two syncs.
    pub(super) computes: bool,
}

/// CPU time of passes over the states, ns per pass of a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Passes {
    /// Of the first pass after a move.
    pub(super) first_ns: f64,
    /// Of the last passes before the next move.
    pub(super) later_ns: f64,
}

#[derive(Serialize, Deserialize)]
struct Nomad {
    nomads: Nomads,
    step: u64,
    #[serde(with = "caribou::bulk")]
    numbers: Vec<f64>,
    /// CPU time of first passes, and of the last ones.
    spent: [u64; 2],
}

impl Nomads {
    pub(super) fn run(self, config: Config) -> Result<(Passes, Report), Error> {
        let period = if self.computes { PASSES } else { 1 };
        let report = caribou::run(config.workers(1).period(period), move |setup| {
            setup.array(self.chunks, move |_| Nomad {
                nomads: self,
                step: 0,
                numbers: vec![1.0; self.bytes / size_of::<f64>()],
                spent: [0; 2],
            });
        })?;
        let spent: Vec<u64> = report.value()?;
        let passes = f64::from(self.chunks) * self.syncs as f64;
        let passes = Passes { first_ns: spent[0] as f64 / passes, later_ns: spent[1] as f64 / passes };
        Ok((passes, report))
    }
}

impl Nomad {
    /// Passes over the state.
    fn pass(&mut self) {
        let begin = thread_cpu_ns();
        for number in &mut self.numbers {
            *number = 0.5 * (*number + 3.0);
        }
        black_box(&mut self.numbers);
        let took = thread_cpu_ns() - begin;
        match self.step % PASSES {
            0 if self.step > 0 => self.spent[0] += took,
            last if last == PASSES - 1 => self.spent[1] += took,
            _ => {}
        }
    }
}

impl Chunk for Nomad {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.receive((), ctx);
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        let Nomads { syncs, computes, .. } = self.nomads;
        let period = if computes { PASSES } else { 1 };
        if computes {
            self.pass();
        }
        self.step += 1;
        if self.step > syncs * period {
            ctx.contribute(0, Reducer::Sum, self.spent.to_vec(), Target::Exit);
        } else if self.step.is_multiple_of(period) {
            ctx.at_sync();
        } else {
            ctx.send(ctx.index(), ());
        }
    }

    fn state_bytes(&self) -> u64 {
        self.nomads.bytes as u64
    }
}
