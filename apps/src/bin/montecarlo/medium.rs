//! Defines the materials of slabs: how often photons collide in them, and what a collision does to a photon.
//!
//! - *Matter* absorbs by the photoelectric effect, as a power of the energy, and scatters by Compton's. Its numbers are
//!   rounded from the tables of NIST (XCOM). Absorption edges, coherent scattering, fluorescence and pairs are left
//!   out. This costs up to a tenth between 100 keV and 2 MeV: enough for a program whose cost has to be right.
//! - *Grey* media act the same at all energies, so that a result can be compared with an exact solution.

use rand::{Rng, RngExt};

use super::compton;
use super::energy::Energy;

/// The material of a slab.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Medium {
    /// A real substance.
    Matter(Substance),
    /// The same at all energies; scattering takes no energy.
    Grey {
        /// Absorptions on a path of 1 cm.
        absorption_per_cm: f64,
        /// Scatterings on a path of 1 cm.
        scattering_per_cm: f64,
        /// The mean cosine of the angle of scattering: 0 is isotropic, towards 1 forward.
        asymmetry: f64,
    },
}

/// A substance that photons of 1 keV to 2 MeV pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Substance {
    name: &'static str,
    /// Electrons in 1 cm³.
    electrons_per_cm3: f64,
    /// Photoelectric absorptions of photons of 100 keV on a path of 1 cm.
    photoelectric_per_cm: f64,
    /// Absorptions fall with this power of the energy.
    power: f64,
}

/// The substances that the command line can name.
pub(crate) const SUBSTANCES: [Substance; 4] = [
    Substance { name: "water", electrons_per_cm3: 3.343e23, photoelectric_per_cm: 0.002_76, power: 2.9 },
    Substance { name: "aluminium", electrons_per_cm3: 7.83e23, photoelectric_per_cm: 0.0497, power: 2.9 },
    Substance { name: "iron", electrons_per_cm3: 2.208e24, photoelectric_per_cm: 1.7, power: 2.8 },
    Substance { name: "lead", electrons_per_cm3: 2.705e24, photoelectric_per_cm: 59.0, power: 2.5 },
];

/// The number of collisions of photons of one energy on a path of 1 cm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attenuation {
    /// Absorptions.
    pub(crate) absorption_per_cm: f64,
    /// Scatterings.
    pub(crate) scattering_per_cm: f64,
}

impl Attenuation {
    /// Collisions of any kind.
    #[must_use]
    pub(crate) fn total_per_cm(self) -> f64 {
        self.absorption_per_cm + self.scattering_per_cm
    }
}

impl Medium {
    /// The name in tables.
    #[must_use]
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Matter(substance) => substance.name,
            Self::Grey { .. } => "grey",
        }
    }

    /// The attenuation of photons of this energy.
    #[must_use]
    pub(crate) fn attenuation(&self, energy: Energy) -> Attenuation {
        match *self {
            Self::Matter(substance) => Attenuation {
                absorption_per_cm: substance.photoelectric_per_cm
                    * (100.0 / energy.kev()).powf(substance.power),
                scattering_per_cm: substance.electrons_per_cm3 * compton::cross_section_cm2(energy.kev()),
            },
            Self::Grey { absorption_per_cm, scattering_per_cm, .. } => {
                Attenuation { absorption_per_cm, scattering_per_cm }
            }
        }
    }

    /// Samples the energy of a photon after it was scattered, and the cosine of the angle by which it turned.
    pub(crate) fn scatter(&self, energy: Energy, rng: &mut impl Rng) -> (Energy, f64) {
        match *self {
            Self::Matter(_) => {
                let (kept, cosine) = compton::scatter(energy.kev(), rng);
                (energy.fraction(kept), cosine)
            }
            Self::Grey { asymmetry, .. } => (energy, henyey_greenstein(asymmetry, rng)),
        }
    }
}

/// A cosine with the density of Henyey and Greenstein (1941) and the mean `asymmetry`.
fn henyey_greenstein(asymmetry: f64, rng: &mut impl Rng) -> f64 {
    let uniform = 2.0 * rng.random::<f64>() - 1.0;
    if asymmetry.abs() < 1e-3 {
        // The formula below would divide by zero. To first order in the asymmetry it is this.
        return (uniform + 1.5 * asymmetry * (1.0 - uniform * uniform)).clamp(-1.0, 1.0);
    }
    let ratio = (1.0 - asymmetry * asymmetry) / (1.0 + asymmetry * uniform);
    ((1.0 + asymmetry * asymmetry - ratio * ratio) / (2.0 * asymmetry)).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::random::stream;
    use caribou_apps::estimate::Moments;

    #[test]
    fn substances_attenuate_as_tables_say() {
        // Without coherent scattering at 100 keV, in 1/cm: density times the mass attenuation of NIST.
        for (name, at_100_kev, at_1_mev) in [
            ("water", 0.1675, 0.0707),
            ("aluminium", 0.424, 0.166),
            ("iron", 2.75, 0.472),
            ("lead", 60.5, 0.806),
        ] {
            let substance = SUBSTANCES.into_iter().find(|substance| substance.name == name).unwrap();
            for (kev, expected) in [(100.0, at_100_kev), (1000.0, at_1_mev)] {
                let found = Medium::Matter(substance).attenuation(Energy::from_kev(kev)).total_per_cm();
                assert!((found / expected - 1.0).abs() < 0.1, "{name} at {kev} keV: {found} per cm");
            }
        }
    }

    #[test]
    fn the_mean_cosine_is_the_asymmetry() {
        for asymmetry in [-0.5, 0.0, 0.0009, 0.0011, 0.3, 0.9] {
            let (mut cosines, mut rng) = (Moments::default(), stream(1, 0));
            for _ in 0..100_000 {
                cosines.add((1e9 * (1.0 + henyey_greenstein(asymmetry, &mut rng))) as u64);
            }
            assert!(cosines.mean().scaled(1e-9).deviation(1.0 + asymmetry) < 4.0, "{asymmetry}");
        }
    }
}
