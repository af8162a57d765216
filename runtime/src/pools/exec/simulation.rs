//! A pool in one thread and virtual time: the production machines on random vCPUs and links, by seed; then every worker's
//! iterations, for real.
//!
//! What a worker executes is known before any iteration is: policies see only that ranges end, and when. So the run is
//! simulated first, on [`lb_strategies::cluster`], and each worker's share is executed after it. All parts cross the wire.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lb_strategies::cluster::{Jitter, RunPool, SplitMix64, Traces, Worker};
use lb_strategies::pool::{Pool, PoolStrategy, SECOND};

use super::whole::whole;
use crate::error::Error;
use crate::ids::Rank;
use crate::pools::core::rank::{Part, Tally, Whole};
use crate::pools::core::work::{Accumulated, PoolWork};
use crate::pools::report::PoolWorker;
use crate::text::of_panic;

/// Speeds change so often, ns.
const STEP_NS: u64 = SECOND / 100;
/// The fastest speed, iterations per second; the slowest is a twentieth of it.
const SPEED: f64 = 1e6;
/// Messages take this long or up to a hundred times longer, ns.
const DELAY_NS: u64 = 10_000;

/// Runs a pool under simulation.
///
/// # Errors
/// Those of a real run.
pub(crate) fn run(
    work: &dyn PoolWork,
    pool: &Pool,
    policy: &dyn PoolStrategy,
    seed: u64,
) -> Result<(Accumulated, Whole), Error> {
    let mut vcpus = Traces::new(STEP_NS, |worker: Worker, second| {
        let place = u64::from(worker.rank.0) << 32 | u64::from(worker.number);
        let drawn = SplitMix64::new(seed ^ place.wrapping_mul(0x9e37) ^ second.to_bits()).uniform();
        SPEED * 20f64.powf(-drawn)
    });
    let links = Jitter::new(DELAY_NS, 100 * DELAY_NS, seed);
    let run = RunPool::new(pool, policy, &mut vcpus).links(links).run();
    let mut parts: BTreeMap<Rank, (Accumulated, Part)> = BTreeMap::new();
    let mut workers = run.workers.iter().zip(&run.ranges);
    for (rank, &count) in (0..).map(Rank).zip(&pool.workers) {
        let mut part = Part { said: run.said.clone().filter(|_| rank.0 == 0), ..Part::default() };
        let executed = catch_unwind(AssertUnwindSafe(|| {
            let mut all = None;
            for (number, (worker, ranges)) in (0..count).zip(&mut workers) {
                let mut accumulated = work.init();
                for range in ranges {
                    work.execute(&mut accumulated, range.clone());
                    part.tally.add(Tally::of(range));
                }
                work.gather(&mut all, accumulated);
                part.workers.push(PoolWorker {
                    rank: rank.0,
                    worker: number,
                    iterations: worker.done,
                    ranges: worker.chunks,
                    busy_ns: worker.busy,
                    end_ns: worker.end,
                    ..PoolWorker::default()
                });
            }
            let bytes = work.encode(&all.expect("a rank has a worker"))?;
            work.decode(&bytes)
        }));
        let accumulated = executed.map_err(|panic| {
            let doing = "executing or merging iterations".into();
            Error::PoolPanicked { rank: rank.0, doing, panic: of_panic(&*panic) }
        })?;
        let garbled = |why: crate::wire::WireError| {
            let what = "what the pool has accumulated".into();
            Error::Wire { rank: rank.0, what, why: why.to_string() }
        };
        parts.insert(rank, (accumulated.map_err(garbled)?, part));
    }
    let (accumulated, mut whole) = whole(work, parts, false)?;
    whole.messages = run.messages;
    Ok((accumulated, whole))
}
