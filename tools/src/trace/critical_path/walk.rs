//! Finds the critical path: walks backwards from the last slice, always to the dependence that ended last.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use caribou::trace::{Activity, Part as RuntimePart, Shape};

use super::slices::{Number, Slice, Slices};
use crate::trace::select::Window;

/// Kinds of time on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    ChunkCpu,
    Lost,
    QueueWait,
    Latency,
    ReductionWait,
    SyncWait,
    Balancing,
    Runtime,
    UnknownWait,
}

impl Part {
    const ALL: [Part; 9] = [
        Part::ChunkCpu,
        Part::Lost,
        Part::QueueWait,
        Part::Latency,
        Part::ReductionWait,
        Part::SyncWait,
        Part::Balancing,
        Part::Runtime,
        Part::UnknownWait,
    ];

    pub(super) fn name(self, shape: Shape) -> &'static str {
        match self {
            Part::ChunkCpu => match shape {
                Shape::Arrays | Shape::Supersteps => "chunk CPU",
                Shape::Pools => "iterations CPU",
            },
            Part::Lost => "lost",
            Part::QueueWait => "queue wait",
            Part::Latency => "message latency",
            Part::ReductionWait => "reduction wait",
            Part::SyncWait => "sync wait",
            Part::Balancing => "load balancing",
            Part::Runtime => "runtime",
            Part::UnknownWait => "unknown wait",
        }
    }
}

/// A part of the path without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Segment {
    pub(super) ns: u64,
    pub(super) begin_ns: u64,
    /// The slice that worked or waited.
    pub(super) slice: Number,
    pub(super) part: Part,
}

/// Work on the path: a slice, and the begin and end of its part on the path.
pub(super) type PathSlice = (Number, u64, u64);

/// The path, and sums over it.
#[derive(Default)]
pub(super) struct Path {
    /// From the last to the first.
    pub(super) steps: Vec<PathSlice>,
    pub(super) slices: u64,
    /// Number of steps to a slice that merely ended last, because the dependence is not recorded.
    pub(super) guesses: u64,
    parts_ns: BTreeMap<Part, u64>,
    ranks_ns: BTreeMap<u32, u64>,
    chunks_ns: BTreeMap<u32, u64>,
    activities_ns: BTreeMap<Activity, u64>,
    longest: BinaryHeap<Reverse<Segment>>,
    longest_max: usize,
}

/// Reason that a slice did not begin earlier.
enum Dependency {
    Worker,
    Chunk,
    Message,
    Reduction,
    Sync { guessed: bool },
    Unknown,
}

impl Path {
    pub(super) fn walk(slices: &Slices, window: Window, longest_max: usize) -> Path {
        let mut path = Path { longest_max: longest_max.max(1), ..Path::default() };
        let Some(last) = slices.all.len().checked_sub(1) else { return path };
        let mut number = last as Number;
        let mut until_ns = slices.all[last].end_ns;
        loop {
            let slice = &slices.all[number as usize];
            path.slices += 1;
            path.work(slice, number, (slice.begin_ns.max(window.from_ns), until_ns));
            if slice.begin_ns <= window.from_ns {
                return path;
            }
            // Each step leads to a lower number. So the loop ends, whatever the times are.
            let Some((before, cause)) = cause(slices, number) else {
                path.add(Part::UnknownWait, number, (window.from_ns, slice.begin_ns.min(until_ns)));
                return path;
            };
            path.guesses += u64::from(matches!(cause, Dependency::Sync { guessed: true }));
            let ready_ns = slices.all[before as usize].end_ns;
            path.gap(slice, number, &cause, (ready_ns.max(window.from_ns), slice.begin_ns.min(until_ns)));
            until_ns = until_ns.min(slice.begin_ns).min(ready_ns);
            number = before;
        }
    }

    /// Adds the time of a slice itself.
    fn work(&mut self, slice: &Slice, number: Number, (from_ns, to_ns): (u64, u64)) {
        let ns = to_ns.saturating_sub(from_ns);
        if ns == 0 {
            return;
        }
        self.steps.push((number, from_ns, to_ns));
        let part = match slice.activity {
            Activity::Runtime(RuntimePart::Measure | RuntimePart::Decide | RuntimePart::Migrate) => {
                Part::Balancing
            }
            Activity::Runtime(RuntimePart::Start | RuntimePart::Keep | RuntimePart::Flush)
            | Activity::Idle => Part::Runtime,
            Activity::Kind(_) | Activity::Iterations | Activity::Lost => Part::ChunkCpu,
        };
        let whole_ns = u128::from((slice.end_ns - slice.begin_ns).max(1));
        let lost_ns = (u128::from(ns) * u128::from(slice.lost_ns) / whole_ns) as u64;
        self.add(part, number, (from_ns, to_ns - lost_ns));
        self.add(Part::Lost, number, (to_ns - lost_ns, to_ns));
        *self.ranks_ns.entry(slice.worker.rank).or_default() += ns;
        *self.activities_ns.entry(slice.activity).or_default() += ns;
        if let Some(chunk) = slice.chunk {
            *self.chunks_ns.entry(chunk).or_default() += ns;
        }
    }

    /// Adds the time from when a slice could have begun until it did.
    fn gap(&mut self, slice: &Slice, number: Number, cause: &Dependency, (from_ns, to_ns): (u64, u64)) {
        let woke_ns = slice.woke_ns.unwrap_or(to_ns).clamp(from_ns.min(to_ns), to_ns);
        let waited = match cause {
            Dependency::Worker | Dependency::Chunk => Part::Runtime,
            Dependency::Message => Part::Latency,
            Dependency::Reduction => Part::ReductionWait,
            Dependency::Sync { .. } => Part::SyncWait,
            Dependency::Unknown => Part::UnknownWait,
        };
        self.add(waited, number, (from_ns, woke_ns));
        self.add(Part::QueueWait, number, (woke_ns, to_ns));
    }

    fn add(&mut self, part: Part, slice: Number, (begin_ns, end_ns): (u64, u64)) {
        let ns = end_ns.saturating_sub(begin_ns);
        if ns == 0 {
            return;
        }
        *self.parts_ns.entry(part).or_default() += ns;
        self.longest.push(Reverse(Segment { ns, begin_ns, slice, part }));
        if self.longest.len() > self.longest_max {
            self.longest.pop();
        }
    }

    pub(super) fn total_ns(&self) -> u64 {
        self.parts_ns.values().sum()
    }

    pub(super) fn part_ns(&self, part: Part) -> u64 {
        self.parts_ns.get(&part).copied().unwrap_or(0)
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = (Part, u64)> {
        Part::ALL.into_iter().map(|part| (part, self.part_ns(part)))
    }

    pub(super) fn by_rank(&self) -> Vec<(u32, u64)> {
        largest_first(&self.ranks_ns)
    }

    pub(super) fn by_chunk(&self) -> Vec<(u32, u64)> {
        largest_first(&self.chunks_ns)
    }

    pub(super) fn by_activity(&self) -> Vec<(Activity, u64)> {
        largest_first(&self.activities_ns)
    }

    /// The longest segments, longest first.
    pub(super) fn longest(&self) -> Vec<Segment> {
        let mut longest: Vec<Segment> = self.longest.iter().map(|Reverse(segment)| *segment).collect();
        longest.sort_by_key(|segment| Reverse(*segment));
        longest
    }
}

fn largest_first<K: Copy + Ord>(sums_ns: &BTreeMap<K, u64>) -> Vec<(K, u64)> {
    let mut sums: Vec<(K, u64)> = sums_ns.iter().map(|(&key, &ns)| (key, ns)).collect();
    sums.sort_by_key(|&(_, ns)| Reverse(ns));
    sums
}

/// Finds the slice for which a slice waited. Its number is always lower.
fn cause(slices: &Slices, number: Number) -> Option<(Number, Dependency)> {
    let slice = &slices.all[number as usize];
    let end_ns = |number: Number| slices.all[number as usize].end_ns;
    let worker = slice.on_worker.map(|before| (before, Dependency::Worker));
    let chunk = slice.of_chunk.map(|before| (before, Dependency::Chunk));
    let message = slice.sender.map(|before| (before, Dependency::Message));
    let waited_for = message.or_else(|| agreement(slices, number)).filter(|(before, _)| *before < number);
    let latest = |one: Option<(Number, Dependency)>, other: Option<(Number, Dependency)>| match (one, other) {
        (Some(one), Some(other)) => Some(if end_ns(other.0) > end_ns(one.0) { other } else { one }),
        (one, other) => one.or(other),
    };
    if slice.woke_ns.is_none() {
        return latest(worker, latest(chunk, waited_for));
    }
    // The worker was idle, so the slice did not wait for its worker.
    match latest(waited_for, chunk.filter(|(before, _)| end_ns(*before) > worker_end(slices, slice))) {
        Some(found) => Some(found),
        None => worker.map(|(before, _)| (before, Dependency::Unknown)),
    }
}

fn worker_end(slices: &Slices, slice: &Slice) -> u64 {
    slice.on_worker.map_or(0, |before| slices.all[before as usize].end_ns)
}

/// Finds what a sync activity or a message of the runtime waited for. For the result of a reduction this is the last
/// contributor.
fn agreement(slices: &Slices, number: Number) -> Option<(Number, Dependency)> {
    let slice = &slices.all[number as usize];
    let (before, cause) = match slice.activity {
        Activity::Runtime(RuntimePart::Measure) if slice.woke_ns.is_some() => {
            (slices.last_of_all_by(slice.begin_ns), Dependency::Sync { guessed: true })
        }
        Activity::Runtime(RuntimePart::Decide | RuntimePart::Migrate) => {
            (slices.last_by(&slices.parts, slice.begin_ns), Dependency::Sync { guessed: false })
        }
        kind if slice.from_runtime && slices.resumes.contains(&kind) => {
            (slices.last_by(&slices.parts, slice.begin_ns), Dependency::Sync { guessed: false })
        }
        kind if slice.from_runtime && !slices.starts.contains(&kind) => {
            (slices.last_by(&slices.contributors, slice.begin_ns), Dependency::Reduction)
        }
        _ => (None, Dependency::Unknown),
    };
    before.map(|before| (before, cause))
}
