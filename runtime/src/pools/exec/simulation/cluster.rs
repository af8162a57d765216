//! The simulated vCPUs of a pool: slow and fast ranks, speeds that change, ranks that stop for a while.

use lb_strategies::pool::{Pool, SECOND};
use lb_strategies::virtual_time::{SplitMix64, Traces, Vcpus, Worker};

/// The fastest speed, iterations per second.
const SPEED_MAX: f64 = 1e6;
/// Ratio of the fastest rank to the slowest, and of the highest speed of a worker to its lowest.
const SPREAD: f64 = 10.0;
/// The part of the ranks that stop for a while.
const STOPS: f64 = 0.2;
/// Approximate number of speed changes while the pool runs.
const CHANGES: f64 = 64.0;

type Speeds = Box<dyn FnMut(Worker, f64) -> f64>;

pub(super) struct Cluster {
    vcpus: Traces<Speeds>,
}

impl Cluster {
    pub(super) fn new(pool: &Pool, seed: u64) -> Cluster {
        let mut rng = SplitMix64::new(seed);
        // The length of the run if all workers always had their highest speed: from 0.01 s to 5 s.
        let length_s = 0.01 * 500f64.powf(rng.uniform());
        let workers: u32 = pool.workers.iter().sum();
        let speed = (pool.iterations.max(1) as f64 / f64::from(workers) / length_s).min(SPEED_MAX);
        let ranks: Vec<(f64, Option<(f64, f64)>)> = (0..pool.ranks())
            .map(|_| {
                let speed = speed * SPREAD.powf(-rng.uniform());
                let from_s = rng.uniform() * 2.0 * length_s;
                let until_s = from_s + length_s * 10f64.powf(2.0 * rng.uniform() - 1.0);
                (speed, (rng.uniform() < STOPS).then_some((from_s, until_s)))
            })
            .collect();
        let speeds: Speeds = Box::new(move |worker, second| {
            let (speed, stop) = ranks[worker.rank.index()];
            if stop.is_some_and(|(from_s, until_s)| (from_s..until_s).contains(&second)) {
                return 0.0;
            }
            let place = u64::from(worker.rank.0) << 32 | u64::from(worker.number);
            let drawn = SplitMix64::new(seed ^ place.wrapping_mul(0x9e37) ^ second.to_bits()).uniform();
            speed * SPREAD.powf(-drawn)
        });
        Cluster { vcpus: Traces::new((length_s / CHANGES * SECOND as f64) as u64, speeds) }
    }

    /// The time at which a worker has executed this number of iterations if it begins now.
    pub(super) fn through_at(&mut self, worker: Worker, iterations: u64, now_ns: u64) -> u64 {
        self.vcpus.through_at(worker, iterations as f64, now_ns)
    }

    /// The time at which a worker can act: now, or the end of the stop of its rank.
    pub(super) fn goes_on_at(&mut self, worker: Worker, now_ns: u64) -> u64 {
        let mut at_ns = now_ns;
        while let (0.0, until_ns) = self.vcpus.speed(worker, at_ns) {
            at_ns = until_ns;
        }
        at_ns
    }
}
