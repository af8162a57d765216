//! Defines the messages between ranks and the root of `leases`. Each direction has its own type.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::pools::machine::{self, Nanos};
use crate::pools::range_set::RangeSet;
use crate::rank::Rank;

/// An output of a machine of these policies.
pub(super) type Output = machine::Output<LeaseMessage>;

/// A message of the policies `leases` and `auto`.
///
/// ```
/// use lb_strategies::pool::leases::{LeaseMessage, Order};
/// assert_eq!(LeaseMessage::Order(Order::Stop), LeaseMessage::Order(Order::Stop));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LeaseMessage {
    /// From a rank to the root.
    Report(Report),
    /// From the root to a rank.
    Order(Order),
}

/// A report of a rank to the root.
///
/// ```
/// use lb_strategies::pool::leases::{ReportKind, Report, LeaseStatus};
/// let report = Report { kind: ReportKind::Want, status: LeaseStatus::default(), done: vec![] };
/// assert_eq!(report.status.pool, 0);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Why the rank reports.
    pub kind: ReportKind,
    /// The state of the rank.
    pub status: LeaseStatus,
    /// Indices executed since the last report of the rank.
    pub done: Vec<Range<u64>>,
}

/// Why a rank reports.
///
/// ```
/// use lb_strategies::pool::leases::ReportKind;
/// assert_ne!(ReportKind::Want, ReportKind::Bye);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ReportKind {
    /// The rank will soon have nothing to do. The root answers with one `Lease`, perhaps later, or with `Stop`.
    Want,
    /// The rank's state is not as the root would predict.
    Progress,
    /// The answer to `Steal`: the rank no longer holds these ranges. There may be none.
    Stolen(Vec<Range<u64>>),
    /// The rank becomes inactive, and gives these ranges back. There may be none.
    Returned(Vec<Range<u64>>),
    /// A worker is late with this piece: another worker may execute it, too.
    Offer {
        /// Number of the piece on its rank.
        piece: u64,
        /// Its indices.
        range: Range<u64>,
    },
    /// A copy has been executed. The root answers with a `Verdict` on whether the copy counts, or with `Stop`.
    Copied {
        /// The rank that holds the piece.
        owner: Rank,
        /// Number of the piece on that rank.
        piece: u64,
    },
    /// The answer to `Settle`.
    Settled {
        /// Number of the piece on this rank.
        piece: u64,
        /// The indices that this rank no longer holds, if the copy counts.
        range: Option<Range<u64>>,
    },
    /// The answer to `Stop`, and the last message of the rank.
    Bye,
}

/// The state of a rank.
///
/// ```
/// use lb_strategies::pool::leases::LeaseStatus;
/// assert_eq!(LeaseStatus::default().speed, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeaseStatus {
    /// Iterations that the rank holds and has not begun.
    pub pool: u64,
    /// Iterations per second of all workers of the rank; `None` before the first measurement.
    pub speed: Option<f64>,
    /// Number of waiting workers.
    pub waiting: u32,
    /// Number of leases received so far.
    pub leases: u64,
    /// Time from a `Want` to its `Lease`, without the time that the `Want` waited at the root.
    pub rtt: Nanos,
    /// Coefficient of variation of the time of one iteration; `None` before it is measured.
    pub variation: Option<f64>,
    /// True while the rank is inactive, that is, gets no work.
    pub is_inactive: bool,
}

/// An order of the root to a rank.
///
/// ```
/// use lb_strategies::pool::leases::Order;
/// let order = Order::Lease { ranges: vec![0..10], queued: 0, last: false };
/// assert_ne!(order, Order::Stop);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// The rank gets these ranges, at least one.
    Lease {
        /// The indices.
        ranges: Vec<Range<u64>>,
        /// Time that the `Want` waited at the root.
        queued: Nanos,
        /// True if the root has nothing left.
        last: bool,
    },
    /// Give these ranks a fair part of the ranges that you hold.
    Steal(Thieves),
    /// Let a waiting worker execute a copy of this piece.
    Copy {
        /// The rank that holds the piece.
        owner: Rank,
        /// Number of the piece on that rank.
        piece: u64,
        /// Its indices.
        range: Range<u64>,
    },
    /// Another worker has executed a copy of this piece of yours: answer whether the copy counts.
    Settle {
        /// Number of the piece.
        piece: u64,
    },
    /// The answer to `Copied`.
    Verdict {
        /// The rank that holds the piece.
        owner: Rank,
        /// Number of the piece on that rank.
        piece: u64,
        /// True if the copy counts.
        counts: bool,
    },
    /// Everything is done: release the workers.
    Stop,
}

/// The ranks without work, added up.
///
/// ```
/// use lb_strategies::pool::leases::Thieves;
/// let thieves = Thieves { speed: 300.0, pool: 0, waiting: 1, victim: 100.0 };
/// assert_eq!(thieves.part_of(100, None), 75);
/// assert_eq!(thieves.part_of(100, Some(0.0)), 100);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thieves {
    /// Iterations per second.
    pub speed: f64,
    /// Iterations that they still hold.
    pub pool: u64,
    /// Number of waiting workers.
    pub waiting: u32,
    /// The speed to assume for a victim that has not measured its own.
    pub victim: f64,
}

impl Thieves {
    /// The number of iterations that a victim of `speed` with `pool` iterations gives, so that all end together.
    ///
    /// `(pool V_k - pool_k V) / (V_k + V)`, rounded down. If a worker waits, at least one, if the victim has any.
    ///
    /// Root and victim compute the same number, so that no rank is asked in vain again and again.
    pub fn part_of(&self, pool: u64, speed: Option<f64>) -> u64 {
        let speed = speed.unwrap_or(self.victim);
        let both = self.speed + speed;
        let part = if both > 0.0 {
            (pool as f64 * self.speed - self.pool as f64 * speed) / both
        } else {
            pool as f64 / 2.0
        };
        (part.max(0.0) as u64).max(u64::from(self.waiting > 0)).min(pool)
    }
}

/// The ranges of a set, as a message carries them.
pub(super) fn list(set: &RangeSet) -> Vec<Range<u64>> {
    set.ranges().collect()
}
