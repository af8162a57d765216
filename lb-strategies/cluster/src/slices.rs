//! Lets the processes on a vCPU run in turn, in time slices of milliseconds, as the scheduler of a host does.

use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::splitmix::mix;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// The vCPUs of another model, on which a worker and others run in turn instead of at the same time.
///
/// The shorter of the two turns has the length of a slice, and the other is as long as the worker's share requires. So
/// beside one neighbour that always computes, both have slices of this length. Turns go on while the worker is idle,
/// and each worker has its own beginning.
///
/// ```
/// use lb_strategies::{Rank, virtual_time::{Traces, Vcpus, Worker}};
/// use virtual_cluster::{Beside, Neighbour, Shared, Sliced};
/// let shares = Beside::Vcpu.shares(&[Neighbour::always(Rank(0))]);
/// let mut vcpus = Sliced::new(Box::new(Shared::new(Box::new(Traces::constant(|_| 800.0)), shares)), 4_000_000);
/// let worker = Worker { rank: Rank(0), number: 0 };
/// let (speed, until) = vcpus.speed(worker, 0);
/// assert!(speed == 800.0 || speed == 0.0);
/// assert_eq!(vcpus.speed(worker, until), (800.0 - speed, until + 4_000_000));
/// ```
pub struct Sliced {
    vcpus: Box<dyn Vcpus>,
    slice: Nanos,
}

impl Sliced {
    /// `vcpus` with slices of this length, above 0.
    pub fn new(vcpus: Box<dyn Vcpus>, slice: Nanos) -> Self {
        Self { vcpus, slice: slice.max(1) }
    }

    /// True if it is the worker's turn, and until when this holds. `share` is above 0.
    fn turn(&self, worker: Worker, share: f64, now: Nanos) -> (bool, Nanos) {
        if share >= 1.0 {
            return (true, Nanos::MAX);
        }
        let others = (1.0 - share) / share;
        let slice = self.slice as f64;
        let [runs, waits] = [slice.max(slice / others), slice.max(slice * others)].map(|turn| turn as Nanos);
        let cycle = runs.saturating_add(waits);
        let begin = mix(u64::from(worker.rank.0) << 32 | u64::from(worker.number)) % cycle;
        let at = now.saturating_add(begin) % cycle;
        if at < runs {
            (true, now.saturating_add(runs - at))
        } else {
            (false, now.saturating_add(cycle - at))
        }
    }
}

impl Vcpus for Sliced {
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos) {
        let ((speed, until), share) = (self.vcpus.speed(worker, now), self.vcpus.share(worker, now));
        if speed <= 0.0 || share <= 0.0 {
            return (0.0, until);
        }
        let (runs, until_turn) = self.turn(worker, share, now);
        (if runs { speed / share } else { 0.0 }, until.min(until_turn))
    }

    fn share(&mut self, worker: Worker, now: Nanos) -> f64 {
        if self.speed(worker, now).0 > 0.0 { 1.0 } else { 0.0 }
    }

    fn clock(&mut self, worker: Worker, now: Nanos) -> f64 {
        self.vcpus.clock(worker, now)
    }

    fn occupied(&mut self, worker: Worker, occupied: bool, now: Nanos) -> bool {
        self.vcpus.occupied(worker, occupied, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PerWorker, Series, Shared};
    use lb_strategies::Rank;
    use lb_strategies::pools::machine::SECOND;
    use lb_strategies::virtual_time::vcpus::Traces;

    #[test]
    fn a_worker_gets_its_share_in_turns_and_keeps_its_clock() {
        for (share, slice, turns) in [(0.5, 4_000_000, 250), (0.8, 4_000_000, 100), (0.25, 10_000_000, 50)] {
            let parts = PerWorker::new(&[1, 1], |_| Series::constant(share));
            let vcpus = Shared::new(Box::new(Traces::constant(|_| 100.0)), parts);
            let mut vcpus = Sliced::new(Box::new(vcpus), slice);
            let worker = Worker { rank: Rank(1), number: 0 };
            let (mut now, mut work, mut changes) = (0, 0.0, 0_i32);
            while now < 2 * SECOND {
                let (speed, until) = vcpus.speed(worker, now);
                assert!((vcpus.clock(worker, now) - 100.0).abs() < 1e-9, "also while it waits");
                assert!((vcpus.share(worker, now) - speed / 100.0).abs() < 1e-9);
                work += speed * (until.min(2 * SECOND) - now) as f64 / SECOND as f64;
                (now, changes) = (until, changes + 1);
            }
            assert!((work - 200.0 * share).abs() < 1.0, "{work} with {share}");
            assert!((changes - 2 * turns).abs() <= 2, "{changes} turns with {share}");
        }
    }

    #[test]
    fn a_worker_alone_never_waits() {
        let worker = Worker { rank: Rank(0), number: 0 };
        let mut vcpus = Sliced::new(Box::new(Traces::constant(|_| 100.0)), 4_000_000);
        assert_eq!(vcpus.speed(worker, 12_345), (100.0, Nanos::MAX));
        let mut halted = Sliced::new(Box::new(Traces::constant(|_| 0.0)), 4_000_000);
        assert_eq!((halted.speed(worker, 7), halted.clock(worker, 7)), ((0.0, Nanos::MAX), 0.0));
    }
}
