//! Samples Compton scattering: a photon hits a free electron at rest, changes its direction, and leaves it some energy.
//!
//! The cross-section is by Klein and Nishina (1929). The binding of electrons is left out; it matters below some tens
//! of keV. The electron is not followed after the collision: its energy stays where it was hit.

use rand::{Rng, RngExt};

/// The rest energy of an electron in keV.
const ELECTRON_KEV: f64 = 510.998_95;

/// The classical radius of an electron in cm.
const ELECTRON_RADIUS_CM: f64 = 2.817_940_3e-13;

/// The total cross-section of an electron in cm², for a photon of `energy_kev`.
///
/// Accurate to nine digits from 1 keV on; far below, the terms cancel.
#[must_use]
pub(crate) fn cross_section_cm2(energy_kev: f64) -> f64 {
    let k = energy_kev / ELECTRON_KEV;
    let log = (2.0 * k).ln_1p();
    let wide = (1.0 + k) / (k * k) * (2.0 * (1.0 + k) / (1.0 + 2.0 * k) - log / k);
    let narrow = log / (2.0 * k) - (1.0 + 3.0 * k) / (1.0 + 2.0 * k).powi(2);
    std::f64::consts::TAU * ELECTRON_RADIUS_CM.powi(2) * (wide + narrow)
}

/// Samples a collision of a photon of `energy_kev`: the fraction of its energy that it keeps, and the cosine of the angle by
/// which it turns.
///
/// With k the energy in electron masses, the density of the fraction e kept is (1/e + e) (1 - e sin² / (1 + e²)),
/// between 1 / (1 + 2 k) and 1. The first factor is a mixture of two densities that are sampled directly. The second is
/// the probability to accept (Butcher and Messel 1960).
pub(crate) fn scatter(energy_kev: f64, rng: &mut impl Rng) -> (f64, f64) {
    let k = energy_kev / ELECTRON_KEV;
    let least = 1.0 / (1.0 + 2.0 * k);
    let (inverse, linear) = (-least.ln(), 0.5 * (1.0 - least * least));
    loop {
        let kept = if rng.random::<f64>() * (inverse + linear) < inverse {
            (-inverse * rng.random::<f64>()).exp()
        } else {
            (least * least + (1.0 - least * least) * rng.random::<f64>()).sqrt()
        };
        let versine = (1.0 - kept) / (k * kept);
        let sine_squared = versine * (2.0 - versine);
        if rng.random::<f64>() < 1.0 - kept * sine_squared / (1.0 + kept * kept) {
            return (kept, 1.0 - versine);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::random::stream;
    use caribou_apps::estimate::Moments;

    /// The integral of the differential cross-section times `weight(fraction kept, cosine)`, by the midpoint rule.
    fn integral(energy_kev: f64, weight: impl Fn(f64, f64) -> f64) -> f64 {
        let (steps, k) = (200_000, energy_kev / ELECTRON_KEV);
        let part = |step| {
            let cosine = -1.0 + (2.0 * f64::from(step) + 1.0) / f64::from(steps);
            let kept = 1.0 / (1.0 + k * (1.0 - cosine));
            kept * kept * (kept + 1.0 / kept - (1.0 - cosine * cosine)) * weight(kept, cosine)
        };
        let sum: f64 = (0..steps).map(part).sum();
        0.5 * ELECTRON_RADIUS_CM.powi(2) * std::f64::consts::TAU * sum * 2.0 / f64::from(steps)
    }

    #[test]
    fn the_total_is_the_integral_over_all_angles() {
        for energy_kev in [1.0, 30.0, 511.0, 2000.0] {
            let ratio = cross_section_cm2(energy_kev) / integral(energy_kev, |_, _| 1.0);
            assert!((ratio - 1.0).abs() < 1e-7, "{energy_kev} keV: {ratio}");
        }
        // At low energies it is Thomson's, 0.6652 barn.
        assert!((cross_section_cm2(1.0) / 0.665_2e-24 - 1.0).abs() < 0.005);
    }

    #[test]
    fn samples_follow_the_differential_cross_section() {
        for energy_kev in [20.0, 511.0, 2000.0] {
            let (mut kept, mut turned) = (Moments::default(), Moments::default());
            let mut rng = stream(3, 0);
            for _ in 0..200_000 {
                let (fraction, cosine) = scatter(energy_kev, &mut rng);
                kept.add((1e9 * fraction) as u64);
                turned.add((1e9 * (1.0 + cosine)) as u64);
            }
            let total = integral(energy_kev, |_, _| 1.0);
            let mean_kept = integral(energy_kev, |kept, _| kept) / total;
            let mean_turned = integral(energy_kev, |_, cosine| 1.0 + cosine) / total;
            assert!(kept.mean().scaled(1e-9).deviation(mean_kept) < 4.0, "{energy_kev} keV");
            assert!(turned.mean().scaled(1e-9).deviation(mean_turned) < 4.0, "{energy_kev} keV");
        }
    }
}
