//! Reports the number of executed iterations to the program, if the program wants progress reports.
//!
//! | rank | sends, at each interval, if the number has changed |
//! |---|---|
//! | rank 0 | the number of all ranks, to its program and to all ranks |
//! | another | its number, to rank 0, after rank 0 has [subscribed](Progress::subscribe) |
//!
//! In a job, each other process passes the number of all ranks to its program when it arrives.

use litemap::LiteMap;

use super::periodic::Periodic;
use crate::ids::Rank;

#[derive(Default)]
pub(super) struct Progress {
    reports: Periodic,
    /// The last number that this rank sent.
    last_sent: u64,
    /// The last number that the program of this process got.
    last_told: Option<u64>,
    /// On rank 0: the numbers of all other ranks.
    others: LiteMap<Rank, u64>,
}

impl Progress {
    /// Progress of a rank; with an interval on rank 0, if its program wants reports.
    pub(super) fn new(every_ns: Option<u64>) -> Progress {
        Progress { reports: Periodic::new(every_ns), ..Progress::default() }
    }

    /// Starts reports to rank 0 at this interval.
    pub(super) fn subscribe(&mut self, every_ns: u64) {
        self.reports.every_ns = Some(every_ns);
    }

    /// The interval of the reports, if there are any.
    pub(super) fn every_ns(&self) -> Option<u64> {
        self.reports.every_ns
    }

    /// On rank 0: sets the number of another rank.
    pub(super) fn hear(&mut self, from: Rank, done: u64) {
        self.others.insert(from, done);
    }

    /// The number to send, if a report is due and the number has changed. `done_here` is the number of this rank.
    pub(super) fn report(&mut self, now_ns: u64, done_here: impl FnOnce() -> u64) -> Option<u64> {
        if !self.reports.is_due(now_ns) {
            return None;
        }
        let done = done_here() + self.others.values().sum::<u64>();
        (std::mem::replace(&mut self.last_sent, done) != done).then_some(done)
    }

    /// Restarts the interval after a call of the program, so that a slow program does not take all time of the thread.
    pub(super) fn called(&mut self, now_ns: u64) {
        self.reports.restart(now_ns);
    }

    /// Tells whether this number is not the last that the program got.
    pub(super) fn is_new(&mut self, done: u64) -> bool {
        self.last_told.replace(done) != Some(done)
    }

    /// The time of the next report.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.reports.next_ns()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rank_0_reports_the_sum_of_all_ranks_once_an_interval_if_it_changes() {
        let mut progress = Progress::new(Some(10));
        progress.hear(Rank(1), 3);
        assert_eq!(progress.report(0, || 2), Some(5));
        progress.hear(Rank(1), 4);
        assert_eq!(progress.report(9, || unreachable!("it is not due")), None);
        assert_eq!((progress.next_ns(), progress.report(10, || 2)), (Some(10), Some(6)));
        assert_eq!(progress.report(20, || 2), None, "nothing has changed");
        progress.called(25);
        assert_eq!(progress.next_ns(), Some(35));
    }

    #[test]
    fn another_rank_reports_once_rank_0_subscribes() {
        let mut progress = Progress::new(None);
        assert_eq!((progress.next_ns(), progress.report(5, || 2)), (None, None));
        progress.subscribe(10);
        assert_eq!((progress.report(5, || 2), progress.next_ns()), (Some(2), Some(15)));
    }

    #[test]
    fn a_program_is_told_a_number_once() {
        let mut progress = Progress::default();
        assert_eq!([0, 0, 7, 7].map(|done| progress.is_new(done)), [true, false, true, false]);
    }
}
