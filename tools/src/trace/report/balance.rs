//! What the records of syncs say. They may hold any numbers.

use caribou::SyncReport;
use caribou::trace::Trace;

/// Numbers a rank and sync that are embedded.
const BARS_MAX: usize = 60_000;
/// Syncs that are shown one by one.
const SYNCS_MAX: usize = 200;
/// Ranks that are shown as bars.
pub(super) const RANKS_MAX: usize = 512;
/// Above it a sync counts as having found an imbalance.
pub(super) const EVEN: f64 = 1.1;

/// The syncs of a run, and which of them are shown.
#[derive(Debug)]
pub(super) struct Balance<'t> {
    pub(super) syncs: &'t [SyncReport],
    /// Places of those that are shown one by one: the most uneven, in order.
    pub(super) shown: Vec<usize>,
    /// The place of the most uneven.
    pub(super) worst: Option<usize>,
}

impl<'t> Balance<'t> {
    pub(super) fn of(trace: &'t Trace) -> Balance<'t> {
        let syncs = &trace.syncs[..];
        let mut uneven: Vec<usize> = (0..syncs.len()).collect();
        uneven.sort_by(|&a, &b| before(&syncs[b]).total_cmp(&before(&syncs[a])).then(a.cmp(&b)));
        let worst = uneven.first().copied();
        let most = (BARS_MAX / trace.ranks.len().clamp(1, RANKS_MAX)).clamp(1, SYNCS_MAX);
        uneven.truncate(most);
        uneven.sort_unstable();
        Balance { syncs, shown: uneven, worst }
    }

    /// What the phase after a sync turned out to be.
    pub(super) fn next(&self, place: usize) -> Option<&'t SyncReport> {
        self.syncs.get(place + 1)
    }

    /// The moment to look at one by one: the end of the most uneven phase.
    pub(super) fn focus_ns(&self) -> u64 {
        self.worst.map_or(0, |place| self.syncs[place].at_ns)
    }

    pub(super) fn with_moves(&self) -> usize {
        self.syncs.iter().filter(|sync| sync.moved > 0).count()
    }

    pub(super) fn moved(&self) -> u64 {
        self.syncs.iter().fold(0, |sum, sync| sum.saturating_add(sync.moved))
    }

    pub(super) fn moved_bytes(&self) -> u64 {
        self.syncs.iter().fold(0, |sum, sync| sum.saturating_add(sync.moved_bytes))
    }

    /// Time from the first rank's report to the last chunk's landing, over all syncs, ns.
    pub(super) fn spent_ns(&self) -> f64 {
        let parts = self
            .syncs
            .iter()
            .map(|sync| sync.collect_ns as f64 + sync.decide_ns as f64 + sync.migrate_ns as f64);
        parts.sum()
    }

    /// The median of the imbalance found.
    pub(super) fn median_imbalance(&self) -> Option<f64> {
        median(self.syncs.iter().map(before).collect())
    }

    /// The median of how far the next phase's makespan was from that predicted, as a share of it.
    pub(super) fn median_error(&self) -> Option<f64> {
        let errors = self.syncs.windows(2).filter_map(|pair| error(&pair[0], &pair[1]));
        median(errors.map(f64::abs).collect())
    }
}

/// How much longer the phase after a sync took than was predicted, as a share.
pub(super) fn error(sync: &SyncReport, next: &SyncReport) -> Option<f64> {
    let predicted_ns = sync.makespan_predicted_ns as f64;
    (predicted_ns > 0.0).then(|| (next.makespan_before_ns as f64 - predicted_ns) / predicted_ns)
}

/// The imbalance that a sync found; 0 where it says none.
pub(super) fn before(sync: &SyncReport) -> f64 {
    if sync.imbalance_before.is_finite() { sync.imbalance_before } else { 0.0 }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
