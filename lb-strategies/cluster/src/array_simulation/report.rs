//! Computes the measurements that a rank would report, from the times of its workers and the clocks of their vCPUs.

use std::collections::VecDeque;

use crate::execution::{Execution, WorkerTime};
use lb_strategies::arrays::balancer::RankSample;
use lb_strategies::pools::machine::Nanos;

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
    bursts: Vec<VecDeque<f64>>,
}

impl Gauges {
    /// The state of a rank with these workers at the start.
    pub(super) fn new(workers: std::ops::Range<usize>, execution: &mut Execution<'_>) -> Self {
        let bursts = workers.clone().map(|worker| VecDeque::from([execution.clock(worker, 0); BURSTS]));
        Self { bursts: bursts.collect(), workers, since: 0, spent: WorkerTime::default() }
    }

    /// The measurements since the last sample.
    pub(super) fn sample(&mut self, execution: &mut Execution<'_>, now: Nanos) -> RankSample {
        let mut spent = WorkerTime::default();
        for worker in self.workers.clone() {
            let of_worker = execution.spent_at(worker, now);
            spent.cpu_ns += of_worker.cpu_ns;
            spent.wait_ns += of_worker.wait_ns;
        }
        for (bursts, worker) in self.bursts.iter_mut().zip(self.workers.clone()) {
            bursts.pop_front();
            bursts.push_back(execution.clock(worker, now));
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

fn median(bursts: &VecDeque<f64>) -> f64 {
    let mut bursts: Vec<f64> = bursts.iter().copied().collect();
    bursts.sort_by(f64::total_cmp);
    bursts[BURSTS / 2]
}
