//! Runs `mol3d` without the runtime, as the reference: same pairs, same order of sums, one cell after the other.

use super::grid::{Offset, Vector};
use super::particle::{self, Energy, Particle};
use super::physics::Physics;
use super::problem::{Pair, Problem, Rules};

/// Runs the problem.
pub(crate) fn run(problem: &Problem) -> Physics {
    let Problem { rules, initial: beginners } = problem;
    let mut cells = beginners.to_vec();
    let mut energies = Vec::new();
    for step in 0..=rules.iterations {
        let (forces, potentials) = interact(rules, &cells);
        let mut energy = Energy::default();
        for (cell, here) in rules.grid.all().enumerate() {
            let sum = rules.complete(&mut cells[cell], forces[cell].iter(), step == 0);
            let Ok(each) = rules.energy(particle::kinetic(&cells[cell]), potentials[cell]) else {
                // The run on the runtime ends here, too, with an error.
                return Physics::new(energies, cells.concat());
            };
            energy = Energy {
                kinetic: energy.kinetic.saturating_add(each.kinetic),
                potential: energy.potential.saturating_add(each.potential),
            };
            if step < rules.iterations && rules.advance(&mut cells[cell], &sum, here).is_err() {
                return Physics::new(energies, cells.concat());
            }
        }
        energies.push(energy);
        if step < rules.iterations && rules.exchanges(step + 1) {
            exchange(rules, &mut cells);
        }
    }
    Physics::new(energies, cells.concat())
}

/// The forces on each cell by the direction of the other cell, and the cell's part of the potential energy.
fn interact(rules: &Rules, cells: &[Vec<Particle>]) -> (Vec<[Vec<Vector>; 27]>, Vec<f64>) {
    let grid = &rules.grid;
    let places: Vec<Vec<Vector>> = cells.iter().map(|cell| particle::places(cell)).collect();
    let mut forces = vec![[const { Vec::new() }; 27]; cells.len()];
    let mut potentials = vec![0.0; cells.len()];
    for pair in Pair::all(grid) {
        let (first, second) =
            (grid.position(pair.first), grid.position(grid.beyond(pair.first, pair.offset).0));
        let interaction = rules.interact(pair, &places[first], &places[second]);
        potentials[first] += interaction.energy;
        forces[first][usize::from(pair.offset.0)] = interaction.on_first;
        if pair.offset != Offset::STAY {
            forces[second][usize::from(pair.offset.back().0)] = interaction.on_second;
        }
    }
    (forces, potentials)
}

/// Hands particles over to the cells that they moved into.
fn exchange(rules: &Rules, cells: &mut [Vec<Particle>]) {
    let grid = &rules.grid;
    let leave = |(cell, here)| particle::take_outgoing(&mut cells[cell], grid, here);
    let mut leavers: Vec<_> = grid.all().enumerate().map(leave).collect();
    for (cell, here) in grid.all().enumerate() {
        for way in Offset::all() {
            let from = grid.position(grid.beyond(here, way).0);
            cells[cell].append(&mut leavers[from][usize::from(way.back().0)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::plus;
    use crate::lennard_jones::tests::by_definition;
    use crate::problem::tests::problem;

    #[test]
    fn forces_by_cells_are_those_of_the_definition() {
        for side in [4.0, 2.0] {
            let Problem { rules, initial: beginners } = problem(150, side, 1);
            let mut cells = beginners.to_vec();
            cells.iter_mut().for_each(|cell| particle::drift(cell, 0.05));
            let places = particle::places(&cells.concat());
            let (expected, energy) = by_definition(&rules.law, &places, rules.grid.extent());
            let (forces, potentials) = interact(&rules, &cells);
            let sum: f64 = potentials.iter().sum();
            assert!((sum - energy).abs() < 1e-9 * energy.abs(), "{sum} instead of {energy}");
            let complete =
                |(cell, forces): (&mut Vec<_>, [Vec<Vector>; 27])| rules.complete(cell, forces.iter(), true);
            for (force, expected) in cells.iter_mut().zip(forces).flat_map(complete).zip(expected) {
                let difference = plus(force, expected, -1.0);
                assert!(
                    difference.iter().all(|length| length.abs() < 1e-9),
                    "{force:?} instead of {expected:?}"
                );
            }
        }
    }

    #[test]
    fn energy_is_conserved_over_1000_steps_though_particles_change_cells() {
        let problem = problem(64, 2.1, 1000);
        let physics = run(&problem);
        assert!(physics.drift() < 1e-4, "{}", physics.drift());
        assert_eq!(physics.particles.len(), 64);
        let began = problem.initial.iter().zip(problem.rules.grid.all());
        let moved =
            began.flat_map(|(particles, cell)| particles.iter().map(move |particle| (particle.id, cell)));
        let changed = moved
            .filter(|&(id, cell)| problem.rules.grid.owner(physics.particles[id as usize].place).0 != cell);
        assert!(changed.count() > 10);
    }
}
