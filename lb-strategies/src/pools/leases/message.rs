//! Messages between ranks and the root of `leases`. Each direction has its own type.

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
    /// A rank to the root.
    Report(Report),
    /// The root to a rank.
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
    /// Indices executed since its last report.
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
    /// It will soon have nothing to do. Answered by one `Lease`, sooner or later, or by `Stop`.
    Want,
    /// News that the root could not predict.
    Progress,
    /// The answer to a `Steal`: these are no longer its own. They may be none.
    Stolen(Vec<Range<u64>>),
    /// It is to be without work, and gives these back. They may be none.
    Returned(Vec<Range<u64>>),
    /// A worker is late with this piece: another worker may execute it, too.
    Offer {
        /// Its number there.
        piece: u64,
        /// Its indices.
        range: Range<u64>,
    },
    /// A copy is executed: does it count? Answered by a `Verdict`, or by `Stop`.
    Copied {
        /// Whose piece.
        owner: Rank,
        /// Its number there.
        piece: u64,
    },
    /// The answer to `Settle`.
    Settled {
        /// Its number here.
        piece: u64,
        /// If the copy counts, which indices are no longer held here.
        range: Option<Range<u64>>,
    },
    /// The answer to a `Stop`, its last words.
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
    /// Iterations it holds that were not begun.
    pub pool: u64,
    /// Iterations per second of all its workers; `None` while it has not measured.
    pub speed: Option<f64>,
    /// Workers that wait.
    pub waiting: u32,
    /// Leases it has got so far.
    pub leases: u64,
    /// Time from its `Want` to the `Lease`, without the wait at the root.
    pub rtt: Nanos,
    /// Coefficient of variation of the time of one iteration; `None` while it has not measured.
    pub variation: Option<f64>,
    /// True while it is to be without work.
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
    /// These are yours; at least one.
    Lease {
        /// The indices.
        ranges: Vec<Range<u64>>,
        /// Time that the `Want` has waited at the root.
        queued: Nanos,
        /// The root has nothing left.
        last: bool,
    },
    /// Give these a fair part of what you hold.
    Steal(Thieves),
    /// Let a waiting worker execute this, too.
    Copy {
        /// Whose piece.
        owner: Rank,
        /// Its number there.
        piece: u64,
        /// Its indices.
        range: Range<u64>,
    },
    /// Another worker has executed a copy of this piece of yours: does it count?
    Settle {
        /// Its number.
        piece: u64,
    },
    /// The answer to `Copied`.
    Verdict {
        /// Whose piece.
        owner: Rank,
        /// Its number there.
        piece: u64,
        /// True if the copy counts.
        counts: bool,
    },
    /// All is done: release the workers.
    Stop,
}

/// Ranks without work, taken together.
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
    /// Iterations they still hold.
    pub pool: u64,
    /// Workers that wait.
    pub waiting: u32,
    /// Speed assumed for a victim that has not measured its own.
    pub victim: f64,
}

impl Thieves {
    /// The number of iterations that a victim with `pool` iterations and `speed` gives, so that victim and thieves end
    /// together.
    ///
    /// `(pool V_k - pool_k V) / (V_k + V)`, rounded down. If a worker waits, it is at least one, if there is one.
    ///
    /// Root and victim both calculate it, alike, so that no rank is cut in vain again and again.
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

/// The ranges of a set, to be sent.
pub(super) fn list(set: &RangeSet) -> Vec<Range<u64>> {
    set.ranges().collect()
}
