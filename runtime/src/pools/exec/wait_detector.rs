//! Detects that all workers of a rank wait, and reports this to rank 0, whose watchdog sees only its own process.
//!
//! | rank | does |
//! |---|---|
//! | rank 0 | keeps the set of ranks whose workers all wait |
//! | another | samples its workers periodically; notifies rank 0 when all begin to wait, and when one no longer waits |
//!
//! If two samples in a row are equal and in both all workers wait, no worker has done anything in between.

use std::collections::BTreeSet;

use super::periodic::Periodic;
use crate::ids::Rank;
use crate::trace::activity_board::ActivitySample;

#[derive(Default)]
pub(super) struct WaitDetector {
    samples: Periodic,
    /// The last sample, if all workers waited.
    last: Option<Vec<ActivitySample>>,
    /// The last value sent to rank 0.
    last_sent: bool,
    /// On rank 0: the ranks whose workers all wait.
    waiting: BTreeSet<Rank>,
}

impl WaitDetector {
    /// Without an interval no sample is ever due.
    pub(super) fn new(every_ns: Option<u64>) -> WaitDetector {
        WaitDetector { samples: Periodic::new(every_ns), ..WaitDetector::default() }
    }

    /// Samples the workers, if a sample is due. Returns whether all wait, if that must be sent to rank 0. `sample`
    /// returns none unless all workers wait.
    pub(super) fn look(
        &mut self,
        now_ns: u64,
        sample: impl FnOnce() -> Option<Vec<ActivitySample>>,
    ) -> Option<bool> {
        if !self.samples.is_due(now_ns) {
            return None;
        }
        let last = std::mem::replace(&mut self.last, sample());
        let all = self.last.is_some() && self.last == last;
        (std::mem::replace(&mut self.last_sent, all) != all).then_some(all)
    }

    /// On rank 0: sets whether all workers of another rank wait.
    pub(super) fn hear(&mut self, from: Rank, all: bool) {
        if all {
            self.waiting.insert(from);
        } else {
            self.waiting.remove(&from);
        }
    }

    /// On rank 0: the number of other ranks whose workers all wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The time of the next sample.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.samples.next_ns()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::trace::recording::Recording;

    #[test]
    fn workers_that_wait_in_two_samples_are_reported_until_one_does_not() {
        let recording = Recording::disabled_for(Rank(1), 2);
        let mut detector = WaitDetector::new(Some(10));
        let mut look = |now_ns| detector.look(now_ns, || recording.all_waiting());
        recording.at_work[0].set_waiting();
        assert_eq!([look(0), look(10)], [None, None], "one worker works");
        recording.at_work[1].set_waiting();
        assert_eq!([look(20), look(25), look(30), look(40)], [None, None, Some(true), None]);
        recording.at_work[0].set_asking();
        assert_eq!([look(50), look(60)], [Some(false), None]);
    }

    #[test]
    fn rank_0_counts_the_ranks_that_wait() {
        let mut detector = WaitDetector::new(None);
        assert_eq!(detector.look(0, || unreachable!("rank 0 samples none")), None);
        let heard = [(1, true), (2, true), (2, true), (1, false)];
        let waiting = heard.map(|(rank, all)| {
            detector.hear(Rank(rank), all);
            detector.waiting()
        });
        assert_eq!(waiting, [1, 2, 2, 1]);
    }
}
