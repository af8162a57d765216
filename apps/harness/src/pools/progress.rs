//! Records the progress of a pool as steps of an [`IterationClock`].

use std::sync::{Mutex, PoisonError};

use caribou::pools::PoolProgress;

use crate::iteration_clock::IterationClock;

/// Turns progress into complete steps.
pub(super) struct ProgressSteps<'c> {
    clock: &'c IterationClock,
    told: Mutex<u32>,
}

impl<'c> ProgressSteps<'c> {
    /// No step is complete yet.
    pub(super) fn of(clock: &'c IterationClock) -> Self {
        Self { clock, told: Mutex::new(0) }
    }

    /// Records the steps that `progress` has completed.
    pub(super) fn tell(&self, progress: PoolProgress) {
        let steps = self.clock.iterations();
        let step = u128::from(progress.done) * u128::from(steps) / u128::from(progress.iterations.max(1));
        // The last step is complete only at the end of the pool.
        self.reach((step as u32).min(steps - 1), progress.elapsed_ns);
    }

    /// Records the last step: the pool is done.
    pub(super) fn end(&self, elapsed_ns: u64) {
        self.reach(self.clock.iterations(), elapsed_ns);
    }

    fn reach(&self, step: u32, now_ns: u64) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for complete in *told + 1..=step {
            self.clock.record(complete, now_ns);
        }
        *told = step.max(*told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_complete_when_progress_has_passed_them_and_the_last_at_the_end() {
        let clock = IterationClock::new(100);
        let marks = ProgressSteps::of(&clock);
        let progress = |done, elapsed_ns| PoolProgress { done, iterations: 1000, elapsed_ns };
        marks.tell(progress(25, 10));
        assert_eq!(clock.completed(), 2);
        marks.tell(progress(20, 11));
        marks.tell(progress(1000, 12));
        assert_eq!(clock.completed(), 99);
        marks.end(13);
        let times = clock.times_ns().1;
        assert_eq!((times[1], times[2], times[99]), (10, 12, 13));
    }
}
