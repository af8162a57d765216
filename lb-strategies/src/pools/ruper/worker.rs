//! Keeps the quota, the reports and the speed of one worker of a task, the pool of one rank (paper, Table 1 left, Fig. 2 right).
//!
//! A report measures the speed of the worker since the last measurement, without smoothing. A report that comes too
//! soon only registers its count. The [`Task`](super::task::Task) divides the iterations among workers.

use super::parameters::{Settings, seconds};
use super::task::TaskError;
use crate::pools::machine::Nanos;

/// The stage of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The worker has not started.
    Absent,
    /// The worker executes iterations, or could.
    Running,
    /// The worker has reached its quota, and waits for another one or for its release. It keeps its speed.
    Parked,
    /// The worker is released, and does not change any more.
    Finished,
}

/// The effect of a report on a worker's speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Measure {
    /// The speed was measured.
    Recorded {
        /// New speed / old speed; 1 if there was no old speed.
        ratio: f64,
    },
    /// Only the count was registered, because the report came too soon after the last one.
    Registered,
}

/// One worker of a task.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) stage: Stage,
    /// Quota: iterations that it executes since its start, in all (paper: I_n).
    pub(crate) assigned: u64,
    /// Iterations that it has reported (paper: I_d).
    pub(crate) done: u64,
    /// Iterations that cannot be taken from it, executed or being executed. With fungible iterations, `done`.
    pub(crate) taken: u64,
    /// Iterations per second at the last measurement.
    speed: Option<f64>,
    clock: Clock,
}

/// The time of a worker's last report, and its running time since its speed was last measured.
#[derive(Clone, Debug, Default)]
struct Clock {
    reported: Nanos,
    /// The count at the last measurement.
    base: u64,
    /// Running time since then, up to `resumed`.
    active: Nanos,
    /// When it last began to run.
    resumed: Nanos,
}

impl Worker {
    /// A worker that has not started, with its share.
    pub(crate) fn new(assigned: u64) -> Self {
        Self { stage: Stage::Absent, assigned, done: 0, taken: 0, speed: None, clock: Clock::default() }
    }

    pub(crate) fn start(&mut self, now: Nanos) -> Result<(), TaskError> {
        if self.stage != Stage::Absent {
            return Err(TaskError::AlreadyStarted);
        }
        self.stage = Stage::Running;
        self.clock = Clock { reported: now, resumed: now, ..Clock::default() };
        Ok(())
    }

    /// True if it has started and not finished. A parked worker counts as working.
    pub(crate) fn is_working(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Parked)
    }

    /// Iterations per second at the last measurement, if there was one.
    pub(crate) fn measured_speed(&self) -> Option<f64> {
        self.speed
    }

    /// Iterations per second; 0 before the first measurement.
    pub(crate) fn speed(&self) -> f64 {
        self.speed.unwrap_or(0.0)
    }

    /// The time at which it last reported, or began to run again.
    pub(crate) fn reported(&self) -> Nanos {
        self.clock.reported
    }

    /// Registers the count `done`. Measures the speed if enough time has passed since the last measurement.
    pub(crate) fn measure(
        &mut self,
        now: Nanos,
        done: u64,
        settings: &Settings,
    ) -> Result<Measure, TaskError> {
        if done < self.done {
            return Err(TaskError::DecreasingCount);
        }
        if now < self.clock.reported {
            return Ok(Measure::Registered);
        }
        self.done = done;
        self.taken = self.taken.max(done);
        self.clock.reported = now;
        let elapsed =
            self.clock.active + if self.stage == Stage::Parked { 0 } else { now - self.clock.resumed };
        if elapsed < settings.min_measure {
            return Ok(Measure::Registered);
        }
        let speed = (done - self.clock.base) as f64 / seconds(elapsed);
        let before = self.speed.replace(speed).unwrap_or(0.0);
        self.clock = Clock { reported: now, base: done, active: 0, resumed: now };
        Ok(Measure::Recorded { ratio: if before > 0.0 { speed / before } else { 1.0 } })
    }

    /// Iterations that it has probably done by `now`; may exceed its quota.
    pub(crate) fn predicted(&self, now: Nanos) -> u64 {
        match (self.stage, self.speed) {
            (Stage::Running, Some(speed)) if now > self.clock.reported => {
                self.done.saturating_add((speed * seconds(now - self.clock.reported)) as u64)
            }
            _ => self.done,
        }
    }

    /// The worker waits, and its running time stops.
    pub(crate) fn park(&mut self, now: Nanos) {
        if self.stage == Stage::Running {
            self.clock.active += now.saturating_sub(self.clock.resumed);
            self.stage = Stage::Parked;
        }
    }

    /// The worker continues.
    pub(crate) fn unpark(&mut self, now: Nanos) {
        if self.stage == Stage::Parked {
            self.clock.resumed = now;
            self.clock.reported = now;
            self.stage = Stage::Running;
        }
    }

    /// The worker leaves. A second call has no effect.
    pub(crate) fn end(&mut self) {
        self.stage = Stage::Finished;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::machine::SECOND;
    use proptest::prelude::*;

    fn started() -> Worker {
        let mut worker = Worker::new(1000);
        worker.start(0).unwrap();
        worker
    }

    fn measure(worker: &mut Worker, seconds: f64, done: u64) -> Measure {
        worker.measure((seconds * SECOND as f64) as Nanos, done, &Settings::of("")).unwrap()
    }

    #[test]
    fn a_report_that_comes_too_soon_registers_its_count_and_no_speed() {
        let mut worker = started();
        assert_eq!(measure(&mut worker, 10.0, 100), Measure::Recorded { ratio: 1.0 });
        assert_eq!(measure(&mut worker, 10.4, 110), Measure::Registered);
        assert_eq!((worker.done, worker.speed), (110, Some(10.0)));
        assert_eq!(measure(&mut worker, 12.0, 140), Measure::Recorded { ratio: 2.0 }, "40 in 2 s");
    }

    #[test]
    fn a_count_that_decreases_and_a_clock_that_goes_back_change_nothing() {
        let mut worker = started();
        measure(&mut worker, 10.0, 100);
        let decreasing = worker.measure(20 * SECOND, 99, &Settings::of(""));
        assert_eq!(decreasing, Err(TaskError::DecreasingCount));
        assert_eq!(measure(&mut worker, 5.0, 200), Measure::Registered);
        assert_eq!((worker.done, worker.reported()), (100, 10 * SECOND));
        assert_eq!(worker.start(0), Err(TaskError::AlreadyStarted));
    }

    #[test]
    fn the_time_in_which_a_worker_is_parked_does_not_count() {
        let mut worker = started();
        measure(&mut worker, 10.0, 100);
        worker.park(15 * SECOND);
        assert_eq!(worker.predicted(40 * SECOND), 100);
        worker.unpark(40 * SECOND);
        assert_eq!(measure(&mut worker, 45.0, 200), Measure::Recorded { ratio: 1.0 }, "100 in 10 s");
    }

    #[test]
    fn a_worker_that_stood_still_has_a_ratio_of_one_to_itself() {
        let mut worker = started();
        for (seconds, done) in [(10.0, 0), (20.0, 0), (30.0, 50)] {
            assert_eq!(measure(&mut worker, seconds, done), Measure::Recorded { ratio: 1.0 });
        }
        assert_eq!(measure(&mut worker, 40.0, 50), Measure::Recorded { ratio: 0.0 });
    }

    proptest! {
        #[test]
        fn a_prediction_starts_at_the_count_and_grows_no_faster_than_the_speed(
            reports in prop::collection::vec((0..100_000_000_000u64, 0..1000u64), 1..20),
        ) {
            let settings = Settings::of("");
            let (mut worker, mut now, mut done) = (started(), 0, 0);
            for (wait, more) in reports {
                for part in 1..=4 {
                    let (before, at) = (worker.predicted(now + wait / 4 * (part - 1)), now + wait / 4 * part);
                    prop_assert!(worker.predicted(at) >= before);
                    let most = worker.speed() * seconds(at - now);
                    prop_assert!(worker.predicted(at) as f64 <= done as f64 + most);
                }
                now += wait;
                done += more;
                worker.measure(now, done, &settings).unwrap();
                prop_assert_eq!(worker.predicted(now), done);
                prop_assert!(worker.speed().is_finite());
            }
        }
    }
}
