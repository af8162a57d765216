//! Defines the speed of each worker in virtual time, and the times at which it changes.

use crate::pools::machine::{Nanos, SECOND};
use crate::rank::Rank;

/// A worker of the cluster.
///
/// ```
/// use lb_strategies::{Rank, virtual_time::Worker};
/// assert_eq!(Worker { rank: Rank(1), number: 2 }.to_string(), "1.2");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    /// The rank of the worker.
    pub rank: Rank,
    /// The number of the worker on its rank.
    pub number: u32,
}

impl std::fmt::Display for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.rank.0, self.number)
    }
}

/// All workers in order. `workers` has the number of workers of each rank.
pub fn all_workers(workers: &[u32]) -> impl Iterator<Item = Worker> + '_ {
    let of_rank =
        |(rank, &workers): (u32, &u32)| (0..workers).map(move |number| Worker { rank: Rank(rank), number });
    (0..).zip(workers).flat_map(of_rank)
}

/// The vCPUs of the workers. A speed is in units of work per second, and holds for a while.
pub trait Vcpus {
    /// The speed of a worker from `now` on, and the later time until which it holds (`Nanos::MAX` for forever).
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos);

    /// The part of the time in which a worker that wants to run does run, while its speed holds. Others have the vCPU
    /// for the rest. The speed includes this part: while the worker runs, it is `speed / share`, as a short burst
    /// shows.
    fn share(&mut self, _worker: Worker, _now: Nanos) -> f64 {
        1.0
    }

    /// Units of work per second while the worker runs, as a short burst of computation shows; 0 on a stopped vCPU.
    fn clock(&mut self, worker: Worker, now: Nanos) -> f64 {
        let (speed, share) = (self.speed(worker, now).0, self.share(worker, now));
        if speed > 0.0 { speed / share } else { 0.0 }
    }

    /// Notes that a worker begins or stops executing. Returns true if this changes the speed of others. An unchanged
    /// speed must hold at least until the time that was returned with it.
    fn occupied(&mut self, _worker: Worker, _occupied: bool, _now: Nanos) -> bool {
        false
    }

    /// The end of `work` that a worker begins now, if its speed does not depend on other workers.
    fn through_at(&mut self, worker: Worker, work: f64, now: Nanos) -> Nanos {
        let (mut left, mut at) = (work, now);
        while at < Nanos::MAX {
            let (speed, until) = self.speed(worker, at);
            let rest = left / speed * SECOND as f64;
            if rest <= (until - at) as f64 {
                return at + rest.ceil() as Nanos;
            }
            left -= speed * (until - at) as f64 / SECOND as f64;
            at = until;
        }
        Nanos::MAX
    }
}

/// Speeds as functions of time. Each step of `step` has the speed of its middle.
///
/// ```
/// use lb_strategies::{Rank, virtual_time::{Traces, Vcpus, Worker}};
/// let mut vcpus = Traces::new(1_000_000_000, |_, seconds| if seconds < 5.0 { 100.0 } else { 50.0 });
/// let worker = Worker { rank: Rank(0), number: 0 };
/// assert_eq!(vcpus.speed(worker, 4_200_000_000), (100.0, 5_000_000_000));
/// assert_eq!(Traces::constant(|_| 3.0).speed(worker, 0), (3.0, u64::MAX));
/// ```
pub struct Traces<F> {
    step: Nanos,
    speed: F,
}

impl<F: FnMut(Worker, f64) -> f64> Traces<F> {
    /// Speeds by `speed`, a function of the worker and the time in seconds.
    pub fn new(step: Nanos, speed: F) -> Self {
        Self { step: step.max(1), speed }
    }
}

impl Traces<fn(Worker, f64) -> f64> {
    /// Speeds that never change.
    pub fn constant(mut speed: impl FnMut(Worker) -> f64) -> Traces<impl FnMut(Worker, f64) -> f64> {
        Traces { step: Nanos::MAX, speed: move |worker, _| speed(worker) }
    }
}

impl<F: FnMut(Worker, f64) -> f64> Vcpus for Traces<F> {
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos) {
        let begin = now - now % self.step;
        let middle =
            if self.step == Nanos::MAX { 0.0 } else { (begin + self.step / 2) as f64 / SECOND as f64 };
        ((self.speed)(worker, middle), begin.saturating_add(self.step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_goes_on_through_changes_of_speed_and_stops() {
        let mut vcpus = Traces::new(SECOND, |_, seconds| [10.0, 0.0, 0.0, 5.0][(seconds as usize).min(3)]);
        let worker = Worker { rank: Rank(0), number: 0 };
        assert_eq!(vcpus.through_at(worker, 5.0, 0), SECOND / 2);
        assert_eq!(vcpus.through_at(worker, 15.0, 0), 4 * SECOND);
        assert_eq!(vcpus.through_at(worker, 5.0, SECOND), 4 * SECOND);
        let mut never = Traces::constant(|_| 0.0);
        assert_eq!(never.through_at(worker, 1.0, 0), Nanos::MAX);
    }
}
