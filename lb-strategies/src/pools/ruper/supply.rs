//! The indices of a rank: the ones it holds, and its claims for more.
//!
//! A rank claims ahead of need, so that its workers do not wait for the answer. It does not claim far ahead: if it
//! becomes slow, no other rank can do the claimed indices. Its claims last for at least two messages and two chunks. They
//! last for at most a small part of the remaining time, so that it still ends in time if it becomes slower by the inverse
//! of that part.

use std::ops::Range;

use super::parameters::{Settings, seconds};
use crate::pools::machine::Nanos;
use crate::pools::range_set::RangeSet;

/// A rank claims for this part of the time that is left to it, but not for longer than until its next report.
const PART_OF_REST: f64 = 1.0 / 16.0;
/// It claims this part of its quota while it knows no speed.
const FIRST_PART: u64 = 64;

/// The indices of a rank.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    held: RangeSet,
    /// Number of indices it was granted, those it has run included.
    granted: u64,
    claims: Claims,
}

/// The state of its claims.
#[derive(Clone, Debug)]
enum Claims {
    /// Everything is here already.
    Over,
    /// A claim may be sent. The last one was answered after `round_trip`.
    Possible { round_trip: Nanos },
    /// A claim is in flight.
    Sent { at: Nanos },
}

/// The need of a rank for indices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Its quota.
    pub(crate) total: u64,
    /// Iterations per second of all its workers.
    pub(crate) speed: f64,
    /// Workers that wait for indices.
    pub(crate) hungry: u64,
}

impl Supply {
    /// A rank that has all its indices from the beginning.
    pub(crate) fn complete(range: Range<u64>) -> Self {
        let held = RangeSet::from(range);
        Self { granted: held.len(), held, claims: Claims::Over }
    }

    /// A rank that has none and claims as many as it needs.
    pub(crate) fn claiming() -> Self {
        Self { held: RangeSet::default(), granted: 0, claims: Claims::Possible { round_trip: 0 } }
    }

    /// Takes up to `count` indices.
    pub(crate) fn take(&mut self, count: u64) -> Option<Range<u64>> {
        self.held.take_front(count)
    }

    /// Tells whether it has no index and gets no more.
    pub(crate) fn is_exhausted(&self, total: u64) -> bool {
        match self.claims {
            _ if !self.held.is_empty() => false,
            Claims::Over => true,
            Claims::Possible { .. } => self.granted >= total,
            Claims::Sent { .. } => false,
        }
    }

    /// Claims more, if it should: how many.
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

    /// These are the rank's now.
    pub(crate) fn receive(&mut self, now: Nanos, ranges: Vec<Range<u64>>) {
        for range in ranges {
            self.granted += self.held.insert(range);
        }
        if let Claims::Sent { at } = self.claims {
            self.claims = Claims::Possible { round_trip: now.saturating_sub(at) };
        }
    }

    /// The balance is over: no more indices come.
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
