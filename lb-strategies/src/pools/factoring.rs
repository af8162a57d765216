//! `factoring` hands out batches of p equal chunks for p workers, each batch half of the waiting iterations (Hummel,
//! Schonberg and Flynn, 1992).
//!
//! It is more careful than `guided`, because later batches even out a slow chunk of an earlier batch. A batch is one
//! `x`-th of the waiting iterations. The paper shows that a half, `x` = 2, does well for any distribution of costs.

use super::central::{CentralRank, Master, SizeRule};
use super::equal::{CHUNK, chunk};
use super::guided::LEAST;
use crate::entry::Entry;
use crate::parameters::Parameter;
use crate::pools::machine::{Machine, Nanos};
use crate::pools::policy::{Pool, PoolStrategy};
use crate::rank::Rank;

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "factoring",
    summary: "half of the remaining iterations in equal chunks, repeatedly",
    parameters: &[
        Parameter { name: "x", default: "2", meaning: "a batch is 1/x of the remaining iterations" },
        LEAST,
        CHUNK,
    ],
    build: |parameters| {
        Ok(Box::new(Factoring {
            x: parameters.number("x", 1.0..=1e6)?,
            least: parameters.integer("least")?,
            chunk: chunk(parameters)?,
        }))
    },
};

struct Factoring {
    x: f64,
    least: u64,
    chunk: Nanos,
}

impl PoolStrategy for Factoring {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn rank(&self, pool: &Pool, rank: Rank) -> Machine {
        let rule = SizeRule::factoring(self.x, self.least);
        Machine::new(CentralRank::new(pool, rank, rule, Master::Works, self.chunk))
    }
}
