//! Defines the supersteps of over-relaxation: each step relaxes the points of one colour. Edges of other shares (a
//! share is the rows of a worker) come from the begin of the step. They still hold, because the points that are read do
//! not change.

use caribou::supersteps::{Job, Parts, Supersteps, Then};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::row::relax;

/// A row of points. The edge of a share is also a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row(#[serde(with = "caribou::bulk")] pub(crate) Vec<f64>);

/// The data that all workers share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Steps so far: two per sweep.
    pub(crate) steps: u64,
    /// The greatest change in the current sweep, or in the last complete one.
    pub(crate) change: f64,
}

impl Known {
    /// Before the first step.
    pub(crate) fn begin() -> Self {
        Self { steps: 0, change: 0.0 }
    }

    /// Counts a step that made this change. True if it was the last step, which always ends a sweep.
    pub(crate) fn count(&mut self, change: f64, problem: &Problem) -> bool {
        let begins = self.steps.is_multiple_of(2);
        self.change = if begins { change } else { change.max(self.change) };
        self.steps += 1;
        !begins && (self.change <= problem.tolerance || self.steps >= 2 * u64::from(problem.sweeps))
    }
}

/// A problem to solve, in steps.
#[derive(Debug)]
pub(crate) struct Solver {
    problem: Problem,
    relaxation: f64,
    /// The borders before the first row and after the last.
    borders: [Row; 2],
    collects: bool,
}

impl Solver {
    /// Solves `problem`; all rows are in the outcome only if it `collects` them.
    pub(crate) fn new(problem: Problem, collects: bool) -> Self {
        let borders = [vec![0.0; problem.grid], problem.border()].map(Row);
        Self { problem, relaxation: problem.relaxation(), borders, collects }
    }
}

impl Supersteps for Solver {
    type Unit = Row;
    type Edge = Row;
    type Part = f64;
    type Shared = Known;

    fn units(&self) -> u64 {
        self.problem.grid as u64
    }

    fn begin(&self) -> Known {
        Known::begin()
    }

    fn unit(&self, _: u64) -> Row {
        Row(vec![0.0; self.problem.grid])
    }

    fn edge(&self, row: &Row) -> Option<Row> {
        Some(row.clone())
    }

    fn compute(&self, job: Job<'_, Self>) -> f64 {
        let [first, last] = &self.borders;
        let (before, after) = (job.before.unwrap_or(first), job.after.unwrap_or(last));
        let mut change = 0.0_f64;
        for (at, row) in job.units.enumerate() {
            let (above, rest) = job.data.split_at_mut(at);
            let Some((here, below)) = rest.split_first_mut() else { break };
            let above = above.last().unwrap_or(before);
            let below = below.first().unwrap_or(after);
            let colour = job.step % 2;
            change = change.max(relax(&mut here.0, [&above.0, &below.0], row, colour, self.relaxation));
        }
        change
    }

    fn combine(&self, known: &mut Known, parts: Parts<'_, f64>) -> Then {
        let change = parts.map(|(_, change)| *change).fold(0.0, f64::max);
        if known.count(change, &self.problem) { Then::End } else { Then::Step }
    }

    fn collects(&self) -> bool {
        self.collects
    }
}
