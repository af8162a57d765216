//! `replicate` lets several workers compute each job, and the first result counts. It is R-JR of
//! Dobber et al., 2008.

use super::equal::{FixedDivider, equal};
use super::policy::{Divider, Division, Problem, SuperstepStrategy};
use super::row::Row;
use crate::entry::Entry;
use crate::parameters::Parameter;

pub(crate) const COPIES: Parameter = Parameter {
    name: "copies",
    default: "2",
    meaning: "number of workers that compute each job, at most all; the first result counts",
};

pub(crate) const ENTRY: Entry<dyn SuperstepStrategy> = Entry {
    name: "replicate",
    summary: "equal shares, each computed by several workers; the first result counts, and the others stop",
    parameters: &[COPIES],
    build: |parameters| {
        let copies = parameters.whole("copies", 1..=1_000_000)?;
        Ok(Box::new(Replicate { copies: copies as u32 }))
    },
};

struct Replicate {
    copies: u32,
}

impl SuperstepStrategy for Replicate {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        Box::new(FixedDivider(replicated(problem, &Row::new(&problem.weights), self.copies)))
    }
}

/// Shares of equal weight, each computed by `copies` workers, or by all workers if there are fewer.
pub(crate) fn replicated(problem: &Problem, row: &Row, copies: u32) -> Division {
    Division { copies: copies.clamp(1, problem.workers.max(1) as u32), ..equal(problem, row) }
}
