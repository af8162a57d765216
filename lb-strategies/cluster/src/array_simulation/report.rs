//! The measurements that ranks would have made: from the time that their workers spent, and the clocks of their vCPUs.

use std::collections::VecDeque;

use crate::execution::{Execution, WorkerTime};
use lb_strategies::arrays::balancer::RankSample;
use lb_strategies::pools::machine::Nanos;

/// Number of syncs whose bursts are kept; their median is the clock of a worker.
const BURSTS: usize = 5;

/// The measurements of a rank.
pub(super) struct Gauges {
    /// The numbers of its workers.
    workers: std::ops::Range<usize>,
    /// Time of the last sample, and the time that its workers had spent by then.
    since: Nanos,
    spent: WorkerTime,
    /// Bursts of each worker.
    bursts: Vec<VecDeque<f64>>,
}

impl Gauges {
    /// The readings of a rank with these workers, at the beginning.
    pub(super) fn new(workers: std::ops::Range<usize>, execution: &mut Execution<'_>) -> Self {
        let bursts = workers.clone().map(|worker| VecDeque::from([execution.clock(worker, 0); BURSTS]));
        Self { bursts: bursts.collect(), workers, since: 0, spent: WorkerTime::default() }
    }

    /// The sample since the last one.
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

    /// In the mean of its workers.
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
