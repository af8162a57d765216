//! Selects the syncs that the page shows individually. Their records may contain any numbers.

use crate::trace::analysis::facts::Facts;
use crate::trace::analysis::sync_effect::{SyncEffect, finite};

/// Largest number of values per rank and sync that are embedded.
const BARS_MAX: usize = 60_000;
/// Largest number of syncs that are shown individually.
const SYNCS_MAX: usize = 200;
/// Largest number of ranks that are shown as bars.
pub(super) const RANKS_MAX: usize = 512;

/// The syncs of a run, and which of them are shown.
pub(super) struct Balance<'t> {
    pub(super) syncs: Vec<SyncEffect<'t>>,
    /// Indices of the syncs that are shown individually: the most uneven ones, in order of time.
    pub(super) shown: Vec<usize>,
    /// Index of the most uneven sync.
    pub(super) worst: Option<usize>,
}

impl<'t> Balance<'t> {
    pub(super) fn of(Facts { trace, outcomes, .. }: &Facts<'t>) -> Balance<'t> {
        let syncs = outcomes.clone();
        let mut uneven: Vec<usize> = (0..syncs.len()).collect();
        uneven.sort_by(|&a, &b| found(&syncs[b]).total_cmp(&found(&syncs[a])).then(a.cmp(&b)));
        let worst = uneven.first().copied();
        let most = (BARS_MAX / trace.ranks.len().clamp(1, RANKS_MAX)).clamp(1, SYNCS_MAX);
        uneven.truncate(most);
        uneven.sort_unstable();
        Balance { syncs, shown: uneven, worst }
    }

    /// The syncs that are shown individually.
    pub(super) fn shown(&self) -> impl Iterator<Item = &SyncEffect<'t>> {
        self.shown.iter().map(|&place| &self.syncs[place])
    }

    /// The time to show in detail, ns: the end of the most uneven phase.
    pub(super) fn focus_ns(&self) -> u64 {
        self.worst.map_or(0, |place| self.syncs[place].report.at_ns)
    }

    /// Times of all syncs, the sync of median imbalance first.
    pub(super) fn usual_ns(&self) -> impl Iterator<Item = u64> {
        let mut even: Vec<usize> = (0..self.syncs.len()).collect();
        even.sort_by(|&a, &b| found(&self.syncs[a]).total_cmp(&found(&self.syncs[b])).then(a.cmp(&b)));
        let middle = even.len() / 2;
        let (below, above) = even.split_at(middle);
        let places: Vec<usize> = above.iter().chain(below.iter().rev()).copied().collect();
        places.into_iter().map(|place| self.syncs[place].report.at_ns)
    }
}

/// The imbalance that a sync measured; 0 if it is missing.
pub(super) fn found(sync: &SyncEffect<'_>) -> f64 {
    finite(sync.report.imbalance_before).unwrap_or(0.0)
}
