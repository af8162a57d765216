//! `load-factor` multiplies shares by load factors, once or now and then. The source is section 4 of
//! Al-Ameedi and Fanfakh, 2021.
//!
//! After some steps LF_i = max T / T_i, where T_i is the time that worker i computes in a step (eq. 3). Its share is
//! multiplied by LF_i (eq. 4), and the excess of the sum is taken off (eq. 5 to 7, and the loop of figure 3). A share
//! times LF_i is max T times the worker's speed. So we take the excess off in proportion to it. Then shares are in
//! proportion to speed after one division from any shares. The load factor itself cancels: the share of each worker is
//! in proportion to 1 / pace, where pace is its seconds per unit of weight.
//!
//! The paper takes the excess off in proportion to LF_i. From equal shares, from which the paper divides once, this is
//! the same. From unequal shares, the excess of large shares is also taken off a share of one
//! unit, so that share may never grow. For p workers, the paper takes off excess x LF_i / p and repeats, which diverges
//! if the mean of LF is above 2. Here [`Row::in_proportion`] rounds, with an exact sum.

use super::equal::equal;
use super::pace::{By, Paces};
use super::policy::{Divider, Division, Problem, Step, SuperstepStrategy, Work};
use super::redivide::{AHEAD, DivisionCost, GainTest, TOLERANCE, duration, slowest};
use super::row::Row;
use crate::entry::Entry;
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

pub(crate) const ENTRY: Entry<dyn SuperstepStrategy> = Entry {
    name: "load-factor",
    summary: "each share multiplied by the time of the slowest worker over that of its own worker, once or repeatedly",
    parameters: &[
        Parameter {
            name: "every",
            default: "0",
            meaning: "steps from one division until measurements for the next begin; 0: one division only",
        },
        Parameter {
            name: "look",
            default: "0.5",
            meaning: "seconds of measured steps before a division, at least one step; 0: one step, as in the paper",
        },
        By::PARAMETER,
        TOLERANCE,
        AHEAD,
    ],
    build: |parameters| Ok(Box::new(LoadFactor::read(parameters)?)),
};

#[derive(Clone, Copy)]
struct LoadFactor {
    every: u64,
    look_seconds: f64,
    by: By,
    terms: GainTest,
}

impl LoadFactor {
    fn read(parameters: &Parameters) -> Result<Self, ParseError> {
        Ok(Self {
            every: parameters.integer("every")?,
            look_seconds: parameters.number("look", 0.0..=1e9)?,
            by: By::read(parameters)?,
            terms: GainTest::read(parameters)?,
        })
    }
}

impl SuperstepStrategy for LoadFactor {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        let row = Row::new(&problem.weights);
        Box::new(LoadFactorDivider {
            division: equal(problem, &row),
            row,
            paces: Paces::new(self.by, problem.workers),
            sums: vec![Work::default(); problem.workers],
            looked_seconds: 0.0,
            next: 0,
            price: DivisionCost::default(),
            policy: *self,
            reason: None,
        })
    }
}

struct LoadFactorDivider {
    row: Row,
    division: Division,
    paces: Paces,
    /// By worker: its work in the steps that were looked at.
    sums: Vec<Work>,
    looked_seconds: f64,
    /// The number of the first step to look at.
    next: u64,
    price: DivisionCost,
    policy: LoadFactor,
    reason: Option<String>,
}

impl Divider for LoadFactorDivider {
    fn first(&mut self) -> Division {
        self.division.clone()
    }

    fn after(&mut self, step: &Step) -> Option<Division> {
        self.price.add(step);
        if step.number < self.next {
            return None;
        }
        for (sum, work) in self.sums.iter_mut().zip(&step.works) {
            sum.weight += work.weight;
            sum.seconds += work.seconds;
            sum.cpu_seconds += work.cpu_seconds;
            sum.allowed = work.allowed;
        }
        self.looked_seconds += step.seconds.max(0.0);
        if self.looked_seconds < self.policy.look_seconds {
            return None;
        }
        let works = std::mem::replace(&mut self.sums, vec![Work::default(); step.works.len()]);
        self.paces.add(&Step { works, ..Step::default() });
        let paces = self.paces.last();
        self.looked_seconds = 0.0;
        self.next =
            if self.policy.every == 0 { u64::MAX } else { step.number.saturating_add(self.policy.every) };
        let new = Division { units: by_factors(&self.row, &self.division, &paces), copies: 1 };
        let (before, after) = (slowest(&self.row, &self.division, &paces), slowest(&self.row, &new, &paces));
        self.policy.terms.accept(&mut self.price, (&self.division, before), (&new, after), 0.0)?;
        self.reason = Some(format!(
            "the slowest worker is expected to compute {} per step instead of {}",
            duration(after),
            duration(before)
        ));
        self.division = new;
        Some(self.division.clone())
    }

    fn reason(&self) -> Option<String> {
        self.reason.clone()
    }
}

/// The shares after one division by load factors.
fn by_factors(row: &Row, division: &Division, paces: &[f64]) -> Vec<u64> {
    // A worker without a share takes no time. It gets a factor as if it had one unit.
    let unit = row.weight(0..row.units()) / row.units().max(1) as f64;
    let weights: Vec<f64> = row.weights(division).map(|weight| weight.max(unit)).collect();
    let times = || weights.iter().zip(paces).map(|(weight, pace)| weight * pace);
    let longest = times().fold(0.0, f64::max);
    let grown: Vec<f64> = weights.iter().zip(times()).map(|(weight, time)| weight * longest / time).collect();
    row.in_proportion(&grown, 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::supersteps::policy::Weights;

    proptest! {
        #[test]
        fn shares_are_in_proportion_to_speed_from_any_start(
            speeds in prop::collection::vec(0.2..5.0f64, 2..17),
            start in prop::collection::vec(0.0..1.0f64, 17),
            units in 2_000..100_000u64,
        ) {
            let row = Row::new(&Weights::Equal(units));
            let paces: Vec<f64> = speeds.iter().map(|speed| 1.0 / speed).collect();
            let mut division = Division { units: row.in_proportion(&start[..speeds.len()], 1), copies: 1 };
            let all: f64 = speeds.iter().sum();
            // The second division must change nothing.
            for _ in 0..2 {
                division.units = by_factors(&row, &division, &paces);
                prop_assert_eq!(division.units.iter().sum::<u64>(), units);
                for (&share, speed) in division.units.iter().zip(&speeds) {
                    let ideal = units as f64 * speed / all;
                    prop_assert!((share as f64 - ideal).abs() <= 1.0 + 1e-6, "{share} {ideal}");
                }
            }
        }
    }

    #[test]
    fn four_kinds_of_nodes_compute_equally_long_after_one_division() {
        // The nodes of the paper's table 1, from equal shares.
        let row = Row::new(&Weights::Equal(4000));
        let equal = Division { units: vec![1000; 4], copies: 1 };
        let shares = by_factors(&row, &equal, &[1.0 / 40.0, 1.0 / 50.0, 1.0 / 60.0, 1.0 / 70.0]);
        assert_eq!(shares, [727, 909, 1091, 1273]);
    }

    #[test]
    fn once_is_once_and_after_a_look() {
        let policy = crate::SUPERSTEPS.parse("load-factor,look=0.05").expect("it is listed");
        let mut divider = policy.divider(&Problem { workers: 2, vcpus: None, weights: Weights::Equal(100) });
        assert_eq!(divider.first().units, [50, 50]);
        let work = |weight, pace: f64| Work {
            weight,
            seconds: weight * pace,
            cpu_seconds: weight * pace,
            ..Work::default()
        };
        let step = |number, second| Step {
            number,
            works: vec![work(50.0, 1e-4), work(50.0, second)],
            seconds: 0.015,
            ..Step::default()
        };
        let answers: Vec<_> = (0..4).map(|number| divider.after(&step(number, 3e-4))).collect();
        assert_eq!(answers[..3], [None, None, None]);
        assert_eq!(answers[3].as_ref().map(|division| &division.units[..]), Some(&[75, 25][..]));
        let reason = divider.reason().expect("it has divided");
        assert!(reason.starts_with("the slowest worker is expected to compute"), "{reason}");
        assert!(reason.ends_with("instead of 15.00 ms"), "{reason}");
        assert!((4..100).all(|number| divider.after(&step(number, 1e-5)).is_none()));
    }
}
