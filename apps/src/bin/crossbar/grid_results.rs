//! Sums the results of simulations per point of the grid. All sums are whole numbers, so that merging is exact.

use std::ops::Range;

use caribou::pools::Accumulator;
use serde::{Deserialize, Serialize};

use super::grid::Grid;
use super::switch::Served;
use caribou_apps::estimate::{Estimate, Moments};

/// Fractions of a simulation are stored in parts per billion.
const PARTS: u64 = 1_000_000_000;

/// The mean delay of a simulation is stored in millionths of a slot.
const UNITS_PER_SLOT: u64 = 1_000_000;

/// The sums over some tasks of a grid, one element per point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GridResults {
    /// By point.
    pub(crate) points: Vec<PointResults>,
}

/// The sums over the tasks of one point.
///
/// Packets of one simulation depend on each other, so errors come from the scatter between whole simulations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PointResults {
    /// Slots in which packets arrived.
    pub(crate) slots: u64,
    /// Packets that arrived.
    pub(crate) offered: u64,
    /// Packets that were lost.
    pub(crate) lost: u64,
    /// Delays of all packets served.
    pub(crate) delay_slots: u128,
    /// Packets served per slot and output of each task, in parts per billion.
    throughput: Moments,
    /// Mean delay of each task, in millionths of a slot.
    delay: Moments,
    /// Lost over offered packets of each task, in parts per billion.
    loss: Moments,
}

impl GridResults {
    /// The results of no task.
    #[must_use]
    pub(crate) fn new(grid: &Grid) -> Self {
        Self { points: vec![PointResults::default(); grid.points()] }
    }

    /// Tasks that were done.
    #[must_use]
    pub(crate) fn tasks(&self) -> u64 {
        self.points.iter().map(PointResults::tasks).sum()
    }

    /// The first point in which two tallies differ, in words; `None` when they are equal.
    #[must_use]
    pub(crate) fn difference(&self, reference: &Self) -> Option<String> {
        if self.tasks() != reference.tasks() {
            return Some(format!("{} tasks instead of {}", self.tasks(), reference.tasks()));
        }
        let mut pairs = self.points.iter().zip(&reference.points);
        let point = pairs.position(|(found, expected)| found != expected)?;
        Some(format!("point {point} of the grid is the first that differs"))
    }
}

impl Accumulator for GridResults {
    fn merge(&mut self, other: Self) {
        assert_eq!(self.points.len(), other.points.len(), "both tallies are of one grid");
        for (ours, theirs) in self.points.iter_mut().zip(&other.points) {
            ours.merge(theirs);
        }
    }
}

impl PointResults {
    /// Tasks that were done.
    #[must_use]
    pub(crate) fn tasks(&self) -> u64 {
        self.throughput.count
    }

    /// Packets served per slot and output: packets not lost, per slot with arrivals. In the long run the switch serves
    /// all packets that it does not lose.
    #[must_use]
    pub(crate) fn throughput(&self) -> Estimate {
        self.throughput.mean().scaled(1.0 / PARTS as f64)
    }

    /// The mean delay of a packet in slots, 0 for one that leaves in the slot of its arrival.
    #[must_use]
    pub(crate) fn delay_slots(&self) -> Estimate {
        self.delay.mean().scaled(1.0 / UNITS_PER_SLOT as f64)
    }

    /// Lost over offered packets.
    #[must_use]
    pub(crate) fn loss(&self) -> Estimate {
        self.loss.mean().scaled(1.0 / PARTS as f64)
    }

    fn add(&mut self, ports: usize, found: Served) {
        self.slots += found.slots;
        self.offered += found.offered;
        self.lost += found.lost;
        self.delay_slots += u128::from(found.delay_slots);
        self.throughput.add(ratio(found.served(), found.slots * ports as u64, PARTS));
        self.delay.add(ratio(found.delay_slots, found.served(), UNITS_PER_SLOT));
        self.loss.add(ratio(found.lost, found.offered, PARTS));
    }

    fn merge(&mut self, other: &Self) {
        self.slots += other.slots;
        self.offered += other.offered;
        self.lost += other.lost;
        self.delay_slots += other.delay_slots;
        self.throughput.merge(other.throughput);
        self.delay.merge(other.delay);
        self.loss.merge(other.loss);
    }
}

/// `part / whole` times `units`, rounded down; 0 if both are 0.
fn ratio(part: u64, whole: u64, units: u64) -> u64 {
    (u128::from(part) * u128::from(units) / u128::from(whole.max(1))) as u64
}

/// Simulates these tasks and adds their results to `tally`.
///
/// The result of a task depends only on the grid, its seed and the number of the task.
pub(crate) fn run_tasks(grid: &Grid, tasks: Range<u64>, tally: &mut GridResults) {
    for task in tasks {
        let found = grid.simulate(task);
        tally.points[grid.point_of(task)].add(grid.ports, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::tests::grid;

    fn tally(tasks: Range<u64>) -> GridResults {
        let mut tally = GridResults::new(&grid());
        run_tasks(&grid(), tasks, &mut tally);
        tally
    }

    #[test]
    fn tasks_merge_exactly_in_any_order() {
        let mut merged = tally(20..36);
        merged.merge(tally(0..7));
        merged.merge(tally(7..20));
        assert_eq!(merged, tally(0..36));
        assert_eq!(merged.difference(&tally(0..36)), None);
        assert!(merged.points.iter().all(|point| point.tasks() == 3));
    }

    #[test]
    fn a_task_that_is_missing_or_done_twice_is_noticed() {
        assert_eq!(tally(0..35).difference(&tally(0..36)).unwrap(), "35 tasks instead of 36");
        let mut twice = tally(0..36);
        twice.merge(tally(0..1));
        assert!(twice.difference(&tally(0..36)).is_some());
        // Another task of the same point replaces the first task.
        let mut other = tally(1..36);
        other.merge(tally(36..37));
        assert_eq!(other.difference(&tally(0..36)).unwrap(), "point 0 of the grid is the first that differs");
    }

    #[test]
    fn estimates_are_in_their_units() {
        let mut point = PointResults::default();
        point.add(4, Served { slots: 100, offered: 200, lost: 50, delay_slots: 300 });
        let values = [point.throughput(), point.delay_slots(), point.loss()].map(|estimate| estimate.value);
        for (value, expected) in values.into_iter().zip([0.375, 2.0, 0.25]) {
            assert!((value - expected).abs() < 1e-6, "{values:?}");
        }
    }
}
