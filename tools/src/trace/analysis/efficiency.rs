//! Efficiency: the use of the machine as a product of causes, and how fast the program could have been.
//!
//! The hierarchy of POP and TALP, with what others left of the vCPUs as a factor of its own. Of worker i in phase p, let
//! `u` be the time it computed (chunks, or iterations), `l` the time lost there, `r` the runtime's; of T ns on n
//! workers:
//!
//! | factor | formula | is lost to |
//! |---|---|---|
//! | parallel efficiency | sum u / (n T) | all of the others: it is their product |
//! | available vCPU | sum u / sum (u + l) | neighbours, quotas, the hypervisor; handlers that sleep |
//! | load balance | sum (u + l) / (n sum over p of max over i of (u + l)) | work that is not spread by capacity |
//! | runtime | sum over p of max (u + l) / sum over p of max (u + l + r) | balancing, tracing, messages put away |
//! | communication | sum over p of max (u + l + r) / T | waiting: for messages, dependences, syncs |
//!
//! Bounds are times of a run with nothing but some of these: with nothing but the busy time, for one, nothing is lost and
//! no worker waits. A *phase* is a stretch as long as one between two syncs, on average.

use trace_reader::Trace;

use super::bins::Bins;
use super::time_breakdown::{Parts, TimeBreakdown, Worker};
use crate::trace::page::{Cell, Table};
use crate::trace::select::Window;

/// Meaning of the factors.
pub(crate) const FACTORS: &str = "Efficiency: parallel = available vCPU (computed / computed and lost) x load balance \
    (average / largest time in chunks, phase by phase) x runtime (time in chunks / that and the runtime's) x \
    communication (neither waiting for messages nor at syncs).";

/// Bins of the profile that a phase has at least.
const BINS_IN_PHASE: u64 = 4;
/// A worker that was not idle for less than this part of a phase showed no capacity there: its own over the run counts.
const SHOWN_MIN: f64 = 0.05;

/// Stretches as long as the phases of a run, but not finer than its profile.
pub(crate) fn phases(trace: &Trace, window: Window) -> Bins {
    let syncs =
        trace.syncs.iter().filter(|sync| (window.from_ns..=window.to_ns).contains(&sync.at_ns)).count();
    let profiles = trace.ranks.iter().flat_map(|rank| &rank.profiles);
    let widest_ns = profiles.map(|profile| profile.bin_ns).max().unwrap_or(1).max(1);
    let finest = window.length_ns() / widest_ns.saturating_mul(BINS_IN_PHASE);
    Bins::new(window, (syncs + 1).min(finest as usize))
}

/// Sums over phases, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Efficiency {
    workers: f64,
    elapsed_ns: f64,
    computed_ns: f64,
    lost_ns: f64,
    /// Of the worker that had most of it in each phase.
    most: Most,
    /// Work over capacity in each phase.
    balanced_ns: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Most {
    /// In chunks, lost included.
    in_chunks_ns: f64,
    /// In chunks or in the runtime, without lost time.
    busy_ns: f64,
    occupied_ns: f64,
}

/// Time that a worker had its vCPU over the time that it wanted it.
fn capacity(parts: &Parts) -> Option<f64> {
    (parts.occupied_ns() > 0.0).then(|| parts.busy_ns() / parts.occupied_ns())
}

impl Efficiency {
    /// Of time that was cut into [`phases`]; none if nothing was recorded that takes time.
    pub(crate) fn of(spent: &TimeBreakdown) -> Option<Efficiency> {
        let mut sums = Efficiency {
            workers: spent.workers.len() as f64,
            elapsed_ns: spent.bins.window.length_ns() as f64,
            ..Efficiency::default()
        };
        let usual: Vec<f64> =
            spent.workers.iter().map(|worker| capacity(&worker.parts(&spent.bins)).unwrap_or(1.0)).collect();
        for bin in 0..spent.bins.count {
            let parts = |worker: &Worker| worker.parts_in(&spent.bins, bin);
            sums.phase(&spent.workers.iter().map(parts).collect::<Vec<_>>(), &usual);
        }
        (sums.computed_ns > 0.0).then_some(sums)
    }

    fn phase(&mut self, workers: &[Parts], usual: &[f64]) {
        let most = |of: fn(&Parts) -> f64| workers.iter().map(of).fold(0.0, f64::max);
        self.most.in_chunks_ns += most(|parts| parts.chunks_ns + parts.lost_ns);
        self.most.busy_ns += most(Parts::busy_ns);
        self.most.occupied_ns += most(Parts::occupied_ns);
        self.computed_ns += workers.iter().map(|parts| parts.chunks_ns).sum::<f64>();
        self.lost_ns += workers.iter().map(|parts| parts.lost_ns).sum::<f64>();
        let shown = |parts: &Parts| parts.occupied_ns() > SHOWN_MIN * parts.wall_ns;
        let of_worker = |(parts, &usual)| capacity(parts).filter(|_| shown(parts)).unwrap_or(usual);
        let capacity: f64 = workers.iter().zip(usual).map(of_worker).sum();
        if capacity > 0.0 {
            self.balanced_ns += workers.iter().map(Parts::busy_ns).sum::<f64>() / capacity;
        }
    }

    /// Sum over phases of the largest time of a worker in chunks or in the runtime, lost time included.
    pub(crate) fn occupied_ns(&self) -> f64 {
        self.most.occupied_ns
    }

    /// Parallel efficiency, and the factors that it is the product of.
    pub(crate) fn factors(&self) -> [(&'static str, f64); 5] {
        let in_chunks_ns = self.computed_ns + self.lost_ns;
        [
            ("parallel efficiency", self.computed_ns / (self.workers * self.elapsed_ns)),
            ("= available vCPU", self.computed_ns / in_chunks_ns),
            ("x load balance", in_chunks_ns / (self.workers * self.most.in_chunks_ns)),
            ("x runtime", self.most.in_chunks_ns / self.most.occupied_ns),
            ("x communication", self.most.occupied_ns / self.elapsed_ns),
        ]
    }

    /// Times of a run that has nothing but this, ns.
    pub(crate) fn bounds(&self) -> [(&'static str, f64); 3] {
        [
            ("all busy time, divided by the measured capacities", self.balanced_ns),
            ("the busy time of the busiest worker in each phase", self.most.busy_ns),
            ("the same and what it lost", self.most.occupied_ns),
        ]
    }

    pub(crate) fn table(&self) -> Table {
        let columns = [("factor", "efficiency"), ("value", "")];
        let mut table = Table::new("efficiency", "", &columns);
        for (name, value) in self.factors() {
            table.row([Cell::text_of(name), Cell::Share(value)]);
        }
        table
    }
}

/// The bounds as a table, and others beside them.
pub(crate) fn bounds_table(bounds: impl IntoIterator<Item = (&'static str, f64)>, window_ns: u64) -> Table {
    let columns = [("bound", "nothing but"), ("time_ns", "time"), ("speedup", "times faster")];
    let mut table = Table::new("bounds", "how long it would take with nothing but", &columns);
    for (name, ns) in bounds {
        let faster = if ns > 0.0 { Cell::Number(window_ns as f64 / ns) } else { Cell::Empty };
        table.row([Cell::text_of(name), Cell::Ns(ns), faster]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(chunks_ns: f64, lost_ns: f64, runtime_ns: f64) -> Parts {
        Parts { chunks_ns, lost_ns, runtime_ns, wall_ns: 100.0, ..Parts::default() }
    }

    /// Two workers, of which the second loses half of its time in the second of two phases.
    fn sums() -> Efficiency {
        let mut sums = Efficiency { workers: 2.0, elapsed_ns: 200.0, ..Efficiency::default() };
        sums.phase(&[parts(80.0, 0.0, 10.0), parts(40.0, 0.0, 0.0)], &[1.0, 0.6]);
        sums.phase(&[parts(40.0, 0.0, 0.0), parts(40.0, 40.0, 0.0)], &[1.0, 0.6]);
        sums
    }

    #[test]
    fn parallel_efficiency_is_the_product_of_its_factors() {
        let [(_, parallel), factors @ ..] = sums().factors();
        let expected = [200.0 / 240.0, 240.0 / (2.0 * 160.0), 160.0 / 170.0, 170.0 / 200.0];
        for ((name, factor), expected) in factors.into_iter().zip(expected) {
            assert!((factor - expected).abs() < 1e-12, "{name}: {factor}, {expected}");
        }
        assert!((parallel - 0.5).abs() < 1e-12);
        assert!((parallel - factors.into_iter().map(|(_, factor)| factor).product::<f64>()).abs() < 1e-12);
    }

    #[test]
    fn bounds_are_sums_over_phases() {
        let bounds = sums().bounds().map(|(_, ns)| ns);
        // Work of 130 on two whole vCPUs, then of 80 on one and a half.
        let balanced = 130.0 / 2.0 + 80.0 / 1.5;
        for (ns, expected) in bounds.into_iter().zip([balanced, 90.0 + 40.0, 90.0 + 80.0]) {
            assert!((ns - expected).abs() < 1e-9, "{ns}, {expected}");
        }
    }

    #[test]
    fn a_worker_that_was_idle_has_the_capacity_that_it_usually_has() {
        let mut sums = Efficiency { workers: 2.0, elapsed_ns: 100.0, ..Efficiency::default() };
        sums.phase(&[parts(90.0, 0.0, 0.0), parts(1.0, 3.0, 0.0)], &[1.0, 0.5]);
        assert!((sums.balanced_ns - 91.0 / 1.5).abs() < 1e-9, "{sums:?}");
    }
}
