//! `guided` gives each request one p-th of the waiting iterations: guided self-scheduling (Polychronopoulos and Kuck,
//! 1987).
//!
//! Chunks are large first, because later chunks can still even out differences. The last are single iterations, or
//! `least` iterations if single ones cost too much. p is the number of workers; a slow one that asks first gets 1/p of
//! all.

use super::central::{CentralRank, Master, SizeRule};
use super::equal::{CHUNK, chunk};
use crate::entry::Entry;
use crate::parameters::Parameter;
use crate::pools::machine::{Machine, Nanos};
use crate::pools::policy::{Pool, PoolStrategy};
use crate::rank::Rank;

/// The smallest grant, a parameter of the rules that begin with large grants.
pub(crate) const LEAST: Parameter = Parameter {
    name: "least",
    default: "1",
    meaning: "smallest number of iterations that a request gets, unless fewer are left",
};

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "guided",
    summary: "each request gets the remaining iterations divided by the number of workers",
    parameters: &[LEAST, CHUNK],
    build: |parameters| {
        Ok(Box::new(Guided { least: parameters.integer("least")?, chunk: chunk(parameters)? }))
    },
};

struct Guided {
    least: u64,
    chunk: Nanos,
}

impl PoolStrategy for Guided {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn rank(&self, pool: &Pool, rank: Rank) -> Machine {
        let rule = SizeRule::Guided { least: self.least };
        Machine::new(CentralRank::new(pool, rank, rule, Master::Works, self.chunk))
    }
}
