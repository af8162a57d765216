//! What is compared of one run.

use std::collections::{BTreeMap, BTreeSet};

use caribou::trace::{Activity, Event, Trace, What};

use crate::trace::open::warn;

/// Runs that handled so many times the deliveries of others had more to do.
const MORE: f64 = 1.02;

/// The time of a run, and what it is made of; averages over workers, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Total,
    Cpu,
    Lost,
    Runtime,
    /// The busiest worker over the average.
    Imbalance,
    /// What is left: for messages, at syncs, for anything that is not recorded.
    Waiting,
    /// Idle time; part of imbalance and waiting.
    Idle,
}

impl Cause {
    pub(super) const ALL: [Cause; 7] = [
        Cause::Total,
        Cause::Cpu,
        Cause::Lost,
        Cause::Runtime,
        Cause::Imbalance,
        Cause::Waiting,
        Cause::Idle,
    ];

    /// In tables and limits.
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

/// Sums over one worker, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Worker {
    cpu_ns: f64,
    lost_ns: f64,
    runtime_ns: f64,
    idle_ns: f64,
}

impl Worker {
    fn add(&mut self, activity: Activity, ns: f64) {
        *match activity {
            Activity::Kind(_) | Activity::Iterations => &mut self.cpu_ns,
            Activity::Lost => &mut self.lost_ns,
            Activity::Runtime(_) => &mut self.runtime_ns,
            Activity::Idle => &mut self.idle_ns,
        } += ns;
    }

    fn busy_ns(&self) -> f64 {
        self.cpu_ns + self.lost_ns + self.runtime_ns
    }
}

/// How a run was started, and how much it had to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Started {
    pub(super) program: String,
    pub(super) shape: String,
    /// Each option with its value.
    pub(super) options: BTreeSet<String>,
    /// Deliveries handled.
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
            shape: trace.run.shape.clone(),
            options: options.into_iter().collect(),
            deliveries: ends.fold(0, |sum: u64, end| sum.saturating_add(end.messages)),
        }
    }

    /// Why a difference in time from this run to another may be one of what was run.
    pub(super) fn unlike(&self, other: &Started) -> Option<String> {
        if (&self.program, &self.shape) != (&other.program, &other.shape) {
            return Some(format!("not the same program: {} and {}", self.program, other.program));
        }
        let only = |of: &BTreeSet<String>, not: &BTreeSet<String>| {
            let words: Vec<String> = of.difference(not).cloned().collect();
            if words.is_empty() { "without".into() } else { words.join(" ") }
        };
        let (before, after) = (only(&self.options, &other.options), only(&other.options, &self.options));
        if before != after {
            return Some(format!("not started alike: {before} and {after}"));
        }
        let [few, many] = [self.deliveries.min(other.deliveries), self.deliveries.max(other.deliveries)];
        (many as f64 > MORE * few as f64 && self.shape != "pool").then(|| {
            format!("not as much to do: {} and {} deliveries handled", self.deliveries, other.deliveries)
        })
    }
}

/// One run.
#[derive(Debug)]
pub(super) struct Measures {
    pub(super) run_id: String,
    pub(super) started: Started,
    pub(super) kinds_ns: BTreeMap<String, f64>,
    pub(super) ranks_ns: BTreeMap<String, f64>,
    /// Empty if events were not recorded.
    pub(super) chunks_ns: BTreeMap<String, f64>,
    elapsed_ns: f64,
    workers: Vec<Worker>,
}

/// Activities of one worker, from its events.
type Sums = BTreeMap<Activity, f64>;

impl Measures {
    /// Takes times from the profiles, which are whole even where events were dropped, and from events what has no profile.
    pub(super) fn of(trace: &Trace) -> Measures {
        let mut chunks: BTreeMap<caribou::trace::ChunkId, f64> = BTreeMap::new();
        let mut recorded: BTreeMap<(u32, u32), Sums> = BTreeMap::new();
        warn(&trace.for_each(|rank, worker, event| {
            if let What::Handler { chunk, .. } = event.what {
                *chunks.entry(chunk).or_default() += event.cpu_ns() as f64;
            }
            add(recorded.entry((rank.rank, worker)).or_default(), event);
        }));
        let mut measures = Measures {
            run_id: trace.run.run_id.clone(),
            started: Started::of(trace),
            kinds_ns: BTreeMap::new(),
            ranks_ns: BTreeMap::new(),
            chunks_ns: chunks.into_iter().map(|(chunk, ns)| (trace.chunk_name(chunk), ns)).collect(),
            elapsed_ns: trace.elapsed_ns() as f64,
            workers: Vec::new(),
        };
        for rank in &trace.ranks {
            let mut rank_ns = 0.0;
            for (number, profile) in (0..rank.workers).zip(&rank.profiles) {
                let mut sums = recorded.remove(&(rank.rank, number)).unwrap_or_default();
                if !profile.rows.is_empty() {
                    sums.clear();
                    for row in &profile.rows {
                        *sums.entry(row.activity).or_default() += row.total_ns() as f64;
                    }
                }
                let mut worker = Worker::default();
                for (activity, ns) in sums {
                    worker.add(activity, ns);
                    *measures.kinds_ns.entry(trace.activity_name(activity)).or_default() += ns;
                }
                rank_ns += worker.cpu_ns;
                measures.workers.push(worker);
            }
            measures.ranks_ns.insert(format!("rank {}", rank.rank), rank_ns);
        }
        measures
    }

    pub(super) fn cause_ns(&self, cause: Cause) -> f64 {
        let count = self.workers.len().max(1) as f64;
        let average = |of: fn(&Worker) -> f64| self.workers.iter().map(of).sum::<f64>() / count;
        let busiest_ns = || self.workers.iter().map(Worker::busy_ns).fold(0.0, f64::max);
        match cause {
            Cause::Total => self.elapsed_ns,
            Cause::Cpu => average(|worker| worker.cpu_ns),
            Cause::Lost => average(|worker| worker.lost_ns),
            Cause::Runtime => average(|worker| worker.runtime_ns),
            Cause::Imbalance => busiest_ns() - average(Worker::busy_ns),
            Cause::Waiting => self.elapsed_ns - busiest_ns(),
            Cause::Idle => average(|worker| worker.idle_ns),
        }
    }
}

fn add(sums: &mut Sums, event: &Event) {
    let activity = match event.what {
        What::Handler { kind, .. } => Activity::Kind(kind),
        What::Range { .. } => Activity::Iterations,
        What::Idle => Activity::Idle,
        What::Runtime { part, .. } => Activity::Runtime(part),
        What::Depart { .. } => Activity::Runtime(caribou::trace::Part::Migrate),
        _ => return,
    };
    *sums.entry(activity).or_default() += event.cpu_ns() as f64;
    let lost_ns = event.duration_ns() - event.cpu_ns();
    if lost_ns > 0 {
        *sums.entry(Activity::Lost).or_default() += lost_ns as f64;
    }
}
