//! Describes the problem: a grid and its tiles, the particles that begin in it, and how they move.

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::particle::Particle;
use crate::random::Counts;
use crate::tiling::{Part, Tiling};

/// All that decides the result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Problem {
    /// The grid, and how it is cut.
    pub(crate) tiling: Tiling,
    /// Requested number of particles. The real number is random: see [`count`](Self::count).
    pub(crate) particles: u64,
    /// The initial distribution of the particles.
    pub(crate) distribution: Distribution,
    /// Each particle moves `2k + 1` columns per step.
    pub(crate) k: u32,
    /// Rows that each particle moves per step.
    pub(crate) m: i32,
    /// Steps that are timed. One more step comes before them.
    pub(crate) iterations: u32,
}

impl Problem {
    /// Steps in all.
    #[must_use]
    pub(crate) fn steps(&self) -> u32 {
        self.iterations + 1
    }

    /// The side of the grid, as a coordinate.
    #[must_use]
    pub(crate) fn side(&self) -> f64 {
        f64::from(self.tiling.grid())
    }

    /// The particles that begin in these cells, without IDs: column by column, upwards.
    pub(crate) fn initial_particles(&self, part: Part) -> impl Iterator<Item = Particle> {
        let (k, m) = (self.k, self.m);
        let same = move |(cell, count)| (0..count).map(move |_| Particle::new(cell, k, m));
        self.counts(part).flat_map(same)
    }

    /// Number of all particles. O(cells).
    #[must_use]
    pub(crate) fn count(&self) -> u64 {
        let grid = self.tiling.grid();
        self.counts(Part { columns: 0..grid, rows: 0..grid }).map(|(_, count)| count).sum()
    }

    /// The number of particles in each of these cells.
    fn counts(&self, Part { columns, rows }: Part) -> impl Iterator<Item = ([u32; 2], u64)> {
        let Self { tiling, particles, distribution, .. } = *self;
        let grid = tiling.grid();
        let column = move |column: u32| {
            let mut counts = Counts::from_cell(u64::from(column) * u64::from(grid) + u64::from(rows.start));
            let cell = move |row| [column, row];
            rows.clone().map(cell).map(move |cell| {
                let drawn = counts.next(distribution.mean(cell, grid, particles as f64));
                // Outside of a patch no particle begins, though a mean of 0 may draw one.
                (cell, if distribution.has(cell) { drawn } else { 0 })
            })
        };
        columns.flat_map(column)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The kernel's small examples.
    pub(crate) const SMALL: [&str; 4] = ["geometric:0.9", "sinusoidal", "linear:1,3", "patch:0,4,2,6"];

    pub(crate) fn problem(grid: u32, side: u16, particles: u64, distribution: &str) -> Problem {
        Problem {
            tiling: Tiling::new(grid, side).unwrap(),
            particles,
            distribution: Distribution::parse(distribution).unwrap(),
            k: 0,
            m: 1,
            iterations: 10,
        }
    }

    #[test]
    fn as_many_particles_begin_as_in_the_reference_program() {
        for (distribution, count) in SMALL.iter().zip([1994, 1985, 1982, 2029]) {
            assert_eq!(problem(20, 1, 2000, distribution).count(), count, "{distribution}");
        }
        for (distribution, count) in [
            ("geometric:0.99", 9643),
            ("sinusoidal", 10041),
            ("linear:1,3", 9559),
            ("patch:0,20,10,20", 10041),
        ] {
            assert_eq!(problem(100, 1, 10_000, distribution).count(), count, "{distribution}");
        }
        assert_eq!(problem(1000, 1, 1_000_000, "geometric:0.99").count(), 997_651);
    }

    #[test]
    fn they_begin_in_the_same_columns() {
        let problem = problem(20, 1, 2000, "geometric:0.9");
        let mut columns = [0; 20];
        problem
            .initial_particles(problem.tiling.part([0, 0]))
            .for_each(|particle| columns[particle.cell()[0] as usize] += 1);
        assert_eq!((&columns[..6], columns[19]), (&[239, 198, 187, 172, 139, 131][..], 28));
    }

    #[test]
    fn tiles_together_begin_with_what_the_grid_does() {
        for distribution in SMALL {
            let [whole, cut] = [1, 3].map(|side| problem(20, side, 2000, distribution));
            let mut parts: Vec<_> = (0..3)
                .flat_map(|column| (0..3).map(move |row| cut.tiling.part([column, row])))
                .flat_map(|part| cut.initial_particles(part))
                .map(|particle| particle.cell())
                .collect();
            parts.sort_unstable();
            let all: Vec<_> =
                whole.initial_particles(whole.tiling.part([0, 0])).map(|particle| particle.cell()).collect();
            assert_eq!(parts, all, "{distribution}");
        }
    }
}
