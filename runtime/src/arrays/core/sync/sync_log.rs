//! Stores the record of all syncs and balancing windows of a run in bounded memory: sums over all, and as many single
//! records as fit. Rank 0 reads the log for the trace, the monitor and the final report.
//!
//! When the log is full, every second record is dropped, so that the rest is spread evenly over the run. The newest
//! records are kept as well, for a reader during the run. The reports of ranks to a sync are long. So only the newest
//! reports are kept, as many as fit and at least one.

use std::collections::VecDeque;
use std::sync::Arc;

use lb_strategies::balancer::PhaseReport;

use crate::trace::{SyncReport, SyncTotals};

/// Upper and lower limit of the number of syncs kept for the end of the run.
const KEPT_MAX: usize = 4096;
const KEPT_MIN: usize = 64;
/// Approximate limit of the number of ranks, summed over all kept syncs: a sync takes about 40 bytes per rank.
const RANKS_MAX: usize = 1 << 19;
/// The most syncs that may end between two reads of the log.
const NEWEST_MAX: usize = 256;
/// Limit of the number of chunks, ranks and edges, summed over all kept reports: each takes about 60 bytes.
const REPORTED_MAX: usize = 1 << 20;

pub(crate) struct SyncLog {
    kept_max: usize,
    /// The numbers of the kept syncs are the multiples of this.
    stride: u64,
    kept: Vec<SyncReport>,
    newest: VecDeque<SyncReport>,
    reported: Reported,
    totals: SyncTotals,
}

/// The reports of ranks to the newest syncs, in their order.
#[derive(Default)]
struct Reported {
    syncs: VecDeque<(u64, Arc<PhaseReport>)>,
    /// Number of chunks and ranks in all of them.
    size: usize,
}

impl Reported {
    fn push(&mut self, sync: u64, report: Arc<PhaseReport>) {
        self.size += report.size();
        self.syncs.push_back((sync, report));
        while self.size > REPORTED_MAX && self.syncs.len() > 1 {
            self.size -= self.syncs.pop_front().map_or(0, |(_, oldest)| oldest.size());
        }
    }

    /// Joins a sync with the reports of ranks to it, if they are kept.
    fn join(&self, sync: SyncReport) -> SyncReport {
        let at = self.syncs.binary_search_by_key(&sync.sync, |(number, _)| *number);
        SyncReport { reported: at.ok().map(|at| self.syncs[at].1.clone()), ..sync }
    }
}

impl SyncLog {
    pub(crate) fn new(ranks: usize) -> SyncLog {
        let kept_max = (RANKS_MAX / ranks.max(1)).clamp(KEPT_MIN, KEPT_MAX);
        SyncLog {
            kept_max,
            stride: 1,
            kept: Vec::new(),
            newest: VecDeque::new(),
            reported: Reported::default(),
            totals: SyncTotals::default(),
        }
    }

    pub(crate) fn push(&mut self, mut report: SyncReport) {
        self.totals.add(&report);
        if let Some(reported) = report.reported.take() {
            self.reported.push(report.sync, reported);
        }
        if self.newest.len() == NEWEST_MAX {
            self.newest.pop_front();
        }
        self.newest.push_back(report.clone());
        if report.sync.is_multiple_of(self.stride) {
            self.kept.push(report);
        }
        if self.kept.len() > self.kept_max {
            self.stride *= 2;
            self.kept.retain(|report| report.sync.is_multiple_of(self.stride));
        }
    }

    pub(crate) fn last(&self) -> Option<&SyncReport> {
        self.newest.back()
    }

    /// The syncs after the first `seen` ones that are among the newest, and the sums over all syncs so far.
    pub(crate) fn after(&self, seen: u64) -> (Vec<SyncReport>, SyncTotals) {
        let unseen = self.totals.syncs.saturating_sub(seen) as usize;
        let unseen = self.newest.iter().skip(self.newest.len().saturating_sub(unseen));
        (unseen.map(|report| self.reported.join(report.clone())).collect(), self.totals)
    }

    /// Takes the kept syncs. Also returns the sums over all syncs.
    pub(crate) fn take(&mut self) -> (Vec<SyncReport>, SyncTotals) {
        let kept = std::mem::take(&mut self.kept).into_iter();
        (kept.map(|report| self.reported.join(report)).collect(), self.totals)
    }
}

#[cfg(test)]
mod tests {
    use lb_strategies::balancer::ChunkReport;
    use lb_strategies::{ArrayId, ChunkId, ChunkLoad};

    use super::*;
    use crate::ids::Rank;

    fn log(ranks: usize, syncs: u64) -> SyncLog {
        let mut log = SyncLog::new(ranks);
        for sync in 0..syncs {
            let imbalance_before = if sync == 777 { 3.5 } else { 1.5 };
            log.push(SyncReport { sync, moved: 2, imbalance_before, ..SyncReport::default() });
        }
        log
    }

    #[test]
    fn a_long_run_keeps_a_bounded_even_part_and_exact_sums() {
        let (kept, totals) = log(2, 100_000).take();
        assert!((KEPT_MAX / 2..=KEPT_MAX).contains(&kept.len()), "{}", kept.len());
        let gaps: Vec<u64> = kept.windows(2).map(|pair| pair[1].sync - pair[0].sync).collect();
        assert!(kept[0].sync == 0 && gaps.iter().all(|&gap| gap == gaps[0]), "evenly spread");
        assert_eq!((totals.syncs, totals.moved, totals.worst_sync), (100_000, 200_000, 777));
        assert!(log(1 << 20, 10_000).take().0.len() <= KEPT_MIN, "many ranks make a record long");
    }

    #[test]
    fn reports_of_ranks_are_kept_for_as_many_of_the_newest_syncs_as_fit() {
        let with_reports = |chunks: usize, syncs: u64| {
            let id = ChunkId { array: ArrayId(0), key: 0 };
            let load = ChunkLoad { id, rank: Rank(0), ticks: 1, bytes: 0, migratable: true };
            let chunks = vec![ChunkReport { load, declared: false, wish: None, handled: 0 }; chunks];
            let reported = Arc::new(PhaseReport { chunks, ..PhaseReport::default() });
            let mut log = SyncLog::new(1);
            for sync in 0..syncs {
                log.push(SyncReport { sync, reported: Some(reported.clone()), ..SyncReport::default() });
            }
            log
        };
        let having = |reports: &[SyncReport]| -> Vec<u64> {
            reports.iter().filter(|report| report.reported.is_some()).map(|report| report.sync).collect()
        };
        let mut log = with_reports(REPORTED_MAX / 4, 10);
        assert_eq!(having(&log.after(0).0), [6, 7, 8, 9]);
        assert_eq!(having(&log.take().0), [6, 7, 8, 9]);
        assert_eq!(having(&with_reports(REPORTED_MAX + 1, 3).take().0), [2], "the trace gets each");
        assert_eq!(having(&with_reports(10, 300).take().0).len(), 300);
    }

    #[test]
    fn frequent_reads_of_the_log_miss_no_sync() {
        let log = log(2, 10_000);
        let (new, totals) = log.after(9_900);
        let seen: Vec<u64> = new.iter().map(|report| report.sync).collect();
        assert_eq!((seen, totals.syncs), ((9_900..10_000).collect(), 10_000));
        assert!(log.after(10_000).0.is_empty());
        let (new, totals) = log.after(0);
        assert_eq!(
            (new.len(), totals.syncs),
            (NEWEST_MAX, 10_000),
            "a reader that looks too rarely is told how many"
        );
    }
}
