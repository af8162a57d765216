//! Computes the figures that `caribou top` shows, from two answers of each program. Answers come over the network and
//! are not trusted: differences saturate, and no fraction exceeds 1.

use std::collections::BTreeMap;

use caribou::monitor::{KindStatus, RankStatus, Status, WorkerStatus};
use caribou::report::SyncReport;
use caribou::trace::{Shape, StepsSoFar};
use serde::Serialize;

use crate::trace::analysis::sync_effect::{self, Cost};

/// All figures of a run. `--json` prints this struct.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Dashboard {
    pub(super) schema: &'static str,
    pub(super) run_id: String,
    pub(super) program: String,
    pub(super) lb: String,
    pub(super) shape: Shape,
    /// Of a pool: number of iterations that the shown ranks have executed. `iterations_total` is the size of the pool.
    pub(super) iterations: u64,
    pub(super) iterations_total: Option<u64>,
    pub(super) elapsed_ns: u64,
    pub(super) finished: bool,
    pub(super) failed: Option<String>,
    /// Number of ranks of the run. Some may not be shown.
    pub(super) ranks_total: u32,
    /// Number of active ranks; none if rank 0 is not shown.
    pub(super) ranks_active: Option<u32>,
    /// Sorted by rank.
    pub(super) ranks: Vec<RankRow>,
    /// Completion time of the slowest rank in the last phase over the time with all work divided by the capacities.
    /// Before the first sync: largest over average time of ranks in chunks, including lost time.
    pub(super) imbalance: Option<f64>,
    /// The latest syncs, oldest first.
    pub(super) syncs: Vec<SyncRow>,
    pub(super) syncs_total: u64,
    pub(super) moved_total: u64,
    /// Of a program in supersteps; none if rank 0 is not shown.
    pub(super) steps: Option<StepsPanel>,
    /// Message kinds since the run began, most CPU time first.
    pub(super) kinds: Vec<KindRow>,
    /// Faults of the answers, one line each.
    pub(super) problems: Vec<String>,
}

/// Progress of a program in supersteps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct StepsPanel {
    pub(super) steps: u64,
    /// Over the time between the two answers.
    pub(super) steps_per_s: f64,
    pub(super) divisions: u64,
    pub(super) moved: u64,
    pub(super) copies: u32,
    /// Units of each worker of the run.
    pub(super) units: Vec<u64>,
}

/// Fractions of wall time. What is missing from 1 is unaccounted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Parts {
    pub(super) chunks: f64,
    pub(super) runtime: f64,
    pub(super) lost: f64,
    pub(super) idle: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct RankRow {
    pub(super) rank: u32,
    pub(super) host: String,
    /// Average of the workers of the rank.
    pub(super) parts: Parts,
    /// Number of each worker on the rank, and its fractions.
    pub(super) workers: Vec<(u32, Parts)>,
    pub(super) chunks: u64,
    /// Of a program in supersteps; none if the division is unknown.
    pub(super) units: Option<u64>,
    /// Bytes of messages that wait for their chunks: now, and at most so far.
    pub(super) waiting_bytes: u64,
    pub(super) waiting_bytes_max: u64,
    pub(super) iterations: u64,
    /// Messages per second; of a pool ranges per second.
    pub(super) messages_per_s: f64,
    /// CPU time got over CPU time wanted.
    pub(super) vcpu_share: Option<f64>,
    /// Fraction of wall time that the hypervisor took.
    pub(super) steal: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SyncRow {
    pub(super) sync: u64,
    #[serde(skip)]
    pub(super) is_window: bool,
    pub(super) at_ns: u64,
    pub(super) imbalance_before: f64,
    pub(super) imbalance_predicted: f64,
    pub(super) moved: u64,
    pub(super) moved_bytes: u64,
    /// Cost of the sync in ns, see [`Cost`].
    pub(super) cost_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct KindRow {
    pub(super) name: String,
    pub(super) cpu_ns: u64,
    /// Fraction of the CPU time of all kinds.
    pub(super) share: f64,
    pub(super) calls: u64,
    pub(super) longest_ns: u64,
}

/// The word for these syncs: "window" if all are windows.
pub(super) fn occasion(syncs: &[SyncRow]) -> &'static str {
    sync_effect::occasion(syncs.iter().map(|sync| sync.is_window))
}

/// The previous answer of one program, if there is one, and its latest answer.
pub(super) type Pair<'a> = (Option<&'a Status>, &'a Status);

impl Dashboard {
    /// The figures of all programs of one run. Without a previous answer they describe the time since the run began.
    pub(super) fn new(pairs: &[Pair<'_>]) -> Dashboard {
        let mut picture = Dashboard { schema: "caribou.top/1", ..Dashboard::default() };
        for &(before, now) in pairs {
            picture.add(before, now);
        }
        picture.ranks.sort_by_key(|rank| rank.rank);
        picture.share_out_units();
        let of_sync = picture.syncs.last().map(|sync| sync.imbalance_before);
        picture.imbalance = of_sync.or_else(|| imbalance(&picture.ranks));
        picture.kinds = kinds(pairs.iter().flat_map(|(_, now)| &now.kinds));
        picture
    }

    /// Sets the units of each rank. All ranks have the same number of workers.
    fn share_out_units(&mut self) {
        let Some(StepsPanel { units, .. }) = &self.steps else { return };
        let per_rank = (units.len() / (self.ranks_total as usize).max(1)).max(1);
        for rank in &mut self.ranks {
            let of_rank = units.chunks(per_rank).nth(rank.rank as usize);
            rank.units = of_rank.map(|units| units.iter().copied().fold(0, u64::saturating_add));
        }
    }

    fn add(&mut self, before: Option<&Status>, now: &Status) {
        if self.run_id.is_empty() {
            self.run_id.clone_from(&now.run_id);
            self.program.clone_from(&now.program);
            self.lb.clone_from(&now.lb);
            self.shape = now.shape;
        }
        self.elapsed_ns = self.elapsed_ns.max(now.elapsed_ns);
        self.iterations_total = self.iterations_total.or(now.iterations_total);
        let done = now.ranks.iter().map(|rank| rank.iterations);
        self.iterations = done.fold(self.iterations, u64::saturating_add);
        self.ranks_total = self.ranks_total.max(now.ranks_total);
        self.ranks_active = self.ranks_active.or(now.ranks_active);
        self.finished |= now.finished;
        self.failed = self.failed.take().or_else(|| now.failed.clone());
        if now.syncs.len() > self.syncs.len() {
            self.syncs = now.syncs.iter().map(SyncRow::new).collect();
        }
        self.syncs_total = self.syncs_total.max(now.syncs_total);
        self.moved_total = self.moved_total.max(now.moved_total);
        let passed_ns = now.elapsed_ns.saturating_sub(before.map_or(0, |before| before.elapsed_ns));
        if let Some(steps) = &now.steps {
            let before = before.and_then(|before| before.steps.as_ref()).map_or(0, |before| before.steps);
            let steps_per_s = per_s(steps.steps.saturating_sub(before), passed_ns);
            let StepsSoFar { steps, divisions, moved, copies, ref units, .. } = *steps;
            let units = units.clone();
            self.steps = Some(StepsPanel { steps, steps_per_s, divisions, moved, copies, units });
        }
        let of_before = before.into_iter().flat_map(|before| &before.ranks);
        let of_before: BTreeMap<u32, &RankStatus> = of_before.map(|rank| (rank.rank, rank)).collect();
        let ranks =
            now.ranks.iter().map(|rank| RankRow::new(of_before.get(&rank.rank).copied(), rank, passed_ns));
        self.ranks.extend(ranks);
    }
}

fn per_s(count: u64, passed_ns: u64) -> f64 {
    if passed_ns > 0 { count as f64 / (passed_ns as f64 / 1e9) } else { 0.0 }
}

impl RankRow {
    fn new(before: Option<&RankStatus>, now: &RankStatus, passed_ns: u64) -> RankRow {
        let of_before = before.into_iter().flat_map(|before| &before.workers);
        let of_before: BTreeMap<u32, &WorkerStatus> =
            of_before.map(|worker| (worker.worker, worker)).collect();
        let parts = |worker: &WorkerStatus| Parts::new(of_before.get(&worker.worker).copied(), worker);
        let workers: Vec<(u32, Parts)> =
            now.workers.iter().map(|worker| (worker.worker, parts(worker))).collect();
        let messages = now.messages.saturating_sub(before.map_or(0, |before| before.messages));
        let steal = now.sample.filter(|sample| sample.wall_ns > 0);
        RankRow {
            rank: now.rank,
            host: now.host.clone(),
            parts: Parts::average(&workers),
            workers,
            chunks: now.chunks,
            units: None,
            waiting_bytes: now.waiting_bytes,
            waiting_bytes_max: now.waiting_bytes_max,
            iterations: now.iterations,
            messages_per_s: per_s(messages, passed_ns),
            vcpu_share: now.sample.map(|sample| sample.share()),
            steal: steal.map(|sample| sample.steal_ns as f64 / sample.wall_ns as f64),
        }
    }
}

impl Parts {
    fn new(before: Option<&WorkerStatus>, now: &WorkerStatus) -> Parts {
        let zero = WorkerStatus::default();
        let before = before.unwrap_or(&zero);
        let passed = |total: fn(&WorkerStatus) -> u64| total(now).saturating_sub(total(before)) as f64;
        let (chunks, runtime) = (passed(|worker| worker.cpu_ns), passed(|worker| worker.runtime_ns));
        let (lost, idle) = (passed(|worker| worker.lost_ns), passed(|worker| worker.idle_ns));
        // CPU time and wall time come from different clocks, so their sums may exceed the whole.
        let whole = passed(|worker| worker.wall_ns).max(chunks + runtime + lost + idle).max(1.0);
        Parts { chunks: chunks / whole, runtime: runtime / whole, lost: lost / whole, idle: idle / whole }
    }

    fn average(workers: &[(u32, Parts)]) -> Parts {
        let count = workers.len().max(1) as f64;
        let average =
            |part: fn(&Parts) -> f64| workers.iter().map(|(_, parts)| part(parts)).sum::<f64>() / count;
        Parts {
            chunks: average(|parts| parts.chunks),
            runtime: average(|parts| parts.runtime),
            lost: average(|parts| parts.lost),
            idle: average(|parts| parts.idle),
        }
    }

    /// Fraction in chunks and in the runtime, without lost time.
    pub(super) fn busy(&self) -> f64 {
        self.chunks + self.runtime
    }
}

impl SyncRow {
    fn new(sync: &SyncReport) -> SyncRow {
        SyncRow {
            sync: sync.sync,
            is_window: sync.window,
            at_ns: sync.at_ns,
            imbalance_before: sync.imbalance_before,
            imbalance_predicted: sync.imbalance_predicted,
            moved: sync.moved,
            moved_bytes: sync.moved_bytes,
            cost_ns: Cost::of(sync).all_ns() as u64,
        }
    }
}

/// Largest over average time in chunks, including lost time; none if all of them are 0.
fn imbalance(ranks: &[RankRow]) -> Option<f64> {
    let waited_for = || ranks.iter().map(|rank| rank.parts.chunks + rank.parts.lost);
    let average = waited_for().sum::<f64>() / ranks.len().max(1) as f64;
    (average > 0.0).then(|| waited_for().fold(0.0, f64::max) / average)
}

/// Sums the kinds of the same name. The most expensive kind comes first.
fn kinds<'a>(kinds: impl Iterator<Item = &'a KindStatus>) -> Vec<KindRow> {
    let mut by_name: BTreeMap<&str, KindRow> = BTreeMap::new();
    for kind in kinds {
        let sum = by_name.entry(&kind.name).or_default();
        sum.cpu_ns = sum.cpu_ns.saturating_add(kind.cpu_ns);
        sum.calls = sum.calls.saturating_add(kind.calls);
        sum.longest_ns = sum.longest_ns.max(kind.longest_ns);
    }
    let all_ns: f64 = by_name.values().map(|kind| kind.cpu_ns as f64).sum();
    let named = |(name, kind): (&str, KindRow)| KindRow {
        name: name.to_owned(),
        share: kind.cpu_ns as f64 / all_ns.max(1.0),
        ..kind
    };
    let mut kinds: Vec<KindRow> = by_name.into_iter().map(named).collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.cpu_ns));
    kinds
}
