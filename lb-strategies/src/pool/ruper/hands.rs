//! The workers of a rank as it sees them itself: who waits, who is at how many iterations since when.

use super::parameters::Settings;
use crate::pool::sizer::Sizer;
use crate::pool::{Nanos, SECOND};

/// How much longer than expected a worker may take before its rank reports for it.
const PATIENCE: f64 = 4.0;

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It has not come.
    Nothing,
    /// It waits for indices, a quota or its release.
    Waiting,
    /// It executes so many iterations, since when.
    Running { iterations: u64, since: Nanos },
    /// It is released.
    Released,
}

/// One worker, as its rank sees it.
#[derive(Clone, Debug)]
pub(crate) struct Hand {
    pub(crate) doing: Doing,
    /// Iterations it has executed.
    pub(crate) done: u64,
    pub(crate) sizer: Sizer,
}

impl Hand {
    pub(crate) fn new(settings: &Settings, cost_hint: Option<Nanos>) -> Self {
        Self { doing: Doing::Nothing, done: 0, sizer: Sizer::new(settings.chunk, cost_hint) }
    }

    /// It has come, or is through with its range.
    pub(crate) fn wants(&mut self, now: Nanos) {
        if let Doing::Running { iterations, since } = self.doing {
            self.done += iterations;
            self.sizer.ran(iterations, now.saturating_sub(since));
        }
        self.doing = Doing::Waiting;
    }

    /// When its rank reports in its place a report that was due at `due`: it is at its range for much longer than that
    /// should have taken. `None` if it can report itself.
    pub(crate) fn overdue_at(&self, due: Nanos, settings: &Settings) -> Option<Nanos> {
        let Doing::Running { iterations, since } = self.doing else { return None };
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
        let mut hand = Hand::new(&settings, None);
        assert_eq!(hand.overdue_at(0, &settings), None);
        hand.doing = Doing::Running { iterations: 1, since: 0 };
        hand.wants(5 * SECOND);
        assert_eq!((hand.done, hand.doing), (1, Doing::Waiting));
        hand.doing = Doing::Running { iterations: 2, since: 5 * SECOND };
        assert_eq!(hand.overdue_at(0, &settings), Some(45 * SECOND), "10 s were expected");
        assert_eq!(hand.overdue_at(99 * SECOND, &settings), Some(99 * SECOND));
    }
}
