//! Simulates a host with two hardware threads per core, whose scheduler moves workers between cores.
//!
//! A worker is fast while no other worker *runs* on the second hardware thread of its core. So the end of one worker
//! makes another faster, and moves between cores even out speeds. On a full host, equal shares therefore end nearly
//! together (figure 8 of the RUPER-LB paper).

use std::collections::BTreeSet;

use lb_strategies::Rank;
use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::pools::policy::Pool;
use lb_strategies::virtual_time::splitmix::SplitMix64;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// The parameters of a host.
///
/// ```
/// use virtual_cluster::Host;
/// let host = Host { cores: 32, alone: 2250.0, together: 1030.0, hold: 200.0, seed: 8 };
/// assert_eq!(host.together / host.alone, 1030.0 / 2250.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Number of cores, each with two hardware threads.
    pub cores: usize,
    /// Units of work per second of a worker alone on its core.
    pub alone: f64,
    /// Units of work per second of each of two workers on one core.
    pub together: f64,
    /// Mean time that a worker stays on a hardware thread, s (exponentially distributed).
    pub hold: f64,
    /// Seed of the SplitMix64 stream that places and moves workers.
    pub seed: u64,
}

/// All workers of a pool on one host.
///
/// In order, each worker is put on a free hardware thread. Then in order, the time of each worker's stay is drawn. At
/// the end of the stay, the worker leaves, and one of the free hardware threads (including its last) and a new stay are
/// drawn. A worker keeps its hardware thread while it does not run.
///
/// ```
/// use lb_strategies::{Rank, pool::Pool};
/// use virtual_cluster::{HardwareThreads, Host, Vcpus, Worker};
/// let host = Host { cores: 1, alone: 2.0, together: 1.0, hold: 200.0, seed: 8 };
/// let mut vcpus = HardwareThreads::new(&Pool::new(100, vec![2]), host);
/// let [one, other] = [0, 1].map(|number| Worker { rank: Rank(0), number });
/// assert!(!vcpus.occupied(one, true, 0), "nobody is there to be disturbed");
/// assert_eq!(vcpus.speed(one, 0).0, 2.0);
/// assert!(vcpus.occupied(other, true, 0), "that makes `one` slower");
/// assert_eq!(vcpus.speed(one, 0).0, 1.0);
/// ```
pub struct HardwareThreads {
    host: Host,
    rng: SplitMix64,
    firsts: Vec<usize>,
    /// The worker on each hardware thread. Threads `h` and `h + cores` are on one core.
    slots: Vec<Option<usize>>,
    places: Vec<usize>,
    running: Vec<bool>,
    /// By worker, the end of its stay.
    moves: BTreeSet<(Nanos, usize)>,
}

impl HardwareThreads {
    /// The workers of `pool` on `host`; none is running.
    ///
    /// # Panics
    /// If there are more workers than hardware threads.
    pub fn new(pool: &Pool, host: Host) -> Self {
        let workers = pool.workers() as usize;
        assert!(workers <= 2 * host.cores, "every worker finds a hardware thread");
        let firsts = pool.workers.iter().scan(0, |next, &count| {
            *next += count as usize;
            Some(*next - count as usize)
        });
        let mut threads = Self {
            rng: SplitMix64::new(host.seed),
            firsts: firsts.collect(),
            slots: vec![None; 2 * host.cores],
            places: vec![0; workers],
            running: vec![false; workers],
            moves: BTreeSet::new(),
            host,
        };
        for index in 0..workers {
            threads.place(index);
        }
        for index in 0..workers {
            threads.stay(index, 0);
        }
        threads
    }

    fn place(&mut self, index: usize) {
        let free: Vec<usize> = (0..self.slots.len()).filter(|&slot| self.slots[slot].is_none()).collect();
        let slot = free[(self.rng.uniform() * free.len() as f64) as usize];
        self.slots[slot] = Some(index);
        self.places[index] = slot;
    }

    fn stay(&mut self, index: usize, now: Nanos) {
        let hold = (self.rng.exponential(self.host.hold) * SECOND as f64) as Nanos;
        self.moves.insert((now + hold.max(1), index));
    }

    fn advance(&mut self, now: Nanos) {
        while let Some(&(at, index)) = self.moves.first().filter(|&&(at, _)| at <= now) {
            self.moves.pop_first();
            self.slots[self.places[index]] = None;
            self.place(index);
            self.stay(index, at);
        }
    }

    fn index(&self, Worker { rank: Rank(rank), number }: Worker) -> usize {
        self.firsts[rank as usize] + number as usize
    }

    /// True if another worker runs on the other hardware thread of this worker's core.
    fn is_beside(&self, index: usize) -> bool {
        let other = (self.places[index] + self.host.cores) % self.slots.len();
        self.slots[other].is_some_and(|neighbour| self.running[neighbour])
    }
}

impl Vcpus for HardwareThreads {
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos) {
        self.advance(now);
        let speed = if self.is_beside(self.index(worker)) { self.host.together } else { self.host.alone };
        (speed, self.moves.first().map_or(Nanos::MAX, |&(at, _)| at))
    }

    fn occupied(&mut self, worker: Worker, occupied: bool, now: Nanos) -> bool {
        self.advance(now);
        let index = self.index(worker);
        let before = std::mem::replace(&mut self.running[index], occupied);
        before != occupied && self.is_beside(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_belongs_to_one_worker_however_often_they_move() {
        let pool = Pool::new(100, vec![8; 4]);
        let host = Host { cores: 20, alone: 2.0, together: 1.0, hold: 200.0, seed: 3 };
        let mut vcpus = HardwareThreads::new(&pool, host);
        let mut before = vcpus.places.clone();
        let mut moved = 0;
        for minute in 1..100 {
            vcpus.advance(minute * 60 * SECOND);
            for (index, &place) in vcpus.places.iter().enumerate() {
                assert_eq!(vcpus.slots[place], Some(index));
            }
            assert_eq!(vcpus.slots.iter().flatten().count(), 32);
            moved += before.iter().zip(&vcpus.places).filter(|(before, after)| before != after).count();
            before.clone_from(&vcpus.places);
        }
        // 32 workers. A minute is 0.3 stays, in which about 0.26 of the workers move at least once.
        assert!((600..1000).contains(&moved), "{moved}");
    }
}
