//! Counts where photons end and where they leave energy. All sums are whole numbers, so that merging is exact.

use caribou::pools::Accumulator;
use serde::{Deserialize, Serialize};

use super::energy::Energy;
use caribou_apps::estimate::Moments;

/// Micrometres in 1 cm.
const UM_PER_CM: f64 = 1e4;

/// The sums over some histories of a problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Photons that were followed.
    pub(crate) histories: u64,
    /// Collisions of all photons.
    pub(crate) collisions: u64,
    /// Photons that passed all slabs without a collision.
    pub(crate) uncollided: u64,
    /// Energies of the photons that left behind the last slab, in units of [`Energy`].
    pub(crate) transmitted: Moments,
    /// Energies of the photons that left before the first slab.
    pub(crate) reflected: Moments,
    /// Photons absorbed in each slab.
    pub(crate) absorbed: Vec<u64>,
    /// Depths at which photons were absorbed, in micrometres.
    pub(crate) absorption_depth_um: Moments,
    /// Energies that histories left in each of the bins, which divide the depth of all slabs equally.
    pub(crate) deposits: Vec<Moments>,
    /// Energy that the current history has left, by bin. Two deposits of a history in one bin are one sample.
    #[serde(skip)]
    open: Vec<(usize, Energy)>,
}

impl Tally {
    /// The tally of no history.
    #[must_use]
    pub(crate) fn new(slabs: usize, bins: usize) -> Self {
        Self {
            histories: 0,
            collisions: 0,
            uncollided: 0,
            transmitted: Moments::default(),
            reflected: Moments::default(),
            absorbed: vec![0; slabs],
            absorption_depth_um: Moments::default(),
            deposits: vec![Moments::default(); bins],
            open: Vec::new(),
        }
    }

    /// Counts energy that a photon left in a bin.
    pub(super) fn deposit(&mut self, bin: usize, energy: Energy) {
        match self.open.iter_mut().find(|(open, _)| *open == bin) {
            Some((_, sum)) => *sum = sum.plus(energy),
            None => self.open.push((bin, energy)),
        }
    }

    /// Counts a photon that was absorbed in a slab.
    pub(super) fn absorb(&mut self, slab: usize, depth_cm: f64) {
        self.absorbed[slab] += 1;
        self.absorption_depth_um.add((depth_cm * UM_PER_CM).round() as u64);
    }

    /// Ends a history after `collisions` collisions.
    pub(super) fn close(&mut self, collisions: u64) {
        self.histories += 1;
        self.collisions += collisions;
        for (bin, energy) in self.open.drain(..) {
            self.deposits[bin].add(energy.units());
        }
    }

    /// The first sum in which two tallies differ, in words; `None` when they are equal.
    #[must_use]
    pub(crate) fn difference(&self, reference: &Self) -> Option<String> {
        let sums = [
            ("histories", self.histories, reference.histories),
            ("collisions", self.collisions, reference.collisions),
            ("uncollided photons", self.uncollided, reference.uncollided),
            ("transmitted photons", self.transmitted.count, reference.transmitted.count),
            ("reflected photons", self.reflected.count, reference.reflected.count),
        ];
        if let Some((what, found, expected)) = sums.into_iter().find(|(_, found, expected)| found != expected)
        {
            return Some(format!("{found} {what} instead of {expected}"));
        }
        let bins =
            self.deposits.iter().zip(&reference.deposits).filter(|(found, expected)| found != expected);
        match bins.count() {
            0 if self == reference => None,
            0 => Some("energies or depths differ".to_owned()),
            bins => Some(format!("the energy deposited differs in {bins} bins")),
        }
    }
}

impl Accumulator for Tally {
    fn merge(&mut self, other: Self) {
        let sizes = |tally: &Self| (tally.absorbed.len(), tally.deposits.len());
        assert_eq!(sizes(self), sizes(&other), "both tallies are of one problem");
        self.histories += other.histories;
        self.collisions += other.collisions;
        self.uncollided += other.uncollided;
        self.transmitted.merge(other.transmitted);
        self.reflected.merge(other.reflected);
        self.absorption_depth_um.merge(other.absorption_depth_um);
        for (ours, theirs) in self.absorbed.iter_mut().zip(other.absorbed) {
            *ours += theirs;
        }
        for (ours, theirs) in self.deposits.iter_mut().zip(other.deposits) {
            ours.merge(theirs);
        }
    }
}

/// The factor from a mean of micrometres to cm.
pub(super) const CM_PER_UM: f64 = 1.0 / UM_PER_CM;

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bin: usize, units: u64) -> Tally {
        let mut tally = Tally::new(2, 3);
        tally.deposit(bin, Energy::from_kev(units as f64));
        tally.absorb(1, 2.5);
        tally.close(4);
        tally
    }

    #[test]
    fn two_deposits_of_a_history_in_a_bin_are_one_sample() {
        let mut tally = Tally::new(1, 2);
        let kev = Energy::from_kev(1.0);
        [1, 0, 1].into_iter().for_each(|bin| tally.deposit(bin, kev));
        tally.close(3);
        let moments = |units| {
            let mut moments = Moments::default();
            moments.add(units);
            moments
        };
        assert_eq!(tally.deposits, [moments(kev.units()), moments(2 * kev.units())]);
    }

    #[test]
    fn every_sum_is_merged() {
        let (mut left, mut right) = (one(0, 5), one(2, 7));
        for tally in [&mut left, &mut right] {
            tally.uncollided += 1;
            tally.transmitted.add(3);
            tally.reflected.add(4);
        }
        let (first, second) = (left.clone(), right.clone());
        left.merge(second);
        right.merge(first);
        assert_eq!(left, right);
        assert_eq!(
            (left.histories, left.collisions, left.uncollided, &left.absorbed[..]),
            (2, 8, 2, &[0, 2][..])
        );
        assert_eq!((left.transmitted.sum, left.reflected.sum, left.absorption_depth_um.sum), (6, 8, 50_000));
        assert_eq!(left.deposits.iter().map(|bin| bin.count).collect::<Vec<_>>(), [1, 0, 1]);
    }

    #[test]
    fn a_difference_is_named() {
        assert_eq!(one(0, 5).difference(&one(0, 5)), None);
        assert_eq!(one(0, 5).difference(&one(1, 5)).unwrap(), "the energy deposited differs in 2 bins");
        let mut more = one(0, 5);
        more.close(0);
        assert_eq!(more.difference(&one(0, 5)).unwrap(), "2 histories instead of 1");
        let mut deeper = one(0, 5);
        deeper.absorption_depth_um.sum += 1;
        assert!(deeper.difference(&one(0, 5)).is_some());
    }
}
