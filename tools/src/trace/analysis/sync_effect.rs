//! Computes the effect of each sync: verdict, cost, and predictions compared with what the next sync measured.
//!
//! Records may come from untrusted files: figures are `f64`, lists have any length, no result is infinite or NaN.

use caribou::report::SyncReport;
use trace_reader::Trace;

/// A time in ns for each rank, scaled to the length of the phase before the sync: see [`SyncEffect::scaled`].
pub(crate) type PerRank = Vec<u64>;

/// A sync and its successor.
#[derive(Clone, Copy)]
pub(crate) struct SyncEffect<'t> {
    pub(crate) report: &'t SyncReport,
    next: Option<&'t SyncReport>,
    /// Number of active ranks in the phase before the sync; all ranks if it is unknown.
    active_before: usize,
    /// Number of chunks that were on ranks which are inactive from this sync on.
    stranded: u64,
}

/// What a sync decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncVerdict {
    /// The strategy proposed no moves.
    Balanced,
    Moved,
    /// The expected cost of the moves exceeded the time that they save.
    Refused,
    /// The strategy was not called, because no moves could save the time that it takes to decide.
    Unasked,
    /// Chunks moved away from inactive ranks, at any cost.
    Resized,
}

/// Reason that a rank was the slowest of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LateCause {
    /// The rank had this many times the average work.
    Work(f64),
    /// The rank got only this fraction of its vCPUs.
    Share(f64),
    /// The rank has only this fraction of the speed of the fastest rank.
    Speed(f64),
}

/// The slowest rank of a phase, and the causes, the largest delay first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slowest {
    pub(crate) rank: usize,
    pub(crate) causes: Vec<LateCause>,
}

/// Describes the causes in words.
pub(crate) fn causes_text(causes: &[LateCause]) -> String {
    let had = |cause: &LateCause| match cause {
        LateCause::Work(work) => format!("{work:.3} times the average work"),
        LateCause::Share(share) => format!("only {:.1} % of its vCPU", 100.0 * share),
        LateCause::Speed(speed) => format!("only {:.1} % of the best speed", 100.0 * speed),
    };
    let had: Vec<String> = causes.iter().map(had).collect();
    match had.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => had.concat(),
    }
}

/// A rank with more than this multiple of the average work has too much work.
pub(crate) const EVEN_MAX: f64 = 1.1;
/// Below this fraction, a rank lacks speed or vCPU time.
const WHOLE_MIN: f64 = 0.9;

/// The effects of all syncs, in order.
pub(crate) fn sync_effects<'t>(syncs: &'t [SyncReport]) -> Vec<SyncEffect<'t>> {
    let next = |number: usize, report: &'t SyncReport| {
        syncs.get(number + 1).filter(|next| Some(next.sync) == report.sync.checked_add(1))
    };
    let mut before: Option<&SyncReport> = None;
    let effect = |(at, report): (usize, &'t SyncReport)| {
        let before = before.replace(report);
        let active_before = before.map_or(all_ranks(report), active);
        // Before the first record, chunks may have been on all ranks.
        let stranded = before.map_or(u64::MAX, |before| chunks_from(before, active(report)));
        SyncEffect { report, next: next(at, report), active_before, stranded }
    };
    syncs.iter().enumerate().map(effect).collect()
}

/// The word for the syncs of a run: "window" if all are windows, otherwise "sync".
pub(crate) fn occasion_of(trace: &Trace) -> &'static str {
    occasion(trace.syncs.iter().map(|sync| sync.window))
}

/// The word for syncs, of each of which it is known whether it is a window.
pub(crate) fn occasion(are_windows: impl IntoIterator<Item = bool>) -> &'static str {
    let mut are_windows = are_windows.into_iter().peekable();
    if are_windows.peek().is_some() && are_windows.all(|is_window| is_window) { "window" } else { "sync" }
}

fn all_ranks(report: &SyncReport) -> usize {
    report.before_ns.len().max(report.chunks_per_rank.len())
}

/// Number of ranks that are active after a sync; all ranks if it is unknown.
fn active(report: &SyncReport) -> usize {
    report.active.map_or(usize::MAX, |active| active as usize).min(all_ranks(report))
}

/// Number of chunks after a sync on this rank and on higher ranks.
fn chunks_from(report: &SyncReport, rank: usize) -> u64 {
    report.chunks_per_rank.iter().skip(rank).map(|&chunks| u64::from(chunks)).sum()
}

/// Time in ns at which the first rank came to a sync.
pub(crate) fn began_ns(report: &SyncReport) -> u64 {
    report.at_ns.saturating_sub(report.decide_ns).saturating_sub(report.collect_ns)
}

/// The syncs before and after sync number `sync`.
pub(crate) fn neighbours<'o, 't>(
    all: &'o [SyncEffect<'t>],
    sync: u64,
) -> (Option<&'o SyncEffect<'t>>, Option<&'o SyncEffect<'t>>) {
    let before = all.iter().rev().find(|other| other.report.sync < sync);
    (before, all.iter().find(|other| other.report.sync > sync))
}

/// The sync that moved most chunks. Of several, the one with the largest predicted saving, and of those the first.
pub(crate) fn largest<'t>(outcomes: &[SyncEffect<'t>]) -> Option<SyncEffect<'t>> {
    let size = |outcome: &SyncEffect<'_>| (outcome.report.moved, outcome.report.gain_ns);
    let most = outcomes.iter().map(size).max()?;
    outcomes.iter().find(|outcome| size(outcome) == most).copied()
}

impl<'t> SyncEffect<'t> {
    /// Numbers of active ranks before and after the sync, if they differ.
    pub(crate) fn resize(&self) -> Option<(usize, usize)> {
        let after = active(self.report);
        (after != self.active_before).then_some((self.active_before, after))
    }

    /// Returns whether the sync moved chunks away from inactive ranks.
    fn empties_ranks(&self) -> bool {
        let active = active(self.report);
        active < all_ranks(self.report)
            && self.report.moved > 0
            && self.stranded > chunks_from(self.report, active)
    }

    pub(crate) fn verdict(&self) -> SyncVerdict {
        if self.empties_ranks() {
            return SyncVerdict::Resized;
        }
        match (self.report.moved, self.report.proposed) {
            (0, 0) if !self.report.was_asked() => SyncVerdict::Unasked,
            (0, 0) => SyncVerdict::Balanced,
            (0, _) => SyncVerdict::Refused,
            _ => SyncVerdict::Moved,
        }
    }

    /// The imbalance that the next sync measured.
    pub(crate) fn actual(&self) -> Option<f64> {
        finite(self.next?.imbalance_before)
    }

    /// Error of the prediction: the fraction by which a step of the next phase took longer than predicted. None if
    /// numbers of steps are unknown, because phases differ in length.
    pub(crate) fn error(&self) -> Option<f64> {
        // Chunks leave inactive ranks in several windows, which no prediction covers.
        if self.verdict() == SyncVerdict::Resized {
            return None;
        }
        let predicted_ns = self.report.makespan_predicted_ns as f64 * self.length_of_next()?;
        error(self.next?.makespan_before_ns as f64, predicted_ns)
    }

    /// Length of the next phase over its predicted length. The runtime cannot count steps of the program, so the
    /// messages that chunks handled measure the length of a phase.
    fn length_of_next(&self) -> Option<f64> {
        ratio(self.next?.deliveries, self.report.deliveries_predicted)
    }

    /// The predicted completion times.
    pub(crate) fn predicted_ns(&self) -> PerRank {
        self.scaled(&self.report.predicted_ns, self.report.deliveries_predicted)
    }

    /// The completion times that the next sync measured.
    pub(crate) fn measured_ns(&self) -> Option<PerRank> {
        self.next.map(|next| self.scaled(&next.before_ns, next.deliveries))
    }

    /// Returns whether these times are scaled to equal numbers of steps. If not, they are as recorded.
    pub(crate) fn is_per_step(&self) -> bool {
        self.length_of_next().is_some()
    }

    /// Scales times of another phase to the length of the phase before the sync.
    fn scaled(&self, times_ns: &[u64], deliveries: u64) -> PerRank {
        let shorter = ratio(self.report.deliveries, deliveries).unwrap_or(1.0);
        times_ns.iter().map(|&ns| (ns as f64 * shorter).round() as u64).collect()
    }

    /// Largest over average work of the ranks. Work is time times capacity: the time on a whole vCPU of speed 1.
    pub(crate) fn work(&self) -> Option<f64> {
        max_over_average(&self.counted(&scaled(&self.report.before_ns, &self.report.capacity)))
    }

    /// Returns whether a rank was active in the phase before the sync, or had work.
    fn counts(&self, rank: usize) -> bool {
        rank < self.active_before || self.report.before_ns.get(rank).is_some_and(|&ns| ns > 0)
    }

    /// The values of the ranks that were active in the phase before the sync, or had work.
    fn counted<T: Copy>(&self, of_ranks: &[T]) -> Vec<T> {
        let counted = of_ranks.iter().enumerate().filter(|&(rank, _)| self.counts(rank));
        counted.map(|(_, &value)| value).collect()
    }

    /// Returns whether chunks waited for the sync. After `at_sync_nowait` they go on.
    pub(crate) fn is_blocking(&self) -> bool {
        is_blocking(self.report)
    }

    /// Cost of the sync in ns. If no chunk waited for it, collecting and migrating cost nothing.
    pub(crate) fn cost(&self) -> Cost {
        Cost::of(self.report)
    }

    /// Time in ns that the moves should have saved in the next phase, at its actual length; 0 without moves.
    pub(crate) fn gain_ns(&self) -> f64 {
        let length = self.length_of_next().unwrap_or(1.0);
        if self.verdict() == SyncVerdict::Moved { self.report.gain_ns as f64 * length } else { 0.0 }
    }

    /// The same for proposed or refused moves; if the strategy was not called, for the best possible moves.
    pub(crate) fn proposed_gain_ns(&self) -> f64 {
        match self.verdict() {
            SyncVerdict::Moved | SyncVerdict::Resized => self.gain_ns(),
            SyncVerdict::Balanced | SyncVerdict::Refused | SyncVerdict::Unasked => self.report.gain_ns as f64,
        }
    }

    /// Time in ns that the moves saved: the next phase without them, by its own measured loads and capacities, would
    /// have taken so much longer. None for the last sync, and for moves that did not serve to save time.
    pub(crate) fn saved_ns(&self) -> Option<f64> {
        let is_judged = self.verdict() == SyncVerdict::Moved;
        let next = self.next.filter(|next| next.makespan_unmoved_ns > 0 && is_judged)?;
        Some(next.makespan_unmoved_ns as f64 - next.makespan_before_ns as f64)
    }

    /// Difference of the next phase from its prediction, for the work of ranks and for their capacities. 0.5 means that
    /// half of it was on other ranks than predicted.
    pub(crate) fn drift(&self) -> Option<(f64, f64)> {
        let work = |times_ns: &[u64], report: &SyncReport| scaled(times_ns, &report.capacity);
        let next = self.next?;
        let work = apart(&work(&self.report.predicted_ns, self.report), &work(&next.before_ns, next))?;
        Some((work, apart(&self.report.capacity, &next.capacity)?))
    }

    /// Time in ns by which the phase was longer than with its work divided by capacity.
    pub(crate) fn excess_ns(&self) -> f64 {
        let imbalance = finite(self.report.imbalance_before).unwrap_or(1.0).max(1.0);
        self.report.makespan_before_ns as f64 * (1.0 - 1.0 / imbalance)
    }

    /// The rank that ended the phase last; none if loads or capacities are unknown. Each cause is a factor compared
    /// with the average rank: more work, less vCPU time, or less speed.
    pub(crate) fn slowest(&self) -> Option<Slowest> {
        let report = self.report;
        let work = scaled(&report.before_ns, &report.capacity);
        let rank = (0..work.len()).max_by_key(|&rank| (report.before_ns[rank], usize::MAX - rank))?;
        let speeds: Vec<f64> =
            report.capacity.iter().zip(&report.share).map(|(capacity, share)| capacity / share).collect();
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let over_average = |values: &[f64]| {
            let counted = self.counted(values);
            let average = counted.iter().sum::<f64>() / counted.len() as f64;
            finite(values.get(rank)? / average)
        };
        let more = over_average(&work)?;
        let share = report.share.get(rank).copied().unwrap_or(1.0);
        let speed = speeds.get(rank).and_then(|speed| finite(speed / fastest)).unwrap_or(1.0);
        let times_less = |values: &[f64]| over_average(values).map_or(1.0, f64::recip);
        let mut causes = Vec::new();
        if more > EVEN_MAX {
            causes.push((more, LateCause::Work(more)));
        }
        if share < WHOLE_MIN {
            causes.push((times_less(&report.share), LateCause::Share(share)));
        }
        if speed < WHOLE_MIN {
            causes.push((times_less(&speeds), LateCause::Speed(speed)));
        }
        causes.sort_by(|one, other| other.0.total_cmp(&one.0));
        Some(Slowest { rank, causes: causes.into_iter().map(|(_, cause)| cause).collect() })
    }

    /// Number of chunks on all ranks.
    pub(crate) fn chunks(&self) -> u64 {
        self.report.chunks_per_rank.iter().map(|&chunks| u64::from(chunks)).sum()
    }
}

/// Cost of syncs, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// From the arrival of the first rank to that of the last: mostly waiting for the slowest rank.
    pub(crate) collect_ns: f64,
    /// In the strategy itself.
    pub(crate) decide_ns: f64,
    pub(crate) migrate_ns: f64,
}

impl Cost {
    pub(crate) fn of(report: &SyncReport) -> Cost {
        let SyncReport { collect_ns, decide_ns, migrate_ns, .. } = *report;
        let beside = |ns: u64| if is_blocking(report) { ns as f64 } else { 0.0 };
        Cost { collect_ns: beside(collect_ns), decide_ns: decide_ns as f64, migrate_ns: beside(migrate_ns) }
    }

    pub(crate) fn all_ns(&self) -> f64 {
        self.collect_ns + self.decide_ns + self.migrate_ns
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), |sum, one| Cost {
            collect_ns: sum.collect_ns + one.collect_ns,
            decide_ns: sum.decide_ns + one.decide_ns,
            migrate_ns: sum.migrate_ns + one.migrate_ns,
        })
    }
}

/// Returns whether chunks waited for a sync. Older traces have no such field, and count as waiting.
fn is_blocking(report: &SyncReport) -> bool {
    report.waited != Some(0)
}

/// Relative error of a prediction; none without a prediction.
pub(crate) fn error(measured_ns: f64, predicted_ns: f64) -> Option<f64> {
    (predicted_ns > 0.0).then(|| (measured_ns - predicted_ns) / predicted_ns)
}

fn ratio(one: u64, other: u64) -> Option<f64> {
    (one > 0 && other > 0).then(|| one as f64 / other as f64)
}

/// Fraction of a whole that two distributions assign to different ranks.
fn apart(one: &[f64], other: &[f64]) -> Option<f64> {
    let (sum, other_sum) = (one.iter().sum::<f64>(), other.iter().sum::<f64>());
    let off = one.iter().zip(other).map(|(one, other)| (one / sum - other / other_sum).abs());
    finite(off.sum::<f64>() / 2.0)
}

fn scaled(times_ns: &[u64], factors: &[f64]) -> Vec<f64> {
    times_ns.iter().zip(factors).map(|(&ns, factor)| ns as f64 * factor).collect()
}

/// Largest over average value; none without values or if their sum is 0.
pub(crate) fn max_over_average(values: &[f64]) -> Option<f64> {
    let average = values.iter().sum::<f64>() / values.len() as f64;
    let most = values.iter().copied().fold(0.0, f64::max);
    finite(most / average)
}

/// The number if it is finite.
pub(crate) fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of small whole numbers are exact")]
mod tests {
    use super::*;

    fn sync(number: u64, before_ns: &[u64], capacity: &[f64], share: &[f64]) -> SyncReport {
        let mut report = SyncReport::default();
        report.sync = number;
        report.before_ns = before_ns.to_vec();
        report.makespan_before_ns = before_ns.iter().copied().max().unwrap_or(0);
        report.imbalance_before =
            report.makespan_before_ns as f64 * before_ns.len() as f64 / before_ns.iter().sum::<u64>() as f64;
        (report.capacity, report.share) = (capacity.to_vec(), share.to_vec());
        report
    }

    #[test]
    fn a_late_rank_has_one_of_three_reasons() {
        let slowest = |report: SyncReport| sync_effects(&[report])[0].slowest();
        let late = |rank, causes: &[LateCause]| Some(Slowest { rank, causes: causes.to_vec() });
        let robbed = sync(0, &[100, 180], &[1.0, 0.55], &[1.0, 0.55]);
        assert_eq!(slowest(robbed), late(1, &[LateCause::Share(0.55)]));
        assert_eq!(
            slowest(sync(0, &[200, 100], &[0.5, 1.0], &[1.0, 1.0])),
            late(0, &[LateCause::Speed(0.5)])
        );
        assert_eq!(slowest(sync(0, &[300, 100], &[1.0, 1.0], &[1.0, 1.0])), late(0, &[LateCause::Work(1.5)]));
        assert_eq!(slowest(sync(0, &[100, 100], &[], &[])), None);
    }

    #[test]
    fn of_several_reasons_the_one_that_made_a_rank_later_comes_first() {
        let causes = |report: SyncReport| sync_effects(&[report])[0].slowest().unwrap().causes;
        // 1.2 times the work on a vCPU of which a tenth is left: 5.5 times less than the ranks have on average.
        let robbed = sync(0, &[80, 1200], &[1.0, 0.1], &[1.0, 0.1]);
        assert_eq!(causes(robbed), [LateCause::Share(0.1), LateCause::Work(1.2)]);
        let loaded = sync(0, &[20, 300], &[1.0, 0.6], &[1.0, 0.6]);
        assert_eq!(causes(loaded), [LateCause::Work(1.8), LateCause::Share(0.6)]);
        let slow = sync(0, &[100, 500], &[1.0, 0.2], &[1.0, 0.4]);
        assert_eq!(causes(slow), [LateCause::Share(0.4), LateCause::Speed(0.5)]);
    }

    /// A run on four ranks that is shrunk to two ranks and expanded again.
    fn resized() -> [SyncReport; 4] {
        let times = [[100, 100, 100, 100], [200, 150, 0, 20], [190, 210, 0, 0], [200, 200, 0, 0]];
        let mut syncs = times.map(|times| sync(0, &times, &[1.0; 4], &[]));
        let chunks = [vec![4, 4, 0, 1], vec![4, 5, 0, 0], vec![4, 5, 0, 0], vec![4, 5, 0, 0]];
        for (number, (sync, (active, chunks))) in
            syncs.iter_mut().zip([2, 2, 2, 4].into_iter().zip(chunks)).enumerate()
        {
            (sync.sync, sync.active, sync.chunks_per_rank) = (number as u64, Some(active), chunks);
            (sync.moved, sync.gain_ns, sync.makespan_unmoved_ns) = (1, 50, 300);
            (sync.deliveries, sync.deliveries_predicted, sync.makespan_predicted_ns) = (10, 10, 200);
        }
        (syncs[3].moved, syncs[3].proposed) = (0, 3);
        syncs
    }

    #[test]
    fn moves_away_from_inactive_ranks_are_not_judged_and_others_are() {
        let syncs = resized();
        let effects = sync_effects(&syncs);
        assert_eq!([0, 1, 2, 3].map(|sync| effects[sync].resize()), [Some((4, 2)), None, None, Some((2, 4))]);
        // The last chunk leaves rank 3 in the second window.
        let verdicts = [SyncVerdict::Resized, SyncVerdict::Resized, SyncVerdict::Moved, SyncVerdict::Refused];
        assert_eq!([0, 1, 2, 3].map(|sync| effects[sync].verdict()), verdicts);
        assert_eq!((effects[1].saved_ns(), effects[1].error(), effects[1].gain_ns()), (None, None, 0.0));
        assert_eq!((effects[2].saved_ns(), effects[2].error()), (Some(100.0), Some(0.0)));
    }

    #[test]
    fn inactive_ranks_count_as_long_as_they_have_work() {
        let syncs = resized();
        let work: Vec<f64> = sync_effects(&syncs).iter().filter_map(SyncEffect::work).collect();
        // 200 of 370 ns on three ranks, 210 of 400 ns on two.
        assert_eq!(work, [1.0, 200.0 * 3.0 / 370.0, 1.05, 1.0]);
    }

    #[test]
    fn more_active_ranks_than_there_are_count_as_all() {
        let mut syncs = [sync(0, &[100, 100], &[], &[]), sync(1, &[100, 100], &[], &[])];
        (syncs[0].active, syncs[1].active) = (Some(9), Some(u32::MAX));
        assert!(sync_effects(&syncs).iter().all(|effect| effect.resize().is_none()));
    }

    #[test]
    fn a_prediction_is_held_against_the_next_sync_and_no_other() {
        let mut syncs =
            [sync(0, &[100, 300], &[], &[]), sync(1, &[220, 180], &[], &[]), SyncReport::default()];
        syncs[0].makespan_predicted_ns = 200;
        (syncs[0].deliveries_predicted, syncs[1].deliveries) = (50, 50);
        syncs[2].sync = 3;
        let outcomes = sync_effects(&syncs);
        assert_eq!((outcomes[0].error(), outcomes[0].actual()), (Some(0.1), Some(1.1)));
        assert_eq!((outcomes[1].actual(), outcomes[1].measured_ns()), (None, None));
        assert!((outcomes[0].excess_ns() - 100.0).abs() < 1e-9, "300 ns, of which 200 are needed");
    }

    /// A phase of 5 steps, then a phase of 15 steps.
    fn five_and_fifteen_steps() -> [SyncReport; 2] {
        let mut syncs = [sync(0, &[100, 300], &[], &[]), sync(1, &[660, 540], &[], &[])];
        (syncs[0].deliveries, syncs[0].deliveries_predicted, syncs[1].deliveries) = (50, 50, 150);
        (syncs[0].makespan_predicted_ns, syncs[0].predicted_ns) = (200, vec![200, 200]);
        (syncs[0].moved, syncs[0].gain_ns) = (2, 100);
        syncs[1].makespan_unmoved_ns = 900;
        syncs
    }

    #[test]
    fn errors_and_gains_are_those_of_equally_many_steps() {
        let syncs = five_and_fifteen_steps();
        let first = sync_effects(&syncs)[0];
        assert!((first.error().unwrap() - 0.1).abs() < 1e-9, "{:?}", first.error());
        assert_eq!((first.predicted_ns(), first.measured_ns()), (vec![200, 200], Some(vec![220, 180])));
        assert_eq!((first.gain_ns(), first.saved_ns()), (300.0, Some(240.0)));
        let mut unknown = five_and_fifteen_steps();
        unknown[1].deliveries = 0;
        let first = sync_effects(&unknown)[0];
        assert_eq!((first.error(), first.is_per_step()), (None, false), "an older trace does not say");
    }

    #[test]
    fn collecting_is_a_cost_unless_nobody_stood_still() {
        let mut syncs = [SyncReport::default()];
        (syncs[0].collect_ns, syncs[0].decide_ns, syncs[0].migrate_ns) = (100, 20, 3);
        for (waited, cost_ns) in [(None, 123.0), (Some(7), 123.0), (Some(0), 20.0)] {
            syncs[0].waited = waited;
            assert_eq!(sync_effects(&syncs)[0].cost().all_ns(), cost_ns);
        }
    }

    #[test]
    fn work_that_is_elsewhere_in_the_next_phase_has_drifted() {
        let mut syncs = [sync(0, &[300, 100], &[1.0, 0.5], &[]), sync(1, &[100, 600], &[1.0, 0.5], &[])];
        syncs[0].predicted_ns = vec![150, 100];
        let (work, capacity) = sync_effects(&syncs)[0].drift().unwrap();
        // Expected were three quarters of the work on the first rank; a quarter was there.
        assert!((work - 0.5).abs() < 1e-9 && capacity.abs() < 1e-9, "{work} {capacity}");
    }
}
