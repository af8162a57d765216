//! Compares what is recorded twice: profiles and events, samples and the length of the run, syncs and their lists.

use std::collections::BTreeMap;

use caribou::report::SyncReport;
use caribou::trace::{Activity, Event, Part, Sample, Shape, What};
use trace_reader::{RankTrace, Trace};

use super::finding::{FindingLocation, Findings, Severity};
use crate::trace::analysis::events::{self, WorkerName};
use crate::trace::analysis::time_breakdown::activity;

const PROFILE: (Severity, &str) = (Severity::Wrong, "profile and events differ");
const COUNT: (Severity, &str) = (Severity::Wrong, "handlers and their count differ");
const SAMPLE: (Severity, &str) = (Severity::Wrong, "sample that cannot be");
const SYNC: (Severity, &str) = (Severity::Wrong, "sync record that cannot be");
const MOVES: (Severity, &str) = (Severity::Wrong, "moves and departures differ");

/// Sums may differ by one percent, or by 1 ms.
const DIFFERENCE: f64 = 0.01;
const DIFFERENCE_NS: f64 = 1e6;

/// Sums over events.
pub(crate) struct Totals<'t> {
    trace: &'t Trace,
    time_ns: BTreeMap<WorkerName, BTreeMap<Activity, u64>>,
    handlers: u64,
    departures: u64,
}

impl<'t> Totals<'t> {
    pub(crate) fn new(trace: &'t Trace) -> Totals<'t> {
        Totals { trace, time_ns: BTreeMap::new(), handlers: 0, departures: 0 }
    }

    pub(crate) fn event(&mut self, place: events::WorkerRef<'_>, event: &Event) {
        self.handlers += u64::from(matches!(event.what, What::Handler { .. }));
        if let What::Depart { .. } = event.what {
            self.departures += 1;
            return;
        }
        let Some((activity, lost_ns)) = activity(event) else { return };
        let sums = self.time_ns.entry(place.name()).or_default();
        let mut add = |activity, ns: u64| {
            let sum: &mut u64 = sums.entry(activity).or_default();
            *sum = sum.saturating_add(ns);
        };
        add(activity, event.cpu_ns());
        if lost_ns > 0 {
            add(Activity::Lost, lost_ns);
        }
    }

    pub(crate) fn finish(self, complete: bool, findings: &mut Findings) {
        for rank in &self.trace.ranks {
            if complete && rank.events() > 0 {
                self.profiles(rank, findings);
            }
            samples(rank, findings);
        }
        if complete {
            self.count(findings);
        }
        let mut last: Option<&SyncReport> = None;
        for sync in &self.trace.syncs {
            let file = self.trace.ranks.first().map_or(&self.trace.path, |rank| &rank.path);
            for why in sync_faults(sync, last, self.trace) {
                findings.add(SYNC, file, FindingLocation::Sync(sync.sync), || why);
            }
            last = Some(sync);
        }
        let moved = self.trace.syncs.iter().fold(0u64, |sum, sync| sum.saturating_add(sync.moved));
        // The run may have ended just before the last moves departed.
        let last = self.trace.syncs.last().map_or(0, |sync| sync.moved);
        let departed = moved.saturating_sub(last)..=moved;
        if complete && self.trace.events() > 0 && !departed.contains(&self.departures) {
            let what = || format!("syncs say that {moved} chunks moved, {} departed", self.departures);
            findings.add(MOVES, &self.trace.path, FindingLocation::Whole, what);
        }
    }

    fn profiles(&self, rank: &RankTrace, findings: &mut Findings) {
        let none = BTreeMap::new();
        for (worker, profile) in (0..).zip(&rank.profiles).filter(|(_, profile)| !profile.rows.is_empty()) {
            let events = self.time_ns.get(&WorkerName { rank: rank.rank, worker }).unwrap_or(&none);
            let mut sums: BTreeMap<Activity, (f64, f64)> = BTreeMap::new();
            for row in &profile.rows {
                sums.entry(row.activity).or_default().0 += row.total_ns() as f64;
            }
            for (activity, ns) in events {
                sums.entry(*activity).or_default().1 += *ns as f64;
            }
            // Departures are separate events, but in the profile they are time of the runtime.
            sums.remove(&Activity::Runtime(Part::Migrate));
            for (activity, (profiled_ns, recorded_ns)) in sums {
                if differ(profiled_ns, recorded_ns) {
                    let name = self.trace.activity_name(activity);
                    let what =
                        || format!("{name}: {profiled_ns} ns in the profile, {recorded_ns} ns in events");
                    findings.add(PROFILE, &rank.path, FindingLocation::Worker(worker), what);
                }
            }
        }
    }

    /// Compares sums over all ranks. A message may be delivered on one rank, migrate as a deferred message with its
    /// chunk, and be handled on another rank.
    fn count(&self, findings: &mut Findings) {
        let ends = self.trace.ranks.iter().filter_map(|rank| rank.end.as_ref());
        let deliveries = ends.fold(0u64, |sum, end| sum.saturating_add(end.messages));
        let counted = match self.trace.run.shape {
            // Handlers may be fewer than deliveries, as some delivered messages are deferred at the end of the run.
            Shape::Arrays | Shape::Supersteps => true,
            Shape::Pools => false,
        };
        if counted && self.handlers > deliveries {
            let handlers = self.handlers;
            let what = || format!("{deliveries} deliveries were counted, {handlers} handlers are recorded");
            findings.add(COUNT, &self.trace.path, FindingLocation::Whole, what);
        }
    }
}

fn differ(one_ns: f64, other_ns: f64) -> bool {
    (one_ns - other_ns).abs() > DIFFERENCE_NS.max(DIFFERENCE * one_ns.max(other_ns))
}

/// Returns whether the first exceeds the second by more than the tolerance.
fn exceeds(one_ns: f64, other_ns: f64) -> bool {
    one_ns > other_ns && differ(one_ns, other_ns)
}

/// A part of the time of workers: its name, and its value in a sample.
type TimePart = (&'static str, fn(&Sample) -> u64);

const PARTS: [TimePart; 3] = [
    ("CPU time", |sample| sample.cpu_ns),
    ("idle time", |sample| sample.idle_ns),
    ("CPU time of chunks", |sample| sample.chunk_ns),
];

fn samples(rank: &RankTrace, findings: &mut Findings) {
    let mut wrong = |what: String| findings.add(SAMPLE, &rank.path, FindingLocation::Whole, || what);
    let mut before_ns = 0;
    for &Sample { at_ns, .. } in &rank.samples {
        if at_ns < before_ns {
            wrong(format!("the sample at {at_ns} ns comes after a later one"));
        }
        before_ns = at_ns;
    }
    // Compares sums from the first sample on, because an activity counts when it ends. A sample in the middle of a long
    // handler has too little time, and the next sample too much.
    let mut wall_ns = 0.0;
    let mut sums_ns = [0.0; PARTS.len()];
    let mut sound = [true; PARTS.len()];
    for sample in &rank.samples {
        wall_ns += sample.wall_ns as f64;
        for (((name, part), sum_ns), sound) in PARTS.iter().zip(&mut sums_ns).zip(&mut sound) {
            *sum_ns += part(sample) as f64;
            if *sound && exceeds(*sum_ns, wall_ns) {
                *sound = false;
                let at_ns = sample.at_ns;
                wrong(format!(
                    "samples until {at_ns} ns have {sum_ns} ns of {name}, but there were {wall_ns} ns"
                ));
            }
        }
    }
    let Some(end) = &rank.end else { return };
    // The last sample is taken when the rank learns that the run has ended.
    let last_ns = end.elapsed_ns.max(before_ns);
    let there_ns = last_ns as f64 * f64::from(rank.workers);
    if exceeds(wall_ns, there_ns) {
        let what = || format!("samples cover {wall_ns} ns of its workers, the run has {there_ns} ns of them");
        findings.add(SAMPLE, &rank.path, FindingLocation::Whole, what);
    }
}

/// Faults in the record of a sync.
fn sync_faults(sync: &SyncReport, last: Option<&SyncReport>, trace: &Trace) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(last) = last {
        if last.sync == sync.sync {
            faults.push("is recorded twice".into());
        }
        if sync.at_ns < last.at_ns {
            faults.push(format!("was decided at {} ns, before sync {}", sync.at_ns, last.sync));
        }
    }
    let elapsed_ns = trace.elapsed_ns();
    // The end of a truncated run is unknown.
    if sync.at_ns > elapsed_ns && trace.ranks.iter().all(|rank| rank.end.is_some()) {
        faults.push(format!("was decided at {} ns, the run ended at {elapsed_ns} ns", sync.at_ns));
    }
    if sync.moved > sync.proposed && sync.proposed > 0 {
        faults.push(format!("moved {} chunks, the strategy proposed {}", sync.moved, sync.proposed));
    }
    let lists = [
        ("chunks_per_rank", sync.chunks_per_rank.len()),
        ("capacity", sync.capacity.len()),
        ("share", sync.share.len()),
        ("before_ns", sync.before_ns.len()),
        ("predicted_ns", sync.predicted_ns.len()),
    ];
    for (name, length) in lists {
        if length != 0 && length as u64 != u64::from(trace.run.ranks) {
            faults.push(format!("has {length} values in {name}, the run had {} ranks", trace.run.ranks));
        }
    }
    for (name, value) in
        [("imbalance_before", sync.imbalance_before), ("imbalance_predicted", sync.imbalance_predicted)]
    {
        if !value.is_finite() || value < 0.0 {
            faults.push(format!("has {name} {value}"));
        }
    }
    let worst_ns = sync.before_ns.iter().copied().max();
    if let Some(worst_ns) =
        worst_ns.filter(|&worst_ns| differ(worst_ns as f64, sync.makespan_before_ns as f64))
    {
        faults.push(format!(
            "has a makespan of {} ns, its slowest rank took {worst_ns} ns",
            sync.makespan_before_ns
        ));
    }
    faults
}
