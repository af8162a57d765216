//! Measures the *pace* of each worker: the seconds per unit of weight in its steps.

use std::collections::VecDeque;

use super::policy::{Step, Work};
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

/// How a worker's pace is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// CPU time of the last step, scaled by the time that others took of the vCPU in the last 0.3 s, or by the quota.
    /// CPU time hardly changes from step to step, but others take the vCPU for a while at a time. A quota of half a
    /// vCPU stops a worker for 50 ms after it ran for 50 ms. It never stops a worker that computes half of the time.
    Cpu,
    /// Wall time of the last step, as in the papers.
    Wall,
}

impl By {
    /// The parameter of policies that measure paces.
    pub const PARAMETER: Parameter = Parameter {
        name: "by",
        default: "cpu",
        meaning: "time from which the speed of a worker is computed: cpu (CPU time of a step, scaled by what other processes took in 0.3 s) or wall (wall time of a step)",
    };

    /// The value of [`PARAMETER`](Self::PARAMETER).
    ///
    /// # Errors
    /// If it is neither.
    pub fn read(parameters: &Parameters) -> Result<Self, ParseError> {
        parameters.one_of("by", &[("cpu", Self::Cpu), ("wall", Self::Wall)])
    }
}

/// Seconds of computing over which the time of others on a vCPU is measured: several periods of a quota, 0.1 s each.
const STRETCH_SECONDS: f64 = 0.3;

/// The paces of all workers.
///
/// ```
/// use lb_strategies::supersteps::{By, Paces, Step, Work};
/// let work = |seconds| Work { weight: 100.0, seconds, cpu_seconds: 0.01, ..Work::default() };
/// let mut paces = Paces::new(By::Cpu, 2);
/// // A neighbour has half of the second worker's vCPU.
/// paces.add(&Step { works: vec![work(0.01), work(0.02)], ..Step::default() });
/// assert_eq!(paces.last(), [0.0001, 0.0002]);
/// ```
#[derive(Clone, Debug)]
pub struct Paces {
    by: By,
    workers: Vec<Measured>,
}

#[derive(Clone, Debug, Default)]
struct Measured {
    /// The pace in the last step in which the worker computed.
    pace: Option<f64>,
    /// Wall time and CPU time of the last steps, s: as few steps as add up to `STRETCH_SECONDS`.
    recent: VecDeque<(f64, f64)>,
    seconds: f64,
    cpu_seconds: f64,
    /// Seconds that the worker has computed since its pace was last fresh.
    since: f64,
    fresh: bool,
}

impl Paces {
    /// Paces of workers that were not measured yet.
    pub fn new(by: By, workers: usize) -> Self {
        Self { by, workers: vec![Measured::default(); workers] }
    }

    /// Adds a step. A worker that computed nothing keeps its pace.
    pub fn add(&mut self, step: &Step) {
        for (worker, work) in self.workers.iter_mut().zip(&step.works) {
            worker.add(work, self.by);
        }
    }

    /// True if a worker's pace shares no step with its last fresh pace. Other paces are similar because they share
    /// steps, and not because the worker is steady.
    pub fn is_fresh(&self, worker: usize) -> bool {
        self.workers[worker].fresh
    }

    /// The pace of each worker in the last step, s per unit of weight, above 0. A worker that never computed has the
    /// mean of the others. If no worker computed, all have 1.
    pub fn last(&self) -> Vec<f64> {
        let known: Vec<f64> = self.workers.iter().filter_map(|worker| worker.pace).collect();
        // Each pace is divided before adding, because a sum of paces may overflow.
        let part = |pace: &f64| pace / known.len() as f64;
        let mean = if known.is_empty() { 1.0 } else { known.iter().map(part).sum() };
        self.workers.iter().map(|worker| worker.pace.unwrap_or(mean)).collect()
    }
}

impl Measured {
    fn add(&mut self, work: &Work, by: By) {
        let is_real = |value: f64| value > 0.0 && value.is_finite();
        self.fresh = false;
        if !is_real(work.weight) || !is_real(work.seconds) {
            return;
        }
        // A CPU clock with coarse ticks may show 0, or more than the wall time.
        let cpu_seconds = work.cpu_seconds.clamp(work.seconds * 1e-3, work.seconds);
        self.recent.push_back((work.seconds, cpu_seconds));
        (self.seconds, self.cpu_seconds) = (self.seconds + work.seconds, self.cpu_seconds + cpu_seconds);
        while let Some(&(seconds, cpu_seconds)) = self.recent.front()
            && self.seconds - seconds >= STRETCH_SECONDS
        {
            self.recent.pop_front();
            (self.seconds, self.cpu_seconds) = (self.seconds - seconds, self.cpu_seconds - cpu_seconds);
        }
        self.since += work.seconds;
        self.fresh = by == By::Wall || self.since >= STRETCH_SECONDS;
        if self.fresh {
            self.since = 0.0;
        }
        let allowed = work.allowed.filter(|&allowed| is_real(allowed)).unwrap_or(1.0);
        let seconds = match by {
            By::Wall => work.seconds,
            By::Cpu if self.recent.len() == 1 => work.seconds.max(cpu_seconds / allowed),
            By::Cpu => cpu_seconds * (self.seconds / self.cpu_seconds).max(1.0 / allowed).max(1.0),
        };
        let pace = seconds / work.weight;
        self.pace = Some(pace).filter(|&pace| is_real(pace)).or(self.pace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(work: Work) -> Step {
        Step { works: vec![work], ..Step::default() }
    }

    /// A quota of half a vCPU: five steps of 10 ms, then one step in which the worker is stopped for 50 ms.
    fn throttled(by: By) -> Vec<f64> {
        let mut paces = Paces::new(by, 1);
        let work = |number: u32| {
            let stopped = if number.is_multiple_of(5) { 0.05 } else { 0.0 };
            Work { weight: 10.0, seconds: 0.01 + stopped, cpu_seconds: 0.01, ..Work::default() }
        };
        let one = |number| {
            paces.add(&step(work(number)));
            paces.last()[0]
        };
        (0..100).map(one).skip(50).collect()
    }

    #[test]
    fn a_quota_is_half_a_vcpu_and_not_all_of_it_at_times() {
        assert!(
            throttled(By::Cpu).iter().all(|pace| (0.0018..0.0022).contains(pace)),
            "{:?}",
            throttled(By::Cpu)
        );
        assert!(throttled(By::Wall).iter().any(|&pace| pace < 0.0011), "as it looks step by step");
    }

    #[test]
    fn what_a_quota_allows_counts_before_it_stops_anybody() {
        let mut paces = Paces::new(By::Cpu, 1);
        let work =
            Work { weight: 10.0, seconds: 0.01, cpu_seconds: 0.01, allowed: Some(0.5), ..Work::default() };
        for _ in 0..3 {
            paces.add(&step(work));
            assert!((paces.last()[0] - 0.002).abs() < 1e-9, "{:?}", paces.last());
        }
    }

    #[test]
    fn a_worker_without_work_keeps_its_pace_and_one_that_never_had_any_has_that_of_the_others() {
        let mut paces = Paces::new(By::Cpu, 3);
        let work = |weight| Work { weight, seconds: 0.2, cpu_seconds: 0.2, ..Work::default() };
        assert_eq!(paces.last(), [1.0; 3]);
        paces.add(&Step { works: vec![work(1.0), work(2.0), Work::default()], ..Step::default() });
        assert_eq!(paces.last(), [0.2, 0.1, 0.15000000000000002]);
        paces.add(&Step { works: vec![work(1.0), work(0.0), Work::default()], ..Step::default() });
        assert_eq!(paces.last()[1..2], [0.1]);
    }

    #[test]
    fn the_mean_of_great_paces_is_a_number() {
        let mut paces = Paces::new(By::Wall, 3);
        let work = Work { weight: 1e-300, seconds: 1.5e8, cpu_seconds: 1.5e8, ..Work::default() };
        paces.add(&Step { works: vec![work, work, Work::default()], ..Step::default() });
        assert!(paces.last().iter().all(|pace| pace.is_finite()), "{:?}", paces.last());
    }

    #[test]
    fn a_pace_is_fresh_when_no_step_of_it_was_in_the_one_before() {
        let work = Work { weight: 10.0, seconds: 0.125, cpu_seconds: 0.125, ..Work::default() };
        let fresh = |by| {
            let mut paces = Paces::new(by, 1);
            [(); 7].map(|()| {
                paces.add(&step(work));
                paces.is_fresh(0)
            })
        };
        assert_eq!(fresh(By::Cpu), [false, false, true, false, false, true, false]);
        assert_eq!(fresh(By::Wall), [true; 7]);
    }
}
