//! Computes the parts of time of each rank in each bin, and the bins with syncs.

use std::collections::{BTreeMap, BTreeSet};

use trace_reader::Trace;

use super::super::analysis::bins::Bins;
use super::super::analysis::lost_time::{LostTime, sampled};
use super::super::analysis::time_breakdown::{Parts, TimeBreakdown, Worker};
use super::super::select::Selection;
use super::super::supersteps::moments;

/// Parts of time by rank and bin.
pub(crate) struct Map {
    pub(crate) bins: Bins,
    pub(crate) rows: Vec<Row>,
    /// Sum over all ranks and bins.
    pub(crate) total: Cut,
    /// Sum over all ranks in each bin.
    pub(crate) all: Vec<Cut>,
    /// Bins with a sync or a new division.
    pub(crate) syncs: BTreeSet<usize>,
}

/// One rank.
pub(crate) struct Row {
    pub(crate) rank: u32,
    pub(crate) host: String,
    pub(crate) total: Cut,
    pub(crate) bins: Vec<Cut>,
}

/// Parts of a span of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cut {
    pub(crate) parts: Parts,
    /// Part of the lost time that the hypervisor took.
    pub(crate) steal_ns: f64,
}

impl Row {
    /// Fraction of time in chunks.
    pub(crate) fn busy(&self) -> f64 {
        self.total.parts.share(self.total.parts.chunks_ns)
    }
}

impl Map {
    /// Takes O(ranks x bins) memory.
    pub(crate) fn new(trace: &Trace, spent: &TimeBreakdown, selection: &Selection) -> Map {
        let bins = spent.bins;
        let mut workers = BTreeMap::<u32, Vec<&Worker>>::new();
        for worker in &spent.workers {
            workers.entry(worker.rank).or_default().push(worker);
        }
        let (mut rows, mut total, mut all) = (Vec::new(), Cut::default(), vec![Cut::default(); bins.count]);
        for rank in selection.ranks(trace) {
            let Some(workers) = workers.get(&rank.rank) else { continue };
            let row = row(rank, workers, &bins);
            total += row.total;
            all.iter_mut().zip(&row.bins).for_each(|(sum, cut)| *sum += *cut);
            rows.push(row);
        }
        let window = bins.window;
        let inside = moments(trace).filter(|at_ns| (window.from_ns..=window.to_ns).contains(at_ns));
        Map { bins, rows, total, all, syncs: inside.map(|at_ns| bins.position(at_ns)).collect() }
    }
}

fn row(rank: &trace_reader::RankTrace, workers: &[&Worker], bins: &Bins) -> Row {
    let sampled = sampled(rank, bins);
    let cut = |bin: usize| {
        let mut parts = Parts::default();
        workers.iter().for_each(|worker| parts += worker.parts_in(bins, bin));
        let taken = LostTime::of(parts.lost_ns, [0, 1, 2].map(|part: usize| sampled[part][bin]));
        Cut { parts, steal_ns: taken.steal_ns }
    };
    let cuts: Vec<Cut> = (0..bins.count).map(cut).collect();
    let mut total = Cut::default();
    workers.iter().for_each(|worker| total.parts += worker.parts(bins));
    total.steal_ns = cuts.iter().map(|cut| cut.steal_ns).sum();
    Row { rank: rank.rank, host: rank.host.clone(), total, bins: cuts }
}

impl std::ops::AddAssign for Cut {
    fn add_assign(&mut self, other: Cut) {
        self.parts += other.parts;
        self.steal_ns += other.steal_ns;
    }
}
