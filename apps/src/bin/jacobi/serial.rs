//! Solves the system without the runtime, as the reference of `--check`.

use super::kernel::{dot, greater};
use super::solver::{Answer, Limits};
use super::system::System;

/// Solves `system` as the steps do, one row after the other. O(steps size^2).
pub(crate) fn solve(system: &System, limits: Limits) -> Answer {
    let rows: Vec<_> = (0..system.size()).map(|row| system.row(row)).collect();
    let mut answer = Answer::begin(system.size());
    loop {
        let residuals: Vec<f64> = rows.iter().map(|row| row.rhs - dot(&row.values, &answer.x)).collect();
        let residual = residuals.iter().fold(0.0, |greatest, residual| greater(greatest, residual.abs()));
        if answer.count(residual, limits) {
            return answer;
        }
        for (at, (row, residual)) in rows.iter().zip(residuals).enumerate() {
            answer.x[at] += residual / row.values[at];
        }
    }
}
