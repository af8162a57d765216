//! Simulates hosts with more workers than vCPUs: workers that want to run at the same time share the vCPUs fairly.

use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// The vCPUs of another model, of which a host may have fewer than workers.
///
/// The scheduler of the host may run a worker on any of its vCPUs, and gives running workers equal parts of the time. A
/// worker that waits for messages leaves its part to the others.
///
/// ```
/// use lb_strategies::{Rank, virtual_time::{Traces, Vcpus, Worker}};
/// use virtual_cluster::Crowded;
/// // Three ranks of one worker on one host with two vCPUs.
/// let mut vcpus = Crowded::new(Box::new(Traces::constant(|_| 300.0)), &[1, 1, 1], 3, 2);
/// let [one, two, three] = [0, 1, 2].map(|rank| Worker { rank: Rank(rank), number: 0 });
/// vcpus.occupied(one, true, 0);
/// vcpus.occupied(two, true, 0);
/// assert_eq!(vcpus.speed(one, 0).0, 300.0);
/// assert!(vcpus.occupied(three, true, 0), "that makes the others slower");
/// assert_eq!((vcpus.speed(one, 0).0, vcpus.share(one, 0), vcpus.clock(one, 0)), (200.0, 2.0 / 3.0, 300.0));
/// ```
pub struct Crowded {
    vcpus: Box<dyn Vcpus>,
    ranks_per_host: u32,
    vcpus_per_host: u32,
    /// By rank, the number of its first worker.
    firsts: Vec<usize>,
    /// By worker, whether it wants to run.
    runs: Vec<bool>,
    /// By host, the number of workers that want to run.
    running: Vec<u32>,
}

impl Crowded {
    /// `vcpus`, of which each host of `ranks_per_host` consecutive ranks has `vcpus_per_host`; both are at least 1.
    /// `workers` has the number of workers of each rank.
    pub fn new(vcpus: Box<dyn Vcpus>, workers: &[u32], ranks_per_host: u32, vcpus_per_host: u32) -> Self {
        let ranks_per_host = ranks_per_host.max(1);
        let first = |next: &mut usize, &count: &u32| {
            *next += count as usize;
            Some(*next - count as usize)
        };
        Self {
            vcpus,
            ranks_per_host,
            vcpus_per_host: vcpus_per_host.max(1),
            firsts: workers.iter().scan(0, first).collect(),
            runs: vec![false; workers.iter().sum::<u32>() as usize],
            running: vec![0; workers.len().div_ceil(ranks_per_host as usize)],
        }
    }

    /// The part of a vCPU that each running worker of the host of this worker gets.
    fn part(&self, worker: Worker) -> f64 {
        let running = self.running[(worker.rank.0 / self.ranks_per_host) as usize];
        f64::from(self.vcpus_per_host) / f64::from(running.max(self.vcpus_per_host))
    }
}

impl Vcpus for Crowded {
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos) {
        let (speed, until) = self.vcpus.speed(worker, now);
        (speed * self.part(worker), until)
    }

    fn share(&mut self, worker: Worker, now: Nanos) -> f64 {
        self.vcpus.share(worker, now) * self.part(worker)
    }

    fn clock(&mut self, worker: Worker, now: Nanos) -> f64 {
        self.vcpus.clock(worker, now)
    }

    fn occupied(&mut self, worker: Worker, occupied: bool, now: Nanos) -> bool {
        let others = self.vcpus.occupied(worker, occupied, now);
        let before = self.part(worker);
        let runs = &mut self.runs[self.firsts[worker.rank.index()] + worker.number as usize];
        let was = std::mem::replace(runs, occupied);
        let running = &mut self.running[(worker.rank.0 / self.ranks_per_host) as usize];
        *running = *running + u32::from(occupied) - u32::from(was);
        others || before.to_bits() != self.part(worker).to_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_strategies::Rank;
    use lb_strategies::virtual_time::vcpus::Traces;

    #[test]
    fn workers_of_a_host_share_its_vcpus_while_they_run_and_others_are_not_disturbed() {
        // Two hosts of two ranks: the first has three workers, the second two. Each host has two vCPUs.
        let mut vcpus = Crowded::new(Box::new(Traces::constant(|_| 6.0)), &[2, 1, 1, 1], 2, 2);
        let all: Vec<Worker> = lb_strategies::virtual_time::vcpus::all_workers(&[2, 1, 1, 1]).collect();
        let changes = all.iter().map(|&worker| vcpus.occupied(worker, true, 0)).collect::<Vec<_>>();
        assert_eq!(changes, [false, false, true, false, false]);
        let speeds = all.iter().map(|&worker| vcpus.speed(worker, 0).0).collect::<Vec<_>>();
        assert_eq!(speeds, [4.0, 4.0, 4.0, 6.0, 6.0]);
        assert!(!vcpus.occupied(all[0], true, 5), "it runs already");
        assert!(vcpus.occupied(all[0], false, 5));
        let worker = Worker { rank: Rank(1), number: 0 };
        assert_eq!((vcpus.speed(worker, 5).0, vcpus.share(worker, 5)), (6.0, 1.0));
    }
}
