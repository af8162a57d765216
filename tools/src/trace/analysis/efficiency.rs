//! Computes the efficiency of a run as a product of factors, and lower bounds of its time. The factors are the
//! hierarchy of POP and TALP, with one more factor for the vCPU time that others took.
//!
//! A run takes T ns on n workers. In phase p, worker i computes chunks or iterations for `u` ns, loses `l` ns there,
//! and spends `r` ns in the runtime. A *phase* here is a bin as long as the average time between two syncs.
//!
//! | factor | formula | is lost to |
//! |---|---|---|
//! | parallel efficiency | sum u / (n T) | all of the others: it is their product |
//! | available vCPU | sum u / sum (u + l) | other processes, quotas, the hypervisor; handlers that sleep |
//! | load balance | sum (u + l) / (n sum over p of max over i of (u + l)) | work that is not spread by capacity |
//! | runtime | sum over p of max (u + l) / sum over p of max (u + l + r) | balancing, tracing, deferred messages |
//! | communication | sum over p of max (u + l + r) / T | waiting: for messages, dependences, syncs |
//!
//! Each bound is the time of a run that consists only of the named part. For example, with only the busy time, nothing
//! is lost and no worker waits.

use trace_reader::Trace;

use super::bins::Bins;
use super::time_breakdown::{Parts, TimeBreakdown, Worker};
use crate::trace::page::{Cell, Table};
use crate::trace::select::Window;

/// Explanation of the factors, for the user.
pub(crate) const FACTORS: &str = "Efficiency: parallel = available vCPU (computed / (computed + lost)) x load balance \
    (average / largest time in chunks, phase by phase) x runtime (time in chunks / (chunks + runtime)) x \
    communication (part of the time without waiting for messages or syncs).";

/// Fewest bins of the profile per phase.
const BINS_IN_PHASE: u64 = 4;
/// A worker that was not idle for less than this fraction of a phase showed no capacity there. Its capacity over the
/// whole run counts instead.
const SHOWN_MIN: f64 = 0.05;

/// Bins as long as the average phase of the run, but not finer than its profile allows.
pub(crate) fn phases(trace: &Trace, window: Window) -> Bins {
    let syncs =
        trace.syncs.iter().filter(|sync| (window.from_ns..=window.to_ns).contains(&sync.at_ns)).count();
    let profiles = trace.ranks.iter().flat_map(|rank| &rank.profiles);
    let widest_ns = profiles.map(|profile| profile.bin_ns).max().unwrap_or(1).max(1);
    let finest = window.length_ns() / widest_ns.saturating_mul(BINS_IN_PHASE);
    Bins::new(window, (syncs + 1).min(finest as usize))
}

/// Sums over phases, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Efficiency {
    workers: f64,
    elapsed_ns: f64,
    computed_ns: f64,
    lost_ns: f64,
    /// Sums of the largest value of any worker in each phase.
    most: Most,
    /// Busy time over the sum of capacities, summed over phases.
    balanced_ns: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Most {
    /// In chunks, including lost time.
    in_chunks_ns: f64,
    /// In chunks or in the runtime, without lost time.
    busy_ns: f64,
    occupied_ns: f64,
}

/// The time that a worker had its vCPU over the time that it wanted the vCPU.
fn capacity(parts: &Parts) -> Option<f64> {
    (parts.occupied_ns() > 0.0).then(|| parts.busy_ns() / parts.occupied_ns())
}

impl Efficiency {
    /// Computes the sums of time in [`phases`]. None if no time in chunks was recorded.
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

    /// Sum over phases of the largest time of a worker in chunks or in the runtime, including lost time.
    pub(crate) fn occupied_ns(&self) -> f64 {
        self.most.occupied_ns
    }

    /// The parallel efficiency, and its factors.
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

    /// Times in ns of runs that consist only of the named part.
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

/// A table of bounds.
pub(crate) fn bounds_table(bounds: impl IntoIterator<Item = (&'static str, f64)>, window_ns: u64) -> Table {
    let columns = [("bound", "if limited only by"), ("time_ns", "time"), ("speedup", "times faster")];
    let mut table = Table::new("bounds", "lower bounds of the time of the run", &columns);
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

    /// Two workers. The second loses half of its time in the second of two phases.
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
        // Work of 130 ns on two whole vCPUs, then of 80 ns on one and a half.
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
