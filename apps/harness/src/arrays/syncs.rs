//! Computes the facts of a run of an array for the comparison: imbalance, moved chunks, the number of syncs until
//! iterations settle, and the shortest possible time (the capacity bound). A balancing window that was decided counts
//! as a sync.

use caribou::Report;
use caribou::report::{RunReport, SyncTotals};
use lb_strategies::median;
use presentation::format::plural;
use serde::Serialize;

use crate::disturbance::Window;
use crate::shape::Facts;
use crate::table::or_dash;
use crate::times::Times;

/// Facts of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Syncs {
    /// The strategy and its parameters, as given.
    pub lb: String,
    /// Mean milliseconds per iteration.
    pub iteration_ms: f64,
    /// Median imbalance of the syncs in disturbed windows, or of all syncs of a quiet run.
    pub imbalance: Option<f64>,
    /// Chunks moved.
    pub moves: u64,
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Milliseconds spent in syncs: collecting, deciding, migrating.
    pub sync_ms: f64,
    /// Syncs from the first disturbance until iterations were as short as they stayed; `None` beside a random
    /// neighbour.
    pub settled_after: Option<u32>,
    /// The run, cut where neighbours start or end.
    pub windows: Vec<WindowMean>,
    /// Milliseconds of each iteration.
    pub iterations_ms: Vec<f64>,
    /// The syncs in order; of a long run, evenly spread ones.
    pub syncs: Vec<SyncRecord>,
    #[serde(skip)]
    bound_s: Option<f64>,
    #[serde(skip)]
    run: RunReport,
}

/// A part of a run.
#[derive(Clone, Debug, Serialize)]
pub struct WindowMean {
    /// The part of the run.
    #[serde(flatten)]
    pub window: Window,
    /// Mean milliseconds per iteration.
    pub iteration_ms: Option<f64>,
}

/// One sync, as far as the comparison needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SyncRecord {
    /// Number of the sync, from 0. The record of a long run holds evenly spread syncs.
    pub sync: u64,
    /// The time of its decision, ns since the run began.
    pub at_ns: u64,
    /// Time of the slowest rank in the phase before the sync, over the ideal time by the capacities of the ranks.
    pub imbalance: f64,
    /// The imbalance that the strategy expected after its moves.
    pub imbalance_predicted: f64,
    /// Chunks that moved.
    pub moved: u64,
    /// Bytes that moved with them.
    pub moved_bytes: u64,
    /// Time that the sync itself took: collecting, deciding, migrating.
    pub cost_ns: u64,
    /// The shortest possible time since the sync before: all work over the measured capacity of all ranks.
    pub bound_ns: u64,
}

impl From<&caribou::report::SyncReport> for SyncRecord {
    fn from(sync: &caribou::report::SyncReport) -> Self {
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

/// [`SyncRecord::bound_ns`]. A rank's work is its capacity times the time that it needed. Undecided windows count too.
fn bound_ns(sync: &caribou::report::SyncReport) -> u64 {
    if sync.window {
        return sync.ideal_ns;
    }
    let work = |(&ns, capacity): (&u64, &f64)| ns as f64 * capacity;
    let work: f64 = sync.before_ns.iter().zip(&sync.capacity).map(work).sum();
    let capacity: f64 = sync.capacity.iter().sum();
    if capacity > 0.0 { (work / capacity) as u64 } else { 0 }
}

impl Syncs {
    pub(super) fn new(lb: &str, report: Report, times: &Times, windows: &[Window]) -> Self {
        let history = SyncTimeline::new(times, &report);
        let totals = history.totals;
        let disturbed = windows.iter().find(|window| window.disturbed);
        let mean = |window: &Window| WindowMean {
            window: window.clone(),
            iteration_ms: times.mean_ms(window.from, window.to),
        };
        Self {
            lb: lb.to_owned(),
            iteration_ms: times.mean_ms(0, u32::MAX).unwrap_or(0.0),
            imbalance: history.imbalance(windows),
            moves: totals.moved,
            moved_bytes: totals.moved_bytes,
            sync_ms: (totals.collect_ns + totals.decide_ns + totals.migrate_ns) as f64 / 1e6,
            settled_after: disturbed
                .filter(|window| !window.random)
                .and_then(|window| history.settled_after(window)),
            windows: windows.iter().map(mean).collect(),
            iterations_ms: times.steps_ms(),
            bound_s: history.bound_s(),
            syncs: history.syncs,
            run: report.run,
        }
    }
}

impl Facts for Syncs {
    const STEP: &'static str = "iteration";
    const UNBALANCED: Option<&'static str> = Some("none");
    const HEADINGS: &'static [&'static str] = &["imbalance", "moves", "settled after"];
    const WORDS: &'static str = "imbalance: time of the slowest rank over the time with all work divided by the \
        measured capacities, median of the syncs while disturbed; settled after: syncs from the first disturbance \
        until iterations were as short as they then stayed; without syncs, a balancing window with a decision counts \
        as a sync";

    fn cells(&self) -> Vec<String> {
        vec![
            or_dash(self.imbalance.map(|imbalance| format!("{imbalance:.2}"))),
            self.moves.to_string(),
            or_dash(self.settled_after.map(|syncs| plural(syncs, "sync"))),
        ]
    }

    fn lb(&self) -> &str {
        &self.lb
    }

    fn run(&self) -> &RunReport {
        &self.run
    }

    fn bound_s(&self) -> Option<f64> {
        self.bound_s
    }

    fn words(&self) -> String {
        format!("{:.2} ms an iteration, and moved {}", self.iteration_ms, plural(self.moves, "chunk"))
    }
}

/// The syncs of a run, with the times of its iterations.
struct SyncTimeline<'t> {
    times: &'t Times,
    syncs: Vec<SyncRecord>,
    totals: SyncTotals,
}

impl<'t> SyncTimeline<'t> {
    fn new(times: &'t Times, report: &Report) -> Self {
        Self { times, syncs: report.syncs.iter().map(SyncRecord::from).collect(), totals: report.sync_totals }
    }

    /// The shortest possible time of the run, s: all work over the measured capacity of the ranks. It is at most the
    /// time that the run took. `None` with fewer than two syncs, because the phase before the first sync also holds the
    /// start.
    ///
    /// The part of the run after the last sync is assumed to be like the part before.
    fn bound_s(&self) -> Option<f64> {
        if self.totals.syncs < 2 {
            return None;
        }
        let measured_ns = self.times.since_start_ns(self.syncs.last()?.at_ns);
        // The syncs in the record stand for all syncs of a long run.
        let syncs = self.totals.syncs as f64 / self.syncs.len() as f64;
        let bound_ns = self.syncs.iter().map(|sync| sync.bound_ns).sum::<u64>() as f64 * syncs;
        (measured_ns > 0).then(|| self.times.total_s() * (bound_ns / measured_ns as f64).min(1.0))
    }

    /// The median imbalance of the syncs in disturbed windows, or of all syncs of a quiet run.
    ///
    /// The median, because the first sync after a neighbour starts measures a phase that could not be predicted.
    fn imbalance(&self, windows: &[Window]) -> Option<f64> {
        let quiet = windows.iter().all(|window| !window.disturbed);
        let counts = |iteration: u32| {
            windows.iter().any(|window| {
                (quiet || window.disturbed) && window.from < iteration && iteration <= window.to
            })
        };
        let syncs = self.syncs.iter().filter(|sync| counts(self.times.completed_at(sync.at_ns)));
        median(syncs.map(|sync| sync.imbalance).collect())
    }

    /// The number of syncs from the start of `window` until its iterations were as short as they stay. `None` if the
    /// window holds fewer than three syncs, or nothing moved in it.
    ///
    /// Iterations are short if their mean between two syncs is at most 10 % above the median of these means over the
    /// window's second half. The mean is used because chunks run ahead of each other: short iterations follow a long
    /// one, and most can be short while the run is slow.
    fn settled_after(&self, window: &Window) -> Option<u32> {
        let mut inside: Vec<(u32, &SyncRecord)> = self
            .syncs
            .iter()
            .map(|sync| (self.times.completed_at(sync.at_ns), sync))
            .filter(|(iteration, _)| (window.from + 1..window.to).contains(iteration))
            .collect();
        // A sync that began before the window may end some iterations into it. It did not measure the disturbance.
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
            [window.from].into_iter().chain(inner).chain([window.to.min(self.times.steps())]).collect();
        let periods: Vec<f64> =
            cuts.windows(2).filter_map(|cut| self.times.mean_ms(cut[0], cut[1])).collect();
        let steady = median(periods[periods.len() / 2..].to_vec())?;
        let settled = periods.iter().position(|&period| period <= 1.1 * steady)?;
        // The record of a long run holds every 2nd sync, or every 4th, and so on.
        let stride = inside[1].1.sync - inside[0].1.sync;
        Some(settled as u32 * stride as u32)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run that begins at 1 s, with the given milliseconds per iteration and a sync every `period` iterations. At best an
    /// iteration takes 8 ms.
    pub(crate) fn past(iterations_ms: &[u64], period: usize, moved: &[u64]) -> (Times, Report) {
        let mut now_ns = 1_000_000_000;
        let advance = |ms: &u64| {
            now_ns += ms * 1_000_000;
            now_ns
        };
        let complete_ns: Vec<u64> = iterations_ms.iter().map(advance).collect();
        let phases = complete_ns.chunks_exact(period).zip(iterations_ms.chunks_exact(period));
        let mut report = Report::default();
        for (number, ((complete, ms), &moved)) in
            phases.zip(moved.iter().chain(std::iter::repeat(&0))).enumerate()
        {
            let mut sync = caribou::report::SyncReport::default();
            (sync.sync, sync.at_ns, sync.moved) = (number as u64, complete[period - 1], moved);
            sync.imbalance_before = 1.5;
            (sync.before_ns, sync.capacity) =
                (vec![ms.iter().map(|ms| ms.min(&8) * 1_000_000).sum()], vec![1.0]);
            report.syncs.push(sync);
            report.sync_totals.syncs += 1;
            report.sync_totals.moved += moved;
        }
        report.run.placement = "1 host, 2 ranks".to_owned();
        report.run.pinned = true;
        (Times::new((1_000_000_000, complete_ns), u64::MAX), report)
    }

    /// The runtime's report of the run.
    pub(crate) fn report_of(facts: &mut Syncs) -> &mut RunReport {
        &mut facts.run
    }

    fn window(from: u32, to: u32) -> Window {
        Window { from, to, label: String::new(), disturbed: true, random: false }
    }

    #[test]
    fn the_bound_is_all_work_over_all_capacity_and_never_more_than_the_run_took() {
        let mut sync = caribou::report::SyncReport::default();
        // Rank 0 needed 1 s of a whole vCPU, rank 1 needed 2 s of half a vCPU.
        (sync.before_ns, sync.capacity) = (vec![1_000_000_000, 2_000_000_000], vec![1.0, 0.5]);
        assert_eq!(bound_ns(&sync), 1_333_333_333);
        // Windows that were not decided count as well.
        (sync.window, sync.ideal_ns) = (true, 5_000_000_000);
        assert_eq!(bound_ns(&sync), 5_000_000_000);
        let (times, report) = past(&[12; 10], 4, &[]);
        let mut run = SyncTimeline::new(&times, &report);
        assert!((run.bound_s().unwrap() - 0.08).abs() < 1e-9, "also after the last sync");
        run.syncs[0].bound_ns *= 9;
        assert_eq!(run.bound_s(), Some(times.total_s()));
        run.syncs.clear();
        assert_eq!(run.bound_s(), None);
    }

    #[test]
    fn the_bound_of_a_long_run_follows_from_the_syncs_that_were_kept() {
        let (times, report) = past(&[12; 400], 4, &[]);
        let mut run = SyncTimeline::new(&times, &report);
        let of_all = run.bound_s().unwrap();
        run.syncs.retain(|sync| sync.sync % 4 == 3);
        assert!((run.bound_s().unwrap() - of_all).abs() < 1e-9, "25 syncs of 100");
    }

    #[test]
    fn a_run_settles_at_the_sync_after_which_iterations_stay_short() {
        let settled =
            |iterations_ms: &[u64], period, moved: &[u64], window, change: fn(&mut SyncTimeline<'_>)| {
                let (times, report) = past(iterations_ms, period, moved);
                let mut history = SyncTimeline::new(&times, &report);
                change(&mut history);
                history.settled_after(&window)
            };
        let as_it_is: fn(&mut SyncTimeline<'_>) = |_| {};
        let mut ms = vec![16; 4];
        ms.extend([14; 4]);
        ms.extend([10; 24]);
        assert_eq!(settled(&ms, 4, &[5, 3], window(0, 32), as_it_is), Some(2));
        let late =
            |run: &mut SyncTimeline<'_>| run.syncs.iter_mut().for_each(|sync| sync.at_ns += 20_000_000);
        assert_eq!(
            settled(&[&[10; 4][..], &ms].concat(), 4, &[0, 5, 3], window(4, 36), late),
            Some(2),
            "the sync that ends in iteration 5 is not of the window"
        );
        let half_kept = |run: &mut SyncTimeline<'_>| run.syncs.retain(|sync| sync.sync % 2 == 0);
        assert_eq!(
            settled(&ms[2..], 2, &[5; 6], window(0, 30), half_kept),
            Some(4),
            "syncs of the run, not of its record"
        );
        assert_eq!(settled(&ms, 4, &[], window(0, 32), as_it_is), None, "nothing moved");
        assert_eq!(settled(&ms, 20, &[5], window(0, 32), as_it_is), None, "too few syncs");
        let ahead: Vec<u64> = [[1, 1, 1, 61], [1, 1, 1, 53]].concat().into_iter().chain([10; 24]).collect();
        assert_eq!(
            settled(&ahead, 4, &[5, 3], window(0, 32), as_it_is),
            Some(2),
            "most iterations are short, none is fast"
        );
    }

    #[test]
    fn imbalance_is_read_where_something_disturbs_the_run() {
        let (times, report) = past(&[10; 12], 2, &[]);
        let mut run = SyncTimeline::new(&times, &report);
        for (sync, imbalance) in run.syncs.iter_mut().zip([1.0, 1.0, 1.3, 1.2, 1.4, 1.0]) {
            sync.imbalance = imbalance;
        }
        let quiet = |from, to| Window { disturbed: false, ..window(from, to) };
        assert_eq!(run.imbalance(&[quiet(0, 4), window(4, 10), quiet(10, 12)]), Some(1.3));
        assert_eq!(run.imbalance(&[quiet(0, 12)]), Some(1.1));
    }
}
