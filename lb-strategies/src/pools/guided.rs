//! `guided`: each worker that asks takes its part, one p-th, of the waiting iterations. Guided self-scheduling
//! (Polychronopoulos and Kuck, 1987).
//!
//! Chunks are large first, when later ones can even out much. At last they are single iterations, or `least` iterations
//! if single ones cost more than they even out. It ignores speeds: a slow worker that asks first gets a p-th of
//! everything.

use super::central::{CentralRank, Master, SizeRule};
use super::equal::{CHUNK, chunk};
use crate::entry::Entry;
use crate::parameters::Parameter;
use crate::pools::machine::{Machine, Nanos};
use crate::pools::policy::{Pool, PoolStrategy};
use crate::rank::Rank;

/// The smallest grant, common to the rules that begin with large ones.
pub(crate) const LEAST: Parameter =
    Parameter { name: "least", default: "1", meaning: "iterations in the smallest chunk" };

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "guided",
    summary: "a worker that asks gets its part of the rest",
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
