//! Defines values that are constant for a while and then jump, such as a recorded speed or share.

use std::sync::Arc;

use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker, all_workers};

/// A value as a function of time, constant between jumps. The last value holds forever.
///
/// ```
/// use virtual_cluster::Series;
/// let collapse = Series::constant(1000.0).then(1500.0, 100.0);
/// assert_eq!(collapse.at(0), (1000.0, 1_500_000_000_000));
/// assert_eq!(collapse.at(1_500_000_000_000), (100.0, u64::MAX));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The values, each with its start time; ascending, the first at 0.
    pieces: Vec<(Nanos, f64)>,
}

impl Series {
    /// A value that never changes.
    pub fn constant(value: f64) -> Self {
        Self { pieces: vec![(0, value)] }
    }

    /// Adds `value` from `seconds` on. If `seconds` is not later than earlier jumps, these jumps are removed.
    #[must_use]
    pub fn then(mut self, seconds: f64, value: f64) -> Self {
        let begin = (seconds.max(0.0) * SECOND as f64).round() as Nanos;
        while self.pieces.last().is_some_and(|&(at, _)| at >= begin) {
            self.pieces.pop();
        }
        let before = self.pieces.last().map(|&(_, value)| value);
        if before.is_none() {
            self.pieces.push((0, value));
        } else if before != Some(value) {
            self.pieces.push((begin, value));
        }
        self
    }

    /// The value at `now`, and the time until which it holds (`Nanos::MAX` for forever). O(log jumps).
    pub fn at(&self, now: Nanos) -> (f64, Nanos) {
        let next = self.pieces.partition_point(|&(begin, _)| begin <= now);
        let until = self.pieces.get(next).map_or(Nanos::MAX, |&(begin, _)| begin);
        (self.pieces[next - 1].1, until)
    }

    /// The times of the jumps, s.
    pub fn jumps(&self) -> impl Iterator<Item = f64> + '_ {
        self.pieces[1..].iter().map(|&(begin, _)| begin as f64 / SECOND as f64)
    }
}

/// One series for each worker.
///
/// ```
/// use lb_strategies::Rank;
/// use virtual_cluster::{PerWorker, Series, Vcpus, Worker};
/// let mut vcpus = PerWorker::new(&[2, 2], |worker| Series::constant(100.0 + f64::from(worker.number)));
/// assert_eq!(vcpus.speed(Worker { rank: Rank(1), number: 1 }, 0), (101.0, u64::MAX));
/// ```
#[derive(Clone, Debug)]
pub struct PerWorker {
    /// Equal series of consecutive workers once. Copies share them, as there may be millions of workers.
    series: Arc<[Series]>,
    /// By worker, the place of its series.
    places: Arc<[u32]>,
    /// By rank, the place of its first worker.
    firsts: Arc<[u32]>,
}

impl PerWorker {
    /// The series of each worker. `workers` has the number of workers of each rank.
    pub fn new(workers: &[u32], series: impl FnMut(Worker) -> Series) -> Self {
        let mut different: Vec<Series> = Vec::new();
        let mut places = Vec::new();
        for series in all_workers(workers).map(series) {
            if different.last() != Some(&series) {
                different.push(series);
            }
            places.push(different.len() as u32 - 1);
        }
        Self { series: different.into(), places: places.into(), firsts: firsts(workers) }
    }

    /// Each worker has the series at a place of `series`.
    pub(crate) fn shared(workers: &[u32], series: &[Series], place: impl FnMut(Worker) -> usize) -> Self {
        let places = all_workers(workers).map(place).map(|place| place as u32).collect();
        Self { series: series.into(), places, firsts: firsts(workers) }
    }

    /// The series of one worker.
    pub fn of(&self, worker: Worker) -> &Series {
        let worker = self.firsts[worker.rank.index()] + worker.number;
        &self.series[self.places[worker as usize] as usize]
    }
}

/// The number of the first worker of each rank.
fn firsts(workers: &[u32]) -> Arc<[u32]> {
    let first = |next: &mut u32, &workers: &u32| Some(std::mem::replace(next, *next + workers));
    workers.iter().scan(0, first).collect()
}

impl Vcpus for PerWorker {
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos) {
        self.of(worker).at(now)
    }
}

/// The vCPUs of another model, of which each worker gets only a part.
///
/// ```
/// use lb_strategies::Rank;
/// use virtual_cluster::{PerWorker, Series, Shared, Traces, Vcpus, Worker};
/// let halves = PerWorker::new(&[1], |_| Series::constant(1.0).then(60.0, 0.5));
/// let mut vcpus = Shared::new(Box::new(Traces::constant(|_| 800.0)), halves.clone());
/// let worker = Worker { rank: Rank(0), number: 0 };
/// assert_eq!(vcpus.speed(worker, 60_000_000_000), (400.0, u64::MAX));
/// assert_eq!(vcpus.share(worker, 60_000_000_000), 0.5, "it waits for half of the time");
/// let mut vcpus = Shared::slowed(Box::new(Traces::constant(|_| 800.0)), halves);
/// assert_eq!(vcpus.speed(worker, 60_000_000_000), (400.0, u64::MAX));
/// assert_eq!(vcpus.share(worker, 60_000_000_000), 1.0, "it runs, at half of the speed");
/// ```
pub struct Shared {
    vcpus: Box<dyn Vcpus>,
    /// The part of each worker, as if it were a speed.
    parts: Box<dyn Vcpus>,
    /// True if others run in turn with the worker. False if they slow it down while it runs.
    time_sliced: bool,
}

impl Shared {
    /// `vcpus`, on which each worker runs for this part of the time, and waits for the rest.
    pub fn new(vcpus: Box<dyn Vcpus>, parts: impl Vcpus + 'static) -> Self {
        Self { vcpus, parts: Box::new(parts), time_sliced: true }
    }

    /// `vcpus`, on which each worker runs all the time, at this part of the speed.
    pub fn slowed(vcpus: Box<dyn Vcpus>, parts: impl Vcpus + 'static) -> Self {
        Self { vcpus, parts: Box::new(parts), time_sliced: false }
    }
}

impl Vcpus for Shared {
    fn speed(&mut self, worker: Worker, now: Nanos) -> (f64, Nanos) {
        let (speed, until) = self.vcpus.speed(worker, now);
        let (part, until_part) = self.parts.speed(worker, now);
        // The product stays 0 as long as either factor is 0.
        let until = match (speed > 0.0, part > 0.0) {
            (true, true) => until.min(until_part),
            (true, false) => until_part,
            (false, true) => until,
            (false, false) => until.max(until_part),
        };
        (speed * part, until)
    }

    fn share(&mut self, worker: Worker, now: Nanos) -> f64 {
        let share = self.vcpus.share(worker, now);
        if self.time_sliced { share * self.parts.speed(worker, now).0.min(1.0) } else { share }
    }

    fn occupied(&mut self, worker: Worker, occupied: bool, now: Nanos) -> bool {
        self.vcpus.occupied(worker, occupied, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_strategies::Rank;
    use lb_strategies::virtual_time::vcpus::Traces;

    #[test]
    fn a_part_of_nothing_stays_nothing_however_the_part_changes() {
        let worker = Worker { rank: Rank(0), number: 0 };
        let of = |speed: f64, parts: Series| {
            let vcpus = Box::new(Traces::constant(move |_| speed));
            Shared::new(vcpus, PerWorker::new(&[1], |_| parts.clone())).speed(worker, 0)
        };
        let halved = Series::constant(1.0).then(60.0, 0.5);
        assert_eq!(of(0.0, halved.clone()), (0.0, Nanos::MAX));
        assert_eq!(of(8.0, halved), (8.0, 60 * SECOND));
        assert_eq!(of(8.0, Series::constant(0.0).then(60.0, 0.5)), (0.0, 60 * SECOND));
        assert_eq!(of(0.0, Series::constant(0.0).then(60.0, 0.5)), (0.0, Nanos::MAX));
    }

    #[test]
    fn a_series_says_what_holds_and_until_when() {
        let series = Series::constant(1.0).then(2.0, 0.0).then(3.5, 0.0).then(4.0, 2.0).then(4.0, 3.0);
        assert_eq!(series.at(SECOND), (1.0, 2 * SECOND));
        assert_eq!(series.at(3 * SECOND), (0.0, 4 * SECOND), "no jump where nothing changes");
        assert_eq!(series.at(4 * SECOND), (3.0, Nanos::MAX));
        assert_eq!(Series::constant(1.0).then(0.0, 5.0).at(0), (5.0, Nanos::MAX));
        assert_eq!(series.jumps().collect::<Vec<_>>(), [2.0, 4.0]);
    }
}
