//! Implements [`Program`] for `sor`, so that the harness can run it and compare strategies.

use harness::supersteps::{self, Superstep};
use harness::{Conditions, Error, Outcome, Program, RunContext, Total, memory};
use presentation::format::plural;

use super::options::Options;
use super::problem::Problem;
use super::serial;
use super::solver::{Known, Solver};

/// A square to relax.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sor {
    pub(crate) problem: Problem,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Relaxed {
    pub(crate) known: Known,
    /// All rows, if results are compared.
    pub(crate) rows: Vec<Vec<f64>>,
}

impl Program for Sor {
    const NAME: &'static str = "sor";
    type Shape = Superstep;
    type Options = Options;
    type Result = Relaxed;

    fn new(options: Options, conditions: Conditions) -> Result<Self, Error> {
        let Options { grid, tolerance, sweeps } = options;
        // To compare, one process holds all rows of the run and all rows of the serial program.
        let copies = 1 + 2 * u64::from(conditions.checks);
        let bytes = u64::from(grid) * u64::from(grid) * 8 * copies;
        memory::check(&format!("--grid {grid}"), bytes, conditions.launch)?;
        Ok(Self { problem: Problem { grid: grid as usize, tolerance, sweeps } })
    }

    fn total(&self) -> Total {
        Total { count: 2 * u64::from(self.problem.sweeps), unit: "steps at most" }
    }

    fn title(&self) -> String {
        let grid = self.problem.grid;
        format!("Laplace's equation on {grid} x {grid} points")
    }

    fn description(&self) -> serde_json::Value {
        let Problem { grid, tolerance, sweeps } = self.problem;
        serde_json::json!({ "grid": grid, "tolerance": tolerance, "sweeps": sweeps })
    }

    fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
        let solver = Solver::new(self.problem, stage.gathers);
        let outcome = supersteps::run(stage, solver)?;
        let rows = outcome.units.into_iter().map(|row| row.0).collect();
        Ok(Outcome { result: Some(Relaxed { known: outcome.shared, rows }), report: outcome.report })
    }

    fn reference(&self) -> Relaxed {
        let (rows, known) = serial::solve(&self.problem);
        Relaxed { known, rows }
    }

    fn difference(relaxed: &Relaxed, reference: &Relaxed) -> Option<String> {
        if relaxed.known.steps != reference.known.steps {
            return Some(format!("{} steps instead of {}", relaxed.known.steps, reference.known.steps));
        }
        if relaxed.rows.len() != reference.rows.len() {
            return Some(format!("{} rows instead of {}", relaxed.rows.len(), reference.rows.len()));
        }
        relaxed.rows.iter().zip(&reference.rows).enumerate().find_map(|(row, (points, expected))| {
            let column = points
                .iter()
                .zip(expected)
                .position(|(point, expected)| point.to_bits() != expected.to_bits())?;
            let (point, expected) = (points[column], expected[column]);
            Some(format!("row {row}, column {column} is {point:e} instead of {expected:e}"))
        })
    }

    fn results(&self, relaxed: &Relaxed) -> String {
        let Relaxed { known: Known { steps, change }, rows } = relaxed;
        let sweeps = plural(steps / 2, "sweep");
        let mut text = match self.lacks(relaxed) {
            None => format!("A point changed by at most {change:.2e} in the last of {sweeps}.\n"),
            Some(_) => String::new(),
        };
        if !rows.is_empty() {
            let error = self.problem.error(rows);
            text += &format!("It differs from the solution of the equation by at most {error:.2e}.\n");
        }
        text
    }

    fn numbers(&self, relaxed: &Relaxed) -> serde_json::Value {
        let Known { steps, change } = relaxed.known;
        let solved = change <= self.problem.tolerance;
        serde_json::json!({ "sweeps": steps / 2, "change": change, "solved": solved })
    }

    fn lacks(&self, relaxed: &Relaxed) -> Option<String> {
        let (Known { steps, change }, tolerance) = (relaxed.known, self.problem.tolerance);
        // With a tolerance of 0 no change was requested.
        (change > tolerance && tolerance > 0.0).then(|| {
            format!(
                "not solved: a point changed by {change:.2e} in the last of {}, expected at most {tolerance:e} as --tolerance says",
                plural(steps / 2, "sweep")
            )
        })
    }
}
