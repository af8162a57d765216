//! Computes the reference without the runtime: the whole grid in two plain buffers, one thread, no chunks.
//!
//! It shares with the chunked program only the pulses and the expressions for one cell. Chunks, halos and the runtime
//! are absent, so a mistake in any of them shows as a difference. Only energies are added as in the program, the cells
//! of a chunk and then the chunks, because another order would change the last digits.

use super::block::{energy, laplace, leapfrog};
use super::picture::Raster;
use super::problem::Problem;
use super::pulses::REST;
use super::waves::Waves;
use caribou_apps::stencil2d::plate::Part;
use caribou_apps::stencil2d::serial::Field;

/// A grid with one ring of border cells, which never change, now and one step before.
struct Serial {
    grid: usize,
    courant: f64,
    now: Vec<f64>,
    before: Vec<f64>,
}

impl Serial {
    fn new(problem: &Problem) -> Self {
        let grid = problem.shape.grid();
        let mut now = vec![REST; (grid + 2) * (grid + 2)];
        let rows = now.chunks_exact_mut(grid + 2).skip(1);
        for (row, cells) in rows.zip(problem.pulses.fill(grid, problem.whole()).chunks_exact(grid)) {
            row[1..=grid].copy_from_slice(cells);
        }
        Self { grid, courant: problem.courant(), before: now.clone(), now }
    }

    /// The pull of the neighbours on a cell, by its place in the buffer.
    fn pull(&self, at: usize) -> f64 {
        let width = self.grid + 2;
        let around = [at - width, at + width, at - 1, at + 1].map(|at| self.now[at]);
        self.courant * laplace(self.now[at], around)
    }

    fn step(&mut self) {
        let width = self.grid + 2;
        for row in 1..=self.grid {
            for at in row * width + 1..row * width + 1 + self.grid {
                self.before[at] = leapfrog(self.before[at], self.now[at], self.pull(at));
            }
        }
        std::mem::swap(&mut self.now, &mut self.before);
    }

    fn energy(&self, part: Part) -> f64 {
        let columns = part.left + 1..part.left + 1 + part.width;
        let rows = part.top + 1..part.top + 1 + part.height;
        let places = rows.flat_map(|row| columns.clone().map(move |column| row * (self.grid + 2) + column));
        places.map(|at| energy(self.before[at], self.now[at], self.pull(at))).sum()
    }
}

/// The waves after all steps.
pub(crate) fn run(problem: &Problem) -> Waves {
    let mut serial = Serial::new(problem);
    let energy = |serial: &Serial| problem.parts().map(|part| serial.energy(part)).sum();
    let begin = energy(&serial);
    for _ in 0..problem.iterations {
        serial.step();
    }
    let mut field = Field::unfilled(problem.shape);
    let rows = serial.now.chunks_exact(serial.grid + 2).skip(1).take(serial.grid);
    field.fill(problem.whole(), rows.map(|row| &row[1..=serial.grid]));
    Waves {
        field: Some(field),
        energies: [begin, energy(&serial)],
        raster: Raster::new(problem.shape.grid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::tests::problem;
    use crate::pulses::Pulses;

    #[test]
    fn energy_is_conserved_and_waves_go_everywhere() {
        let problem = Problem { iterations: 2000, ..problem(100, 30) };
        let waves = run(&problem);
        let [begin, _] = waves.energies;
        assert!(begin > 0.01 && waves.drift().abs() < 1e-10, "{:?}", waves.energies);
        let shorter = run(&Problem { iterations: 1999, ..problem });
        assert!(waves.difference(&shorter).is_some());
    }

    #[test]
    fn a_pulse_becomes_a_ring_as_large_as_waves_are_fast() {
        let (grid, steps) = (200, 100);
        let problem = Problem { pulses: Pulses { count: 1, seed: 1 }, ..problem(grid, grid) };
        let mut serial = Serial::new(&problem);
        let crest = |serial: &Serial| {
            let highest = |&one: &usize, &other: &usize| serial.now[one].total_cmp(&serial.now[other]);
            let at = (0..serial.now.len()).max_by(highest).unwrap();
            [at / (grid + 2), at % (grid + 2)].map(|at| at as f64)
        };
        let [row, column] = crest(&serial);
        (0..steps).for_each(|_| serial.step());
        let [crest_row, crest_column] = crest(&serial);
        let radius = (crest_row - row).hypot(crest_column - column);
        assert!((radius - problem.speed * f64::from(steps)).abs() < 3.0, "{radius}");
    }

    #[test]
    fn without_pulses_nothing_moves() {
        let problem = Problem { pulses: Pulses { count: 0, seed: 1 }, ..problem(9, 4) };
        let waves = run(&problem);
        assert_eq!((waves.energies.map(f64::to_bits), waves.drift().to_bits()), ([0; 2], 0));
    }
}
