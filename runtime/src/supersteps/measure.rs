//! Measures how long a share computes, waits and moves units in each step, and chooses the length of slices.

use std::ops::Range;

use lb_strategies::supersteps::{Row, Work};
use lb_strategies::virtual_time::SplitMix64;
use serde::{Deserialize, Serialize};

use super::api::Then;
use crate::measure::background::SchedStat;
use crate::measure::cgroup;
use crate::measure::cpu::thread_cpu_ns;

/// The clocks of a run, or random times in virtual time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stopwatch {
    /// The machine's clocks, with the number of workers that share a quota of the process, or a quota of a rank.
    Machine { in_process: u32, in_rank: u32 },
    /// Random times by this seed, because computing takes no virtual time. They vary widely, so that divisions jump.
    Seeded(u64),
}

/// A running stopwatch.
pub(super) struct Timer {
    begin_ns: u64,
    cpu_ns: u64,
    /// The time and the CPU time, ns, if they are random.
    drawn: Option<(u64, u64)>,
}

impl Stopwatch {
    pub(super) fn start(self, worker: usize, step: u64, now_ns: u64) -> Timer {
        let drawn = match self {
            Stopwatch::Machine { .. } => None,
            Stopwatch::Seeded(seed) => {
                let mut random =
                    SplitMix64::new(seed ^ (step << 20) ^ worker as u64 ^ now_ns.rotate_left(40));
                let elapsed_ns = 1.0 + 1e9 * random.uniform().powi(8);
                Some((elapsed_ns as u64, (elapsed_ns * random.uniform()) as u64))
            }
        };
        let cpu_ns = if drawn.is_some() { 0 } else { thread_cpu_ns() };
        Timer { begin_ns: now_ns, cpu_ns, drawn }
    }

    /// The number of vCPUs that quotas allow the calling worker; none without a quota.
    fn allowed(self) -> Option<f64> {
        let Stopwatch::Machine { in_process, in_rank } = self else { return None };
        let mine = cgroup::quota_of_thread()?;
        let of_process = cgroup::quota().is_some_and(|quota| quota.group == mine.group);
        Some(mine.vcpus / f64::from(if of_process { in_process } else { in_rank }))
    }

    /// Run-queue delay of the calling thread so far, ns. 0 if the kernel does not report it, or if several shares use
    /// the threads of a rank.
    fn lost_ns(self) -> u64 {
        let Stopwatch::Machine { in_rank: 1, .. } = self else { return 0 };
        let scheduled = SchedStat::of_this_thread().and_then(|stat| stat.read());
        scheduled.map_or(0, |scheduled| scheduled.wait_ns)
    }
}

impl Timer {
    /// Time and CPU time since the start, ns.
    pub(super) fn stop(self, now_ns: u64) -> (u64, u64) {
        self.drawn.unwrap_or_else(|| (now_ns - self.begin_ns, thread_cpu_ns() - self.cpu_ns))
    }
}

/// What a share did in a step. Times are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StepStats {
    /// Units of the share's own job at the end of the step.
    pub(super) units: u64,
    /// Weight of the computed units.
    pub(super) weight: f64,
    /// Number of jobs that were dropped because another worker finished them, and the time spent on these jobs.
    pub(super) dropped: u64,
    pub(super) dropped_ns: u64,
    pub(super) computing_ns: u64,
    pub(super) cpu_ns: u64,
    /// Run-queue delay between the last two readings.
    pub(super) lost_ns: u64,
    pub(super) waiting_ns: u64,
    pub(super) moving_ns: u64,
    /// The number of vCPUs that quotas allow, as last read.
    pub(super) allowed: Option<f64>,
    /// The result of `combine`.
    pub(super) then: Then,
}

impl StepStats {
    /// Computing time per unit of weight, ns; 0 if nothing was computed.
    pub(super) fn pace_ns(&self) -> f64 {
        if self.weight > 0.0 { self.computing_ns as f64 / self.weight } else { 0.0 }
    }

    /// These statistics as the input of a policy.
    pub(super) fn work(&self) -> Work {
        Work {
            weight: self.weight,
            seconds: self.computing_ns as f64 / 1e9,
            cpu_seconds: self.cpu_ns as f64 / 1e9,
            waiting_seconds: self.waiting_ns as f64 / 1e9,
            allowed: self.allowed,
        }
    }
}

/// Measures the steps of a share.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StepMeter {
    stats: StepStats,
    /// When quotas and run-queue delay were last read; none before the first reading.
    read_ns: Option<u64>,
    allowed: Option<f64>,
    /// Run-queue delay of the thread since its start, as last read.
    lost_ns: u64,
    begun_ns: u64,
    moving_since_ns: u64,
    /// Computing time of the current job so far.
    current_job_ns: u64,
}

/// Time of the longest slice of a job, ns, which is also the longest delay before a share drops a finished job.
pub(super) const SLICE_NS: f64 = 1e6;

/// Ratio of the weight of a job's first slice to the weight of the longest.
const FIRST: f64 = 1.0 / 32.0;

/// The end of the slice of a job that begins at unit `from`. `longest` is not known before the first step.
///
/// A slice is as long as all slices before it together. So the current slice at most doubles the time that a share
/// loses if it then drops the job. This matters if workers are equally fast: they finish their own jobs within
/// microseconds of each other, when they have already begun the jobs of others.
///
/// Slices depend only on data that all workers have, so every worker that computes a job gets the same parts.
pub(super) fn slice_end(row: &Row, job: &Range<u64>, from: u64, longest: Option<f64>) -> u64 {
    let longest = longest.unwrap_or_else(|| row.weight(job.clone()) / 16.0);
    let weight = row.weight(job.start..from).clamp(FIRST * longest, longest);
    let units = (weight / row.weight(from..from + 1)).clamp(1.0, 1e15) as u64;
    job.end.min(from.saturating_add(units))
}

/// Time between two readings of quotas, ns. A reading takes about 50 us.
const READINGS_NS: u64 = 100_000_000;

impl StepMeter {
    /// Begins a step.
    pub(super) fn begin(&mut self, now_ns: u64, stopwatch: Stopwatch) {
        self.begun_ns = now_ns;
        if self.read_ns.is_none() {
            self.read(now_ns, stopwatch);
            self.stats.lost_ns = 0;
        }
    }

    fn read(&mut self, now_ns: u64, stopwatch: Stopwatch) {
        let before_ns = std::mem::replace(&mut self.lost_ns, stopwatch.lost_ns());
        self.stats.lost_ns = self.lost_ns.saturating_sub(before_ns);
        (self.read_ns, self.allowed) = (Some(now_ns), stopwatch.allowed());
    }

    /// Adds a computed slice.
    pub(super) fn add(&mut self, (elapsed_ns, cpu_ns): (u64, u64), weight: f64) {
        self.stats.computing_ns += elapsed_ns;
        self.current_job_ns += elapsed_ns;
        self.stats.cpu_ns += cpu_ns;
        self.stats.weight += weight;
    }

    /// Begins a job.
    pub(super) fn take_job(&mut self) {
        self.current_job_ns = 0;
    }

    /// Counts the current job as dropped.
    pub(super) fn drop_job(&mut self) {
        self.stats.dropped += 1;
        self.stats.dropped_ns += std::mem::take(&mut self.current_job_ns);
    }

    /// Ends the step. Returns its statistics.
    pub(super) fn end(&mut self, now_ns: u64, units: u64, then: Then, stopwatch: Stopwatch) -> StepStats {
        let waiting_ns = (now_ns - self.begun_ns).saturating_sub(self.stats.computing_ns);
        if then == Then::End || self.read_ns.is_none_or(|read_ns| now_ns - read_ns >= READINGS_NS) {
            self.read(now_ns, stopwatch);
        }
        StepStats { units, waiting_ns, allowed: self.allowed, then, ..std::mem::take(&mut self.stats) }
    }

    /// Begins the redistribution of units between two steps.
    pub(super) fn move_begins(&mut self, now_ns: u64) {
        self.moving_since_ns = now_ns;
    }

    /// Ends the redistribution, because all units of the share have arrived.
    pub(super) fn move_ends(&mut self, now_ns: u64) {
        self.stats.moving_ns = now_ns - self.moving_since_ns;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};

    use lb_strategies::supersteps::Weights;

    use super::*;
    use crate::measure::topology::pin_to;

    #[test]
    fn slices_double_up_to_the_longest_and_cover_the_job() {
        let row = Row::new(&Weights::Equal(1000));
        let slices = |job: Range<u64>, longest| {
            let (mut at, mut lengths) = (job.start, Vec::new());
            while at < job.end {
                let end = slice_end(&row, &job, at, longest);
                lengths.push(end - at);
                at = end;
            }
            lengths
        };
        assert_eq!(slices(100..300, Some(64.0)), [2, 2, 4, 8, 16, 32, 64, 64, 8]);
        assert_eq!(slices(100..103, Some(0.01)), [1, 1, 1], "no slice is empty");
        assert_eq!(slices(0..32, None), [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn a_worker_that_others_keep_from_its_vcpu_between_slices_has_lost_time() {
        const BUSY_NS: u64 = 40_000_000;
        let vcpu = crate::machine::vcpus()[0];
        let (beside, over) = (Barrier::new(2), AtomicBool::new(false));
        let worked = |stopwatch: Stopwatch| {
            let pinned = pin_to(vcpu) && SchedStat::of_this_thread().is_some();
            let mut measuring = StepMeter::default();
            measuring.begin(0, stopwatch);
            beside.wait();
            let until_ns = thread_cpu_ns() + BUSY_NS;
            while thread_cpu_ns() < until_ns {}
            over.store(true, Ordering::Relaxed);
            pinned.then(|| measuring.end(1, 1, Then::End, stopwatch))
        };
        let own = Stopwatch::Machine { in_process: 1, in_rank: 1 };
        let worked = std::thread::scope(|scope| {
            scope.spawn(|| {
                pin_to(vcpu);
                beside.wait();
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            scope.spawn(|| worked(own)).join().unwrap()
        });
        // Some hosts neither pin threads nor report run-queue delay.
        let Some(StepStats { lost_ns, .. }) = worked else { return };
        assert!(lost_ns > BUSY_NS / 4, "{lost_ns} ns");
        let shared = Stopwatch::Machine { in_process: 2, in_rank: 2 };
        assert_eq!(shared.lost_ns(), 0, "shares of a rank with two workers have no thread of their own");
    }
}
