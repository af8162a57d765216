//! ReportAggregation: what ranks report to a sync goes up the [tree](crate::arrays::core::collectives::tree) of ranks, in one packet a rank.
//!
//! A rank passes on its own report to a sync together with those of the ranks below it, once none of them is known to have
//! more to say about that sync: each report says which sync the next one will be about, of all ranks that it comes from. When
//! that changes and there is nothing to report, because the last chunk of a rank has left or was removed, a rank says only
//! that (`Packet::NextSyncChanged`).
//!
//! To wait for each other saves packets, and decides nothing: the [`census`](crate::arrays::core::collectives::population) on rank 0 knows who is missing. A
//! report that nobody has waited for, of a rank to which a chunk has come that had none, goes up by itself. And nobody waits in
//! vain: a rank waits for its children, they for theirs, and in the end somebody waits for a chunk that has yet to come to
//! the sync.

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::sync_arrivals::MeasuredRank;
use crate::arrays::core::collectives::population::Tally;
use crate::arrays::core::collectives::tree::Tree;
use crate::ids::{ArrayId, Rank, SyncId};

/// Reports to a sync, of a rank and ranks below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AggregatedReports {
    pub(crate) sync: SyncId,
    pub(crate) tallies: Vec<(ArrayId, Tally)>,
    pub(crate) ranks: Vec<MeasuredRank>,
    /// Number of their chunks that wait for the decision.
    pub(crate) waited: u64,
    /// When the first and the last of them reported.
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl AggregatedReports {
    fn merge(&mut self, other: AggregatedReports) {
        for (array, tally) in other.tallies {
            match self.tallies.iter_mut().find(|(of, _)| *of == array) {
                Some((_, ours)) => ours.merge(&tally),
                None => self.tallies.push((array, tally)),
            }
        }
        self.ranks.extend(other.ranks);
        self.waited += other.waited;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }
}

/// The sync that somebody reports to next, as far as is known; none if no chunk there comes to syncs.
pub(crate) type NextSync = Option<SyncId>;

/// Of two, the one that others wait for.
fn earliest(one: NextSync, other: NextSync) -> NextSync {
    one.into_iter().chain(other).min()
}

/// The reports that lie on a rank other than 0 on their way up.
#[derive(Debug)]
pub(crate) struct ReportAggregation {
    /// By child: for itself and the ranks below it.
    below: LiteMap<Rank, NextSync>,
    pending: LiteMap<SyncId, AggregatedReports>,
    /// The last that was last_sent to the parent.
    last_sent: NextSync,
}

/// The words to the parent.
#[derive(Debug, PartialEq)]
pub(crate) struct UpwardReports {
    pub(crate) reports: Vec<AggregatedReports>,
    /// What is next after them, where there are any or that is news.
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

    /// Adds a report, of this rank or from below.
    pub(crate) fn add(&mut self, collected: AggregatedReports) {
        match self.pending.get_mut(&collected.sync) {
            Some(ours) => ours.merge(collected),
            None => drop(self.pending.insert(collected.sync, collected)),
        }
    }

    /// A child has last_sent what is next.
    pub(crate) fn child_next(&mut self, child: Rank, next: NextSync) {
        self.below.insert(child, next);
    }

    /// Takes what is to be last_sent to the parent; `own` is what is next for this rank itself.
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

    /// The tallies that lie here.
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

    /// Rank 1 of 4, with children 3 and 4 in a tree of two children each.
    fn report_aggregation() -> ReportAggregation {
        ReportAggregation::new(&Tree { rank: Rank(1), ranks: 5, arity: 2 })
    }

    fn report(rank: u32, sync: SyncId) -> AggregatedReports {
        let tallies = vec![(ArrayId(0), Tally::of(Membership::default().report()))];
        let ranks = vec![MeasuredRank { rank: Rank(rank), sample: Sample::default(), chunks: Vec::new() }];
        let at_ns = 100 + u64::from(rank);
        AggregatedReports { sync, tallies, ranks, waited: 1, first_ns: at_ns, last_ns: at_ns }
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
    fn nobody_waits_for_ranks_without_chunks_and_what_they_say_later_goes_up_by_itself() {
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
    fn a_rank_says_that_its_last_chunk_has_left_if_nobody_below_it_has_one() {
        let mut report_aggregation = report_aggregation();
        report_aggregation.child_next(Rank(3), None);
        report_aggregation.child_next(Rank(4), Some(SECOND));
        assert_eq!(report_aggregation.take_complete(None).next, Some(Some(SECOND)));
        assert_eq!(report_aggregation.take_complete(None), nothing(), "it has been last_sent");
        report_aggregation.child_next(Rank(4), None);
        assert_eq!(report_aggregation.take_complete(None).next, Some(None));
    }

    #[test]
    fn who_goes_on_without_waiting_is_ahead_and_its_reports_wait_for_the_others() {
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
