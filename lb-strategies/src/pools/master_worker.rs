//! `master-worker`: one worker only hands out iterations, and the others request them. It is MS of the CAA paper
//! (Filipovic, Krstajic and Popovic, 2021).
//!
//! The master is worker 0 of rank 0. It executes iterations only if it is the only worker. With `batch=1`, a request
//! gets one iteration, as in the paper. Iterations of 1 us would then need a request per us. So by default, a request
//! gets as many iterations as the worker runs in `chunk` seconds, but at most one p-th of the waiting ones for p
//! workers. If iterations take longer than `chunk`, this is one iteration, too.

use super::central::{CentralRank, Master, SizeRule};
use super::equal::{CHUNK, chunk};
use crate::entry::Entry;
use crate::parameters::Parameter;
use crate::pools::machine::{Machine, Nanos};
use crate::pools::policy::{Pool, PoolStrategy};
use crate::rank::Rank;

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "master-worker",
    summary: "one worker is the master, from which the others request work",
    parameters: &[
        Parameter {
            name: "batch",
            default: "auto",
            meaning: "iterations per request; auto: as many as take the time `chunk`",
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
