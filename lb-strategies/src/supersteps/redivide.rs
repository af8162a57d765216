//! Decides whether a new division pays.
//!
//! The papers divide at fixed times. Here a division must gain more than the noise of measurements, and must soon make
//! up for the time that moving units takes. This time is learned during the run.

use std::collections::VecDeque;
use std::ops::Range;

use super::line::Line;
use super::policy::{Division, Step};
use super::race::race;
use super::row::{Row, moved};
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

/// The gain that a division must promise, as a part of a step's time.
pub(crate) const TOLERANCE: Parameter = Parameter {
    name: "tolerance",
    default: "0.02",
    meaning: "part of the time of a step that a new division must save",
};

/// Number of steps in which a division must make up for its cost.
pub(crate) const AHEAD: Parameter = Parameter {
    name: "ahead",
    default: "100",
    meaning: "steps within which a new division must save the time of moving units, fewer if divisions last shorter; 0: that time is ignored, as in the papers",
};

/// A time in the unit that suits it, for the reason of a division.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds.abs() {
        size if size < 1e-3 => format!("{:.2} us", 1e6 * seconds),
        size if size < 1.0 => format!("{:.2} ms", 1e3 * seconds),
        _ => format!("{seconds:.3} s"),
    }
}

/// The conditions on the gain of a new division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GainTest {
    pub(crate) tolerance: f64,
    ahead: f64,
}

impl GainTest {
    /// The values of [`TOLERANCE`] and [`AHEAD`].
    pub(crate) fn read(parameters: &Parameters) -> Result<Self, ParseError> {
        let tolerance = parameters.number("tolerance", 0.0..=10.0)?;
        Ok(Self { tolerance, ahead: parameters.number("ahead", 0.0..=1e9)? })
    }

    /// Decides whether to change from one division to another, each with the expected time of its steps. If so, counts
    /// the division and returns the number of units that move.
    ///
    /// Expected times are off by `chance` seconds in the mean, so the division that promises most does so partly by
    /// chance. Its gain is therefore reduced by the estimate of James and Stein (1961), unless moving is free as in the
    /// papers.
    pub(crate) fn accept(
        self,
        price: &mut DivisionCost,
        (old, old_seconds): (&Division, f64),
        (new, new_seconds): (&Division, f64),
        chance: f64,
    ) -> Option<u64> {
        let (promised, moved) = (old_seconds - new_seconds, moved(old, new));
        let (chance, costs) = if self.ahead > 0.0 {
            (chance, price.seconds(moved) / self.ahead.min(price.steps_of_a_division()))
        } else {
            (0.0, 0.0)
        };
        let gain = if promised > 0.0 { promised - chance * chance / promised } else { promised };
        let accepted = gain > self.tolerance * old_seconds && gain > costs;
        price.divisions += u64::from(accepted);
        accepted.then_some(moved)
    }
}

/// Number of divisions from which the cost is learned.
const REMEMBERED: usize = 32;

/// The time that a division takes, learned from earlier divisions. Zero before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct DivisionCost {
    /// By division: the units that moved, and the time that they took, s.
    seen: VecDeque<(f64, f64)>,
    /// Divisions that were accepted, including those that were never in force.
    divisions: u64,
    steps: u64,
}

impl DivisionCost {
    /// Adds a step, and the units that moved before it.
    pub(crate) fn add(&mut self, step: &Step) {
        self.steps += 1;
        if step.moved > 0 && step.redivision_seconds.is_finite() {
            self.seen.push_back((step.moved as f64, step.redivision_seconds.max(0.0)));
            if self.seen.len() > REMEMBERED {
                self.seen.pop_front();
            }
        }
    }

    /// Mean lifetime of a division, in steps. A division replaced before it has made up for its cost does not pay.
    fn steps_of_a_division(&self) -> f64 {
        self.steps.max(1) as f64 / self.divisions.max(1) as f64
    }

    /// The mean time of a division, s.
    pub(crate) fn division_seconds(&self) -> f64 {
        self.sums().1 / self.seen.len().max(1) as f64
    }

    /// The expected time of moving `units` units, s: a constant, and a time per unit, if earlier divisions show both.
    pub(crate) fn seconds(&self, units: u64) -> f64 {
        let (units, (moved, seconds)) = (units as f64, self.sums());
        let points: Vec<(f64, f64)> = self.seen.iter().copied().collect();
        match Line::fit(&points) {
            Some(line) if line.slope < 0.0 => self.division_seconds(),
            Some(line) if line.intercept > 0.0 => line.at(units),
            _ if moved > 0.0 => seconds / moved * units,
            _ => 0.0,
        }
    }

    fn sums(&self) -> (f64, f64) {
        self.seen.iter().fold((0.0, 0.0), |sums, seen| (sums.0 + seen.0, sums.1 + seen.1))
    }
}

/// Recent time of a step beyond the computing of the slowest worker, with copies and without. Workers wait for
/// messages, and for memory that copies access twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overhead {
    with_copies: Option<f64>,
    without: Option<f64>,
}

impl Overhead {
    /// Adds a step under a division: its time, and the computing time of its slowest worker.
    pub(crate) fn add(&mut self, division: &Division, seconds: f64, computing: f64) {
        let overhead = (seconds - computing).max(0.0);
        // The first step of a kind may be late by chance, so it counts like any other unless there is nothing else.
        let before = self.known(division).unwrap_or(overhead);
        let known = if division.copies > 1 { &mut self.with_copies } else { &mut self.without };
        *known = Some(before + (overhead - before) / 16.0);
    }

    /// The overhead of a division, s; that of the other kind if there was none of its kind.
    pub(crate) fn of(&self, division: &Division) -> f64 {
        self.known(division).unwrap_or(0.0)
    }

    fn known(&self, division: &Division) -> Option<f64> {
        if division.copies > 1 {
            self.with_copies.or(self.without)
        } else {
            self.without.or(self.with_copies)
        }
    }
}

/// Seconds that the slowest worker computes in a step. With copies, seconds of the slowest group.
pub(crate) fn slowest(row: &Row, division: &Division, paces: &[f64]) -> f64 {
    let weights: Vec<f64> = row.weights(division).collect();
    if division.copies <= 1 {
        return weights.iter().zip(paces).map(|(weight, pace)| weight * pace).fold(0.0, f64::max);
    }
    let groups = (0..weights.len()).step_by(division.copies as usize).map(|worker| division.group(worker));
    let race = |group: Range<usize>| {
        let of_worker = |pace: &f64| weights[group.clone()].iter().map(|weight| weight * pace).collect();
        race(&paces[group.clone()].iter().map(of_worker).collect::<Vec<_>>(), 0.0)
    };
    groups.map(race).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supersteps::policy::Weights;

    #[test]
    fn a_division_must_gain_more_than_noise_and_earn_its_price() {
        let terms = GainTest { tolerance: 0.02, ahead: 100.0 };
        let division = |units: &[u64]| Division { units: units.to_vec(), copies: 1 };
        let (old, new) = (division(&[50, 50]), division(&[60, 40]));
        let mut price = DivisionCost::default();
        let accepts = |price: &mut DivisionCost, seconds| {
            terms.accept(price, (&old, 1.0), (&new, seconds), 0.0).is_some()
        };
        assert!(accepts(&mut price, 0.9) && !accepts(&mut price, 0.99) && !accepts(&mut price, 1.1));
        // Ten units took 20 s. In 100 steps, a gain of 0.1 s per step does not make up for them.
        price.add(&Step { moved: 10, redivision_seconds: 20.0, ..Step::default() });
        (1..100).for_each(|_| price.add(&Step::default()));
        assert!(!accepts(&mut price, 0.9) && accepts(&mut price, 0.7));
        // If a division lasts 20 steps, it must gain more per step.
        let free = GainTest { ahead: 0.0, ..terms };
        (0..3).for_each(|_| assert_eq!(free.accept(&mut price, (&old, 1.0), (&new, 0.9), 0.0), Some(10)));
        assert!(!accepts(&mut price, 0.7));
        assert!(free.accept(&mut price, (&old, 1.0), (&new, 0.9), 0.0).is_some());
    }

    #[test]
    fn a_gain_that_may_be_chance_counts_less_but_where_moving_is_free() {
        let [old, new] = [50, 60].map(|first| Division { units: vec![first, 100 - first], copies: 1 });
        let accepts = |ahead, chance| {
            let terms = GainTest { tolerance: 0.02, ahead };
            terms.accept(&mut DivisionCost::default(), (&old, 1.0), (&new, 0.9), chance).is_some()
        };
        assert_eq!([0.0, 0.08, 0.09, 0.1].map(|chance| accepts(100.0, chance)), [true, true, false, false]);
        assert!(accepts(0.0, 0.1));
    }

    #[test]
    fn a_late_first_step_is_not_the_overhead_of_all() {
        let [shares, copies] = [1, 2].map(|copies| Division { units: vec![1, 1], copies });
        let mut overhead = Overhead::default();
        assert!(overhead.of(&shares).abs() < 1e-12);
        overhead.add(&copies, 1.1, 1.0);
        overhead.add(&shares, 2.0, 1.0);
        assert!(overhead.of(&shares) < 0.2, "{overhead:?}");
        (0..100).for_each(|_| overhead.add(&shares, 2.0, 1.0));
        assert!(overhead.of(&shares) > 0.9 && overhead.of(&copies) < 0.2, "{overhead:?}");
    }

    #[test]
    fn a_price_is_of_a_division_and_of_units_as_far_as_they_are_told_apart() {
        let price = |seen: &[(u64, f64)]| {
            let mut price = DivisionCost::default();
            for &(moved, redivision_seconds) in seen {
                price.add(&Step { moved, redivision_seconds, ..Step::default() });
            }
            price.seconds(10).round() as u64
        };
        assert_eq!(price(&[]), 0);
        assert_eq!(price(&[(20, 40.0)]), 20, "by units");
        assert_eq!(price(&[(20, 40.0), (40, 60.0)]), 30, "20 s, and one for each unit");
        assert_eq!(price(&[(20, 40.0), (40, 40.0)]), 40, "whatever moves");
        assert_eq!(price(&[(20, 40.0), (40, 20.0)]), 30, "the mean");
        assert_eq!(price(&[(20, 20.0), (40, 60.0)]), 13, "by units, none of them free");
    }

    #[test]
    fn a_step_takes_as_long_as_the_slowest() {
        let row = Row::new(&Weights::Equal(100));
        let slowest = |units: &[u64], copies, paces: &[f64]| {
            Some(slowest(&row, &Division { units: units.to_vec(), copies }, paces))
        };
        assert_eq!(slowest(&[60, 40], 1, &[1.0, 2.0]), Some(80.0));
        // The first finishes its own job after 60 s. The second finishes its own job after 80 s.
        assert_eq!(slowest(&[60, 40], 2, &[1.0, 2.0]), Some(80.0));
        assert_eq!(slowest(&[50, 50], 2, &[1.0, 9.0]), Some(100.0));
    }
}
