//! What a run of arrays tells when it is over.

use serde::{Deserialize, Serialize};

use super::core::undelivered::{Leftover, Undelivered, undelivered};
use crate::run::report::RunReport;
use crate::trace::{SyncReport, SyncTotals};

/// The record of a finished run of arrays.
///
/// ```
/// let report = caribou::Report::default();
/// assert!(report.syncs.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// What every run has.
    #[serde(flatten)]
    pub run: RunReport,
    /// Deliveries handled, on all ranks: messages, starts, resumes, results.
    pub messages: u64,
    /// One record a sync, in order; of a run with thousands every second, fourth, ... so that as many as fit are spread
    /// evenly ([`SyncReport::sync`] tells which). Of several processes only that of rank 0 has them.
    pub syncs: Vec<SyncReport>,
    /// Sums over all syncs, also over those that are not in `syncs`.
    pub sync_totals: SyncTotals,
    /// Messages that nobody received, on all ranks: if there are any, a warning says so too.
    pub undelivered: Undelivered,
}

/// What a rank knows when it stops.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Deliveries handled.
    pub(crate) messages: u64,
    pub(crate) leftover: Leftover,
    /// Rank 0's record; other processes do without.
    #[serde(skip)]
    pub(crate) syncs: Vec<SyncReport>,
    #[serde(skip)]
    pub(crate) sync_totals: SyncTotals,
}

impl Report {
    /// The report of a run whose ranks know this, in their order.
    pub(crate) fn new(run: RunReport, mut ranks: Vec<Figures>) -> Report {
        let (syncs, sync_totals) = ranks
            .first_mut()
            .map(|root| (std::mem::take(&mut root.syncs), root.sync_totals))
            .unwrap_or_default();
        let messages = ranks.iter().map(|rank| rank.messages).sum();
        let leftovers: Vec<Leftover> = ranks.into_iter().map(|rank| rank.leftover).collect();
        Report { run, messages, syncs, sync_totals, undelivered: undelivered(&leftovers) }
    }
}
