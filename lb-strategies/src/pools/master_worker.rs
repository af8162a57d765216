//! `master-worker`: one worker only hands out work, all others ask it for more. MS of the CAA paper (Filipovic, Krstajic
//! and Popovic, 2021).
//!
//! The master is worker 0 of rank 0; it executes only if it is the only worker there is (left). `batch=1` is the paper:
//! one task per request. Where iterations cost microseconds that would be a request per microsecond. So the default is as
//! many iterations as a worker does in `chunk` seconds, but no more than its part of the waiting ones. For tasks longer
//! than `chunk` that is one, too.

use super::central::{CentralRank, Master, SizeRule};
use super::equal::{CHUNK, chunk};
use crate::entry::Entry;
use crate::parameters::Parameter;
use crate::pools::machine::{Machine, Nanos};
use crate::pools::policy::{Pool, PoolStrategy};
use crate::rank::Rank;

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "master-worker",
    summary: "one worker hands out work, the others ask it",
    parameters: &[
        Parameter {
            name: "batch",
            default: "auto",
            meaning: "iterations a request, or auto: what fits into chunk",
        },
        CHUNK,
    ],
    build: |parameters| {
        let rule = parameters.count_or_auto("batch")?.map_or(SizeRule::Fitting, SizeRule::Fixed);
        Ok(Box::new(MasterWorker { rule, chunk: chunk(parameters)? }))
    },
};

struct MasterWorker {
    rule: SizeRule,
    chunk: Nanos,
}

impl PoolStrategy for MasterWorker {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn rank(&self, pool: &Pool, rank: Rank) -> Machine {
        Machine::new(CentralRank::new(pool, rank, self.rule, Master::Apart, self.chunk))
    }
}
