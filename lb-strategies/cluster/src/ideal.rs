//! Computes the best time that any policy could reach: all workers are busy from their start, and all end together.

use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// The time in which `work` units of work can be done, s: the smallest T at which the integral of the speeds of all
/// `workers` up to T reaches it. Infinite if the speeds stay 0.
///
/// Each worker comes with the time of its start. Iterations can be divided here: with a few expensive ones, no schedule
/// may reach this time. O(speed changes x workers).
///
/// ```
/// use lb_strategies::Rank;
/// use virtual_cluster::{Traces, Worker, ideal_s};
/// let workers = [0, 1].map(|number| (Worker { rank: Rank(0), number }, 0));
/// let mut vcpus = Traces::constant(|worker| if worker.number == 0 { 100.0 } else { 50.0 });
/// assert_eq!(ideal_s(&workers, &mut vcpus, 1500.0), 10.0);
/// ```
pub fn ideal_s(workers: &[(Worker, Nanos)], vcpus: &mut dyn Vcpus, work: f64) -> f64 {
    let mut left = work;
    let mut now = 0;
    let mut speeds = vec![(0.0, 0); workers.len()];
    while left > 0.0 {
        let mut others_change = false;
        for &(worker, _) in workers.iter().filter(|(_, start)| *start == now) {
            others_change |= vcpus.occupied(worker, true, now);
        }
        for (speed, &(worker, start)) in speeds.iter_mut().zip(workers) {
            if start > now {
                *speed = (0.0, start);
            } else if others_change || speed.1 <= now {
                *speed = vcpus.speed(worker, now);
            }
        }
        let sum: f64 = speeds.iter().map(|(speed, _)| speed).sum();
        let next = speeds.iter().map(|&(_, until)| until).min().unwrap_or(Nanos::MAX);
        let done = sum * (next - now) as f64 / SECOND as f64;
        if done >= left || next == Nanos::MAX {
            return now as f64 / SECOND as f64 + left / sum;
        }
        left -= done;
        now = next;
    }
    0.0
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the sums are exact, or are to be the same to the bit")]
mod tests {
    use super::*;
    use crate::{PerWorker, Series};
    use lb_strategies::Rank;

    #[test]
    fn late_and_stopped_workers_count() {
        let mut vcpus = PerWorker::new(&[2], |worker| {
            let trace = Series::constant(10.0);
            if worker.number == 0 { trace.then(3.0, 0.0).then(5.0, 10.0) } else { trace }
        });
        let workers = [(0, 0), (1, 4 * SECOND)].map(|(number, at)| (Worker { rank: Rank(0), number }, at));
        // The first worker does 30 alone, the second 10 alone, then both together do 20 per second.
        assert_eq!(ideal_s(&workers, &mut vcpus, 60.0), 6.0);
        assert_eq!(ideal_s(&workers, &mut vcpus, 0.0), 0.0);
        assert_eq!(ideal_s(&workers[..1], &mut Halted, 1.0), f64::INFINITY);
    }

    struct Halted;

    impl Vcpus for Halted {
        fn speed(&mut self, _worker: Worker, _now: Nanos) -> (f64, Nanos) {
            (0.0, Nanos::MAX)
        }
    }
}
