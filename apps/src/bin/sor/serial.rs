//! Solves the problem without the runtime, as the reference of `--check`.

use super::problem::Problem;
use super::row::relax;
use super::solver::Known;

/// All rows after the last step, and the shared data then. O(steps grid^2).
pub(crate) fn solve(problem: &Problem) -> (Vec<Vec<f64>>, Known) {
    let (grid, relaxation) = (problem.grid, problem.relaxation());
    // Includes the border, so that each row lies between two others.
    let mut rows = vec![vec![0.0; grid]; grid + 1];
    rows.push(problem.border());
    let mut known = Known::begin();
    loop {
        let mut change = 0.0_f64;
        for row in 1..=grid {
            let mut here = std::mem::take(&mut rows[row]);
            let around = [&rows[row - 1][..], &rows[row + 1][..]];
            change = change.max(relax(&mut here, around, row as u64 - 1, known.steps % 2, relaxation));
            rows[row] = here;
        }
        if known.count(change, problem) {
            rows.pop();
            rows.remove(0);
            return (rows, known);
        }
    }
}
