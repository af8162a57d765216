//! Finds executions that took far longer than others of the same chunk and message kind, for `outliers --noise`.
//! Divides them into work and noise, as Projections' Noise Miner does.
//!
//! - **Work**: most of the surplus is CPU time, because the handler had more to do.
//! - **Noise**: most of the surplus is lost time, because the vCPU ran something else or the handler slept.
//!
//! Events are read twice: first for the usual durations, then for the comparison. Memory grows with the pairs of chunk
//! and kind. Lost time is measured per batch of handlers and counts for the longest of a batch. So figures of single
//! executions are estimates, and sums are exact.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use caribou::trace::{ChunkId, Event, NameId, What};
use rustc_hash::FxHashMap;
use trace_reader::Trace;

use super::quantile::QuantileEstimator;
use crate::trace::analysis::events::{Observer, WorkerRef};
use crate::trace::page::{Cell, Page, Table, columns, duration};

/// Factor over the usual time above which an execution is long.
const LONG: f64 = 5.0;
/// Fewest executions of a chunk and kind that have a usual time.
const FEW: u32 = 8;

/// Usual durations of each chunk and kind.
#[derive(Default)]
pub(crate) struct Baselines(FxHashMap<(ChunkId, NameId), QuantileEstimator>);

impl Observer<'_> for Baselines {
    fn see(&mut self, _: WorkerRef<'_>, event: &Event) {
        if let What::Handler { chunk, kind, .. } = event.what {
            self.0.entry((chunk, kind)).or_default().add(event.duration_ns() as f64);
        }
    }
}

/// The long executions.
pub(crate) struct Noise {
    usual: Baselines,
    ranks: BTreeMap<u32, RankNoise>,
    /// The executions with the largest surplus; the smallest of them is on top.
    longest: BinaryHeap<Reverse<Execution>>,
    top: usize,
}

/// Long executions of one rank.
#[derive(Clone, Copy, Default)]
struct RankNoise {
    executions: u64,
    wall_ns: f64,
    work: u64,
    work_ns: f64,
    noise: u64,
    noise_ns: f64,
}

/// A long execution. Executions are ordered by their fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Execution {
    surplus_ns: u64,
    begin_ns: Reverse<u64>,
    rank: u32,
    worker: u32,
    chunk: ChunkId,
    kind: NameId,
    wall_ns: u64,
    cpu_ns: u64,
    usual_ns: u64,
}

impl Execution {
    fn is_noise(&self) -> bool {
        2 * (self.wall_ns - self.cpu_ns) >= self.surplus_ns
    }
}

impl Observer<'_> for Noise {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        if let What::Handler { chunk, kind, .. } = event.what {
            let usual = self.usual.0.get(&(chunk, kind)).filter(|usual| usual.count() >= FEW);
            self.compare(place, event, (chunk, kind), usual.map(QuantileEstimator::value));
        }
    }
}

impl Noise {
    /// Keeps the `top` executions with the largest surplus.
    pub(crate) fn new(usual: Baselines, top: usize) -> Noise {
        Noise { usual, top, ranks: BTreeMap::new(), longest: BinaryHeap::new() }
    }

    fn compare(
        &mut self,
        place: WorkerRef<'_>,
        event: &Event,
        (chunk, kind): (ChunkId, NameId),
        usual_ns: Option<f64>,
    ) {
        let (rank, worker) = (place.rank.rank, place.worker);
        let (wall_ns, cpu_ns) = (event.duration_ns(), event.cpu_ns());
        let of_rank = self.ranks.entry(rank).or_default();
        of_rank.executions += 1;
        of_rank.wall_ns += wall_ns as f64;
        let Some(usual_ns) = usual_ns.filter(|usual_ns| wall_ns as f64 > LONG * usual_ns) else { return };
        let usual_ns = usual_ns as u64;
        let (surplus_ns, begin_ns) = (wall_ns - usual_ns, Reverse(event.begin_ns));
        let execution =
            Execution { surplus_ns, begin_ns, rank, worker, chunk, kind, wall_ns, cpu_ns, usual_ns };
        let (count, sum_ns) = if execution.is_noise() {
            (&mut of_rank.noise, &mut of_rank.noise_ns)
        } else {
            (&mut of_rank.work, &mut of_rank.work_ns)
        };
        *count += 1;
        *sum_ns += surplus_ns as f64;
        self.longest.push(Reverse(execution));
        if self.longest.len() > self.top {
            self.longest.pop();
        }
    }

    /// Adds the results to a page.
    pub(super) fn tell(self, trace: &Trace, page: &mut Page) {
        let mut all = RankNoise::default();
        for rank in self.ranks.values() {
            all.executions += rank.executions;
            (all.work, all.work_ns) = (all.work + rank.work, all.work_ns + rank.work_ns);
            (all.noise, all.noise_ns) = (all.noise + rank.noise, all.noise_ns + rank.noise_ns);
        }
        page.says.push(format!(
            "{} of {} executions took over {LONG} times the 80th percentile of their chunk and kind: {} by work ({} \
             more than that), {} by noise ({})",
            all.work + all.noise,
            all.executions,
            all.work,
            duration(all.work_ns),
            all.noise,
            duration(all.noise_ns)
        ));
        let columns = columns(
            "rank | executions | work: long by work | work_ns: surplus | noise: by noise | \
             noise_ns: surplus | noise_share: noise of handler time",
        );
        let mut table = Table::new("noise_by_rank", "", &columns).text_rows(20);
        for (&rank, found) in &self.ranks {
            table.row([
                Cell::Count(u64::from(rank)),
                Cell::Count(found.executions),
                Cell::Count(found.work),
                Cell::Ns(found.work_ns),
                Cell::Count(found.noise),
                Cell::Ns(found.noise_ns),
                Cell::Share(if found.wall_ns > 0.0 { found.noise_ns / found.wall_ns } else { 0.0 }),
            ]);
        }
        page.tables.push(table);
        page.tables.push(self.longest(trace));
        page.notes.push(
            "usual: 80th percentile, an estimate (P2); lost time is charged to the longest handler of a batch".into(),
        );
    }

    fn longest(self, trace: &Trace) -> Table {
        let columns = columns(
            "at_ns: at | rank | worker | chunk | kind | wall_ns: wall | cpu_ns: CPU | usual_ns: usual | by",
        );
        let mut table = Table::new("longest", "", &columns);
        for Reverse(execution) in self.longest.into_sorted_vec() {
            table.row([
                Cell::Ns(execution.begin_ns.0 as f64),
                Cell::Count(u64::from(execution.rank)),
                Cell::Count(u64::from(execution.worker)),
                Cell::Text(trace.chunk_name(execution.chunk)),
                Cell::Text(trace.name(execution.kind)),
                Cell::Ns(execution.wall_ns as f64),
                Cell::Ns(execution.cpu_ns as f64),
                Cell::Ns(execution.usual_ns as f64),
                Cell::text_of(if execution.is_noise() { "noise" } else { "work" }),
            ]);
        }
        table
    }
}
