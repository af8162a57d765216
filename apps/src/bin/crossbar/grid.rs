//! Lists the simulations: each load with each buffer and each scheduler, repeated with other random numbers.

use super::scheduler::Scheduler;
use super::switch::{PORTS_MAX, Served, Switch};
use super::traffic::Traffic;
use caribou::random::stream;
use harness::error::Error;

/// All simulations. A task is one simulation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    /// Inputs of each switch, and as many outputs.
    pub(crate) ports: usize,
    /// Packets that arrive in each simulation.
    pub(crate) requests: u64,
    /// The mean length of a burst in packets; 1 is uniform traffic.
    pub(crate) burst: f64,
    /// Packets per slot that arrive at each input.
    pub(crate) loads: Vec<f64>,
    /// Packets that a crosspoint can hold.
    pub(crate) buffers: Vec<u32>,
    /// The schedulers of outputs.
    pub(crate) schedulers: Vec<Scheduler>,
    /// The seed of all random numbers.
    pub(crate) seed: u64,
}

/// One combination of the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Packets per slot that arrive at each input.
    pub(crate) load: f64,
    /// Packets that a crosspoint can hold.
    pub(crate) buffer: u32,
    /// The scheduler of outputs.
    pub(crate) scheduler: Scheduler,
}

impl Grid {
    /// Checks that everything can be simulated.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the option that cannot be met.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(1..=PORTS_MAX).contains(&self.ports) {
            return Err(Error::Usage(format!("--ports {}: expected 1 to {PORTS_MAX}", self.ports)));
        }
        if self.buffers.contains(&0) {
            return Err(Error::Usage("--buffer 0: a crosspoint holds 1 packet at least".to_owned()));
        }
        if self.points() == 0 {
            return Err(Error::Usage(
                "--load, --buffer, --scheduler: expected one of each at least".to_owned(),
            ));
        }
        self.loads.iter().try_for_each(|&load| Traffic::new(self.ports, load, self.burst).map(|_| ()))
    }

    /// Combinations.
    #[must_use]
    pub(crate) fn points(&self) -> usize {
        self.loads.len() * self.buffers.len() * self.schedulers.len()
    }

    /// One combination; the scheduler changes fastest, the load slowest.
    ///
    /// # Panics
    /// If there is no such point.
    #[must_use]
    pub(crate) fn point(&self, point: usize) -> Point {
        let (rest, scheduler) = (point / self.schedulers.len(), point % self.schedulers.len());
        let (load, buffer) = (rest / self.buffers.len(), rest % self.buffers.len());
        Point { load: self.loads[load], buffer: self.buffers[buffer], scheduler: self.schedulers[scheduler] }
    }

    /// The point that a task simulates: tasks go through the grid repeatedly.
    #[must_use]
    pub(crate) fn point_of(&self, task: u64) -> usize {
        (task % self.points() as u64) as usize
    }

    /// Simulates a task with its own random numbers. 10^5 packets take milliseconds.
    ///
    /// # Panics
    /// If [`check`](Self::check) would have refused the grid.
    #[must_use]
    pub(crate) fn simulate(&self, task: u64) -> Served {
        let Point { load, buffer, scheduler } = self.point(self.point_of(task));
        let traffic = Traffic::new(self.ports, load, self.burst).expect("the grid was checked");
        let switch = Switch { ports: self.ports, buffer, scheduler };
        switch.serve(self.requests, traffic, &mut stream(self.seed, task))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two loads, two buffers, all schedulers; small.
    pub(crate) fn grid() -> Grid {
        Grid {
            ports: 4,
            requests: 500,
            burst: 1.0,
            loads: vec![0.5, 1.0],
            buffers: vec![1, 4],
            schedulers: Scheduler::ALL.to_vec(),
            seed: 1,
        }
    }

    #[test]
    fn every_combination_is_one_point() {
        let grid = grid();
        let points: Vec<Point> = (0..grid.points()).map(|point| grid.point(point)).collect();
        assert_eq!(points.len(), 12);
        for load in [0.5, 1.0] {
            for buffer in [1, 4] {
                for scheduler in Scheduler::ALL {
                    let wanted = Point { load, buffer, scheduler };
                    assert_eq!(points.iter().filter(|point| **point == wanted).count(), 1);
                }
            }
        }
    }

    #[test]
    fn tasks_of_one_point_differ_by_their_random_numbers() {
        let grid = grid();
        assert_eq!(grid.point_of(1), grid.point_of(13));
        assert_eq!(grid.simulate(1), grid.simulate(1));
        assert_ne!(grid.simulate(1), grid.simulate(13));
        assert_ne!(grid.simulate(1), Grid { seed: 2, ..grid.clone() }.simulate(1));
    }

    #[test]
    fn impossible_grids_are_refused_in_words() {
        for (bad, words) in [
            (Grid { ports: 65, ..grid() }, "--ports 65"),
            (Grid { buffers: vec![2, 0], ..grid() }, "--buffer 0"),
            (Grid { loads: vec![0.5, 1.5], ..grid() }, "--load 1.5"),
            (Grid { loads: Vec::new(), ..grid() }, "--load"),
            (Grid { burst: 0.0, ..grid() }, "--burst 0"),
        ] {
            assert!(bad.check().unwrap_err().to_string().contains(words), "{words}");
        }
        assert!(grid().check().is_ok());
    }
}
