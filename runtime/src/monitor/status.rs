//! The state of a run at one moment, as the monitor serves it, and the bounds on its size.

use lb_strategies::Shape;
use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use crate::trace::Sample;
use crate::trace::{StepsSoFar, SyncReport};

/// The version of [`Status`] as JSON. Fields may be added. If the meaning of a field changes, the number changes too.
pub const SCHEMA: &str = "caribou.status/1";
/// Maximum number of syncs in the list.
const SYNCS_MAX: usize = 20;
/// Maximum number of numbers in the lists of these syncs together. A sync has five lists with a number per rank.
const NUMBERS_MAX: usize = 4000;
/// Maximum number of kinds in the list.
const KINDS_MAX: usize = 100;
/// The name for all other kinds.
const OTHER_KINDS: &str = "(others)";
/// Maximum length of a name, or of the reason why a run failed, in characters.
const TEXT_MAX: usize = 2000;

/// The state of a run in one of its processes. Times are totals since the run began. For an interval, a reader
/// subtracts two states.
///
/// ```
/// use caribou::monitor::{RankStatus, Status};
/// let status = Status { ranks: vec![RankStatus { rank: 3, ..Default::default() }], ..Default::default() };
/// let read: Status = serde_json::from_str(&serde_json::to_string(&status)?)?;
/// assert_eq!(read, status);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// [`SCHEMA`]; empty if another server answers.
    #[serde(default)]
    pub schema: String,
    /// The unique name of the run.
    pub run_id: String,
    /// The name of the program.
    pub program: String,
    /// The strategy or policy and its parameters, as given.
    pub lb: String,
    /// The shape of the program.
    pub shape: Shape,
    /// Iterations of the pool; none for arrays, and before the pool begins.
    pub iterations_total: Option<u64>,
    /// Time since the run began, ns.
    pub elapsed_ns: u64,
    /// Number of ranks of the whole run, in all processes.
    pub ranks_total: u32,
    /// Number of active ranks, which are the first ones; on rank 0 only.
    pub ranks_active: Option<u32>,
    /// The ranks in this process.
    pub ranks: Vec<RankStatus>,
    /// CPU time of this process by kind of message, largest first. After the first hundred all are `(others)`.
    pub kinds: Vec<KindStatus>,
    /// The last twenty syncs, oldest first; on rank 0 only. With many ranks, the lists of older syncs are empty.
    pub syncs: Vec<SyncReport>,
    /// Number of syncs so far.
    pub syncs_total: u64,
    /// Number of chunks moved so far.
    pub moved_total: u64,
    /// The steps of a program in supersteps so far; on rank 0 only.
    pub steps: Option<StepsSoFar>,
    /// True when the run is over.
    pub finished: bool,
    /// The reason why the run failed, if it did.
    pub failed: Option<String>,
}

/// The state of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankStatus {
    /// The rank.
    pub rank: u32,
    /// The host of the rank.
    pub host: String,
    /// The workers, in order.
    pub workers: Vec<WorkerStatus>,
    /// Number of chunks on the rank.
    pub chunks: u64,
    /// Bytes of messages that wait on the rank for their chunks.
    pub waiting_bytes: u64,
    /// The maximum of these bytes so far, as in [`Report::waiting_bytes_max`](crate::Report::waiting_bytes_max).
    pub waiting_bytes_max: u64,
    /// Number of iterations executed so far.
    pub iterations: u64,
    /// Number of deliveries handled so far: messages, starts, resumes, results.
    pub messages: u64,
    /// The last sample of the rank, if there is one.
    pub sample: Option<Sample>,
    /// Activities of the workers that have not changed since the last sample of activities. The watchdog takes a sample
    /// at least once per second, unless `CARIBOU_WATCHDOG` is 0.
    pub running: Vec<RunningStatus>,
}

/// An activity of one worker that has been running for some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunningStatus {
    /// The worker's number on the rank; the number of workers for a strategy that decides on a separate thread.
    pub worker: u32,
    /// The chunk, or a description of other activities.
    pub what: String,
    /// The kind of the message; none without a profile, or if no handler runs.
    pub kind: Option<String>,
    /// Minimum duration so far, ns.
    pub long_ns: u64,
}

/// What one worker has done so far. Wall time that is in none of the times was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerStatus {
    /// The worker's number on the rank.
    pub worker: u32,
    /// CPU time of chunks, or of iterations, ns.
    pub cpu_ns: u64,
    /// Time of the runtime's work, ns.
    pub runtime_ns: u64,
    /// Time without work, ns.
    pub idle_ns: u64,
    /// Wall time of chunks that was not CPU time, ns: another process had the vCPU, or a handler slept or did I/O.
    pub lost_ns: u64,
    /// Time since the run began, ns.
    pub wall_ns: u64,
    /// Number of handlers run, or of executed ranges of iterations.
    pub handlers: u64,
}

/// The cost of one kind of message so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KindStatus {
    /// The name of the kind.
    pub name: String,
    /// CPU time of its handlers, ns.
    pub cpu_ns: u64,
    /// Number of calls.
    pub calls: u64,
    /// The longest call, ns.
    pub longest_ns: u64,
}

impl Default for Status {
    fn default() -> Status {
        Status {
            schema: SCHEMA.into(),
            run_id: String::new(),
            program: String::new(),
            lb: String::new(),
            shape: Shape::default(),
            iterations_total: None,
            elapsed_ns: 0,
            ranks_total: 0,
            ranks_active: None,
            ranks: Vec::new(),
            kinds: Vec::new(),
            syncs: Vec::new(),
            syncs_total: 0,
            moved_total: 0,
            steps: None,
            finished: false,
            failed: None,
        }
    }
}

impl Status {
    /// The status to send, of bounded size, and with numbers that JSON and Prometheus can express.
    pub(super) fn bounded(mut self) -> Status {
        self.kinds = merge(std::mem::take(&mut self.kinds));
        self.syncs.drain(..self.syncs.len().saturating_sub(SYNCS_MAX));
        let mut left = NUMBERS_MAX;
        for sync in self.syncs.iter_mut().rev() {
            bound_sync(sync, &mut left);
        }
        for sample in self.ranks.iter_mut().filter_map(|rank| rank.sample.as_mut()) {
            make_finite(&mut sample.speed);
        }
        if let Some(steps) = self.steps.as_mut().filter(|steps| steps.units.len() > NUMBERS_MAX) {
            steps.units.clear();
        }
        if let Some(why) = &mut self.failed {
            shorten(why);
        }
        self
    }
}

/// Replaces NaN and infinity, which JSON cannot express, so that readers do not refuse the whole status.
fn make_finite(number: &mut f64) {
    if !number.is_finite() {
        *number = 0.0;
    }
}

fn bound_sync(sync: &mut SyncReport, left: &mut usize) {
    let SyncReport { chunks_per_rank, capacity, share, before_ns, predicted_ns, .. } = sync;
    let numbers = chunks_per_rank.len() + capacity.len() + share.len() + before_ns.len() + predicted_ns.len();
    if numbers > *left {
        // Lists of older syncs are dropped too: gaps would look as if ranks came and went.
        *left = 0;
        chunks_per_rank.clear();
        capacity.clear();
        share.clear();
        before_ns.clear();
        predicted_ns.clear();
    }
    *left = left.saturating_sub(numbers);
    capacity.iter_mut().chain(share).for_each(make_finite);
    make_finite(&mut sync.imbalance_before);
    make_finite(&mut sync.imbalance_predicted);
    sync.reported = None;
}

/// One entry per name, with the largest CPU time first.
fn merge(kinds: Vec<KindStatus>) -> Vec<KindStatus> {
    let mut by_name = LiteMap::<String, KindStatus>::new();
    for mut kind in kinds {
        shorten(&mut kind.name);
        by_name.entry(kind.name.clone()).or_default().add(kind);
    }
    let mut kinds: Vec<KindStatus> = by_name.into_iter().map(|(_, kind)| kind).collect();
    kinds.sort_unstable_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then_with(|| a.name.cmp(&b.name)));
    if kinds.len() > KINDS_MAX {
        let mut others = KindStatus::default();
        kinds.drain(KINDS_MAX..).for_each(|kind| others.add(kind));
        kinds.push(KindStatus { name: OTHER_KINDS.into(), ..others });
    }
    kinds
}

impl KindStatus {
    /// Adds the costs of `other`, and takes its name.
    fn add(&mut self, other: KindStatus) {
        self.name = other.name;
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.calls = self.calls.saturating_add(other.calls);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

fn shorten(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(at);
        text.push_str("...");
    }
}
