//! What a run tells when it is over.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::trace::{RankProfile, RunRecord};

/// The record of a finished run.
///
/// ```
/// let report = caribou::Report::default();
/// assert!(report.syncs.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// From the moment all ranks were set up to the exit, ns; measuring the vCPUs' speed takes the first ms of it.
    pub elapsed_ns: u64,
    /// Deliveries handled, on all ranks: messages, starts, resumes, results.
    pub messages: u64,
    /// Hosts, ranks, workers and where they sit, in one line.
    pub placement: String,
    /// Workers of each rank; empty under simulation.
    pub workers_per_rank: Vec<u32>,
    /// Whether every worker had a vCPU to itself.
    pub pinned: bool,
    /// Each rank's clock, in rank order; empty where all ranks are in one process.
    pub clocks: Vec<ClockOffset>,
    /// One record a sync, in order; of a run with thousands every second, fourth, ... so that as many as fit are spread
    /// evenly ([`SyncReport::sync`] tells which). Of several processes only that of rank 0 has them.
    pub syncs: Vec<SyncReport>,
    /// Sums over all syncs, also over those that are not in `syncs`.
    pub sync_totals: SyncTotals,
    /// Messages that nobody received, on all ranks: if there are any, a warning says so too.
    pub undelivered: Undelivered,
    /// What the run was.
    pub run: RunRecord,
    /// How each rank of this process spent its time; empty under simulation and with `CARIBOU_PROFILE=off`.
    pub profiles: Vec<RankProfile>,
}

/// Messages to single chunks that nobody received: no chunk had the index they were sent to, or the one that had it
/// removed itself before it read them.
///
/// What was still on its way at [`exit`](crate::Ctx::exit) is not among them, nor what a chunk was not ready for that is
/// still there, nor broadcasts. Its text is one line for people.
///
/// ```
/// use caribou::{Addressee, Undelivered};
/// let addressee = Addressee { chunk: "Tile[9]".into(), kind: "Halo".into(), messages: 2, removed: false };
/// let undelivered = Undelivered { messages: 3, addressees: vec![addressee] };
/// assert_eq!(
///     undelivered.to_string(),
///     "3 messages reached nobody: 2 `Halo` to Tile[9], which does not exist; and 1 more"
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undelivered {
    /// How many.
    pub messages: u64,
    /// Whom the first of them were for.
    pub addressees: Vec<Addressee>,
}

/// Whom messages were for that nobody received.
///
/// ```
/// let report = caribou::Report::default();
/// assert!(report.undelivered.addressees.iter().all(|addressee| addressee.messages > 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addressee {
    /// Array and index.
    pub chunk: String,
    /// What the messages were: the enum variant, `reduced` for a reduction's result, or `message`.
    pub kind: String,
    /// How many of that kind.
    pub messages: u64,
    /// Whether it had been there and removed itself; else no chunk had that index when the run ended.
    pub removed: bool,
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.messages == 1 { "" } else { "s" };
        write!(f, "{} message{plural} reached nobody", self.messages)?;
        let mut separator = ": ";
        for addressee in &self.addressees {
            write!(f, "{separator}{addressee}")?;
            separator = "; ";
        }
        let named: u64 = self.addressees.iter().map(|addressee| addressee.messages).sum();
        match self.messages.saturating_sub(named) {
            0 => Ok(()),
            more => write!(f, "{separator}and {more} more"),
        }
    }
}

impl fmt::Display for Addressee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = if self.removed { "had removed itself" } else { "does not exist" };
        write!(f, "{} `{}` to {}, which {why}", self.messages, self.kind, self.chunk)
    }
}

/// A rank's clock against that of rank 0. All times of a run are corrected by `begin_ns`.
///
/// ```
/// let clock = caribou::ClockOffset { begin_ns: -1_200, drift_ns: 40, error_ns: 900 };
/// assert!(clock.drift_ns.unsigned_abs() < clock.error_ns, "nothing that could be told from an error");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Its clock minus rank 0's when the run began, ns.
    pub begin_ns: i64,
    /// How much that has grown by the end of the run, ns.
    pub drift_ns: i64,
    /// The error of both, at most, ns; 0 where both clocks are one.
    pub error_ns: u64,
}

/// All syncs of a run together.
///
/// ```
/// let totals = caribou::Report::default().sync_totals;
/// assert_eq!((totals.syncs, totals.moved), (0, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SyncTotals {
    /// How many there were.
    pub syncs: u64,
    /// Chunks moved.
    pub moved: u64,
    /// Their state, bytes.
    pub moved_bytes: u64,
    /// From the first rank's report to the last's, ns.
    pub collect_ns: u64,
    /// The strategy's own time, ns.
    pub decide_ns: u64,
    /// From decisions until the last chunk landed, ns.
    pub migrate_ns: u64,
    /// The largest [`SyncReport::imbalance_before`].
    pub worst_imbalance: f64,
    /// The sync that found it, the first of several.
    pub worst_sync: u64,
}

impl SyncTotals {
    pub(crate) fn add(&mut self, sync: &SyncReport) {
        self.syncs += 1;
        self.moved += sync.moved;
        self.moved_bytes += sync.moved_bytes;
        self.collect_ns += sync.collect_ns;
        self.decide_ns += sync.decide_ns;
        self.migrate_ns += sync.migrate_ns;
        if sync.imbalance_before > self.worst_imbalance {
            (self.worst_imbalance, self.worst_sync) = (sync.imbalance_before, sync.sync);
        }
    }
}

/// What one sync found and did.
///
/// Makespans and imbalance follow from the snapshot under the strategy's background model; `collect_ns`, `decide_ns` and
/// `migrate_ns` were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SyncReport {
    /// Number of the sync, from 0.
    pub sync: u64,
    /// When it was decided, ns since the run began.
    pub at_ns: u64,
    /// Completion time of the slowest rank in the phase that was measured, over what it would be with all work divided by
    /// the capacities; 1 is perfect.
    pub imbalance_before: f64,
    /// The same, expected for the next phase after the moves.
    pub imbalance_predicted: f64,
    /// Largest completion time of the phase measured, ns.
    pub makespan_before_ns: u64,
    /// Largest completion time expected after the moves, ns.
    pub makespan_predicted_ns: u64,
    /// The best possible: sum of work over sum of capacities, ns.
    pub bound_ns: u64,
    /// Chunks moved.
    pub moved: u64,
    /// Their state, bytes.
    pub moved_bytes: u64,
    /// From the first rank's report to the last's, ns.
    pub collect_ns: u64,
    /// The strategy's own time, ns.
    pub decide_ns: u64,
    /// From the decision until the last chunk landed, ns; chunks that stay do not wait for it.
    pub migrate_ns: u64,
    /// Chunks on each rank after the moves.
    pub chunks_per_rank: Vec<u32>,
    /// Speed times share of each rank.
    pub capacity: Vec<f64>,
    /// CPU got over CPU wanted, of each rank.
    pub share: Vec<f64>,
    /// Completion time of each rank in the phase that was measured, ns.
    pub before_ns: Vec<u64>,
    /// Completion time of each rank expected after the moves, ns.
    pub predicted_ns: Vec<u64>,
    /// Chunks that the strategy wanted to move. They stay (`moved` is 0) where that is not worth its cost, unless the strategy says
    /// otherwise: see [`Strategy::must_pay`](crate::Strategy::must_pay).
    pub proposed: u64,
    /// Time that moving them was expected to save in the next phase, ns.
    pub gain_ns: u64,
    /// Time that moving them was expected to cost, ns.
    pub cost_ns: u64,
    /// Messages that chunks handled in the phase that was measured: how long it was, whatever a step of the program is.
    /// 0 where nothing was measured.
    pub deliveries: u64,
    /// The same of the phase that was predicted, from the phases that it was predicted from.
    pub deliveries_predicted: u64,
    /// Largest completion time of the phase that was measured had the sync before it moved nothing, by the loads and
    /// capacities of that phase, ns. 0 where there was no sync before. Where it is smaller than `makespan_before_ns`, loads
    /// move faster than syncs follow: the placement was old when it came.
    pub makespan_unmoved_ns: u64,
    /// Chunks that stood still until the decision. None did that came with `at_sync_nowait`.
    pub waited: Option<u64>,
}

/// What a rank measured about itself since its last sample, summed over its workers. Times are ns.
///
/// One is taken at each sync, and where those are rare at least twice a second.
///
/// ```
/// let sample = caribou::trace::Sample { cpu_ns: 600, wait_ns: 300, steal_ns: 100, ..Default::default() };
/// assert_eq!(sample.share(), 0.6);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// When it was taken, ns since the run began.
    pub at_ns: u64,
    /// The sync at which it was taken, if at one.
    pub sync: Option<u64>,
    /// Wall time, times the number of workers.
    pub wall_ns: u64,
    /// CPU time of the workers.
    pub cpu_ns: u64,
    /// CPU time of chunks, or of iterations.
    pub chunk_ns: u64,
    /// Time the workers had nothing to do.
    pub idle_ns: u64,
    /// Time the workers were runnable but did not run.
    pub wait_ns: u64,
    /// Time the hypervisor took from the workers' vCPUs.
    pub steal_ns: u64,
    /// Time that a CPU quota kept threads from running: those of the whole control group, not the workers alone. More than
    /// `wait_ns` was not theirs.
    pub throttled_ns: u64,
    /// Background load O_p (cloud-refine, eq. 2).
    pub background_ns: u64,
    /// Speed of the vCPUs in rounds of the calibration loop a us.
    pub speed: f64,
    /// Chunks on the rank.
    pub chunks: u64,
    /// Deliveries handled.
    pub deliveries: u64,
}

/// Which processes ran on a rank's vCPUs in some time in which its workers lost much of it. A vCPU that nobody is seen on was
/// the hypervisor's, that of another container, or of processes that have ended.
///
/// ```
/// let taker = caribou::trace::Taker { pid: 123, command: "stress".into(), cpu_ns: 9_000_000 };
/// let look = caribou::trace::Look { over_ns: 10_000_000, takers: vec![taker], ..Default::default() };
/// assert_eq!(look.takers[0].command, "stress");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Look {
    /// When it ended, ns since the run began.
    pub at_ns: u64,
    /// How long it was, ns.
    pub over_ns: u64,
    /// Those with most CPU time first.
    pub takers: Vec<Taker>,
}

/// A process that is not the rank's. [`Look`] has an example.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taker {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub command: String,
    /// CPU time that it had on the rank's vCPUs, about, ns.
    pub cpu_ns: u64,
}

impl Sample {
    /// This one and the next as one.
    #[must_use]
    pub(crate) fn plus(self, later: &Sample) -> Sample {
        Sample {
            at_ns: later.at_ns,
            sync: later.sync.or(self.sync),
            wall_ns: self.wall_ns + later.wall_ns,
            cpu_ns: self.cpu_ns + later.cpu_ns,
            chunk_ns: self.chunk_ns + later.chunk_ns,
            idle_ns: self.idle_ns + later.idle_ns,
            wait_ns: self.wait_ns + later.wait_ns,
            steal_ns: self.steal_ns + later.steal_ns,
            throttled_ns: self.throttled_ns + later.throttled_ns,
            background_ns: self.background_ns + later.background_ns,
            speed: later.speed,
            chunks: later.chunks,
            deliveries: self.deliveries + later.deliveries,
        }
    }

    /// CPU time got over CPU time wanted: what others left of the vCPU. 1 where nothing was wanted.
    #[must_use]
    pub fn share(&self) -> f64 {
        let wanted_ns = self.cpu_ns as f64 + self.wait_ns as f64 + self.steal_ns as f64;
        if wanted_ns > 0.0 { self.cpu_ns as f64 / wanted_ns } else { 1.0 }
    }
}

/// The record of a finished pool.
///
/// ```
/// use caribou::{PoolReport, PoolWorker};
/// let worker = |busy_ns| PoolWorker { busy_ns, end_ns: busy_ns, ..PoolWorker::default() };
/// let report = PoolReport { elapsed_ns: 100, workers: vec![worker(100), worker(90)], ..PoolReport::default() };
/// assert_eq!((report.bound_ns(), report.idle_ns()), (95, 10));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolReport {
    /// The policy and its parameters, as given.
    pub lb: String,
    /// From the moment all ranks were set up to the end of the last iteration, ns.
    pub elapsed_ns: u64,
    /// The same, to the moment at which the last rank had the result and had taken leave, ns.
    pub wall_ns: u64,
    /// Iterations executed.
    pub iterations: u64,
    /// Whether the pool was cancelled before all were.
    pub cancelled: bool,
    /// Hosts, ranks, workers and where they sit, in one line.
    pub placement: String,
    /// Workers of each rank.
    pub workers_per_rank: Vec<u32>,
    /// Whether every worker had a vCPU to itself.
    pub pinned: bool,
    /// Messages that the policy sent between ranks.
    pub messages: u64,
    /// What the policy decided, in one line, if it decides anything.
    pub decision: Option<String>,
    /// Each rank's clock, in rank order; empty where all ranks are in one process.
    pub clocks: Vec<ClockOffset>,
    /// All workers of all ranks, in order.
    pub workers: Vec<PoolWorker>,
    /// What the run was.
    pub run: RunRecord,
    /// How each rank of this process spent its time; empty under simulation and with `CARIBOU_PROFILE=off`.
    pub profiles: Vec<RankProfile>,
}

/// One worker's part in a pool. Times are ns.
///
/// ```
/// let worker = caribou::PoolWorker { cpu_ns: 60, busy_ns: 100, ..Default::default() };
/// assert!(worker.share() < 0.61, "somebody else had the vCPU for the rest");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolWorker {
    /// Its rank.
    pub rank: u32,
    /// Its number on the rank.
    pub worker: u32,
    /// Iterations it has executed.
    pub iterations: u64,
    /// Iterations it has executed that do not count, because somebody else was faster.
    pub discarded: u64,
    /// Ranges of iterations.
    pub ranges: u64,
    /// CPU time of its thread in iterations.
    pub cpu_ns: u64,
    /// Time in iterations, with all interruptions.
    pub busy_ns: u64,
    /// Time in the policy, waiting for the lock of the rank included.
    pub policy_ns: u64,
    /// When its last iteration ended, since the run began.
    pub end_ns: u64,
}

impl PoolWorker {
    /// CPU time got over time busy: what others on its vCPU left it.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.cpu_ns as f64 / (self.busy_ns.max(1)) as f64
    }
}

impl PoolReport {
    /// What the pool would have taken if no worker had ever been idle: the capacity bound, ns.
    ///
    /// It takes the capacity of a worker's idle time to be like that of its busy time.
    #[must_use]
    pub fn bound_ns(&self) -> u64 {
        let busy: u128 = self.workers.iter().map(|worker| u128::from(worker.busy_ns)).sum();
        (busy / self.workers.len().max(1) as u128) as u64
    }

    /// Time that workers had nothing to execute, all added up, ns.
    #[must_use]
    pub fn idle_ns(&self) -> u64 {
        self.workers.iter().map(|worker| self.elapsed_ns.saturating_sub(worker.busy_ns)).sum()
    }

    /// How much longer than the bound it took: 0.01 is one percent.
    #[must_use]
    pub fn excess(&self) -> f64 {
        let bound_ns = self.bound_ns();
        if bound_ns == 0 { 0.0 } else { self.elapsed_ns as f64 / bound_ns as f64 - 1.0 }
    }
}
