//! Collects the figures of one run for `caribou trace diff`.

use std::collections::{BTreeMap, BTreeSet};

use caribou::trace::Shape;
use trace_reader::Trace;

use crate::trace::analysis::chunk_times::ChunkTimes;
use crate::trace::analysis::facts::Facts;
use crate::trace::analysis::time_breakdown::Parts;
use crate::trace::open::warn;

/// Ratio of deliveries above which a run counts as having had more work than another.
const MORE: f64 = 1.02;

/// The time of a run and its causes, in ns, averaged over workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Total,
    Cpu,
    Lost,
    Runtime,
    /// Sum over phases: the time of the most occupied worker minus that of the average worker.
    Imbalance,
    /// The rest: waiting for messages, at syncs, and what is not recorded.
    Waiting,
    /// Idle time. It is not a cause, but part of imbalance and waiting.
    Idle,
}

impl Cause {
    /// All figures that may have a limit. The first is the sum of those after it, without the last.
    pub(super) const ALL: [Cause; 7] = [
        Cause::Total,
        Cause::Cpu,
        Cause::Lost,
        Cause::Runtime,
        Cause::Imbalance,
        Cause::Waiting,
        Cause::Idle,
    ];

    /// The name in tables and limits.
    pub(super) fn name(self) -> &'static str {
        match self {
            Cause::Total => "total",
            Cause::Cpu => "cpu",
            Cause::Lost => "lost",
            Cause::Runtime => "runtime",
            Cause::Imbalance => "imbalance",
            Cause::Waiting => "waiting",
            Cause::Idle => "idle",
        }
    }
}

/// The program of a run, and its amount of work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Started {
    pub(super) program: String,
    pub(super) shape: Shape,
    /// Each option with its value.
    pub(super) options: BTreeSet<String>,
    /// Number of deliveries that chunks handled.
    pub(super) deliveries: u64,
}

impl Started {
    fn of(trace: &Trace) -> Started {
        let mut words = trace.run.arguments.iter();
        let program = words.next().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
        let mut options: Vec<String> = Vec::new();
        for word in words {
            match options.last_mut() {
                Some(last) if !word.starts_with('-') && last.starts_with('-') => *last += &format!(" {word}"),
                _ => options.push(word.clone()),
            }
        }
        let ends = trace.ranks.iter().filter_map(|rank| rank.end.as_ref());
        Started {
            program: program.into(),
            shape: trace.run.shape,
            options: options.into_iter().collect(),
            deliveries: ends.fold(0, |sum: u64, end| sum.saturating_add(end.messages)),
        }
    }

    /// Reason why a difference in time may come from a different workload; none if there is no such reason.
    pub(super) fn unlike(&self, other: &Started) -> Option<String> {
        if (&self.program, &self.shape) != (&other.program, &other.shape) {
            return Some(format!(
                "the runs are of different programs, {} and {}",
                self.program, other.program
            ));
        }
        let only = |of: &BTreeSet<String>, not: &BTreeSet<String>| {
            let words: Vec<String> = of.difference(not).cloned().collect();
            if words.is_empty() { "none of these".into() } else { format!("`{}`", words.join(" ")) }
        };
        let (before, after) = (only(&self.options, &other.options), only(&other.options, &self.options));
        if before != after {
            return Some(format!("the runs had different options, one {before} and another {after}"));
        }
        let [few, many] = [self.deliveries.min(other.deliveries), self.deliveries.max(other.deliveries)];
        let counted = match self.shape {
            Shape::Arrays | Shape::Supersteps => true,
            // Deliveries of a pool are messages of its policy, so more of them are not more work.
            Shape::Pools => false,
        };
        (counted && many as f64 > MORE * few as f64).then(|| {
            format!(
                "the runs did different amounts of work, {} and {} deliveries handled",
                self.deliveries, other.deliveries
            )
        })
    }
}

/// Figures of one run.
#[derive(Debug)]
pub(super) struct Measures {
    pub(super) run_id: String,
    pub(super) started: Started,
    pub(super) kinds_ns: BTreeMap<String, f64>,
    pub(super) ranks_ns: BTreeMap<String, f64>,
    /// Empty if events were not recorded.
    pub(super) chunks_ns: BTreeMap<String, f64>,
    elapsed_ns: f64,
    /// Averages over workers.
    parts: Parts,
    /// Sum over phases of the largest time of a worker in chunks or in the runtime, including lost time.
    most_ns: f64,
}

impl Measures {
    /// Computes the figures from the same sources and phases as the summary.
    pub(super) fn of(trace: &Trace) -> Measures {
        let mut chunks = ChunkTimes::default();
        let Facts { spent, efficiency, problems, .. } = Facts::read(trace, &mut [&mut chunks]);
        warn(&problems);
        let workers = spent.workers.len().max(1) as f64;
        let mut parts = spent.parts();
        parts.divide(workers);
        let mut kinds_ns = BTreeMap::new();
        for (activity, line) in spent.total() {
            *kinds_ns.entry(trace.activity_name(activity)).or_default() += line.total_ns / workers;
        }
        let cpu_ns = |(rank, parts): (u32, Parts)| {
            let of_it = spent.workers.iter().filter(|worker| worker.rank == rank).count().max(1);
            (format!("rank {rank}"), parts.chunks_ns / of_it as f64)
        };
        Measures {
            run_id: trace.run.run_id.clone(),
            started: Started::of(trace),
            kinds_ns,
            ranks_ns: spent.by_rank().into_iter().map(cpu_ns).collect(),
            chunks_ns: chunks.0.into_iter().map(|(chunk, ns)| (trace.chunk_name(chunk), ns)).collect(),
            elapsed_ns: trace.elapsed_ns() as f64,
            most_ns: efficiency.map_or(parts.occupied_ns(), |efficiency| efficiency.occupied_ns()),
            parts,
        }
    }

    pub(super) fn cause_ns(&self, cause: Cause) -> f64 {
        let Parts { chunks_ns, lost_ns, runtime_ns, idle_ns, .. } = self.parts;
        match cause {
            Cause::Total => self.elapsed_ns,
            Cause::Cpu => chunks_ns,
            Cause::Lost => lost_ns,
            Cause::Runtime => runtime_ns,
            Cause::Imbalance => self.most_ns - self.parts.occupied_ns(),
            Cause::Waiting => self.elapsed_ns - self.most_ns,
            Cause::Idle => idle_ns,
        }
    }
}
