//! Records the workers of a rank: which ones wait, and which ones run how many iterations since when.

use super::parameters::{Settings, seconds};
use crate::pools::machine::{Nanos, SECOND};
use crate::pools::sizer::Sizer;

/// A rank reports for a worker that takes longer than expected by this factor.
const PATIENCE: f64 = 4.0;

/// The state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalWorkerState {
    /// The worker has not come.
    Nothing,
    /// The worker waits for indices, a quota or its release.
    Waiting,
    /// The worker executes this number of iterations since that time.
    Running { iterations: u64, since: Nanos },
    /// The worker is released.
    Released,
}

/// A worker as its rank records it.
#[derive(Clone, Debug)]
pub(crate) struct LocalWorker {
    pub(crate) doing: LocalWorkerState,
    /// Iterations that the worker has executed.
    pub(crate) done: u64,
    pub(crate) sizer: Sizer,
}

impl LocalWorker {
    pub(crate) fn new(settings: &Settings, cost_hint: Option<Nanos>) -> Self {
        Self { doing: LocalWorkerState::Nothing, done: 0, sizer: Sizer::new(settings.chunk, cost_hint) }
    }

    /// Handles a worker that has come, or has finished its range.
    pub(crate) fn wants(&mut self, now: Nanos) {
        if let LocalWorkerState::Running { iterations, since } = self.doing {
            self.done += iterations;
            self.sizer.ran(iterations, now.saturating_sub(since));
        }
        self.doing = LocalWorkerState::Waiting;
    }

    /// The number of iterations to take next, if the next report is due at `report_at`: about as many as fit until
    /// then. A report is sent at the end of a range, so a longer range would miss the rebalance that the report is for.
    pub(crate) fn next(&self, now: Nanos, report_at: Nanos) -> u64 {
        let until = seconds(report_at.saturating_sub(now));
        let fitting = self.sizer.speed().map_or(u64::MAX, |speed| (speed * until).ceil() as u64);
        self.sizer.next().min(fitting).max(1)
    }

    /// The time at which the rank reports for the worker, if a report was due at `due`, because the range takes much
    /// longer than expected. `None` if the worker runs nothing.
    pub(crate) fn overdue_at(&self, due: Nanos, settings: &Settings) -> Option<Nanos> {
        let LocalWorkerState::Running { iterations, since } = self.doing else { return None };
        let expected = match self.sizer.speed() {
            Some(speed) if speed > 0.0 => (iterations as f64 / speed * SECOND as f64) as Nanos,
            _ => settings.first_interval,
        };
        let patience = (expected as f64 * PATIENCE) as Nanos;
        Some(due.max(since.saturating_add(patience.max(settings.report_floor))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_overdue_when_its_range_takes_much_longer_than_it_should() {
        let settings = Settings::of("");
        let mut own = LocalWorker::new(&settings, None);
        assert_eq!(own.overdue_at(0, &settings), None);
        own.doing = LocalWorkerState::Running { iterations: 1, since: 0 };
        own.wants(5 * SECOND);
        assert_eq!((own.done, own.doing), (1, LocalWorkerState::Waiting));
        own.doing = LocalWorkerState::Running { iterations: 2, since: 5 * SECOND };
        assert_eq!(own.overdue_at(0, &settings), Some(45 * SECOND), "10 s were expected");
        assert_eq!(own.overdue_at(99 * SECOND, &settings), Some(99 * SECOND));
    }

    #[test]
    fn a_range_ends_when_the_worker_reports() {
        let mut own = LocalWorker::new(&Settings::of("chunk=1"), None);
        for _ in 0..9 {
            own.doing = LocalWorkerState::Running { iterations: own.next(0, Nanos::MAX), since: 0 };
            let LocalWorkerState::Running { iterations, .. } = own.doing else { unreachable!() };
            own.wants(iterations * SECOND / 1000);
        }
        assert_eq!([2000, 1000, 250, 0].map(|left| own.next(0, left * SECOND / 1000)), [1000, 1000, 250, 1]);
    }
}
