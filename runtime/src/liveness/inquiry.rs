//! One rank's rounds of questions to its neighbours: which of them owe an answer, and which are silent.
//!
//! It knows no sockets: [`node`](super::node) sends what it says. The rules are in [`liveness`](super).

use std::collections::{BTreeMap, BTreeSet};

use super::ANSWER_NS_MAX;
use crate::ids::Rank;

/// A thread that runs this much later than it wanted was stopped itself.
const LATE_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Inquiry {
    /// The end of the time in which no other round begins.
    busy_until_ns: u64,
    /// The neighbours that owe an answer, and the end of their time.
    asked: BTreeMap<Rank, u64>,
    /// The neighbours that were said to be silent.
    silent: BTreeSet<Rank>,
}

impl Inquiry {
    /// Begins a round, unless one has just begun. Returns the neighbours to ask: those that owe no answer.
    pub(super) fn begin(&mut self, now_ns: u64, neighbours: impl Iterator<Item = Rank>) -> Vec<Rank> {
        if now_ns < self.busy_until_ns {
            return Vec::new();
        }
        self.busy_until_ns = now_ns + ANSWER_NS_MAX;
        let until_ns = self.busy_until_ns;
        let owing: BTreeSet<Rank> = self.asked.keys().copied().collect();
        let asked: Vec<Rank> = neighbours.filter(|rank| !owing.contains(rank)).collect();
        self.asked.extend(asked.iter().map(|&rank| (rank, until_ns)));
        asked
    }

    /// A neighbour has answered. True if it was silent.
    pub(super) fn answered(&mut self, rank: Rank) -> bool {
        self.asked.remove(&rank);
        self.silent.remove(&rank)
    }

    /// Time until the next neighbour becomes silent, ns; none if no answer is due.
    pub(super) fn timeout_ns(&self, now_ns: u64) -> Option<u64> {
        self.open().map(|(_, until_ns)| until_ns.saturating_sub(now_ns)).min()
    }

    /// The neighbours whose time is up: they are silent from now on. A call that comes much too late grants them more time.
    pub(super) fn overdue(&mut self, now_ns: u64) -> Vec<Rank> {
        let overdue: Vec<(Rank, u64)> = self.open().filter(|&(_, until_ns)| until_ns <= now_ns).collect();
        let (late, overdue): (Vec<_>, Vec<_>) =
            overdue.into_iter().partition(|&(_, until_ns)| until_ns + LATE_NS < now_ns);
        self.asked.extend(late.into_iter().map(|(rank, _)| (rank, now_ns + ANSWER_NS_MAX)));
        self.silent.extend(overdue.iter().map(|&(rank, _)| rank));
        overdue.into_iter().map(|(rank, _)| rank).collect()
    }

    fn open(&self) -> impl Iterator<Item = (Rank, u64)> {
        let asked = self.asked.iter().map(|(&rank, &until_ns)| (rank, until_ns));
        asked.filter(|(rank, _)| !self.silent.contains(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEIGHBOURS: [Rank; 2] = [Rank(0), Rank(5)];

    #[test]
    fn who_does_not_answer_in_time_is_silent_until_it_does() {
        let mut inquiry = Inquiry::default();
        assert_eq!(inquiry.timeout_ns(7), None);
        assert_eq!(inquiry.begin(10, NEIGHBOURS.into_iter()), NEIGHBOURS);
        assert!(!inquiry.answered(Rank(0)));
        assert_eq!(inquiry.timeout_ns(20), Some(ANSWER_NS_MAX - 10));
        assert_eq!(inquiry.overdue(ANSWER_NS_MAX), []);
        assert_eq!(inquiry.overdue(ANSWER_NS_MAX + 10), [Rank(5)]);
        assert_eq!(inquiry.overdue(ANSWER_NS_MAX + 11), [], "it is told of once");
        assert_eq!(inquiry.timeout_ns(ANSWER_NS_MAX + 11), None);
        assert_eq!(
            inquiry.begin(2 * ANSWER_NS_MAX, NEIGHBOURS.into_iter()),
            [Rank(0)],
            "the other was asked"
        );
        assert!(inquiry.answered(Rank(5)) && !inquiry.answered(Rank(5)));
    }

    #[test]
    fn a_round_begins_no_sooner_than_the_last_has_ended() {
        let mut inquiry = Inquiry::default();
        inquiry.begin(10, NEIGHBOURS.into_iter());
        NEIGHBOURS.iter().for_each(|&rank| assert!(!inquiry.answered(rank)));
        assert_eq!(inquiry.begin(ANSWER_NS_MAX + 9, NEIGHBOURS.into_iter()), []);
        assert_eq!(inquiry.begin(ANSWER_NS_MAX + 10, NEIGHBOURS.into_iter()), NEIGHBOURS);
    }

    #[test]
    fn who_was_stopped_itself_gives_the_others_more_time() {
        let mut inquiry = Inquiry::default();
        inquiry.begin(0, NEIGHBOURS.into_iter());
        let late_ns = ANSWER_NS_MAX + LATE_NS + 1;
        assert_eq!(inquiry.overdue(late_ns), []);
        assert_eq!(inquiry.timeout_ns(late_ns), Some(ANSWER_NS_MAX));
        assert_eq!(inquiry.overdue(late_ns + ANSWER_NS_MAX), NEIGHBOURS);
    }
}
