//! Whether it pays to divide anew.
//!
//! The papers divide whenever it is time. Here moving units has a price, which is learned as the run goes on, and what
//! is measured has noise: a division that would gain less than noise, or not earn its price soon, is not made.

use std::ops::Range;

use super::policy::{Division, Step};
use super::race::race;
use super::row::{Row, moved};
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

/// The gain that a step must promise, as a part of its time.
pub(crate) const TOLERANCE: Parameter = Parameter {
    name: "tolerance",
    default: "0.02",
    meaning: "part of a step's time that a new division must gain",
};

/// The steps in which it must have paid.
pub(crate) const AHEAD: Parameter = Parameter {
    name: "ahead",
    default: "100",
    meaning: "steps in which the gain must make up for moving units, or fewer if divisions do not last so long; 0: moving is free, as in the papers",
};

/// What a new division must promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Terms {
    tolerance: f64,
    ahead: f64,
}

impl Terms {
    /// The values of [`TOLERANCE`] and [`AHEAD`].
    pub(crate) fn read(parameters: &Parameters) -> Result<Self, ParseError> {
        let tolerance = parameters.number("tolerance", 0.0..=10.0)?;
        Ok(Self { tolerance, ahead: parameters.number("ahead", 0.0..=1e9)? })
    }

    /// Tells whether to go from one division to another, whose steps are expected to take so long.
    pub(crate) fn accept(
        self,
        price: &Price,
        (old, old_seconds): (&Division, f64),
        (new, new_seconds): (&Division, f64),
    ) -> bool {
        let gain = old_seconds - new_seconds;
        let steps = self.ahead.min(price.steps_of_a_division());
        let costs = if self.ahead > 0.0 { price.seconds(moved(old, new)) / steps } else { 0.0 };
        gain > self.tolerance * old_seconds && gain > costs
    }
}

/// The time that moving units takes, as far as it was seen. Free until then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Price {
    seconds: f64,
    moved: u64,
    divisions: u64,
    steps: u64,
}

impl Price {
    /// Adds a step, and what moved before it.
    pub(crate) fn add(&mut self, step: &Step) {
        self.steps += 1;
        if step.moved > 0 && step.redivision_seconds.is_finite() {
            self.seconds += step.redivision_seconds.max(0.0);
            self.moved = self.moved.saturating_add(step.moved);
            self.divisions += 1;
        }
    }

    /// How long divisions were in force, in the mean: one that would be replaced sooner than it pays does not pay.
    fn steps_of_a_division(&self) -> f64 {
        self.steps.max(1) as f64 / self.divisions.max(1) as f64
    }

    /// The mean time of a division.
    pub(crate) fn division_seconds(&self) -> f64 {
        self.seconds / self.divisions.max(1) as f64
    }

    /// The expected time of moving so many units.
    pub(crate) fn seconds(&self, units: u64) -> f64 {
        if self.moved == 0 { 0.0 } else { self.seconds / self.moved as f64 * units as f64 }
    }
}

/// The seconds that the slowest worker computes in a step, or the slowest group of workers where jobs have copies.
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
        let terms = Terms { tolerance: 0.02, ahead: 100.0 };
        let division = |units: &[u64]| Division { units: units.to_vec(), copies: 1 };
        let (old, new) = (division(&[50, 50]), division(&[60, 40]));
        let mut price = Price::default();
        let accepts = |price: &Price, seconds| terms.accept(price, (&old, 1.0), (&new, seconds));
        assert!(accepts(&price, 0.9) && !accepts(&price, 0.99) && !accepts(&price, 1.1));
        // Ten units for 20 s: in 100 steps a tenth of a second each does not make up for them.
        price.add(&Step { moved: 10, redivision_seconds: 20.0, ..Step::default() });
        (1..100).for_each(|_| price.add(&Step::default()));
        assert!(!accepts(&price, 0.9) && accepts(&price, 0.7));
        // If a division lasts 20 steps, more must be gained in each.
        (1..5).for_each(|_| price.add(&Step { moved: 10, redivision_seconds: 20.0, ..Step::default() }));
        assert!(!accepts(&price, 0.7));
        assert!(Terms { ahead: 0.0, ..terms }.accept(&price, (&old, 1.0), (&new, 0.9)));
    }

    #[test]
    fn a_step_takes_as_long_as_the_slowest() {
        let row = Row::new(&Weights::Equal(100));
        let slowest = |units: &[u64], copies, paces: &[f64]| {
            Some(slowest(&row, &Division { units: units.to_vec(), copies }, paces))
        };
        assert_eq!(slowest(&[60, 40], 1, &[1.0, 2.0]), Some(80.0));
        // The first is through with its own after 60 s; the second's is finished by itself after 80 s.
        assert_eq!(slowest(&[60, 40], 2, &[1.0, 2.0]), Some(80.0));
        assert_eq!(slowest(&[50, 50], 2, &[1.0, 9.0]), Some(100.0));
    }
}
