//! `adaptive` uses equal shares, shares in proportion to predicted speed, or copies, whichever was fastest lately.
//!
//! After every step, each of these *methods* is evaluated, in force or not. Its time for the step is computed from the
//! measured paces of workers (times per unit). Proportional divisions use only data from before the step, so that the
//! prediction is judged too. A method takes over when its [`Regret`] exceeds chance and the time of the division.
//! This policy is in no paper: Dobber et al. (2008) compare two methods by a line for each.

use super::des::{Des, DesDivider, EVERY, WINDOW};
use super::equal::equal;
use super::pace::By;
use super::policy::{Divider, Division, Problem, Step, SuperstepStrategy};
use super::redivide::{AHEAD, Overhead, TOLERANCE, duration, slowest};
use super::regret::Regret;
use super::replicate::replicated;
use super::row::moved;
use crate::entry::Entry;
use crate::parameters::Parameter;

pub(crate) const ENTRY: Entry<dyn SuperstepStrategy> = Entry {
    name: "adaptive",
    summary: "equal, des, or replicate with 2, 4 or 8 copies, whichever would have been fastest recently",
    parameters: &[
        Parameter {
            name: "patience",
            default: "10",
            meaning: "a change of method must save more than this number of standard deviations of a step",
        },
        Parameter {
            name: "copies",
            default: "8",
            meaning: "maximum number of copies; a worker stores the data of all jobs that it has copies of",
        },
        EVERY,
        WINDOW,
        By::PARAMETER,
        TOLERANCE,
        AHEAD,
    ],
    build: |parameters| {
        Ok(Box::new(Adaptive {
            des: Des::read(parameters)?,
            patience: parameters.number("patience", 0.0..=1e6)?,
            copies: parameters.whole("copies", 1..=1_000_000)?,
        }))
    },
};

struct Adaptive {
    des: Des,
    patience: f64,
    copies: u64,
}

impl SuperstepStrategy for Adaptive {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        let balanced = self.des.follow(problem);
        let most = if problem.has_room_for_copies() { self.copies.min(problem.workers as u64) } else { 1 };
        let powers = (1..).map(|power| 1 << power).take_while(|&copies| u64::from(copies) <= most);
        let fixed = [equal(problem, &balanced.row)]
            .into_iter()
            .chain(powers.map(|copies| replicated(problem, &balanced.row, copies)));
        let fixed: Vec<Division> = fixed.collect();
        Box::new(AdaptiveDivider {
            regrets: vec![Regret::default(); fixed.len() + 1],
            fixed,
            balanced,
            in_force: 0,
            overhead: Overhead::default(),
            patience: self.patience,
            policy: self.des,
            reason: None,
        })
    }
}

struct AdaptiveDivider {
    /// Proportional shares: method 0.
    balanced: DesDivider,
    /// Methods from 1 on: equal shares, then copies of them.
    fixed: Vec<Division>,
    in_force: usize,
    overhead: Overhead,
    /// By method: the regret that it is not in force.
    regrets: Vec<Regret>,
    patience: f64,
    policy: Des,
    reason: Option<String>,
}

impl Divider for AdaptiveDivider {
    fn first(&mut self) -> Division {
        self.balanced.division.clone()
    }

    fn after(&mut self, step: &Step) -> Option<Division> {
        let paces = self.balanced.add(step);
        let ways = 0..=self.fixed.len();
        let mut took: Vec<f64> =
            ways.map(|way| slowest(&self.balanced.row, self.division(way), &paces)).collect();
        let in_force = self.division(self.in_force).clone();
        self.overhead.add(&in_force, step.seconds, took[self.in_force]);
        for (way, took) in took.iter_mut().enumerate() {
            *took += self.overhead.of(self.division(way));
        }
        let divided = self.balanced.divide();
        if divided.is_some() && self.in_force == 0 {
            self.reason = self.balanced.reason();
        }
        self.regret(&took);
        // The time of a division is added separately, because as a difference between steps it would look like noise.
        let price = divided.map_or(0.0, |moved| self.balanced.price.seconds(moved));
        match self.in_force {
            0 => self.regrets[1..].iter_mut().for_each(|regret| regret.correct(price)),
            _ => self.regrets[0].correct(-price),
        }
        let switches = self.switch();
        (switches || divided.is_some() && self.in_force == 0).then(|| self.division(self.in_force).clone())
    }

    fn reason(&self) -> Option<String> {
        self.reason.clone()
    }
}

impl AdaptiveDivider {
    fn division(&self, way: usize) -> &Division {
        way.checked_sub(1).map_or(&self.balanced.division, |fixed| &self.fixed[fixed])
    }

    /// Adds the last step's time under each method, measured or computed.
    fn regret(&mut self, took: &[f64]) {
        let now = took[self.in_force];
        let tolerance = self.policy.terms.tolerance * now;
        self.regrets.iter_mut().zip(took).for_each(|(regret, took)| regret.add(now - took, tolerance));
    }

    /// Switches to the method with the largest regret if that pays. Returns true if the method has changed.
    fn switch(&mut self) -> bool {
        let seconds = |way: usize| self.regrets[way].seconds;
        let most = (0..self.regrets.len()).max_by(|&one, &other| seconds(one).total_cmp(&seconds(other)));
        let best = most.unwrap_or(0);
        let price = self.balanced.price.seconds(moved(self.division(self.in_force), self.division(best)));
        if !self.regrets[best].exceeds(price, self.patience) {
            return false;
        }
        let name = match best {
            0 => "shares in proportion".to_owned(),
            1 => "equal shares".to_owned(),
            way => format!("{} copies", self.fixed[way - 1].copies),
        };
        self.reason = Some(format!("{name}: would have computed {} less recently", duration(seconds(best))));
        // The old method differs from the new one by as much.
        self.regrets[self.in_force] = self.regrets[best];
        self.in_force = best;
        self.regrets.iter_mut().for_each(Regret::restart);
        true
    }
}
