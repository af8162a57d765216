//! Merges the reports to a sync on their way to rank 0, so that each rank sends one packet up the
//! [tree](crate::arrays::core::collectives::tree) (a convergecast). Ranks other than 0 use this module.
//!
//! # Rules
//!
//! 1. *Aggregation.* A rank sends its own reports to a sync and the reports of the ranks below it together. It sends
//!    them once none of these ranks is known to have more reports to that sync.
//! 2. *Next sync.* Each packet names the sync that the sender and the ranks below it report to next. If the last chunk
//!    of a rank leaves or is removed, the next sync may change without a report. Then the rank sends only the next sync
//!    ([`NextSyncChanged`](super::SyncPacket::NextSyncChanged)).
//! 3. *Late reports.* No rank waits for the report of a rank without chunks. If a chunk comes to such a rank later, the
//!    report goes up the tree alone.
//!
//! Waiting saves packets and has no effect on the decision: the [population
//! count](crate::arrays::core::collectives::population) on rank 0 finds which reports are missing.
//!
//! # Proof that no rank waits in vain
//!
//! 1. A rank waits only for its own chunks and its children, and each child likewise (rule 1).
//! 2. The tree is finite. So in the end some rank waits for a chunk that has yet to come to the sync.

use lb_strategies::balancer::EdgeReports;
use lb_strategies::grouped::GroupReport;
use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::sync_arrivals::MeasuredRank;
use crate::arrays::core::collectives::population::Tally;
use crate::arrays::core::collectives::tree::Tree;
use crate::ids::{ArrayId, Rank, SyncId};

/// The reports of a rank and of ranks below it to a sync.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AggregatedReports {
    pub(crate) sync: SyncId,
    pub(crate) tallies: Vec<(ArrayId, Tally)>,
    pub(crate) ranks: Vec<MeasuredRank>,
    /// Messages that chunks of these ranks sent, if they are recorded.
    pub(crate) edges: EdgeReports,
    /// Groups of ranks that have decided in a window. Their chunks are not in `ranks`.
    pub(crate) groups: Vec<GroupReport>,
    /// Number of chunks on these ranks that wait for the decision.
    pub(crate) waited: u64,
    /// Times of the first and the last of these reports.
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl AggregatedReports {
    /// Reports of no rank, of the same sync and times.
    pub(super) fn clone_times(&self) -> AggregatedReports {
        let &AggregatedReports { sync, waited, first_ns, last_ns, .. } = self;
        AggregatedReports {
            sync,
            tallies: Vec::new(),
            ranks: Vec::new(),
            edges: EdgeReports::default(),
            groups: Vec::new(),
            waited,
            first_ns,
            last_ns,
        }
    }

    pub(super) fn merge(&mut self, other: AggregatedReports) {
        for (array, tally) in other.tallies {
            match self.tallies.iter_mut().find(|(of, _)| *of == array) {
                Some((_, ours)) => ours.merge(&tally),
                None => self.tallies.push((array, tally)),
            }
        }
        self.ranks.extend(other.ranks);
        self.edges.add(other.edges);
        self.groups.extend(other.groups);
        self.waited += other.waited;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }
}

/// The next sync that a rank, alone or with the ranks below, is known to report to. None without chunks that come to
/// syncs.
pub(crate) type NextSync = Option<SyncId>;

/// The earlier of two next syncs. Reports to the later one wait for it.
fn earliest(one: NextSync, other: NextSync) -> NextSync {
    one.into_iter().chain(other).min()
}

/// The reports that wait on a rank other than 0 on their way up.
#[derive(Debug)]
pub(crate) struct ReportAggregation {
    /// The next sync of each child and the ranks below it.
    below: LiteMap<Rank, NextSync>,
    pending: LiteMap<SyncId, AggregatedReports>,
    /// The next sync in the last packet to the parent.
    last_sent: NextSync,
}

/// The reports to send to the parent.
#[derive(Debug, PartialEq)]
pub(crate) struct UpwardReports {
    pub(crate) reports: Vec<AggregatedReports>,
    /// The next sync after these reports; None if there are no reports and it has not changed.
    pub(crate) next: Option<NextSync>,
}

impl ReportAggregation {
    pub(crate) fn new(tree: &Tree) -> ReportAggregation {
        let from_the_start = Some(SyncId(0));
        ReportAggregation {
            below: tree.children().map(|child| (child, from_the_start)).collect(),
            pending: LiteMap::new(),
            last_sent: from_the_start,
        }
    }

    /// Adds a report of this rank or of a child.
    pub(crate) fn add(&mut self, collected: AggregatedReports) {
        match self.pending.get_mut(&collected.sync) {
            Some(ours) => ours.merge(collected),
            None => drop(self.pending.insert(collected.sync, collected)),
        }
    }

    /// A child has sent its next sync (rule 2).
    pub(crate) fn child_next(&mut self, child: Rank, next: NextSync) {
        self.below.insert(child, next);
    }

    /// Takes the reports to send to the parent (rules 1 and 2). `own` is the next sync of this rank itself.
    pub(crate) fn take_complete(&mut self, own: NextSync) -> UpwardReports {
        let next = self.below.values().fold(own, |so_far, &next| earliest(so_far, next));
        let mut reports = Vec::new();
        while let Some((&sync, _)) =
            self.pending.first().filter(|&(&sync, _)| next.is_none_or(|next| sync < next))
        {
            reports.extend(self.pending.remove(&sync));
        }
        let news = !reports.is_empty() || next != self.last_sent;
        self.last_sent = next;
        UpwardReports { reports, next: news.then_some(next) }
    }

    /// The tallies in the reports that wait here.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = (SyncId, ArrayId, Tally)> {
        self.pending.iter().flat_map(|(&sync, collected)| {
            collected.tallies.iter().map(move |(array, tally)| (sync, *array, tally.clone()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::core::collectives::population::Membership;
    use crate::measure::records::Sample;

    const FIRST: SyncId = SyncId(0);
    const SECOND: SyncId = SyncId(1);

    /// Rank 1 of 5, with the children 3 and 4 in a binary tree.
    fn report_aggregation() -> ReportAggregation {
        ReportAggregation::new(&Tree { rank: Rank(1), ranks: 5, arity: 2, group: 1 })
    }

    fn report(rank: u32, sync: SyncId) -> AggregatedReports {
        let tallies = vec![(ArrayId(0), Tally::of(Membership::default().report()))];
        let ranks = vec![MeasuredRank { rank: Rank(rank), sample: Sample::default(), chunks: Vec::new() }];
        let at_ns = 100 + u64::from(rank);
        let edges = EdgeReports::default();
        AggregatedReports {
            sync,
            tallies,
            ranks,
            edges,
            groups: Vec::new(),
            waited: 1,
            first_ns: at_ns,
            last_ns: at_ns,
        }
    }

    /// The ranks that each report is from, in order.
    fn ranks(upwards: &UpwardReports) -> Vec<Vec<u32>> {
        let of = |report: &AggregatedReports| report.ranks.iter().map(|of| of.rank.0).collect();
        upwards.reports.iter().map(of).collect()
    }

    fn nothing() -> UpwardReports {
        UpwardReports { reports: Vec::new(), next: None }
    }

    #[test]
    fn a_rank_reports_once_for_itself_and_all_below_it() {
        let mut report_aggregation = report_aggregation();
        report_aggregation.add(report(1, FIRST));
        assert_eq!(report_aggregation.take_complete(Some(SECOND)), nothing());
        report_aggregation.add(report(4, FIRST));
        report_aggregation.child_next(Rank(4), Some(SECOND));
        assert_eq!(report_aggregation.take_complete(Some(SECOND)), nothing());
        assert_eq!(report_aggregation.tallies().count(), 1);
        report_aggregation.add(report(3, FIRST));
        report_aggregation.child_next(Rank(3), Some(SECOND));
        let upwards = report_aggregation.take_complete(Some(SECOND));
        assert_eq!((ranks(&upwards), upwards.next), (vec![vec![1, 4, 3]], Some(Some(SECOND))));
        let AggregatedReports { tallies, waited, first_ns, last_ns, .. } = &upwards.reports[0];
        assert_eq!((tallies[0].1.heard(), *waited, *first_ns, *last_ns), (3, 3, 101, 104));
    }

    #[test]
    fn no_rank_waits_for_ranks_without_chunks_and_their_later_reports_go_up_by_themselves() {
        let mut report_aggregation = report_aggregation();
        report_aggregation.add(report(1, FIRST));
        report_aggregation.child_next(Rank(3), None);
        assert_eq!(report_aggregation.take_complete(Some(SECOND)), nothing(), "rank 4 has chunks");
        report_aggregation.child_next(Rank(4), None);
        assert_eq!(ranks(&report_aggregation.take_complete(Some(SECOND))), [[1]]);
        report_aggregation.add(report(3, FIRST));
        report_aggregation.child_next(Rank(3), Some(SECOND));
        assert_eq!(ranks(&report_aggregation.take_complete(Some(SECOND))), [[3]]);
    }

    #[test]
    fn a_rank_reports_that_its_last_chunk_has_left_if_no_rank_below_it_has_one() {
        let mut report_aggregation = report_aggregation();
        report_aggregation.child_next(Rank(3), None);
        report_aggregation.child_next(Rank(4), Some(SECOND));
        assert_eq!(report_aggregation.take_complete(None).next, Some(Some(SECOND)));
        assert_eq!(report_aggregation.take_complete(None), nothing(), "it was sent");
        report_aggregation.child_next(Rank(4), None);
        assert_eq!(report_aggregation.take_complete(None).next, Some(None));
    }

    #[test]
    fn reports_of_a_rank_that_is_ahead_wait_for_those_of_the_others() {
        let mut report_aggregation = report_aggregation();
        for sync in [FIRST, SECOND] {
            report_aggregation.add(report(1, sync));
            report_aggregation.add(report(3, sync));
        }
        report_aggregation.child_next(Rank(3), Some(SyncId(2)));
        report_aggregation.add(report(4, FIRST));
        report_aggregation.child_next(Rank(4), Some(SECOND));
        assert_eq!(ranks(&report_aggregation.take_complete(Some(SyncId(2)))), [[1, 3, 4]]);
        report_aggregation.child_next(Rank(4), None);
        assert_eq!(ranks(&report_aggregation.take_complete(Some(SyncId(2)))), [[1, 3]]);
    }
}
