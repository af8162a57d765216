//! Computes how long workers take for their work: by the speeds of vCPUs, or by measured job times.

use std::sync::Arc;

use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// The computing times of workers.
pub trait Computing {
    /// Begins the step with this number, counted from 0.
    fn begin(&mut self, _step: u64) {}

    /// The end of `work` that a worker begins at `begin_s`, and the CPU time used. The end is infinite if work never
    /// ends.
    fn compute(&mut self, worker: usize, work: f64, begin_s: f64) -> Computed;
}

/// The end of some work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Computed {
    /// End of the work, s.
    pub end_s: f64,
    /// CPU time until then, s.
    pub cpu_s: f64,
}

/// Workers on vCPUs, whose speed is work per second.
pub struct OnVcpus {
    vcpus: Box<dyn Vcpus>,
    workers: Vec<Worker>,
}

impl OnVcpus {
    /// Worker i of a program is `workers[i]` of the cluster. All workers count as running all the time.
    pub fn new(mut vcpus: Box<dyn Vcpus>, workers: Vec<Worker>) -> Self {
        for &worker in &workers {
            vcpus.occupied(worker, true, 0);
        }
        Self { vcpus, workers }
    }
}

impl Computing for OnVcpus {
    fn compute(&mut self, worker: usize, work: f64, begin_s: f64) -> Computed {
        let name = self.workers[worker];
        let (mut left, mut cpu_s) = (work, 0.0);
        let mut now = (begin_s * SECOND as f64) as Nanos;
        // Rounding of times to whole nanoseconds must not lose work.
        let mut exact_s = begin_s;
        while left > 0.0 {
            let (speed, until) = self.vcpus.speed(name, now);
            let share = if speed > 0.0 { self.vcpus.share(name, now) } else { 0.0 };
            let until_s = if until == Nanos::MAX { f64::INFINITY } else { until as f64 / SECOND as f64 };
            let whole_s = left / speed;
            if exact_s + whole_s <= until_s || until_s.is_infinite() {
                return Computed { end_s: exact_s + whole_s, cpu_s: cpu_s + share * whole_s };
            }
            let passed_s = (until_s - exact_s).max(0.0);
            (left, cpu_s) = (left - speed * passed_s, cpu_s + share * passed_s);
            (now, exact_s) = (until, until_s);
        }
        Computed { end_s: exact_s, cpu_s }
    }
}

/// Measured times: each job that a worker begins, or each step, takes the next time of the worker's series, times its
/// work. After the last time, the first follows again.
#[derive(Clone, Debug)]
pub struct JobTimes {
    /// By worker, seconds for one unit of work.
    series: Arc<Vec<Vec<f64>>>,
    next: Vec<usize>,
    by_step: bool,
}

impl JobTimes {
    /// `series[i]` has the times of worker i, job by job, s; it must not be empty.
    pub fn new(series: Arc<Vec<Vec<f64>>>) -> Self {
        Self { next: vec![0; series.len()], series, by_step: false }
    }

    /// Uses the times step by step: all jobs that a worker begins in one step take equally long per work.
    pub fn by_step(series: Arc<Vec<Vec<f64>>>) -> Self {
        Self { by_step: true, ..Self::new(series) }
    }
}

impl Computing for JobTimes {
    fn begin(&mut self, step: u64) {
        if self.by_step {
            self.next.fill(step as usize);
        }
    }

    fn compute(&mut self, worker: usize, work: f64, begin_s: f64) -> Computed {
        let series = &self.series[worker];
        let seconds = work * series[self.next[worker] % series.len()];
        self.next[worker] += usize::from(!self.by_step);
        Computed { end_s: begin_s + seconds, cpu_s: seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PerWorker, Series, Shared, Traces};
    use lb_strategies::Rank;

    #[test]
    fn work_goes_on_through_changes_and_its_cpu_time_is_what_others_left() {
        let worker = Worker { rank: Rank(0), number: 0 };
        let halves = PerWorker::new(&[1], |_| Series::constant(1.0).then(1.0, 0.5));
        let vcpus = Shared::new(Box::new(Traces::constant(|_| 10.0)), halves);
        let mut computing = OnVcpus::new(Box::new(vcpus), vec![worker]);
        // 0.5 s at speed 10, then 2 s at speed 5.
        assert_eq!(computing.compute(0, 15.0, 0.5), Computed { end_s: 3.0, cpu_s: 1.5 });
        assert_eq!(computing.compute(0, 0.0, 2.0), Computed { end_s: 2.0, cpu_s: 0.0 });
        let mut never = OnVcpus::new(Box::new(Traces::constant(|_| 0.0)), vec![worker]);
        assert_eq!(Some(never.compute(0, 1.0, 0.0).end_s), Some(f64::INFINITY));
    }

    #[test]
    fn measured_times_come_one_after_the_other_and_again() {
        let mut times = JobTimes::new(Arc::new(vec![vec![1.0, 3.0]]));
        let ends: Vec<f64> = (0..3).map(|_| times.compute(0, 2.0, 10.0).end_s).collect();
        assert_eq!(ends, [12.0, 16.0, 12.0]);
        let mut times = JobTimes::by_step(Arc::new(vec![vec![1.0, 3.0]]));
        times.begin(1);
        let ends: Vec<f64> = (0..2).map(|_| times.compute(0, 2.0, 10.0).end_s).collect();
        assert_eq!(ends, [16.0, 16.0]);
    }
}
