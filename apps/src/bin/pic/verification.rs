//! Verifies particles: each by its position, all by the sum of their IDs, and every bit by a digest.

use serde::{Deserialize, Serialize};

use crate::particle::{Astray, Particle};

/// The result of a check of particles. Results of parts add up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verification {
    /// Particles.
    pub(crate) particles: u64,
    /// The sum of their IDs, which are 1 to the number of particles.
    pub(crate) id_sum: u64,
    /// Particles that are not where they have to be.
    pub(crate) astray: u64,
    /// The particle with the lowest ID among these.
    pub(crate) first_astray: Option<Astray>,
    /// The sum of the digests of all particles.
    pub(crate) digest: u64,
}

impl Verification {
    /// Checks particles after `steps` steps in a grid of side `grid`.
    pub(crate) fn of<'p>(particles: impl IntoIterator<Item = &'p Particle>, steps: u32, grid: f64) -> Self {
        let one = |particle: &Particle| {
            let astray = particle.astray(steps, grid);
            Self {
                particles: 1,
                id_sum: particle.id(),
                astray: u64::from(astray.is_some()),
                first_astray: astray,
                digest: particle.digest(),
            }
        };
        particles.into_iter().map(one).sum()
    }

    /// The sum that the IDs must have.
    #[must_use]
    pub(crate) fn id_sum_expected(&self) -> u64 {
        (u128::from(self.particles) * (u128::from(self.particles) + 1) / 2) as u64
    }

    /// The first error in it, or the first difference to the reference.
    #[must_use]
    pub(crate) fn difference(&self, reference: &Self) -> Option<String> {
        let Self { particles, id_sum, astray, first_astray, digest } = self;
        if *particles != reference.particles {
            return Some(format!("{particles} particles instead of {}", reference.particles));
        }
        if let Some(Astray { id, at, expected }) = first_astray {
            return Some(format!(
                "{astray} of {particles} particles are astray, the first is {id}: at {at:?} instead of {expected:?}"
            ));
        }
        if *id_sum != self.id_sum_expected() {
            return Some(format!(
                "the IDs add up to {id_sum} instead of {}: a particle is there twice, or missing",
                self.id_sum_expected()
            ));
        }
        (*digest != reference.digest)
            .then(|| "every particle is where it has to be, but not to the last bit".to_owned())
    }
}

impl std::iter::Sum for Verification {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        let lower = |one: Option<Astray>, other: Option<Astray>| {
            one.into_iter().chain(other).min_by_key(|astray| astray.id)
        };
        tallies.fold(Self::default(), |all, one| Self {
            particles: all.particles + one.particles,
            id_sum: all.id_sum.wrapping_add(one.id_sum),
            astray: all.astray + one.astray,
            first_astray: lower(all.first_astray, one.first_astray),
            digest: all.digest.wrapping_add(one.digest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Particle> {
        (1..=9).map(|id| Particle::new([id, 3], 1, 0).with_id(id.into())).collect()
    }

    fn tally(particles: &[Particle]) -> Verification {
        Verification::of(particles, 0, 20.0)
    }

    #[test]
    fn parts_add_up_in_any_order() {
        let particles = some();
        let parts = [&particles[6..], &particles[..2], &particles[2..6]].map(tally);
        assert_eq!(parts.into_iter().sum::<Verification>(), tally(&particles));
        assert_eq!(tally(&particles).difference(&tally(&particles)), None);
    }

    #[test]
    fn a_particle_lost_doubled_late_or_a_bit_off_is_found() {
        let whole = tally(&some());
        let difference = |change: fn(&mut Vec<Particle>)| {
            let mut particles = some();
            change(&mut particles);
            tally(&particles).difference(&whole).unwrap()
        };
        assert_eq!(difference(|all| _ = all.pop()), "8 particles instead of 9");
        assert!(difference(|all| all[3] = all[4]).contains("add up to 46 instead of 45"));
        let late = difference(|all| all[5..].iter_mut().for_each(|particle| particle.step(20.0)));
        assert!(
            late.starts_with(
                "4 of 9 particles are astray, the first is 6: at [9.5, 3.5] instead of [6.5, 3.5]"
            )
        );
        let swapped = difference(|all| all[3] = all[4].with_id(4));
        assert!(swapped.contains("not to the last bit"), "{swapped}");
    }
}
