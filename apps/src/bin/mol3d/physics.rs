//! Holds the result of a run: the energies of every step, and all particles at the end.

use std::fmt::Write;

use super::particle::{Energy, Particle};

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Physics {
    /// The energies before the first iteration, and after each.
    pub(crate) energies: Vec<Energy>,
    /// The particles by ID; none unless results are compared.
    pub(crate) particles: Vec<Particle>,
}

impl Physics {
    /// Orders the particles of all cells by ID.
    pub(crate) fn new(energies: Vec<Energy>, mut particles: Vec<Particle>) -> Self {
        particles.sort_unstable_by_key(|particle| particle.id);
        Self { energies, particles }
    }

    /// The largest change of the total energy, over the initial total or kinetic energy, whichever is larger. The total
    /// alone may be about 0.
    pub(crate) fn drift(&self) -> f64 {
        let total = |energy: &Energy| energy.parts()[2];
        let Some(first) = self.energies.first() else { return 0.0 };
        let scale = total(first).abs().max(first.parts()[0]);
        let most =
            self.energies.iter().map(|energy| (total(energy) - total(first)).abs()).fold(0.0, f64::max);
        if most > 0.0 { most / scale } else { 0.0 }
    }

    /// The first difference, in words.
    pub(crate) fn difference(&self, reference: &Self) -> Option<String> {
        let (counts, expected) = (
            (self.particles.len(), self.energies.len()),
            (reference.particles.len(), reference.energies.len()),
        );
        if counts != expected {
            return Some(format!("{counts:?} particles and energies instead of {expected:?}"));
        }
        let differ =
            |(one, other): &(&Particle, &Particle)| bytemuck::bytes_of(*one) != bytemuck::bytes_of(*other);
        let mut particles = self.particles.iter().zip(&reference.particles);
        if let Some((one, other)) = particles.find(differ) {
            return Some(format!("{one:?} instead of {other:?}"));
        }
        let mut energies = self.energies.iter().zip(&reference.energies).zip(0..);
        let ((one, other), step) = energies.find(|((one, other), _)| one != other)?;
        Some(format!("energies of {:?} instead of {:?} after iteration {step}", one.parts(), other.parts()))
    }

    /// Reports the energy of `count` particles.
    pub(crate) fn words(&self, count: u64) -> String {
        let each = |energy: Option<&Energy>| {
            let [kinetic, potential, total] =
                energy.copied().unwrap_or_default().parts().map(|energy| energy / count as f64);
            format!("{total:.6} a particle (kinetic {kinetic:.6}, potential {potential:.6})")
        };
        let (first, last) = (each(self.energies.first()), each(self.energies.last()));
        format!("Energy: {first} at first, {last} at last; it drifted by {:.1e} at most.\n", self.drift())
    }

    /// A line for each step.
    pub(crate) fn csv(&self) -> String {
        let mut text = "iteration,kinetic,potential,total\n".to_owned();
        for (step, energy) in self.energies.iter().enumerate() {
            let [kinetic, potential, total] = energy.parts();
            let _ = writeln!(text, "{step},{kinetic},{potential},{total}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Physics {
        let energies = [-8.0, -7.0, -8.5].map(|potential| Energy::new(4.0, potential));
        let particle = |id| Particle { place: [0.5; 3], velocity: [1.0; 3], id };
        Physics::new(energies.to_vec(), [2, 0, 1].map(particle).to_vec())
    }

    #[test]
    fn the_drift_is_the_largest_distance_from_the_beginning() {
        let words = sample().words(2);
        assert!(words.starts_with("Energy: -2.000000 a particle (kinetic 2.000000, "), "{words}");
        assert!(words.ends_with("drifted by 2.5e-1 at most.\n"), "{words}");
        let about_nothing = [-4.0, -3.5].map(|potential| Energy::new(4.0, potential));
        let drift = Physics::new(about_nothing.to_vec(), Vec::new()).drift();
        assert!((drift - 0.125).abs() < 1e-12, "{drift}");
        let at_rest = [Energy::new(0.0, 0.0); 2];
        assert!(Physics::new(at_rest.to_vec(), Vec::new()).drift().abs() < 1e-12);
        assert_eq!(sample().csv().lines().nth(2), Some("1,4,-7,-3"));
    }

    #[test]
    fn a_bit_of_any_particle_and_of_any_energy_is_a_difference() {
        assert_eq!(sample().difference(&sample()), None);
        let difference = |change: fn(&mut Physics)| {
            let mut other = sample();
            change(&mut other);
            other.difference(&sample()).unwrap()
        };
        assert!(difference(|other| _ = other.particles.pop()).starts_with("(2, 3) particles"));
        assert!(difference(|other| other.particles[1].place[2] = 0.5_f64.next_up()).contains("id: 1 }"));
        assert!(difference(|other| other.energies[2].kinetic += 1).contains("after iteration 2"));
    }
}
