//! One worker of a task: its quota, its reports, and its speed (paper, Table 1 left, Fig. 2 right).
//!
//! A worker's speed is measured between its last two reports, without older ones and without smoothing. It does not know
//! other workers; the [`Task`](super::task::Task) divides the iterations.

use super::parameters::{Settings, seconds};
use super::task::TaskError;
use crate::pools::machine::Nanos;

/// The stage of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not started.
    Absent,
    /// It executes iterations, or could.
    Running,
    /// It has reached its quota and waits for another, or for its release. It still has its speed.
    Parked,
    /// It is released. Nothing of it changes any more.
    Finished,
}

/// The outcome of a report for a worker's speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Measure {
    /// It has changed by the factor `ratio`; 1 where there was none before.
    Recorded {
        /// New speed by old.
        ratio: f64,
    },
    /// Nothing: it came too soon after the last, and only its count was registered.
    Registered,
}

/// One worker of a task.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) stage: Stage,
    /// Iterations it shall do, all since its start (paper: I_n).
    pub(crate) assigned: u64,
    /// Iterations it has reported (paper: I_d).
    pub(crate) done: u64,
    /// Iterations it cannot be relieved of: those it has executed or is at. Where iterations are fungible, `done`.
    pub(crate) taken: u64,
    /// Iterations per second at the last measure.
    speed: Option<f64>,
    clock: Clock,
}

/// The time of a worker's last report, and its running time since its speed was last measured.
#[derive(Clone, Debug, Default)]
struct Clock {
    reported: Nanos,
    /// The count at the last measure.
    base: u64,
    /// Running time since then, up to `resumed`.
    active: Nanos,
    /// Since when it runs.
    resumed: Nanos,
}

impl Worker {
    /// A worker that has not started, and its share.
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

    /// Tells whether it is started and not finished; a parked worker is working.
    pub(crate) fn is_working(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Parked)
    }

    /// Iterations per second at the last measure, if there was one.
    pub(crate) fn measured_speed(&self) -> Option<f64> {
        self.speed
    }

    /// Iterations per second; 0 until the first measure.
    pub(crate) fn speed(&self) -> f64 {
        self.speed.unwrap_or(0.0)
    }

    /// The time at which it last reported, or began to run again.
    pub(crate) fn reported(&self) -> Nanos {
        self.clock.reported
    }

    /// Registers the count `done`, and measures the speed if the time since the last measure suffices for that.
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

    /// Iterations it has probably done by `now`; not capped by its quota.
    pub(crate) fn predicted(&self, now: Nanos) -> u64 {
        match (self.stage, self.speed) {
            (Stage::Running, Some(speed)) if now > self.clock.reported => {
                self.done.saturating_add((speed * seconds(now - self.clock.reported)) as u64)
            }
            _ => self.done,
        }
    }

    /// It waits: its time stands still.
    pub(crate) fn park(&mut self, now: Nanos) {
        if self.stage == Stage::Running {
            self.clock.active += now.saturating_sub(self.clock.resumed);
            self.stage = Stage::Parked;
        }
    }

    /// It goes on.
    pub(crate) fn unpark(&mut self, now: Nanos) {
        if self.stage == Stage::Parked {
            self.clock.resumed = now;
            self.clock.reported = now;
            self.stage = Stage::Running;
        }
    }

    /// It leaves. A second time has no effect.
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

    /// Golden vector 6.
    #[test]
    fn a_report_that_comes_too_soon_registers_its_count_and_no_speed() {
        let mut worker = started();
        assert_eq!(measure(&mut worker, 10.0, 100), Measure::Recorded { ratio: 1.0 });
        assert_eq!(measure(&mut worker, 10.4, 110), Measure::Registered);
        assert_eq!((worker.done, worker.speed), (110, Some(10.0)));
        assert_eq!(measure(&mut worker, 12.0, 140), Measure::Recorded { ratio: 2.0 }, "40 in 2 s");
    }

    /// Invariant 7.
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

    /// Invariant 10.
    #[test]
    fn a_worker_that_stood_still_has_a_ratio_of_one_to_itself() {
        let mut worker = started();
        for (seconds, done) in [(10.0, 0), (20.0, 0), (30.0, 50)] {
            assert_eq!(measure(&mut worker, seconds, done), Measure::Recorded { ratio: 1.0 });
        }
        assert_eq!(measure(&mut worker, 40.0, 50), Measure::Recorded { ratio: 0.0 });
    }

    proptest! {
        /// Invariants 4 and 8.
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
