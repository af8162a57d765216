//! Stores energies as whole numbers, so that deposited and escaped energy add up exactly to the incoming energy.

use serde::{Deserialize, Serialize};

/// Units in 1 keV. A unit is a thousandth of an electronvolt, far below anything a collision resolves.
const UNITS_PER_KEV: f64 = 1e6;

/// An energy in units of a millionth of a keV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Energy(u64);

impl Energy {
    /// From keV.
    #[must_use]
    pub(crate) fn from_kev(kev: f64) -> Self {
        Self((kev * UNITS_PER_KEV).round() as u64)
    }

    /// In keV.
    #[must_use]
    pub(crate) fn kev(self) -> f64 {
        self.0 as f64 / UNITS_PER_KEV
    }

    /// In units.
    #[must_use]
    pub(crate) fn units(self) -> u64 {
        self.0
    }

    /// A part of the energy, rounded, and never more than the whole.
    #[must_use]
    pub(crate) fn fraction(self, part: f64) -> Self {
        Self((self.0 as f64 * part).round() as u64).min(self)
    }

    /// The sum of both.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The energy that a photon has lost when it keeps only `kept`.
    ///
    /// # Panics
    /// If `kept` is more: collisions give photons no energy.
    #[must_use]
    pub(crate) fn minus(self, kept: Self) -> Self {
        Self(self.0.checked_sub(kept.0).expect("a photon keeps at most what it had"))
    }
}

/// The factor from a mean of units to keV.
pub(crate) const KEV_PER_UNIT: f64 = 1.0 / UNITS_PER_KEV;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_and_the_rest_are_the_whole() {
        let energy = Energy::from_kev(511.0);
        let kept = energy.fraction(1.0 / 3.0);
        assert_eq!(kept.units() + energy.minus(kept).units(), energy.units());
    }
}
