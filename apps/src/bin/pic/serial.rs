//! Runs `pic` without the runtime, as the reference: all particles in one vector, one step after the other.

use crate::particle::Particle;
use crate::problem::Problem;
use crate::tiling::Part;
use crate::verification::Verification;

/// Runs the problem and verifies every particle.
#[must_use]
pub(crate) fn run(problem: &Problem) -> Verification {
    let grid = problem.tiling.grid();
    let beginners = problem.initial_particles(Part { columns: 0..grid, rows: 0..grid });
    let mut particles: Vec<Particle> =
        beginners.zip(1..).map(|(particle, id)| particle.with_id(id)).collect();
    for _ in 0..problem.steps() {
        particles.iter_mut().for_each(|particle| particle.step(problem.side()));
    }
    Verification::of(&particles, problem.steps(), problem.side())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::tests::{SMALL, problem};

    #[test]
    fn every_distribution_is_verified_at_any_speed() {
        for distribution in SMALL {
            for (k, m) in [(0, 1), (1, 2), (4, -3), (9, 0)] {
                let problem = Problem { k, m, iterations: 57, ..problem(20, 1, 2000, distribution) };
                let tally = run(&problem);
                assert_eq!(
                    (tally.particles, tally.astray),
                    (problem.count(), 0),
                    "{distribution}, k {k}, m {m}"
                );
                assert_eq!(tally.id_sum, tally.id_sum_expected());
            }
        }
    }
}
