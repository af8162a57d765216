//! What became of a sync: what it did, what it cost, and what the next one measured.
//!
//! Records may come from anywhere: figures are `f64`, lists may be of any length, and whatever is no number is none.

use caribou::SyncReport;

/// A time for each rank.
pub(crate) type PerRank<'t> = &'t [u64];

/// A sync and the one after it.
#[derive(Clone, Copy)]
pub(crate) struct Outcome<'t> {
    pub(crate) report: &'t SyncReport,
    next: Option<&'t SyncReport>,
}

/// What a sync did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The strategy had nothing to move.
    Balanced,
    Moved,
    /// Moves were expected to cost more than they save.
    Refused,
}

/// Why ranks did not finish a phase together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cause {
    /// One had so many times the average work.
    Work(usize, f64),
    /// One got only so much of its vCPUs.
    Share(usize, f64),
    /// One is only so fast, compared to the fastest.
    Speed(usize, f64),
    Unknown,
}

/// A rank with more than this times the average work has too much of it.
pub(crate) const EVEN_MAX: f64 = 1.1;
/// Below this, a rank lacks speed or a part of its vCPUs.
const WHOLE_MIN: f64 = 0.9;

/// All syncs in order.
pub(crate) fn outcomes(syncs: &[SyncReport]) -> Vec<Outcome<'_>> {
    let next = |number: usize, report: &SyncReport| {
        syncs.get(number + 1).filter(|next| Some(next.sync) == report.sync.checked_add(1))
    };
    syncs.iter().enumerate().map(|(at, report)| Outcome { report, next: next(at, report) }).collect()
}

/// The sync that moved most; of several the one that should save most, and of those the first.
pub(crate) fn largest<'t>(outcomes: &[Outcome<'t>]) -> Option<Outcome<'t>> {
    let size = |outcome: &Outcome<'_>| (outcome.report.moved, outcome.report.gain_ns);
    let most = outcomes.iter().map(size).max()?;
    outcomes.iter().find(|outcome| size(outcome) == most).copied()
}

impl<'t> Outcome<'t> {
    pub(crate) fn verdict(&self) -> Verdict {
        match (self.report.moved, self.report.proposed) {
            (0, 0) => Verdict::Balanced,
            (0, _) => Verdict::Refused,
            _ => Verdict::Moved,
        }
    }

    /// Largest over average completion time that the next sync measured.
    pub(crate) fn actual(&self) -> Option<f64> {
        finite(self.next?.imbalance_before)
    }

    /// How much longer the next phase took than predicted: 0.01 is one percent. Phases of other lengths are no error of
    /// the prediction, but look like one.
    pub(crate) fn error(&self) -> Option<f64> {
        error(self.next?.makespan_before_ns, self.report.makespan_predicted_ns)
    }

    /// Completion times that the next sync measured.
    pub(crate) fn measured_ns(&self) -> Option<PerRank<'t>> {
        self.next.map(|next| &next.before_ns[..])
    }

    /// Largest over average work of the ranks: as if all were equally fast and alone.
    pub(crate) fn work(&self) -> Option<f64> {
        max_over_average(&scaled(&self.report.before_ns, &self.report.capacity))
    }

    /// What the sync itself took, ns. To collect is mostly to wait for the slowest rank, which a better balance would
    /// shorten, so it is not in here.
    pub(crate) fn cost_ns(&self) -> f64 {
        self.report.decide_ns as f64 + self.report.migrate_ns as f64
    }

    /// What moves should save in the next phase, ns; nothing if there were none.
    pub(crate) fn gain_ns(&self) -> f64 {
        if self.report.moved > 0 { self.report.gain_ns as f64 } else { 0.0 }
    }

    /// Time in which the average rank had nothing to do in the phase, because the slowest had, ns.
    pub(crate) fn excess_ns(&self) -> f64 {
        let imbalance = finite(self.report.imbalance_before).unwrap_or(1.0).max(1.0);
        self.report.makespan_before_ns as f64 * (1.0 - 1.0 / imbalance)
    }

    /// Why the slowest rank was it.
    pub(crate) fn cause(&self) -> Cause {
        let report = self.report;
        let work = scaled(&report.before_ns, &report.capacity);
        let slowest = (0..work.len()).max_by_key(|&rank| (report.before_ns[rank], usize::MAX - rank));
        let average = work.iter().sum::<f64>() / work.len() as f64;
        let Some(slowest) = slowest else { return Cause::Unknown };
        match finite(work[slowest] / average) {
            None => return Cause::Unknown,
            Some(more) if more > EVEN_MAX => return Cause::Work(slowest, more),
            Some(_) => {}
        }
        let share = report.share.get(slowest).copied().unwrap_or(1.0);
        if share < WHOLE_MIN {
            return Cause::Share(slowest, share);
        }
        let speeds: Vec<f64> =
            report.capacity.iter().zip(&report.share).map(|(capacity, share)| capacity / share).collect();
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        match speeds.get(slowest) {
            Some(speed) if *speed < WHOLE_MIN * fastest => Cause::Speed(slowest, speed / fastest),
            _ => Cause::Unknown,
        }
    }

    /// Chunks of all ranks.
    pub(crate) fn chunks(&self) -> u64 {
        self.report.chunks_per_rank.iter().map(|&chunks| u64::from(chunks)).sum()
    }
}

/// How far off a prediction was; none where nothing was predicted.
pub(crate) fn error(measured_ns: u64, predicted_ns: u64) -> Option<f64> {
    (predicted_ns > 0).then(|| (measured_ns as f64 - predicted_ns as f64) / predicted_ns as f64)
}

fn scaled(times_ns: &[u64], factors: &[f64]) -> Vec<f64> {
    times_ns.iter().zip(factors).map(|(&ns, factor)| ns as f64 * factor).collect()
}

/// Largest over average; none without values, or if they come to nothing.
pub(crate) fn max_over_average(values: &[f64]) -> Option<f64> {
    let average = values.iter().sum::<f64>() / values.len() as f64;
    let most = values.iter().copied().fold(0.0, f64::max);
    finite(most / average)
}

/// The number, if it is one.
pub(crate) fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

/// The one in the middle, or the mean of the two there.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
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
        let cause = |report: SyncReport| outcomes(&[report])[0].cause();
        assert_eq!(cause(sync(0, &[100, 180], &[1.0, 0.55], &[1.0, 0.55])), Cause::Share(1, 0.55));
        assert_eq!(cause(sync(0, &[200, 100], &[0.5, 1.0], &[1.0, 1.0])), Cause::Speed(0, 0.5));
        assert_eq!(cause(sync(0, &[300, 100], &[1.0, 1.0], &[1.0, 1.0])), Cause::Work(0, 1.5));
        assert_eq!(cause(sync(0, &[100, 100], &[], &[])), Cause::Unknown);
    }

    #[test]
    fn a_prediction_is_held_against_the_next_sync_and_no_other() {
        let mut syncs =
            [sync(0, &[100, 300], &[], &[]), sync(1, &[220, 180], &[], &[]), SyncReport::default()];
        syncs[0].makespan_predicted_ns = 200;
        syncs[2].sync = 3;
        let outcomes = outcomes(&syncs);
        assert_eq!((outcomes[0].error(), outcomes[0].actual()), (Some(0.1), Some(1.1)));
        assert_eq!((outcomes[1].actual(), outcomes[1].measured_ns()), (None, None));
        assert!((outcomes[0].excess_ns() - 100.0).abs() < 1e-9, "300 ns, of which 200 are the average");
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(vec![1.0, 9.0, 4.0, 2.0]), Some(3.0));
        assert_eq!(median(Vec::new()), None);
    }
}
