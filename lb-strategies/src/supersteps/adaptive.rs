//! `adaptive`: equal shares, shares in proportion to predicted speed, or copies: whichever did best of late.
//!
//! Every way is followed all along, whether it is in force or not: the measured paces of each step tell what the step
//! would have taken that way. Divisions in proportion are made of what was known before the step, so that prediction is
//! judged by what came. Every quarter of `memory` steps the way with the least mean over the last `memory` of them takes
//! over, if it took less by more than chance and pays for the units that must move. Of no paper: dlb-jr.txt has two ways and
//! a line for each.

use std::collections::VecDeque;

use super::des::{Des, EVERY, Following, WINDOW};
use super::equal::equal;
use super::pace::By;
use super::policy::{Divider, Division, Problem, Step, SuperstepStrategy};
use super::redivide::{AHEAD, TOLERANCE, slowest};
use super::replicate::replicated;
use crate::entry::Entry;
use crate::parameters::Parameter;

pub(crate) const ENTRY: Entry<dyn SuperstepStrategy> = Entry {
    name: "adaptive",
    summary: "equal, des or replicate with 2, 4, 8 ... copies: what would have taken least in the last steps",
    parameters: &[
        Parameter { name: "memory", default: "20", meaning: "steps by which the ways are compared" },
        EVERY,
        WINDOW,
        By::PARAMETER,
        TOLERANCE,
        AHEAD,
    ],
    build: |parameters| {
        let memory = parameters.number("memory", 1.0..=1e6)? as usize;
        Ok(Box::new(Adaptive { des: Des::read(parameters)?, memory }))
    },
};

struct Adaptive {
    des: Des,
    memory: usize,
}

impl SuperstepStrategy for Adaptive {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        let balanced = self.des.follow(problem);
        let powers = (1..).map(|power| 1 << power).take_while(|&copies| copies <= problem.workers as u32);
        let fixed = [equal(problem, &balanced.row)]
            .into_iter()
            .chain(powers.map(|copies| replicated(problem, &balanced.row, copies)));
        Box::new(Ways {
            fixed: fixed.collect(),
            balanced,
            memory: self.memory,
            recent: VecDeque::new(),
            in_force: None,
            steps: 0,
            policy: self.des,
            reason: None,
        })
    }
}

struct Ways {
    /// Shares in proportion.
    balanced: Following,
    /// Equal shares, then copies of them.
    fixed: Vec<Division>,
    memory: usize,
    /// What each of the last steps took, or would have: in proportion, and each of `fixed`.
    recent: VecDeque<Vec<f64>>,
    /// One of `fixed`; none for shares in proportion.
    in_force: Option<usize>,
    /// Since the last comparison.
    steps: u64,
    policy: Des,
    reason: Option<String>,
}

impl Divider for Ways {
    fn first(&mut self) -> Division {
        self.balanced.division.clone()
    }

    fn after(&mut self, step: &Step) -> Option<Division> {
        let paces = self.balanced.add(step);
        let divisions = [&self.balanced.division].into_iter().chain(&self.fixed);
        let mut took: Vec<f64> =
            divisions.map(|division| slowest(&self.balanced.row, division, &paces)).collect();
        let divided = self.balanced.divide();
        took[0] += divided.map_or(0.0, |moved| self.balanced.price.seconds(moved));
        self.recent.push_back(took);
        if self.recent.len() > self.memory {
            self.recent.pop_front();
        }
        self.steps += 1;
        let switches = self.steps >= self.memory.div_ceil(4) as u64 && self.compare();
        (switches || divided.is_some() && self.in_force.is_none())
            .then(|| self.division(self.in_force).clone())
    }

    fn reason(&self) -> Option<String> {
        self.reason.clone()
    }
}

impl Ways {
    fn division(&self, way: Option<usize>) -> &Division {
        way.map_or(&self.balanced.division, |way| &self.fixed[way])
    }

    /// Says whether another way is in force now.
    fn compare(&mut self) -> bool {
        self.steps = 0;
        let mean =
            |way: usize| self.recent.iter().map(|took| took[way]).sum::<f64>() / self.recent.len() as f64;
        let means: Vec<f64> = (0..=self.fixed.len()).map(mean).collect();
        let best = (0..means.len()).min_by(|&one, &other| means[one].total_cmp(&means[other])).unwrap_or(0);
        let now = self.in_force.map_or(0, |way| way + 1);
        let (to, from) = (best.checked_sub(1), self.in_force);
        if best == now || !self.is_better(best, now) {
            return false;
        }
        let (old, new) = (self.division(from).clone(), self.division(to).clone());
        let price = &mut self.balanced.price;
        if self.policy.terms.accept(price, (&old, means[now]), (&new, means[best])).is_none() {
            return false;
        }
        let name = match to {
            None => "shares in proportion".to_owned(),
            Some(0) => "equal shares".to_owned(),
            Some(way) => format!("{} copies", self.fixed[way].copies),
        };
        let (before, after) = (means[now], means[best]);
        self.reason = Some(format!("{name}: would have computed {after:.3e} s a step, not {before:.3e} s"));
        self.in_force = to;
        true
    }

    /// Whether one way took less than another by more than chance makes of as many steps: twice the standard error of the
    /// mean difference.
    fn is_better(&self, one: usize, other: usize) -> bool {
        let gains = || self.recent.iter().map(|took| took[other] - took[one]);
        let count = self.recent.len() as f64;
        let mean = gains().sum::<f64>() / count;
        let spread = gains().map(|gain| (gain - mean).powi(2)).sum::<f64>() / count;
        mean > 2.0 * (spread / count).sqrt()
    }
}
