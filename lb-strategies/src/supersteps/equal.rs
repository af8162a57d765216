//! `equal`: every worker has as much to compute, from the first step to the last. The baseline, ELB of the DLB/JR paper.

use super::division::divide;
use super::policy::{Divider, Division, Problem, Step, SuperstepStrategy};
use crate::entry::Entry;

pub(crate) const ENTRY: Entry<dyn SuperstepStrategy> = Entry {
    name: "equal",
    summary: "as much weight for each worker, fixed at the start",
    parameters: &[],
    build: |_| Ok(Box::new(Equal)),
};

struct Equal;

impl SuperstepStrategy for Equal {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        Box::new(Fixed(equal(problem)))
    }
}

/// The division in which every worker has as much weight as the others, as far as units divide.
pub fn equal(problem: &Problem) -> Division {
    Division { units: divide(&problem.weights, &vec![1.0; problem.workers], 1), copies: 1 }
}

/// One division for the whole run.
pub(crate) struct Fixed(pub(crate) Division);

impl Divider for Fixed {
    fn first(&mut self) -> Division {
        self.0.clone()
    }

    fn after(&mut self, _: &Step) -> Option<Division> {
        None
    }
}
