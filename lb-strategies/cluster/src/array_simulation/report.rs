//! Computes the measurements that a rank would report, from the times of its workers and the clocks of their vCPUs.

use crate::execution::{Execution, WorkerTime};
use crate::overheads::Noise;
use lb_strategies::arrays::balancer::RankSample;
use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::splitmix::SplitMix64;

/// Number of samples whose bursts are kept. Their median is the clock of a worker.
const BURSTS: usize = 5;

/// The measurements of a rank.
pub(super) struct Gauges {
    /// The numbers of the workers of the rank.
    workers: std::ops::Range<usize>,
    /// Time of the last sample, and the time that the workers had spent until then.
    since: Nanos,
    spent: WorkerTime,
    /// By worker, the last bursts.
    bursts: Vec<[f64; BURSTS]>,
}

impl Gauges {
    /// The state of a rank with these workers at the start.
    pub(super) fn new(workers: std::ops::Range<usize>, execution: &mut Execution<'_>) -> Self {
        let bursts = workers.clone().map(|worker| [execution.clock(worker, 0); BURSTS]);
        Self { bursts: bursts.collect(), workers, since: 0, spent: WorkerTime::default() }
    }

    /// The measurements since the last sample. Each clock has an error of `errors`.
    pub(super) fn sample(
        &mut self,
        execution: &mut Execution<'_>,
        errors: &mut Errors,
        now: Nanos,
    ) -> RankSample {
        let mut spent = WorkerTime::default();
        for worker in self.workers.clone() {
            let of_worker = execution.spent_at(worker, now);
            spent.cpu_ns += of_worker.cpu_ns;
            spent.wait_ns += of_worker.wait_ns;
        }
        for (bursts, worker) in self.bursts.iter_mut().zip(self.workers.clone()) {
            bursts.rotate_left(1);
            bursts[BURSTS - 1] = execution.clock(worker, now) * errors.factor();
        }
        let before = std::mem::replace(&mut self.spent, spent);
        let wait_ns = (spent.wait_ns - before.wait_ns) as u64;
        RankSample {
            wall_ns: (now - std::mem::replace(&mut self.since, now)) * self.workers.len() as u64,
            cpu_ns: (spent.cpu_ns - before.cpu_ns) as u64,
            wait_ns,
            steal_ns: 0,
            background_ns: wait_ns,
            speed: self.speed(),
        }
    }

    /// Mean over the workers.
    fn speed(&self) -> f64 {
        let sum: f64 = self.bursts.iter().map(median).sum();
        sum / self.bursts.len() as f64
    }
}

/// The errors of measurements.
pub(super) struct Errors {
    relative_sd: f64,
    rng: SplitMix64,
}

impl Errors {
    pub(super) fn of(noise: Noise) -> Self {
        Self { relative_sd: noise.relative_sd, rng: SplitMix64::new(noise.seed) }
    }

    /// The measured part of a true value, not below 0.
    pub(super) fn factor(&mut self) -> f64 {
        if self.relative_sd > 0.0 { (1.0 + self.relative_sd * self.rng.normal()).max(0.0) } else { 1.0 }
    }
}

fn median(bursts: &[f64; BURSTS]) -> f64 {
    let mut bursts = *bursts;
    bursts.sort_by(f64::total_cmp);
    bursts[BURSTS / 2]
}
