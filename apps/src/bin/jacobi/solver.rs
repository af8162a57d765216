//! Defines the supersteps of Jacobi's method: each worker computes the residuals of its rows, and every worker gets the
//! new x of all rows. A step finds the residual of the x that it began with. The last step leaves x unchanged, so its
//! small residual is that of the answer. The result does not depend on the division of rows into shares (one per
//! worker), because the sum of a row has one order, and a maximum has none.

use std::sync::Arc;

use caribou::supersteps::{Exchange, Job, Parts, Supersteps, Then};
use serde::{Deserialize, Serialize};

use super::kernel::{dot, greater};
use super::system::{Row, System};

/// When to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The greatest residual of a row that is small enough, absolute.
    pub(crate) residual: f64,
    /// Maximum number of steps.
    pub(crate) steps: u32,
}

/// The data that all workers share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    #[serde(with = "caribou::bulk")]
    pub(crate) x: Vec<f64>,
    /// The greatest residual in the last step. It belongs to `x` only if that step ended the run.
    pub(crate) residual: f64,
    pub(crate) steps: u32,
}

impl Answer {
    /// The first guess: zeros.
    pub(crate) fn begin(size: usize) -> Self {
        Self { x: vec![0.0; size], residual: f64::INFINITY, steps: 0 }
    }

    /// Counts a step that found this residual. True if it was the last: small enough, not finite, or at the maximum.
    pub(crate) fn count(&mut self, residual: f64, limits: Limits) -> bool {
        self.residual = residual;
        self.steps += 1;
        residual.is_finite() && residual <= limits.residual
            || !residual.is_finite()
            || self.steps == limits.steps
    }
}

/// The result of some rows in a step.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Rows {
    /// The new x.
    #[serde(with = "caribou::bulk")]
    x: Vec<f64>,
    /// The greatest residual of the old x.
    residual: f64,
}

/// A system to solve, in steps.
#[derive(Debug)]
pub(crate) struct Solver {
    pub(crate) system: Arc<System>,
    /// When to end; the residual is absolute.
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
