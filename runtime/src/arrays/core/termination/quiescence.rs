//! Quiescence detection on rank 0: no handler runs and no packet is in flight, on any rank (Mattern's four-counter
//! method). Rank 0 then sends the messages that wait for quiescence. If there are none, no chunk will ever call `exit`:
//! the run has stalled.
//!
//! # Steps
//!
//! | input | output |
//! |---|---|
//! | rank 0 has had nothing to do for a while | a wave: rank 0 probes all ranks, down the [tree] |
//! | a probed rank has nothing to do | its counts of packets, added to those of the ranks below, to its parent |
//! | all ranks have replied; fewer packets were received than sent | none: rank 0 begins again when it is idle |
//! | all ranks have replied; as many packets were received as sent; the counts are new | the next wave |
//! | all ranks have replied; as many packets were received as sent; the counts equal those of the wave before | quiescence |
//!
//! [tree]: crate::arrays::core::collectives::tree
//!
//! # Proof
//! 1. If the counts of two waves in a row are equal, no rank sent or received a packet between its two replies. So no
//!    idle rank woke up between the waves.
//! 2. If also as many packets were received as sent, no packet was in flight then.
//!
//! Cost: nothing while any rank works; then two rounds of small packets. Packets of this search are not counted.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Numbers of packets of one rank, or of several together.
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
    /// Probe all ranks.
    Wave,
    /// The search is over: send the messages that wait for quiescence, or ask all ranks for what their chunks wait.
    Quiescent,
}

/// The state of rank 0 for the search.
#[derive(Debug, Default)]
pub(crate) struct Quiescence {
    wave_open: bool,
    waves: u64,
    /// The counts of the wave before.
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

    /// All ranks have replied: `total` is the sum of their counts.
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

    /// The number of the wave that is in progress.
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
    fn two_equal_waves_without_packets_in_flight_are_quiescence() {
        let mut root = Quiescence::default();
        assert_eq!(root.suspect(), SearchStep::Wave);
        assert_eq!(root.suspect(), SearchStep::Wait);
        assert_eq!(root.wave_answered(traffic(8, 8)), SearchStep::Wave);
        assert_eq!(root.wave_answered(traffic(8, 8)), SearchStep::Quiescent);
    }

    #[test]
    fn a_packet_in_flight_is_never_quiescence() {
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
