//! Sums the time of workers by worker, bin and activity (a message kind, idle, lost, or a part of the runtime).
//!
//! Profiles are small and exact for the whole run. Events are exact between any two times, but there may be 10^8 of
//! them, or none. [`time_breakdown`] uses the profile where it is as exact as events.

use std::collections::BTreeMap;

use caribou::trace::{Activity, Event, Part, Profile, Shape, What};
use trace_reader::{Problem, RankTrace, Trace};

use super::bins::Bins;
use super::events::{Observer, Scope, WorkerName, WorkerRef, by_worker};
use crate::trace::select::Selection;

/// Source of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Profile,
    Events,
}

/// Time of some workers.
pub(crate) struct TimeBreakdown {
    pub(crate) bins: Bins,
    pub(crate) source: Source,
    pub(crate) workers: Vec<Worker>,
    /// Events that could not be read.
    pub(crate) problems: Vec<Problem>,
    /// The profile has wider bins than requested. Times are spread evenly within them.
    pub(crate) coarse: bool,
}

/// Time of one worker.
pub(crate) struct Worker {
    pub(crate) rank: u32,
    pub(crate) worker: u32,
    pub(crate) lines: BTreeMap<Activity, Line>,
}

/// Time of one activity of one worker, or a sum of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Time in each bin.
    pub(crate) bins_ns: Vec<f64>,
    pub(crate) total_ns: f64,
    /// Number of executions that ended in the window. Of a bin that is partly in the window, a fraction counts.
    pub(crate) calls: f64,
    pub(crate) longest_ns: u64,
}

/// Sums over activities.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Parts {
    /// CPU time of chunks, or of iterations.
    pub(crate) chunks_ns: f64,
    pub(crate) runtime_ns: f64,
    /// Wall time within handlers that was not CPU time.
    pub(crate) lost_ns: f64,
    pub(crate) idle_ns: f64,
    /// Unaccounted wall time: between handlers, or before and after the worker ran.
    pub(crate) rest_ns: f64,
    pub(crate) wall_ns: f64,
}

/// The time of the selected ranks, from the best source.
pub(crate) fn time_breakdown(trace: &Trace, selection: &Selection, bins: Bins) -> TimeBreakdown {
    let mut time = TimeCollector::new(trace, selection, bins);
    if time.needs_events() {
        let scope = Scope::of(selection.ranks(trace), bins.window);
        time.spent.problems = by_worker(&scope, &mut [&mut time]);
    }
    time.spent
}

/// Adds up time event by event, unless the profile suffices.
pub(crate) struct TimeCollector {
    pub(crate) spent: TimeBreakdown,
    /// Index of the worker of the last event.
    last: usize,
}

impl TimeCollector {
    pub(crate) fn new(trace: &Trace, selection: &Selection, bins: Bins) -> TimeCollector {
        let ranks: Vec<&RankTrace> = selection.ranks(trace).collect();
        let elapsed_ns = trace.elapsed_ns();
        let coarse = is_coarse(&ranks, &bins, elapsed_ns);
        let source = source(&ranks, coarse);
        let workers = |rank: &&RankTrace| match source {
            Source::Profile => profiled(rank, &bins, elapsed_ns),
            Source::Events => (0..rank.workers).map(|worker| Worker::new(rank.rank, worker)).collect(),
        };
        let workers = ranks.iter().flat_map(workers).collect();
        let coarse = coarse && source == Source::Profile;
        TimeCollector {
            spent: TimeBreakdown { bins, source, workers, problems: Vec::new(), coarse },
            last: 0,
        }
    }

    /// Returns whether all events of the ranks and the window have to be passed to this observer.
    pub(crate) fn needs_events(&self) -> bool {
        self.spent.source == Source::Events
    }
}

impl Observer<'_> for TimeCollector {
    fn see(&mut self, WorkerRef { rank, worker }: WorkerRef<'_>, event: &Event) {
        let TimeBreakdown { bins, source: Source::Events, workers, .. } = &mut self.spent else { return };
        let name = WorkerName { rank: rank.rank, worker };
        if workers.get(self.last).is_none_or(|last| last.name() != name) {
            let Ok(found) = workers.binary_search_by_key(&name, Worker::name) else { return };
            self.last = found;
        }
        workers[self.last].see(bins, event);
    }
}

/// Selects the profile, unless it is missing or too coarse and there are events.
fn source(ranks: &[&RankTrace], coarse: bool) -> Source {
    let recorded = ranks.iter().any(|rank| rank.events() > 0);
    let profiled = |rank: &&RankTrace| rank.profiles.iter().any(|profile| !profile.rows.is_empty());
    // If a rank was cut off, its profile may end before its last event.
    let complete = ranks.iter().all(|rank| profiled(rank) && rank.end.is_some());
    if recorded && (coarse || !complete) { Source::Events } else { Source::Profile }
}

/// Returns whether profiles are too coarse: for a part of the run, or for bins less than twice as wide as theirs.
fn is_coarse(ranks: &[&RankTrace], bins: &Bins, elapsed_ns: u64) -> bool {
    let whole = bins.window.from_ns == 0 && bins.window.to_ns == elapsed_ns;
    let widest_ns = ranks.iter().flat_map(|rank| &rank.profiles).map(|profile| profile.bin_ns).max();
    let asked_ns = bins.window.length_ns() / bins.count as u64;
    !whole || (bins.count > 1 && widest_ns.unwrap_or(0).saturating_mul(2) > asked_ns)
}

/// The workers of a rank, from its profiles.
fn profiled(rank: &RankTrace, bins: &Bins, elapsed_ns: u64) -> Vec<Worker> {
    let worker = |(number, profile): (usize, &Profile)| {
        let mut worker = Worker::new(rank.rank, number as u32);
        worker.profile(profile, bins, elapsed_ns);
        worker
    };
    rank.profiles.iter().enumerate().map(worker).collect()
}

impl TimeBreakdown {
    /// Sum over all workers, by activity.
    pub(crate) fn total(&self) -> BTreeMap<Activity, Line> {
        let mut sum = BTreeMap::new();
        self.workers.iter().for_each(|worker| worker.add_to(&mut sum));
        sum
    }

    /// Sum over all workers.
    pub(crate) fn parts(&self) -> Parts {
        let mut sum = Parts::default();
        self.workers.iter().for_each(|worker| sum += worker.parts(&self.bins));
        sum
    }

    /// Sum over all workers in one bin.
    pub(crate) fn parts_in(&self, bin: usize) -> Parts {
        let mut sum = Parts::default();
        self.workers.iter().for_each(|worker| sum += worker.parts_in(&self.bins, bin));
        sum
    }

    /// Sums over the workers of each rank.
    pub(crate) fn by_rank(&self) -> BTreeMap<u32, Parts> {
        let mut sums = BTreeMap::<u32, Parts>::new();
        for worker in &self.workers {
            *sums.entry(worker.rank).or_default() += worker.parts(&self.bins);
        }
        sums
    }

    /// A note about the source, for display below a table.
    pub(crate) fn note(&self) -> String {
        match (self.source, self.coarse) {
            (Source::Profile, false) => "times are from the profile of the run".into(),
            (Source::Profile, true) => {
                "times are from the profile of the run, whose bins are wider than the ones asked for: time counts as \
                 spread evenly within a bin"
                    .into()
            }
            (Source::Events, _) => "times are from events".into(),
        }
    }
}

/// Idle time of workers of a pool after their last iteration, summed in ns. As exact as the bins of profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ending {
    /// Until the last worker had executed its last iteration: the work was not spread evenly.
    pub(crate) tail_ns: f64,
    /// After that: nothing was left to execute, and the result was collected.
    pub(crate) collecting_ns: f64,
}

impl Ending {
    /// Computes the sums; 0 for a run that is not a pool.
    pub(crate) fn of(trace: &Trace) -> Ending {
        let mut ending = Ending::default();
        match trace.run.shape {
            Shape::Arrays | Shape::Supersteps => return ending,
            Shape::Pools => {}
        }
        let profiles = || trace.ranks.iter().flat_map(|rank| &rank.profiles);
        let last_ns = profiles().map(worked_until_ns).max().unwrap_or(0);
        for profile in profiles() {
            let until_ns = worked_until_ns(profile);
            let idle = profile.rows.iter().filter(|row| row.activity == Activity::Idle);
            for (begin_ns, &ns) in idle.flat_map(|row| begins_ns(profile).zip(&row.ns)) {
                if begin_ns >= last_ns {
                    ending.collecting_ns += ns as f64;
                } else if begin_ns >= until_ns {
                    ending.tail_ns += ns as f64;
                }
            }
        }
        ending
    }
}

/// The activity of an event that takes a worker's time, and the lost part of that time in ns; none for other events.
pub(crate) fn activity(event: &Event) -> Option<(Activity, u64)> {
    match event.what {
        What::Handler { kind, lost_ns, .. } => Some((Activity::Kind(kind), lost_ns)),
        What::Range { lost_ns, .. } => Some((Activity::Iterations, lost_ns)),
        What::Idle => Some((Activity::Idle, 0)),
        What::Runtime { part, .. } => Some((Activity::Runtime(part), 0)),
        What::Depart { .. } => Some((Activity::Runtime(Part::Migrate), 0)),
        _ => None,
    }
}

/// End in ns of the bin in which a worker executed its last iteration.
fn worked_until_ns(profile: &Profile) -> u64 {
    let worked = profile.rows.iter().filter(|row| row.activity == Activity::Iterations);
    let bins = worked.filter_map(|row| row.ns.iter().rposition(|&ns| ns > 0)).max();
    bins.map_or(0, |last| (last as u64 + 1).saturating_mul(profile.bin_ns))
}

/// Begins of the bins of a profile, in ns.
fn begins_ns(profile: &Profile) -> impl Iterator<Item = u64> {
    (0u64..).map(|bin| bin.saturating_mul(profile.bin_ns))
}

impl Worker {
    fn new(rank: u32, worker: u32) -> Worker {
        Worker { rank, worker, lines: BTreeMap::new() }
    }

    pub(crate) fn name(&self) -> WorkerName {
        WorkerName { rank: self.rank, worker: self.worker }
    }

    /// Adds the time of an event.
    fn see(&mut self, bins: &Bins, event: &Event) {
        let Some((activity, lost_ns)) = activity(event) else { return };
        let mut add = |activity, ns: u64| {
            let line = self.lines.entry(activity).or_default();
            line.add(bins, (event.begin_ns, event.end_ns), ns as f64, 1.0, ns);
        };
        if lost_ns > 0 {
            add(Activity::Lost, lost_ns);
        }
        add(activity, event.cpu_ns());
    }

    fn profile(&mut self, profile: &Profile, bins: &Bins, elapsed_ns: u64) {
        for row in &profile.rows {
            let line = self.lines.entry(row.activity).or_default();
            for (bin, ((&ns, &calls), &longest_ns)) in
                row.ns.iter().zip(&row.calls).zip(&row.longest_ns).enumerate()
            {
                if ns == 0 && calls == 0 {
                    continue;
                }
                let edge_ns = |bin: u64| bin.saturating_mul(profile.bin_ns).min(elapsed_ns);
                let span = (edge_ns(bin as u64), edge_ns(bin as u64 + 1));
                line.add(bins, span, ns as f64, calls as f64, longest_ns);
            }
        }
    }

    pub(crate) fn add_to(&self, sum: &mut BTreeMap<Activity, Line>) {
        for (&activity, line) in &self.lines {
            sum.entry(activity).or_default().merge(line);
        }
    }

    /// Sums over the activities of the worker.
    pub(crate) fn parts(&self, bins: &Bins) -> Parts {
        let lines = self.lines.iter().map(|(&activity, line)| (activity, line.total_ns));
        Parts::of(lines, bins.window.length_ns() as f64)
    }

    /// Sums over the activities of the worker in one bin.
    pub(crate) fn parts_in(&self, bins: &Bins, bin: usize) -> Parts {
        let inside = |line: &Line| line.bins_ns.get(bin).copied().unwrap_or(0.0);
        let lines = self.lines.iter().map(|(&activity, line)| (activity, inside(line)));
        Parts::of(lines, bins.bin(bin).length_ns() as f64)
    }
}

impl Line {
    fn add(&mut self, bins: &Bins, (begin_ns, end_ns): (u64, u64), ns: f64, calls: f64, longest_ns: u64) {
        if begin_ns > bins.window.to_ns || end_ns < bins.window.from_ns {
            return;
        }
        self.bins_ns.resize(bins.count, 0.0);
        let inside = bins.spread(begin_ns, end_ns, ns, &mut self.bins_ns);
        self.total_ns += inside;
        let several = calls > 1.0 && ns > 0.0;
        let ended = if several { calls * inside / ns } else { calls * f64::from(bins.ends_inside(end_ns)) };
        self.calls += ended;
        if inside > 0.0 || ended > 0.0 {
            self.longest_ns = self.longest_ns.max(longest_ns);
        }
    }

    pub(crate) fn merge(&mut self, other: &Line) {
        self.bins_ns.resize(self.bins_ns.len().max(other.bins_ns.len()), 0.0);
        self.bins_ns.iter_mut().zip(&other.bins_ns).for_each(|(sum, ns)| *sum += ns);
        self.total_ns += other.total_ns;
        self.calls += other.calls;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

impl Parts {
    fn of(lines: impl Iterator<Item = (Activity, f64)>, wall_ns: f64) -> Parts {
        let mut parts = Parts { wall_ns, ..Parts::default() };
        for (activity, ns) in lines {
            *match activity {
                Activity::Kind(_) | Activity::Iterations => &mut parts.chunks_ns,
                Activity::Idle => &mut parts.idle_ns,
                Activity::Runtime(_) => &mut parts.runtime_ns,
                Activity::Lost => &mut parts.lost_ns,
            } += ns;
        }
        let known_ns = parts.chunks_ns + parts.runtime_ns + parts.lost_ns + parts.idle_ns;
        parts.rest_ns = (wall_ns - known_ns).max(0.0);
        parts
    }

    /// `ns` as a fraction of the wall time.
    pub(crate) fn share(&self, ns: f64) -> f64 {
        if self.wall_ns > 0.0 { ns / self.wall_ns } else { 0.0 }
    }

    /// Time in chunks or in the runtime.
    pub(crate) fn busy_ns(&self) -> f64 {
        self.chunks_ns + self.runtime_ns
    }

    /// Busy time and lost time.
    pub(crate) fn occupied_ns(&self) -> f64 {
        self.busy_ns() + self.lost_ns
    }

    /// Divides all sums, for an average.
    pub(crate) fn divide(&mut self, by: f64) {
        self.all().into_iter().for_each(|ns| *ns /= by);
    }

    fn all(&mut self) -> [&mut f64; 6] {
        let Parts { chunks_ns, runtime_ns, lost_ns, idle_ns, rest_ns, wall_ns } = self;
        [chunks_ns, runtime_ns, lost_ns, idle_ns, rest_ns, wall_ns]
    }
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, mut other: Parts) {
        self.all().into_iter().zip(other.all()).for_each(|(sum, ns)| *sum += *ns);
    }
}
