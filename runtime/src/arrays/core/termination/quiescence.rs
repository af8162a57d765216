//! Finds out that nothing is left to do: no handler runs and no packet is on its way, on any rank.
//!
//! Rank 0 asks every rank, and a rank answers once it has nothing to do: how many packets it has sent and received. If
//! two waves in a row add up to the same numbers, and as many were received as sent, no packet was on its way and nobody
//! woke up between the waves (Mattern's four-counter method). Messages that were to wait for this are sent then. Without
//! any the run has not called `exit` and never will: it has stalled.
//!
//! The question goes down the [tree](crate::arrays::core::collectives::tree) of ranks, and a rank passes on what the ranks below it have answered
//! together with its own answer.
//!
//! Cost: nothing while somebody works; two rounds of small packets once everybody is idle. The packets of this search
//! are not counted.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The packets of some ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

/// The next step of rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchStep {
    Wait,
    /// Ask everybody.
    Wave,
    /// It is over: send what was to wait for this, or ask everybody what they wait for.
    Quiescent,
}

/// Rank 0's side of the search.
#[derive(Debug, Default)]
pub(crate) struct Quiescence {
    wave_open: bool,
    waves: u64,
    /// The answer to the wave before.
    last: Option<Traffic>,
    quiescent: bool,
}

impl Quiescence {
    /// Rank 0 has had nothing to do for a while.
    pub(crate) fn suspect(&mut self) -> SearchStep {
        if self.wave_open || self.quiescent {
            return SearchStep::Wait;
        }
        self.wave_open = true;
        self.waves += 1;
        SearchStep::Wave
    }

    /// All ranks have answered: what they have sent and received together.
    pub(crate) fn wave_answered(&mut self, total: Traffic) -> SearchStep {
        self.wave_open = false;
        let before = self.last.replace(total);
        if total.sent != total.received {
            return SearchStep::Wait;
        }
        if before == Some(total) {
            self.quiescent = true;
            return SearchStep::Quiescent;
        }
        self.suspect()
    }

    /// The number of the wave that is under way.
    pub(crate) fn open_wave(&self) -> Option<u64> {
        self.wave_open.then_some(self.waves)
    }

    /// Quiescence is over: a message was sent.
    pub(crate) fn reset(&mut self) {
        self.quiescent = false;
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(sent: u64, received: u64) -> Traffic {
        Traffic { sent, received }
    }

    #[test]
    fn two_equal_waves_with_nothing_on_its_way_are_quiescence() {
        let mut root = Quiescence::default();
        assert_eq!(root.suspect(), SearchStep::Wave);
        assert_eq!(root.suspect(), SearchStep::Wait);
        assert_eq!(root.wave_answered(traffic(8, 8)), SearchStep::Wave);
        assert_eq!(root.wave_answered(traffic(8, 8)), SearchStep::Quiescent);
    }

    #[test]
    fn a_packet_on_its_way_is_never_quiescence() {
        let mut root = Quiescence::default();
        for _ in 1..5 {
            assert_eq!(root.suspect(), SearchStep::Wave);
            assert_eq!(root.wave_answered(traffic(2, 1)), SearchStep::Wait);
        }
    }

    #[test]
    fn work_between_two_waves_starts_the_search_again() {
        let mut root = Quiescence::default();
        assert_eq!(root.suspect(), SearchStep::Wave);
        assert_eq!(root.wave_answered(traffic(1, 1)), SearchStep::Wave);
        assert_eq!(root.wave_answered(traffic(2, 2)), SearchStep::Wave);
        assert_eq!(root.wave_answered(traffic(2, 2)), SearchStep::Quiescent);
    }
}
