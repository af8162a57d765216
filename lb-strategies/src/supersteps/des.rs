//! `des` divides in proportion to predicted speeds, every 2.5 P steps for P workers. It is DLB of Dobber et al., 2008,
//! section 2.2.1 and eq. 4. It is the default policy for supersteps.
//!
//! [`Smoothing`] predicts a worker's job time. Unlike in the paper, a division must gain more than noise and than
//! moving units costs (`tolerance=0,ahead=0` switches this off). The first divisions come sooner.

use super::equal::equal;
use super::pace::{By, Paces};
use super::policy::{Divider, Division, Problem, Step, SuperstepStrategy};
use super::redivide::{AHEAD, DivisionCost, GainTest, TOLERANCE, duration, slowest};
use super::row::Row;
use super::smoothing::Smoothing;
use crate::entry::Entry;
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

pub(crate) const EVERY: Parameter = Parameter {
    name: "every",
    default: "auto",
    meaning: "steps from one division to the next; auto: at first 4, then twice as many each time, up to 2.5 per worker",
};

pub(crate) const WINDOW: Parameter = Parameter {
    name: "window",
    default: "20",
    meaning: "number of measurements over which prediction errors are compared; a measurement takes 0.3 s of computing with by=cpu, else a step",
};

pub(crate) const ENTRY: Entry<dyn SuperstepStrategy> = Entry {
    name: "des",
    summary: "shares in proportion to speeds, which adaptive exponential smoothing predicts",
    parameters: &[EVERY, WINDOW, By::PARAMETER, TOLERANCE, AHEAD],
    build: |parameters| Ok(Box::new(Des::read(parameters)?)),
};

/// Steps before the first division if no parameter sets them, because 2.5 P steps are many with many workers.
const FIRST: u64 = 4;

/// The policy `des`, which `dlb-jr` and `adaptive` use for proportional shares.
#[derive(Clone, Copy)]
pub(crate) struct Des {
    every: Option<u64>,
    window: usize,
    by: By,
    pub(crate) terms: GainTest,
}

impl Des {
    /// The values of this policy's parameters.
    pub(crate) fn read(parameters: &Parameters) -> Result<Self, ParseError> {
        Ok(Self {
            every: parameters.count_or_auto("every")?,
            window: parameters.whole("window", 1..=1_000_000)? as usize,
            by: By::read(parameters)?,
            terms: GainTest::read(parameters)?,
        })
    }

    /// A divider that follows the paces of a program's workers.
    pub(crate) fn follow(&self, problem: &Problem) -> DesDivider {
        let row = Row::new(&problem.weights);
        let workers = problem.workers;
        let every = self.every.unwrap_or((5 * workers as u64).div_ceil(2)).max(1);
        DesDivider {
            division: equal(problem, &row),
            row,
            paces: Paces::new(self.by, workers),
            series: vec![Smoothing::new(self.window); workers],
            price: DivisionCost::default(),
            steps: 0,
            due: self.every.unwrap_or(FIRST).clamp(1, every),
            looked: false,
            every,
            terms: self.terms,
            reason: None,
        }
    }
}

impl SuperstepStrategy for Des {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        Box::new(self.follow(problem))
    }
}

/// A division that follows the predicted paces of the workers, whether or not it is in force.
pub(crate) struct DesDivider {
    pub(crate) row: Row,
    pub(crate) division: Division,
    paces: Paces,
    series: Vec<Smoothing>,
    pub(crate) price: DivisionCost,
    /// Number of steps since the last time to divide.
    steps: u64,
    /// Number of steps from then to the next time to divide.
    due: u64,
    /// True once there has been a time to divide.
    pub(crate) looked: bool,
    /// The largest value of `due`.
    every: u64,
    terms: GainTest,
    reason: Option<String>,
}

impl DesDivider {
    /// Adds a step, and returns the pace of each worker in it.
    pub(crate) fn add(&mut self, step: &Step) -> Vec<f64> {
        self.paces.add(step);
        self.price.add(step);
        let paces = self.paces.last();
        for (worker, (series, &pace)) in self.series.iter_mut().zip(&paces).enumerate() {
            if self.paces.is_fresh(worker) {
                series.add(pace);
            }
        }
        paces
    }

    /// Divides in proportion to predicted speeds, so that all workers compute equally long (eq. 4), if it is time and
    /// pays. Returns the number of units that change workers if it did.
    pub(crate) fn divide(&mut self) -> Option<u64> {
        self.steps += 1;
        if self.steps < self.due {
            return None;
        }
        (self.steps, self.looked) = (0, true);
        self.due = (2 * self.due).min(self.every);
        let last = self.paces.last();
        let predicted = self.series.iter().zip(last).map(|(series, last)| series.predict().unwrap_or(last));
        let paces: Vec<f64> = predicted.collect();
        let speeds: Vec<f64> = paces.iter().map(|pace| 1.0 / pace).collect();
        let new = Division { units: self.row.in_proportion(&speeds, 1), copies: 1 };
        let (before, after) = (slowest(&self.row, &self.division, &paces), slowest(&self.row, &new, &paces));
        let errors: Vec<f64> = self.series.iter().map(Smoothing::standard_error).collect();
        let chance = slowest(&self.row, &self.division, &errors);
        let moved = self.terms.accept(&mut self.price, (&self.division, before), (&new, after), chance)?;
        self.reason = Some(format!(
            "the slowest worker is expected to compute {} per step instead of {}",
            duration(after),
            duration(before)
        ));
        self.division = new;
        Some(moved)
    }
}

impl Divider for DesDivider {
    fn first(&mut self) -> Division {
        self.division.clone()
    }

    fn after(&mut self, step: &Step) -> Option<Division> {
        self.add(step);
        self.divide().map(|_| self.division.clone())
    }

    fn reason(&self) -> Option<String> {
        self.reason.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supersteps::policy::{Weights, Work};

    #[test]
    fn shares_are_in_proportion_after_four_steps_and_then_left_alone() {
        let policy = crate::SUPERSTEPS.parse("des").expect("it is listed");
        let mut divider = policy.divider(&Problem { workers: 2, vcpus: None, weights: Weights::Equal(300) });
        let mut division = divider.first();
        let mut divided = Vec::new();
        for number in 0..40 {
            let work = |worker: usize, pace: f64| {
                let weight = division.units[worker] as f64;
                Work { weight, seconds: weight * pace, cpu_seconds: weight * pace, ..Work::default() }
            };
            let step =
                Step { number, works: vec![work(0, 1e-5), work(1, 2e-5)], seconds: 0.1, ..Step::default() };
            if let Some(new) = divider.after(&step) {
                (division, divided) = (new, [divided, vec![number]].concat());
            }
        }
        assert_eq!((division.units, divided), (vec![200, 100], vec![3]));
    }
}
