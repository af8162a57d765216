//! `equal` always divides into equal shares. It is ELB of Dobber et al., 2008, and the first
//! scenario of Al-Ameedi and Fanfakh, 2021.

use super::policy::{Divider, Division, Problem, Step, SuperstepStrategy};
use super::row::Row;
use crate::entry::Entry;

pub(crate) const ENTRY: Entry<dyn SuperstepStrategy> = Entry {
    name: "equal",
    summary: "always equal shares; the baseline",
    parameters: &[],
    build: |_| Ok(Box::new(Equal)),
};

struct Equal;

impl SuperstepStrategy for Equal {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        Box::new(FixedDivider(equal(problem, &Row::new(&problem.weights))))
    }
}

/// Shares of equal weight, each job computed once.
pub(crate) fn equal(problem: &Problem, row: &Row) -> Division {
    Division { units: row.in_proportion(&vec![1.0; problem.workers], 1), copies: 1 }
}

/// A division that never changes.
pub(crate) struct FixedDivider(pub(crate) Division);

impl Divider for FixedDivider {
    fn first(&mut self) -> Division {
        self.0.clone()
    }

    fn after(&mut self, _: &Step) -> Option<Division> {
        None
    }
}
