//! `static` gives every worker an equal share at the start. Other policies are compared with it. It is domain
//! decomposition (DD) of the CAA paper.
//!
//! Each rank gets iterations in proportion to its workers, and each worker of a rank an equal, contiguous range. No
//! messages are sent. A worker executes its range in steps, to show progress.

use std::ops::Range;

use super::steps::{Pace, Steps};
use crate::apportion::{apportion, equal};
use crate::entry::Entry;
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;
use crate::pools::machine::{Input, Machine, Nanos, Output, PoolRank, SECOND};
use crate::pools::policy::{Pool, PoolStrategy};
use crate::rank::Rank;

/// The parameter that all policies share: the time that a worker runs before it wants the next range.
pub(crate) const CHUNK: Parameter = Parameter {
    name: "chunk",
    default: "0.1",
    meaning: "seconds that a worker executes iterations between two calls of the policy",
};

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "static",
    summary: "equal shares, fixed at the start",
    parameters: &[CHUNK],
    build: |parameters| Ok(Box::new(Static { chunk: chunk(parameters)? })),
};

/// The value of `chunk`.
pub(crate) fn chunk(parameters: &Parameters) -> Result<Nanos, ParseError> {
    Ok((parameters.number("chunk", 1e-6..=1e6)? * SECOND as f64) as Nanos)
}

struct Static {
    chunk: Nanos,
}

impl PoolStrategy for Static {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn rank(&self, pool: &Pool, rank: Rank) -> Machine {
        let steps = |share| Steps::new(Pace::Fitting, self.chunk, pool.cost_hint).with(share);
        let shares: Vec<Steps> = shares(pool, rank).into_iter().map(steps).collect();
        Machine::new(StaticRank { working: shares.len(), shares })
    }
}

/// The ranges of a rank's workers when all workers of a pool get equal shares.
///
/// ```
/// use lb_strategies::{Rank, pool::{Pool, equal::shares}};
/// assert_eq!(shares(&Pool::new(10, vec![2, 2]), Rank(1)), [5..8, 8..10]);
/// ```
pub fn shares(pool: &Pool, rank: Rank) -> Vec<Range<u64>> {
    let weights: Vec<f64> = pool.workers.iter().map(|&workers| f64::from(workers)).collect();
    let of_ranks = apportion(pool.iterations, &weights).expect("every rank has a worker");
    let before: u64 = of_ranks[..rank.0 as usize].iter().sum();
    let of_workers = equal(of_ranks[rank.0 as usize], pool.workers_of(rank) as usize);
    of_workers
        .into_iter()
        .scan(before, |begin, share| {
            *begin += share;
            Some(*begin - share..*begin)
        })
        .collect()
}

struct StaticRank {
    shares: Vec<Steps>,
    working: usize,
}

impl PoolRank for StaticRank {
    type Message = ();

    fn step(&mut self, now: Nanos, input: Input<()>, out: &mut Vec<Output<()>>) {
        let Input::Wants { worker } = input else { return };
        let share = &mut self.shares[worker.index()];
        share.finish_step(now);
        if let Some(range) = share.next(now) {
            out.push(Output::Run { worker, range, copy: false });
            return;
        }
        self.working -= 1;
        out.push(Output::Release { worker });
        if self.working == 0 {
            out.push(Output::Closed);
        }
    }
}
