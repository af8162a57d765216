//! The rounds of pings of one rank: which neighbours have an outstanding ping, and which are silent. This module has no
//! sockets; [`thread`](super::thread) sends the pings. The rules are in [`liveness`](super).

use std::collections::{BTreeMap, BTreeSet};

use super::PING_TIMEOUT_NS;
use crate::ids::Rank;

/// Delay of the thread, ns, from which it counts as having been stopped itself.
const LATE_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct PingRounds {
    /// No further round begins before this time.
    busy_until_ns: u64,
    /// The neighbours with an outstanding ping, each with the end of its timeout.
    outstanding: BTreeMap<Rank, u64>,
    /// The neighbours that were reported silent.
    silent: BTreeSet<Rank>,
}

impl PingRounds {
    /// Begins a round, unless one has just begun. Returns the neighbours to ping, those without outstanding ping.
    pub(super) fn begin(&mut self, now_ns: u64, neighbours: impl Iterator<Item = Rank>) -> Vec<Rank> {
        if now_ns < self.busy_until_ns {
            return Vec::new();
        }
        self.busy_until_ns = now_ns + PING_TIMEOUT_NS;
        let until_ns = self.busy_until_ns;
        let owing: BTreeSet<Rank> = self.outstanding.keys().copied().collect();
        let asked: Vec<Rank> = neighbours.filter(|rank| !owing.contains(rank)).collect();
        self.outstanding.extend(asked.iter().map(|&rank| (rank, until_ns)));
        asked
    }

    /// Handles the reply of a neighbour. True if the neighbour was silent.
    pub(super) fn pong_received(&mut self, rank: Rank) -> bool {
        self.outstanding.remove(&rank);
        self.silent.remove(&rank)
    }

    /// Time until the next neighbour becomes silent, ns; none if no pong is due.
    pub(super) fn timeout_ns(&self, now_ns: u64) -> Option<u64> {
        self.open().map(|(_, until_ns)| until_ns.saturating_sub(now_ns)).min()
    }

    /// The neighbours whose time is up, which are silent from now on. If the call is much too late, extends their time.
    pub(super) fn overdue(&mut self, now_ns: u64) -> Vec<Rank> {
        let overdue: Vec<(Rank, u64)> = self.open().filter(|&(_, until_ns)| until_ns <= now_ns).collect();
        let (late, overdue): (Vec<_>, Vec<_>) =
            overdue.into_iter().partition(|&(_, until_ns)| until_ns + LATE_NS < now_ns);
        self.outstanding.extend(late.into_iter().map(|(rank, _)| (rank, now_ns + PING_TIMEOUT_NS)));
        self.silent.extend(overdue.iter().map(|&(rank, _)| rank));
        overdue.into_iter().map(|(rank, _)| rank).collect()
    }

    fn open(&self) -> impl Iterator<Item = (Rank, u64)> {
        let asked = self.outstanding.iter().map(|(&rank, &until_ns)| (rank, until_ns));
        asked.filter(|(rank, _)| !self.silent.contains(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEIGHBOURS: [Rank; 2] = [Rank(0), Rank(5)];

    #[test]
    fn a_neighbour_without_a_pong_in_time_is_silent_until_it_answers() {
        let mut inquiry = PingRounds::default();
        assert_eq!(inquiry.timeout_ns(7), None);
        assert_eq!(inquiry.begin(10, NEIGHBOURS.into_iter()), NEIGHBOURS);
        assert!(!inquiry.pong_received(Rank(0)));
        assert_eq!(inquiry.timeout_ns(20), Some(PING_TIMEOUT_NS - 10));
        assert_eq!(inquiry.overdue(PING_TIMEOUT_NS), []);
        assert_eq!(inquiry.overdue(PING_TIMEOUT_NS + 10), [Rank(5)]);
        assert_eq!(inquiry.overdue(PING_TIMEOUT_NS + 11), [], "it is reported once");
        assert_eq!(inquiry.timeout_ns(PING_TIMEOUT_NS + 11), None);
        assert_eq!(
            inquiry.begin(2 * PING_TIMEOUT_NS, NEIGHBOURS.into_iter()),
            [Rank(0)],
            "the silent one still has an outstanding ping"
        );
        assert!(inquiry.pong_received(Rank(5)) && !inquiry.pong_received(Rank(5)));
    }

    #[test]
    fn a_round_begins_no_sooner_than_the_last_has_ended() {
        let mut inquiry = PingRounds::default();
        inquiry.begin(10, NEIGHBOURS.into_iter());
        NEIGHBOURS.iter().for_each(|&rank| assert!(!inquiry.pong_received(rank)));
        assert_eq!(inquiry.begin(PING_TIMEOUT_NS + 9, NEIGHBOURS.into_iter()), []);
        assert_eq!(inquiry.begin(PING_TIMEOUT_NS + 10, NEIGHBOURS.into_iter()), NEIGHBOURS);
    }

    #[test]
    fn a_process_that_was_stopped_extends_the_timeout() {
        let mut inquiry = PingRounds::default();
        inquiry.begin(0, NEIGHBOURS.into_iter());
        let late_ns = PING_TIMEOUT_NS + LATE_NS + 1;
        assert_eq!(inquiry.overdue(late_ns), []);
        assert_eq!(inquiry.timeout_ns(late_ns), Some(PING_TIMEOUT_NS));
        assert_eq!(inquiry.overdue(late_ns + PING_TIMEOUT_NS), NEIGHBOURS);
    }
}
