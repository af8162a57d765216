//! Keeps the indices that a rank holds, and decides when it claims more from rank 0.
//!
//! A rank claims ahead of need, so that its workers do not wait for the answer: when its indices last for less than two
//! round trips and two chunks. It does not claim far ahead, because no other rank can run claimed indices if it becomes
//! slow. A claim lasts for a small part of the remaining time, so a rank that becomes slower by the inverse of this
//! part ends in time.

use std::ops::Range;

use super::parameters::{Settings, seconds};
use crate::pools::machine::Nanos;
use crate::pools::range_set::RangeSet;

/// A claim lasts for this part of the time that the rank still needs, but at most until its next report.
const PART_OF_REST: f64 = 1.0 / 16.0;
/// A rank of unknown speed claims one 64th of its remaining quota.
const FIRST_PART: u64 = 64;

/// The indices of a rank.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    held: RangeSet,
    /// Number of indices granted to the rank, including those that have run.
    granted: u64,
    claims: Claims,
}

/// The state of the rank's claims.
#[derive(Clone, Debug)]
enum Claims {
    /// No more indices will come.
    Over,
    /// A claim may be sent. The last one was answered after `round_trip`.
    Possible { round_trip: Nanos },
    /// A claim is in flight.
    Sent { at: Nanos },
}

/// The need of a rank for indices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Quota of the rank.
    pub(crate) total: u64,
    /// Iterations per second of all its workers.
    pub(crate) speed: f64,
    /// Number of workers that wait for indices.
    pub(crate) hungry: u64,
}

impl Supply {
    /// The supply of a rank that has all its indices from the start.
    pub(crate) fn complete(range: Range<u64>) -> Self {
        let held = RangeSet::from(range);
        Self { granted: held.len(), held, claims: Claims::Over }
    }

    /// The supply of a rank that has no indices yet, and claims them as needed.
    pub(crate) fn claiming() -> Self {
        Self { held: RangeSet::default(), granted: 0, claims: Claims::Possible { round_trip: 0 } }
    }

    /// Takes up to `count` indices.
    pub(crate) fn take(&mut self, count: u64) -> Option<Range<u64>> {
        self.held.take_front(count)
    }

    /// True if the rank holds no index and gets no more.
    pub(crate) fn is_exhausted(&self, total: u64) -> bool {
        match self.claims {
            _ if !self.held.is_empty() => false,
            Claims::Over => true,
            Claims::Possible { .. } => self.granted >= total,
            Claims::Sent { .. } => false,
        }
    }

    /// Returns the number of indices to claim now, if any.
    pub(crate) fn claim(&mut self, now: Nanos, need: Need, settings: &Settings) -> Option<u64> {
        let Claims::Possible { round_trip } = self.claims else { return None };
        let left = need.total.saturating_sub(self.granted);
        let low = need.speed * 2.0 * (seconds(round_trip) + seconds(settings.chunk));
        let enough = if need.hungry == 0 { low as u64 } else { (low as u64).max(1) };
        if left == 0 || self.held.len() >= enough {
            return None;
        }
        let count = if need.speed > 0.0 {
            let rest = left as f64 / need.speed * PART_OF_REST;
            let ahead = rest.max(seconds(settings.spacing)).min(seconds(settings.mpi_interval));
            (ahead * need.speed).max(2.0 * low) as u64
        } else {
            left / FIRST_PART
        };
        self.claims = Claims::Sent { at: now };
        Some(count.max(need.hungry).max(1).min(left))
    }

    /// Adds indices that were granted.
    pub(crate) fn receive(&mut self, now: Nanos, ranges: Vec<Range<u64>>) {
        for range in ranges {
            self.granted += self.held.insert(range);
        }
        if let Claims::Sent { at } = self.claims {
            self.claims = Claims::Possible { round_trip: now.saturating_sub(at) };
        }
    }

    /// Notes that the balance between ranks has ended: no more indices come.
    pub(crate) fn close(&mut self) {
        self.claims = Claims::Over;
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "sets of indices are lists of ranges, some of one")]
mod tests {
    use super::*;
    use crate::pools::machine::SECOND;

    fn need(total: u64, speed: f64, hungry: u64) -> Need {
        Need { total, speed, hungry }
    }

    #[test]
    fn a_claim_is_for_a_part_of_the_rest_and_never_more_than_the_quota() {
        let (settings, mut supply) = (Settings::of(""), Supply::claiming());
        assert_eq!(supply.claim(0, need(6400, 0.0, 1), &settings), Some(100));
        assert_eq!(supply.claim(0, need(6400, 0.0, 1), &settings), None, "one is under way");
        supply.receive(SECOND, vec![0..100]);
        assert_eq!(supply.claim(SECOND, need(6400, 10.0, 0), &settings), None, "100 last for 10 s");
        supply.take(90);
        assert_eq!(supply.claim(SECOND, need(6400, 10.0, 0), &settings), Some(393), "a sixteenth");
        supply.receive(2 * SECOND, vec![100..200]);
        supply.take(200);
        supply.take(200);
        assert_eq!(supply.claim(2 * SECOND, need(203, 10.0, 8), &settings), Some(3));
        supply.receive(2 * SECOND, vec![]);
        assert!(!supply.is_exhausted(203) && supply.is_exhausted(200));
    }
}
