//! Pool scenarios with several ranks, in which one rank disturbs the others.

use crate::pool_scenario::{Network, Scenario};
use crate::series::{PerWorker, Series};
use lb_strategies::Rank;
use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::pools::policy::Pool;
use lb_strategies::virtual_time::splitmix::SplitMix64;
use lb_strategies::virtual_time::vcpus::{Traces, Worker};

/// Number of groups in M4: every other worker is in the other half of the period.
pub const H_ALTERNATE: u32 = 2;
/// Number of groups in M5: all workers are in the same half of the period.
pub const H_TOGETHER: u32 = 1;

fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64).round() as Nanos
}

/// M1: ranks of four workers with constant speeds, uniform in 500 to 2000, and 4 million iterations per rank.
pub fn constant(ranks: u32, rtt_s: f64) -> Scenario {
    let pool = Pool::new(4_000_000 * u64::from(ranks), vec![4; ranks as usize]);
    let mut rng = SplitMix64::new(1);
    let vcpus = PerWorker::new(&pool.workers, |_| Series::constant(500.0 + 1500.0 * rng.uniform()));
    let scenario = Scenario::new("M1", pool, move || Box::new(vcpus.clone()));
    Scenario { network: Network { rtt: nanos(rtt_s), ..Network::default() }, ..scenario }
}

/// M3: two ranks of eight workers with speed 1000. Rank 1 falls to 50 at `seconds`. Without this they need 3000 s.
pub fn collapse(seconds: f64) -> Scenario {
    let pool = Pool::new(48_000_000, vec![8; 2]);
    let vcpus = PerWorker::new(&pool.workers, |worker| {
        let quiet = Series::constant(1000.0);
        if worker.rank == Rank(1) { quiet.then(seconds, 50.0) } else { quiet }
    });
    Scenario::new("M3", pool, move || Box::new(vcpus.clone()))
}

/// M4 and M5: two ranks of eight workers with speed 1000. Workers of rank 1 fall to 300 in every other 250 s. The run
/// begins `phase` seconds into the period. Each of `groups` groups of workers is shifted by 250 s from the one before.
pub fn periodic(groups: u32, phase: f64) -> Scenario {
    Scenario::new("M4", Pool::new(48_000_000, vec![8; 2]), move || {
        let speed = move |worker: Worker, seconds: f64| {
            let group = f64::from(worker.number % groups);
            let half = ((seconds + phase + 250.0 * group) / 250.0) as u64;
            if worker.rank == Rank(1) && half.is_multiple_of(2) { 300.0 } else { 1000.0 }
        };
        // Phases are even numbers of seconds, and so are the times at which speeds change.
        Box::new(Traces::new(2 * SECOND, speed))
    })
}
