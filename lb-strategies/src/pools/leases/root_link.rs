//! Decides when a rank reports to the root, and keeps the reports until they are sent.
//!
//! The root assumes that a rank continues as it reported. So a rank reports only
//!
//! 1. when it will soon have nothing to do (`Want`, see [`rank`](super::rank)),
//! 2. when it has a `Want` at the root, and a first worker begins to wait or the last one stops executing (`Progress`),
//! 3. when, at a check of its progress, its pool will end far from the time that the root assumes (`Progress`),
//! 4. when the root asks.
//!
//! A steady rank reports nothing between two leases, and a rank whose speed collapses reports once.

use std::ops::Range;

use super::message::{LeaseStatus, Report, ReportKind, list};
use crate::pools::machine::{Nanos, SECOND};
use crate::pools::range_set::RangeSet;

/// The end of a pool may deviate by this part of the time before the rank reports.
const TOLERANCE: f64 = 0.25;

/// What a rank has reported and will report to the root.
#[derive(Debug, Default)]
pub(super) struct RootLink {
    /// When the unanswered `Want` was sent.
    asked: Option<Nanos>,
    reported: LeaseStatus,
    reported_at: Nanos,
    leases: u64,
    rtt: Nanos,
    /// Executed indices that are not reported yet.
    done: RangeSet,
    outbox: Vec<Report>,
}

impl RootLink {
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    pub(super) fn rtt(&self) -> Nanos {
        self.rtt
    }

    pub(super) fn leases(&self) -> u64 {
        self.leases
    }

    /// Withdraws the `Want` of the rank.
    pub(super) fn withdraw(&mut self) {
        self.asked = None;
    }

    /// Adds executed indices to the next report.
    pub(super) fn done(&mut self, range: Range<u64>) {
        self.done.insert(range);
    }

    pub(super) fn report(&mut self, now: Nanos, occasion: ReportKind, standing: LeaseStatus) {
        if occasion == ReportKind::Want {
            self.asked = Some(now);
        }
        self.reported = standing;
        self.reported_at = now;
        self.outbox.push(Report { kind: occasion, status: standing, done: list(&self.done.take()) });
    }

    /// Notes a lease. The round trip is the time since the `Want`, without the time it was `queued` at the root.
    pub(super) fn leased(&mut self, now: Nanos, count: u64, queued: Nanos) {
        let sample = self.asked.take().map_or(0, |asked| now.saturating_sub(asked).saturating_sub(queued));
        // The estimate rises at once and falls slowly, because asking too late costs more than asking too early.
        self.rtt = sample.max(self.rtt - self.rtt / 4 + sample / 4);
        self.leases += 1;
        self.reported.pool += count;
    }

    /// Notes that the root assumes at most `waiting` waiting workers, because it has given the others a piece.
    pub(super) fn waiting(&mut self, waiting: u32) {
        self.reported.waiting = waiting;
    }

    /// True if the root, which has a `Want`, should get a report (rule 2).
    pub(super) fn is_news(&self, standing: &LeaseStatus, running: bool) -> bool {
        (standing.waiting > 0 && self.reported.waiting == 0) || (!running && !self.done.is_empty())
    }

    /// True if the pool will end at another time than the root assumes (rule 3).
    pub(super) fn is_surprise(&self, now: Nanos, standing: &LeaseStatus, step: Nanos) -> bool {
        let Some(speed) = standing.speed else { return false };
        let Some(told) = self.reported.speed else { return standing.pool > 0 || self.reported.pool > 0 };
        let since = seconds(now.saturating_sub(self.reported_at));
        let expected = (self.reported.pool as f64 / told - since).max(0.0);
        let actual = standing.pool as f64 / speed;
        let off = (actual - expected).abs();
        off > seconds(2 * self.rtt + step) && off > TOLERANCE * actual.max(expected)
    }

    pub(super) fn take(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.outbox)
    }
}

pub(super) fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_root_can_know_is_no_surprise() {
        let mut talk = RootLink::default();
        let standing = |pool, speed| LeaseStatus { pool, speed: Some(speed), ..LeaseStatus::default() };
        talk.report(0, ReportKind::Progress, standing(1000, 100.0));
        assert!(!talk.is_surprise(5 * SECOND, &standing(500, 100.0), SECOND / 10));
        assert!(!talk.is_surprise(5 * SECOND, &standing(550, 100.0), SECOND / 10));
        assert!(talk.is_surprise(5 * SECOND, &standing(800, 50.0), SECOND / 10), "it collapsed");
        assert!(talk.is_surprise(5 * SECOND, &standing(100, 300.0), SECOND / 10), "it hurries");
    }

    #[test]
    fn a_round_trip_does_not_count_what_the_root_let_it_wait() {
        let mut talk = RootLink::default();
        talk.report(0, ReportKind::Want, LeaseStatus::default());
        talk.leased(100, 1, 90);
        assert_eq!((talk.rtt(), talk.is_asking()), (10, false));
    }
}
