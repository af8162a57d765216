//! Implements [`Program`] for `jacobi`, so that the harness can run it and compare strategies.

use std::path::Path;
use std::sync::Arc;

use caribou::Launch;
use caribou_apps::matrix_market::{self, Matrix};
use harness::supersteps::{self, Superstep};
use harness::{Conditions, Error, Outcome, Program, RunContext, Total, memory};
use presentation::format::plural;

use super::options::Options;
use super::serial;
use super::solver::{Answer, Limits, Solver};
use super::system::{Fault, System};

/// A system to solve.
#[derive(Debug)]
pub(crate) struct Jacobi {
    options: Options,
    system: Arc<System>,
    /// When to end; the residual is absolute.
    limits: Limits,
    /// The greatest number of the right-hand side.
    scale: f64,
}

impl Program for Jacobi {
    const NAME: &'static str = "jacobi";
    type Shape = Superstep;
    type Options = Options;
    type Result = Answer;

    fn new(options: Options, conditions: Conditions) -> Result<Self, Error> {
        let system = match &options.matrix {
            None => {
                let size = u64::from(options.size);
                // The serial program holds all rows once more.
                let copies = 1 + u64::from(conditions.checks);
                let cells = size.saturating_mul(size).saturating_mul(copies);
                memory::check(&format!("--size {size}"), cells.saturating_mul(8), conditions.launch)?;
                System::generated(options.size as usize, options.seed, options.dominance)
            }
            Some(path) => {
                let matrix = read("--matrix", path, conditions)?;
                let right = options.right.as_deref().map(|path| read("--right", path, conditions));
                let fault = |Fault { in_rhs: of_right, why }: Fault| {
                    let right = options.right.as_deref().filter(|_| of_right);
                    let (option, path) = right.map_or(("--matrix", path.as_path()), |path| ("--right", path));
                    Error::Usage(format!("{option}: {}: {why}", path.display()))
                };
                System::read(matrix, right.transpose()?).map_err(fault)?
            }
        };
        let scale = system.scale();
        let limits = Limits { residual: options.tolerance * scale, steps: options.steps };
        Ok(Self { system: Arc::new(system), options, limits, scale })
    }

    fn total(&self) -> Total {
        Total { count: self.options.steps.into(), unit: "steps at most" }
    }

    fn title(&self) -> String {
        let equations = plural(self.system.size() as u64, "equation");
        match &self.options.matrix {
            None => format!("{equations} generated"),
            Some(path) => format!("{equations} of {}", path.display()),
        }
    }

    fn description(&self) -> serde_json::Value {
        let Options { seed, dominance, matrix, right, tolerance, exchange, steps, .. } = &self.options;
        let generated = matrix.is_none();
        serde_json::json!({
            "size": self.system.size(),
            "seed": generated.then_some(seed),
            "dominance": generated.then_some(dominance),
            "matrix": matrix,
            "right": right,
            "tolerance": tolerance,
            "exchange": format!("{exchange:?}").to_lowercase(),
            "steps": steps,
        })
    }

    fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
        let exchange = self.options.exchange.into();
        let solver = Solver { system: self.system.clone(), limits: self.limits, exchange };
        let outcome = supersteps::run(stage, solver)?;
        Ok(Outcome { result: Some(outcome.shared), report: outcome.report })
    }

    fn reference(&self) -> Answer {
        serial::solve(&self.system, self.limits)
    }

    fn difference(answer: &Answer, reference: &Answer) -> Option<String> {
        if answer.steps != reference.steps {
            return Some(format!("{} steps instead of {}", answer.steps, reference.steps));
        }
        let pairs = || answer.x.iter().zip(&reference.x);
        let differs = pairs().position(|(x, expected)| x.to_bits() != expected.to_bits());
        differs.map(|at| format!("x[{at}] is {:e} instead of {:e}", answer.x[at], reference.x[at]))
    }

    fn results(&self, answer: &Answer) -> String {
        let (residual, steps) = (answer.residual / self.scale, plural(answer.steps, "step"));
        let mut text = match self.lacks(answer) {
            None if answer.residual <= self.limits.residual => {
                format!("Solved to a residual of {residual:.2e} in {steps}.\n")
            }
            None => format!("The residual is {residual:.2e} after {steps}.\n"),
            Some(_) => String::new(),
        };
        if let Some(row) = self.system.not_dominant() {
            text += &format!(
                "Row {} is not diagonally dominant: with such rows the iteration may not converge.\n",
                row + 1
            );
        }
        text
    }

    fn numbers(&self, answer: &Answer) -> serde_json::Value {
        let Answer { residual, steps, .. } = answer;
        let solved = *residual <= self.limits.residual;
        serde_json::json!({ "steps": steps, "residual": residual / self.scale, "solved": solved })
    }

    fn lacks(&self, answer: &Answer) -> Option<String> {
        let (residual, steps) = (answer.residual / self.scale, plural(answer.steps, "step"));
        let tolerance = self.options.tolerance;
        if !residual.is_finite() {
            return Some(format!("not solved: the iteration diverged in {steps}"));
        }
        // With a tolerance of 0 no residual was requested.
        (answer.residual > self.limits.residual && tolerance > 0.0).then(|| {
            format!(
                "not solved: the residual is {residual:.2e} after {steps}, expected at most {tolerance:e} as --tolerance says"
            )
        })
    }
}

fn read(option: &str, path: &Path, conditions: Conditions) -> Result<Matrix, Error> {
    let admit = |rows: u64, columns: u64| {
        // Every process holds what was read, and the workers together hold all rows once more.
        let processes = match conditions.launch {
            Launch::Alone => 1,
            Launch::Together { processes, .. } => u64::from(processes),
        };
        let bytes = rows.saturating_mul(columns).saturating_mul((processes + 1) * 8);
        memory::check(&format!("{rows} x {columns}"), bytes, conditions.launch)
            .map_err(|error| error.to_string())
    };
    matrix_market::read(path, admit).map_err(|why| Error::Usage(format!("{option}: {why}")))
}
