//! The steps: each worker computes the residuals of its rows, and every worker gets the new x of all.
//!
//! A step tells how good the x is that it began with, and the last one leaves that as it is: the answer is the x whose residual
//! was found small enough. The shared data do not depend on where shares begin: a row's sum has one order, and the
//! greatest of some numbers has none.

use std::sync::Arc;

use caribou::supersteps::{Exchange, Job, Parts, Supersteps, Then};
use serde::{Deserialize, Serialize};

use super::kernel::{dot, greater};
use super::system::{Row, System};

/// When to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The residual that is small enough, in units of the right-hand side: the greatest of each.
    pub(crate) residual: f64,
    /// Steps at most.
    pub(crate) steps: u32,
}

/// The shared data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    #[serde(with = "caribou::bulk")]
    pub(crate) x: Vec<f64>,
    /// The greatest residual in the last step; of the `x` there, unless that step was followed by another.
    pub(crate) residual: f64,
    pub(crate) steps: u32,
}

impl Answer {
    /// Nothing is known: zeros.
    pub(crate) fn begin(size: usize) -> Self {
        Self { x: vec![0.0; size], residual: f64::INFINITY, steps: 0 }
    }

    /// Counts a step that found this residual. True if it was the last: good enough, hopeless, or one too many.
    pub(crate) fn count(&mut self, residual: f64, limits: Limits) -> bool {
        self.residual = residual;
        self.steps += 1;
        residual.is_finite() && residual <= limits.residual
            || !residual.is_finite()
            || self.steps == limits.steps
    }
}

/// What some rows give in a step.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Rows {
    /// The new x.
    #[serde(with = "caribou::bulk")]
    x: Vec<f64>,
    /// The greatest residual of the old.
    residual: f64,
}

/// A system to solve, in steps.
#[derive(Debug)]
pub(crate) struct Solver {
    pub(crate) system: Arc<System>,
    /// When to end; the residual as it is, not in units of anything.
    pub(crate) limits: Limits,
    pub(crate) exchange: Exchange,
}

impl Supersteps for Solver {
    type Unit = Row;
    type Edge = ();
    type Part = Rows;
    type Shared = Answer;

    fn units(&self) -> u64 {
        self.system.size() as u64
    }

    fn begin(&self) -> Answer {
        Answer::begin(self.system.size())
    }

    fn unit(&self, number: u64) -> Row {
        self.system.row(number as usize)
    }

    fn compute(&self, job: Job<'_, Self>) -> Rows {
        let (mut x, mut greatest) = (Vec::with_capacity(job.data.len()), 0.0);
        for (at, row) in (job.units.start as usize..).zip(job.data.iter()) {
            let residual = row.rhs - dot(&row.values, &job.shared.x);
            greatest = greater(greatest, residual.abs());
            x.push(job.shared.x[at] + residual / row.values[at]);
        }
        Rows { x, residual: greatest }
    }

    fn changes(&self) -> bool {
        false
    }

    fn exchange(&self) -> Exchange {
        self.exchange
    }

    fn combine(&self, answer: &mut Answer, parts: Parts<'_, Rows>) -> Then {
        let parts: Vec<_> = parts.collect();
        let residual = parts.iter().fold(0.0, |greatest, (_, rows)| greater(greatest, rows.residual));
        if answer.count(residual, self.limits) {
            return Then::End;
        }
        for (units, rows) in parts {
            answer.x[units.start as usize..units.end as usize].copy_from_slice(&rows.x);
        }
        Then::Step
    }
}
