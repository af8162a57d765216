//! Simulates hosts with more workers than vCPUs: workers take turns, as the scheduler of an operating system lets them.

use std::collections::VecDeque;

use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// The vCPUs of another model, of which a host may have fewer than workers.
///
/// A worker that wants to run gets a free vCPU, or waits behind the others that wait. It keeps its vCPU until it has
/// nothing more to execute, or until its turn of 3 ms is over and another worker waits. The scheduler of the host may run
/// a worker on any of its vCPUs.
///
/// ```
/// use lb_strategies::{Rank, virtual_time::{Traces, Vcpus, Worker}};
/// use virtual_cluster::Crowded;
/// // Two ranks of one worker on one host with one vCPU.
/// let mut vcpus = Crowded::new(Box::new(Traces::constant(|_| 300.0)), &[1, 1], 2, 1);
/// let [one, two] = [0, 1].map(|rank| Worker { rank: Rank(rank), number: 0 });
/// vcpus.occupied(one, true, 0);
/// vcpus.occupied(two, true, 0);
/// let turn = Crowded::TURN;
/// assert_eq!((vcpus.speed(one, 0), vcpus.speed(two, 0)), ((300.0, turn), (0.0, turn)));
/// assert_eq!((vcpus.speed(one, turn), vcpus.speed(two, turn)), ((0.0, 2 * turn), (300.0, 2 * turn)));
/// assert!(vcpus.occupied(two, false, turn + 7), "that gives its vCPU to the other");
/// assert_eq!(vcpus.speed(one, turn + 7), (300.0, 2 * turn + 7));
/// ```
pub struct Crowded {
    vcpus: Box<dyn Vcpus>,
    ranks_per_host: u32,
    vcpus_per_host: u32,
    hosts: Vec<Host>,
}

/// The workers of a host that want to run.
#[derive(Clone, Default)]
struct Host {
    /// Those that have a vCPU, and when their turns end.
    running: Vec<(Worker, Nanos)>,
    /// The others, the longest waiting first.
    waiting: VecDeque<Worker>,
}

impl Crowded {
    /// The length of a turn, ns: the time slice of Linux.
    pub const TURN: Nanos = 3_000_000;

    /// `vcpus`, of which each host of `ranks_per_host` consecutive ranks has `vcpus_per_host`; both are at least 1.
    /// `workers` has the number of workers of each rank.
    pub fn new(vcpus: Box<dyn Vcpus>, workers: &[u32], ranks_per_host: u32, vcpus_per_host: u32) -> Self {
        let ranks_per_host = ranks_per_host.max(1);
        let hosts = vec![Host::default(); workers.len().div_ceil(ranks_per_host as usize)];
        Self { vcpus, ranks_per_host, vcpus_per_host: vcpus_per_host.max(1), hosts }
    }

    fn host(&mut self, worker: Worker) -> &mut Host {
        &mut self.hosts[(worker.rank.0 / self.ranks_per_host) as usize]
    }

    /// True if a worker has a vCPU, and the next time at which turns end on its host.
    fn turn(&mut self, worker: Worker, now: Nanos) -> (bool, Nanos) {
        let host = self.host(worker);
        host.end_turns(now);
        let next = host.running.iter().map(|(_, end)| *end).min().unwrap_or(Nanos::MAX);
        (!host.waiting.contains(&worker), next)
    }
}

impl Host {
    /// Ends the turns that are over. A worker for which none waits begins another.
    fn end_turns(&mut self, now: Nanos) {
        let over = |(_, end): &&mut (Worker, Nanos)| *end <= now;
        while let Some((worker, end)) = self.running.iter_mut().filter(over).min_by_key(|(_, end)| *end) {
            if let Some(next) = self.waiting.pop_front() {
                self.waiting.push_back(std::mem::replace(worker, next));
            }
            *end += Crowded::TURN;
        }
    }
}

impl Vcpus for Crowded {
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos) {
        let (runs, until_turn) = self.turn(worker, now);
        let (speed, until) = self.vcpus.speed(worker, now);
        (if runs { speed } else { 0.0 }, until.min(until_turn))
    }

    fn share(&mut self, worker: Worker, now: Nanos) -> f64 {
        if self.turn(worker, now).0 { self.vcpus.share(worker, now) } else { 0.0 }
    }

    fn clock(&mut self, worker: Worker, now: Nanos) -> f64 {
        self.vcpus.clock(worker, now)
    }

    fn occupied(&mut self, worker: Worker, occupied: bool, now: Nanos) -> bool {
        let others = self.vcpus.occupied(worker, occupied, now);
        let free = self.vcpus_per_host as usize;
        let host = self.host(worker);
        host.end_turns(now);
        if occupied {
            if host.running.len() < free {
                host.running.push((worker, now + Self::TURN));
            } else {
                host.waiting.push_back(worker);
            }
            return others;
        }
        host.waiting.retain(|other| *other != worker);
        let Some(at) = host.running.iter().position(|(other, _)| *other == worker) else { return others };
        let Some(next) = host.waiting.pop_front() else {
            host.running.swap_remove(at);
            return others;
        };
        host.running[at] = (next, now + Self::TURN);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_strategies::virtual_time::vcpus::{Traces, all_workers};

    #[test]
    fn workers_of_a_host_take_turns_and_others_are_not_disturbed() {
        // Two hosts of two ranks: the first has three workers, the second two. Each host has two vCPUs.
        let workers = [2, 1, 1, 1];
        let mut vcpus = Crowded::new(Box::new(Traces::constant(|_| 6.0)), &workers, 2, 2);
        let all: Vec<Worker> = all_workers(&workers).collect();
        let changes = all.iter().map(|&worker| vcpus.occupied(worker, true, 0)).collect::<Vec<_>>();
        assert_eq!(changes, [false; 5], "a worker that begins to wait slows no other");
        let mut work = [0.0; 5];
        for turn in 0..300 {
            let now = turn * Crowded::TURN;
            for (worker, work) in all.iter().zip(&mut work) {
                let (speed, until) = vcpus.speed(*worker, now);
                assert_eq!(until, now + Crowded::TURN);
                assert!((vcpus.share(*worker, now) - speed / 6.0).abs() < 1e-9);
                *work += speed / 300.0;
            }
        }
        let wanted = [4.0, 4.0, 4.0, 6.0, 6.0];
        assert!(work.iter().zip(wanted).all(|(work, wanted)| (work - wanted).abs() < 0.1), "{work:?}");
    }

    #[test]
    fn a_vcpu_is_passed_on_at_once_and_a_worker_may_stop_waiting() {
        let workers = [1, 1, 1];
        let mut vcpus = Crowded::new(Box::new(Traces::constant(|_| 6.0)), &workers, 3, 1);
        let [one, two, three] = [0, 1, 2].map(|rank| all_workers(&workers).nth(rank).expect("three"));
        [one, two, three].into_iter().for_each(|worker| _ = vcpus.occupied(worker, true, 0));
        assert!(!vcpus.occupied(two, false, 5), "it did not run");
        assert!(vcpus.occupied(one, false, 10));
        assert_eq!(vcpus.speed(three, 10), (6.0, 10 + Crowded::TURN));
        assert!(!vcpus.occupied(three, false, 20), "no other waits");
        assert!(!vcpus.occupied(two, true, 30), "a vCPU is free");
        assert_eq!((vcpus.speed(two, 30), vcpus.clock(one, 30)), ((6.0, 30 + Crowded::TURN), 6.0));
    }
}
