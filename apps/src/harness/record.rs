//! What one run left behind, and what can be read from it: times per window, imbalance, how soon it settled.

use caribou::SyncTotals;
use lb_strategies::median;
use serde::Serialize;

use crate::harness::disturbance::Window;

/// One run with one strategy.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The strategy and its parameters, as given.
    pub lb: String,
    /// Whether every quota asked for was in force; true when none was.
    pub quotas_held: bool,
    /// Hosts, ranks, workers and where they sat, in one line.
    pub placement: String,
    /// Workers of a rank.
    pub workers: u32,
    /// Whether every worker had a vCPU to itself.
    pub pinned: bool,
    /// The directory of its trace; empty if it has none.
    pub trace: String,
    /// When the first iteration began, in nanoseconds since the run began; what was before is setting up.
    pub start_ns: u64,
    /// When each iteration was complete on all ranks, in nanoseconds since the run began.
    pub complete_ns: Vec<u64>,
    /// The syncs, in order; of a long run a part of them.
    pub syncs: Vec<SyncRecord>,
    /// All syncs together.
    pub totals: SyncTotals,
}

/// One sync, as far as the comparison needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SyncRecord {
    /// Its number, from 0. A long run's record holds evenly spread ones.
    pub sync: u64,
    /// When it ended, in nanoseconds since the run began.
    pub at_ns: u64,
    /// Max/avg of the ranks' times over the phase before it.
    pub imbalance: f64,
    /// Max/avg the strategy expected of its own plan.
    pub imbalance_predicted: f64,
    /// Chunks that moved.
    pub moved: u64,
    /// Bytes that moved with them.
    pub moved_bytes: u64,
    /// What the sync itself took: collecting, deciding, migrating.
    pub cost_ns: u64,
    /// What the phase before it would have taken at best: all work, over the capacity measured of all ranks.
    pub bound_ns: u64,
}

impl From<&caribou::SyncReport> for SyncRecord {
    fn from(sync: &caribou::SyncReport) -> Self {
        Self {
            sync: sync.sync,
            at_ns: sync.at_ns,
            imbalance: sync.imbalance_before,
            imbalance_predicted: sync.imbalance_predicted,
            moved: sync.moved,
            moved_bytes: sync.moved_bytes,
            cost_ns: sync.collect_ns + sync.decide_ns + sync.migrate_ns,
            bound_ns: bound_ns(sync),
        }
    }
}

/// Work is what a rank's capacity does in the time that the rank needed.
fn bound_ns(sync: &caribou::SyncReport) -> u64 {
    let work = |(&ns, capacity): (&u64, &f64)| ns as f64 * capacity;
    let work: f64 = sync.before_ns.iter().zip(&sync.capacity).map(work).sum();
    let capacity: f64 = sync.capacity.iter().sum();
    if capacity > 0.0 { (work / capacity) as u64 } else { 0 }
}

impl Run {
    /// What is known of a run when it is over; `start_ns` and `complete_ns` as its clock has them.
    #[must_use]
    pub fn new(
        lb: &str,
        quotas_held: bool,
        (start_ns, complete_ns): (u64, Vec<u64>),
        report: &caribou::Report,
    ) -> Self {
        Self {
            lb: lb.to_owned(),
            quotas_held,
            placement: report.run.placement.clone(),
            // Ranks differ only where somebody asked for it; the first stands for all.
            workers: report.run.workers_per_rank.first().copied().unwrap_or(1),
            pinned: report.run.pinned,
            trace: report.run.record.trace.clone(),
            start_ns,
            complete_ns,
            syncs: report.syncs.iter().map(SyncRecord::from).collect(),
            totals: report.sync_totals,
        }
    }

    /// Seconds from the first iteration's begin to the last one's end.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.span_ns(0, self.iterations()) as f64 / 1e9
    }

    /// Seconds that it would have taken at best: with all work spread at all times over what its ranks could give, as far
    /// as was measured. No more than it took, which was possible. `None` without syncs, at which that is measured.
    ///
    /// What comes after the last sync is taken to be like all before.
    #[must_use]
    pub fn bound_s(&self) -> Option<f64> {
        let measured_ns = self.syncs.last()?.at_ns.saturating_sub(self.start_ns);
        // Those that are known stand for all.
        let syncs = self.totals.syncs as f64 / self.syncs.len() as f64;
        let bound_ns = self.syncs.iter().map(|sync| sync.bound_ns).sum::<u64>() as f64 * syncs;
        (measured_ns > 0).then(|| self.total_s() * (bound_ns / measured_ns as f64).min(1.0))
    }

    /// Iterations that were complete.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.complete_ns.len() as u32
    }

    /// Milliseconds of each iteration.
    #[must_use]
    pub fn iterations_ms(&self) -> Vec<f64> {
        (0..self.iterations()).map(|iteration| self.span_ns(iteration, iteration + 1) as f64 / 1e6).collect()
    }

    /// Mean milliseconds of the iterations `from..to`, as far as the run went; `None` when it never got there.
    #[must_use]
    pub fn mean_ms(&self, from: u32, to: u32) -> Option<f64> {
        let to = to.min(self.iterations());
        (from < to).then(|| self.span_ns(from, to) as f64 / 1e6 / f64::from(to - from))
    }

    /// Chunks moved in all syncs.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.totals.moved
    }

    /// The median of the syncs' imbalance while something disturbs the run, or over all of it when nothing ever does.
    ///
    /// The median, because the first sync after a neighbour's arrival measures a phase nobody could have prepared for.
    #[must_use]
    pub fn imbalance(&self, windows: &[Window]) -> Option<f64> {
        let quiet = windows.iter().all(|window| !window.disturbed);
        let counts = |iteration: u32| {
            windows.iter().any(|window| {
                (quiet || window.disturbed) && window.from < iteration && iteration <= window.to
            })
        };
        let syncs = self.syncs.iter().filter(|sync| counts(self.completed_at(sync.at_ns)));
        median(syncs.map(|sync| sync.imbalance).collect())
    }

    /// How many syncs after `window` began its iterations were as short as they stay; `None` when the window holds fewer
    /// than three syncs, or nothing moved in it.
    ///
    /// Short means: the mean of the iterations between two syncs is at most 10 % above the median of those means over the
    /// window's second half. The mean, because chunks run ahead of each other: a long iteration is followed by short ones,
    /// and most can be short while the run is slow.
    #[must_use]
    pub fn settled_after(&self, window: &Window) -> Option<u32> {
        let mut inside: Vec<(u32, &SyncRecord)> = self
            .syncs
            .iter()
            .map(|sync| (self.completed_at(sync.at_ns), sync))
            .filter(|(iteration, _)| (window.from + 1..window.to).contains(iteration))
            .collect();
        // A sync of before the window may end in it, some iterations late, and knows nothing of it.
        if let [(first, _), (second, _), ..] = inside[..]
            && 2 * (first - window.from) < second - first
        {
            inside.remove(0);
        }
        if inside.len() < 3 || inside.iter().all(|(_, sync)| sync.moved == 0) {
            return None;
        }
        let inner = inside.iter().map(|&(iteration, _)| iteration);
        let cuts: Vec<u32> =
            [window.from].into_iter().chain(inner).chain([window.to.min(self.iterations())]).collect();
        let periods: Vec<f64> = cuts.windows(2).filter_map(|cut| self.mean_ms(cut[0], cut[1])).collect();
        let steady = median(periods[periods.len() / 2..].to_vec())?;
        let settled = periods.iter().position(|&period| period <= 1.1 * steady)?;
        // A long run's record holds every second sync, or every fourth, and so on.
        let stride = inside[1].1.sync - inside[0].1.sync;
        Some(settled as u32 * stride as u32)
    }

    fn completed_at(&self, at_ns: u64) -> u32 {
        self.complete_ns.partition_point(|&complete| complete <= at_ns) as u32
    }

    fn span_ns(&self, from: u32, to: u32) -> u64 {
        let end_of = |completed: u32| match completed.checked_sub(1) {
            None => self.start_ns,
            Some(last) => self.complete_ns.get(last as usize).copied().unwrap_or(self.start_ns),
        };
        end_of(to).saturating_sub(end_of(from))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run that begins at 1 s, with the given milliseconds per iteration and a sync every `period` iterations.
    pub(crate) fn run(lb: &str, iterations_ms: &[u64], period: usize, moved: &[u64]) -> Run {
        let mut now_ns = 1_000_000_000;
        let advance = |ms: &u64| {
            now_ns += ms * 1_000_000;
            now_ns
        };
        let complete_ns: Vec<u64> = iterations_ms.iter().map(advance).collect();
        // At best an iteration takes 8 ms.
        let phases = complete_ns.chunks_exact(period).zip(iterations_ms.chunks_exact(period));
        let mut numbers = 0..;
        let sync = |((complete, ms), moved): ((&[u64], &[u64]), &u64)| SyncRecord {
            sync: numbers.next().expect("endless"),
            at_ns: complete[period - 1],
            imbalance: 1.5,
            moved: *moved,
            bound_ns: ms.iter().map(|ms| ms.min(&8) * 1_000_000).sum(),
            ..Default::default()
        };
        let syncs: Vec<SyncRecord> =
            phases.zip(moved.iter().chain(std::iter::repeat(&0))).map(sync).collect();
        let mut totals = SyncTotals::default();
        totals.syncs = syncs.len() as u64;
        totals.moved = syncs.iter().map(|sync| sync.moved).sum();
        Run {
            lb: lb.to_owned(),
            quotas_held: true,
            placement: "1 host, 2 ranks".to_owned(),
            workers: 1,
            pinned: true,
            trace: String::new(),
            start_ns: 1_000_000_000,
            complete_ns,
            syncs,
            totals,
        }
    }

    fn window(from: u32, to: u32) -> Window {
        Window { from, to, label: String::new(), disturbed: true }
    }

    #[test]
    fn setting_up_counts_neither_in_the_total_nor_in_the_first_iteration() {
        let run = run("none", &[10, 20, 30], 1, &[]);
        assert_eq!(run.iterations_ms(), [10.0, 20.0, 30.0]);
        assert_eq!((run.total_s() * 1e3).round() as u64, 60);
        assert_eq!(run.mean_ms(1, 3), Some(25.0));
        assert_eq!(run.mean_ms(3, 9), None);
    }

    #[test]
    fn the_bound_is_all_work_over_all_capacity_and_never_more_than_the_run_took() {
        let mut sync = caribou::SyncReport::default();
        // One rank needed a second of the whole vCPU, the other two of half of one.
        (sync.before_ns, sync.capacity) = (vec![1_000_000_000, 2_000_000_000], vec![1.0, 0.5]);
        assert_eq!(bound_ns(&sync), 1_333_333_333);
        let mut run = run("none", &[12; 10], 4, &[]);
        assert!((run.bound_s().unwrap() - 0.08).abs() < 1e-9, "also after the last sync");
        run.syncs[0].bound_ns *= 9;
        assert_eq!(run.bound_s(), Some(run.total_s()));
        run.syncs.clear();
        assert_eq!(run.bound_s(), None);
    }

    #[test]
    fn the_bound_of_a_long_run_follows_from_the_syncs_that_were_kept() {
        let mut run = run("none", &[12; 400], 4, &[]);
        let of_all = run.bound_s().unwrap();
        let mut numbers = 1..;
        run.syncs.retain(|_| numbers.next().is_some_and(|number| number % 4 == 0));
        assert!((run.bound_s().unwrap() - of_all).abs() < 1e-9, "25 syncs of 100");
    }

    #[test]
    fn a_run_settles_at_the_sync_after_which_iterations_stay_short() {
        let mut ms = vec![16; 4];
        ms.extend([14; 4]);
        ms.extend([10; 24]);
        assert_eq!(run("refine", &ms, 4, &[5, 3]).settled_after(&window(0, 32)), Some(2));
        let mut late = run("refine", &[&[10; 4][..], &ms].concat(), 4, &[0, 5, 3]);
        late.syncs.iter_mut().for_each(|sync| sync.at_ns += 20_000_000);
        assert_eq!(
            late.settled_after(&window(4, 36)),
            Some(2),
            "the sync that ends in iteration 5 is not of the window"
        );
        let mut half_kept = run("refine", &ms[2..], 2, &[5; 6]);
        half_kept.syncs.retain(|sync| sync.sync % 2 == 0);
        assert_eq!(half_kept.settled_after(&window(0, 30)), Some(4), "syncs of the run, not of its record");
        assert_eq!(run("none", &ms, 4, &[]).settled_after(&window(0, 32)), None, "nothing moved");
        let ahead: Vec<u64> = [[1, 1, 1, 61], [1, 1, 1, 53]].concat().into_iter().chain([10; 24]).collect();
        let run_ahead = run("refine", &ahead, 4, &[5, 3]);
        assert_eq!(
            run_ahead.settled_after(&window(0, 32)),
            Some(2),
            "most iterations are short, none is fast"
        );
        assert_eq!(run("refine", &ms, 20, &[5]).settled_after(&window(0, 32)), None, "too few syncs");
    }

    #[test]
    fn imbalance_is_read_where_something_disturbs_the_run() {
        let mut run = run("none", &[10; 12], 2, &[]);
        for (sync, imbalance) in run.syncs.iter_mut().zip([1.0, 1.0, 1.3, 1.2, 1.4, 1.0]) {
            sync.imbalance = imbalance;
        }
        let quiet = |from, to| Window { disturbed: false, ..window(from, to) };
        assert_eq!(run.imbalance(&[quiet(0, 4), window(4, 10), quiet(10, 12)]), Some(1.3));
        assert_eq!(run.imbalance(&[quiet(0, 12)]), Some(1.0));
    }
}
