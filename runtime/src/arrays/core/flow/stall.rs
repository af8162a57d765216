//! Detects stalls and deadlocks of flow control. A *stalled* rank is full and has nothing to run but parked entries.
//! Rank 0 finds the ranks that wait only for each other.
//!
//! # States of one rank
//!
//! | state | input | next state | output |
//! |---|---|---|---|
//! | Flowing | the rank is full and idle, and entries are parked | Reported | a [`StallReport`] to rank 0 |
//! | Reported | the report has changed: other destinations, or another first deferred ack | Reported | the report, under the next number |
//! | Reported | an entry was unparked | Flowing | to rank 0: the stall has ended |
//! | Reported | from rank 0: this stall is part of a deadlock | Retried | runs each parked entry once |
//! | Retried | the rank is full and idle, and entries are parked | ReportedAgain | a report |
//! | Retried | the rank is not full | Flowing | nothing |
//! | ReportedAgain | the report has changed | ReportedAgain | the report, under the next number |
//! | ReportedAgain | an entry was unparked | Retried | to rank 0: the stall has ended |
//! | ReportedAgain | from rank 0: this stall is part of a deadlock | Retried | raises the limit |
//! | ReportedAgain | the rank is not full | Reported | nothing |
//!
//! A report carries the number of its stall. A rank ignores an answer to an earlier number, since it comes too late.
//!
//! A rank that is full because of a sync does not stall: the end of the sync will free it. But the sync may wait for a
//! chunk that this rank blocks. So [`Backoff`] raises the limit after a time that doubles with each use.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Destination;
use crate::ids::Rank;

/// The report of a stalled rank to rank 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StallReport {
    /// The destinations that parked entries wait for, ascending.
    pub(crate) waits_for: Vec<Destination>,
    /// The number of the first broadcast for which the rank defers its ack.
    pub(crate) first_deferred_ack: Option<u64>,
}

/// The response of a stalled rank to a deadlock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// Run each parked entry once, because the queued messages of the rank may be for blocked chunks.
    Retry,
    /// Raise the limit. The parked entries waited for these destinations.
    GrowLimit { waits_for: Vec<Destination> },
}

/// The stalls of one rank.
#[derive(Debug, Default)]
pub(super) struct Stall {
    /// Number of the last report.
    number: u64,
    state: State,
}

/// A state of the table above.
#[derive(Debug, Default)]
enum State {
    #[default]
    Flowing,
    Reported(StallReport),
    /// Parked entries have run once. The rank has been full since.
    Retried,
    ReportedAgain(StallReport),
}

impl Stall {
    /// The rank is full and has nothing to run. Returns the number of the stall and the report, if the report is new.
    pub(super) fn report(&mut self, report: StallReport) -> Option<(u64, StallReport)> {
        if report.waits_for.is_empty() || self.reported() == Some(&report) {
            return None;
        }
        self.number += 1;
        self.state = match self.state {
            State::Flowing | State::Reported(_) => State::Reported(report.clone()),
            State::Retried | State::ReportedAgain(_) => State::ReportedAgain(report.clone()),
        };
        Some((self.number, report))
    }

    fn reported(&self) -> Option<&StallReport> {
        match &self.state {
            State::Reported(report) | State::ReportedAgain(report) => Some(report),
            State::Flowing | State::Retried => None,
        }
    }

    /// Entries were unparked. Returns the number of the stall that this ends, if the stall was reported to rank 0.
    pub(super) fn end(&mut self) -> Option<u64> {
        self.reported()?;
        self.state = match self.state {
            State::Flowing | State::Reported(_) => State::Flowing,
            State::Retried | State::ReportedAgain(_) => State::Retried,
        };
        Some(self.number)
    }

    /// Rank 0 has found that the stall of this number is part of a deadlock. None if the stall has ended.
    pub(super) fn resolve(&mut self, number: u64) -> Option<Recovery> {
        if number != self.number || self.reported().is_none() {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Retried) {
            State::Reported(_) => Some(Recovery::Retry),
            State::ReportedAgain(StallReport { waits_for, .. }) => Some(Recovery::GrowLimit { waits_for }),
            State::Flowing | State::Retried => unreachable!("it was reported"),
        }
    }

    /// The rank is not full.
    pub(super) fn below_low_watermark(&mut self) {
        self.state = match std::mem::take(&mut self.state) {
            State::Retried => State::Flowing,
            State::ReportedAgain(report) => State::Reported(report),
            state => state,
        };
    }
}

/// First backoff, ns: the time for which a rank is full because of a sync before it raises its limit.
const BACKOFF_NS: u64 = 250_000_000;

/// The wait of a full rank for the end of a sync.
#[derive(Debug)]
pub(super) struct Backoff {
    /// Start of the wait, ns.
    since_ns: Option<u64>,
    /// The backoff of this wait, ns.
    limit_ns: u64,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { since_ns: None, limit_ns: BACKOFF_NS }
    }
}

impl Backoff {
    /// The rank is full. Returns how long it has waited for the end of a sync, ns, if the backoff has expired.
    pub(super) fn expired(&mut self, waits_for_sync: bool, now_ns: u64) -> Option<u64> {
        let since_ns = waits_for_sync.then(|| self.since_ns.unwrap_or(now_ns));
        self.since_ns = since_ns;
        let waited_ns = now_ns.saturating_sub(since_ns?);
        (waited_ns >= self.limit_ns).then(|| {
            self.since_ns = None;
            self.limit_ns = self.limit_ns.saturating_mul(2);
            waited_ns
        })
    }

    /// The sync has ended, or the rank is not full.
    pub(super) fn reset(&mut self) {
        self.since_ns = None;
    }

    /// Time at which the backoff expires, ns.
    pub(super) fn until_ns(&self) -> Option<u64> {
        Some(self.since_ns?.saturating_add(self.limit_ns))
    }
}

/// The stalled ranks that have reported to rank 0, each with the number of its stall.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    ranks: BTreeMap<Rank, (u64, StallReport)>,
}

impl StallDetector {
    pub(crate) fn stalled(&mut self, rank: Rank, number: u64, report: StallReport) {
        self.ranks.insert(rank, (number, report));
    }

    pub(crate) fn end_stall(&mut self, rank: Rank, number: u64) {
        if self.ranks.get(&rank).is_some_and(|&(reported, _)| reported == number) {
            self.ranks.remove(&rank);
        }
    }

    /// Takes the ranks that wait only for each other, with the numbers of their stalls. `first_unacked` returns the
    /// first broadcast of a rank that not all ranks have acknowledged. O(ranks^2) at most.
    pub(crate) fn take_deadlocked(
        &mut self,
        first_unacked: impl Fn(Rank) -> Option<u64>,
    ) -> Vec<(Rank, u64)> {
        let mut deadlocked: BTreeSet<Rank> = self.ranks.keys().copied().collect();
        loop {
            let before = deadlocked.len();
            // A rank that waits for a rank that goes on will go on itself.
            let candidates = deadlocked.clone();
            let defers = |number| {
                let mut reports = candidates.iter().map(|rank| &self.ranks[rank].1);
                reports.any(|report| report.first_deferred_ack.is_some_and(|first| first <= number))
            };
            let stays = |rank: Rank, awaited: &Destination| match awaited {
                Destination::Rank(awaited) => candidates.contains(awaited),
                Destination::AllRanks => first_unacked(rank).is_some_and(defers),
            };
            deadlocked
                .retain(|&rank| self.ranks[&rank].1.waits_for.iter().all(|awaited| stays(rank, awaited)));
            if deadlocked.len() == before {
                break;
            }
        }
        let numbered = |rank| self.ranks.remove(&rank).map(|(number, _)| (rank, number));
        deadlocked.into_iter().filter_map(numbered).collect()
    }
}
