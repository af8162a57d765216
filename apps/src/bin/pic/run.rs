//! Implements [`Program`] for `pic`, so that the harness can run it and compare strategies.

use harness::arrays::{self, Array};
use harness::{Conditions, Error, Outcome, Program, RunContext, Total};
use presentation::format::plural;

use crate::chunk::Tile;
use crate::options::Options;
use crate::problem::Problem;
use crate::serial;
use crate::verification::Verification;

/// Particles that move for a number of steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pic {
    /// All that decides the result.
    pub(crate) problem: Problem,
}

impl Program for Pic {
    const NAME: &'static str = "pic";
    type Shape = Array;
    type Options = Options;
    type Result = Verification;

    fn new(options: Options, conditions: Conditions) -> Result<Self, Error> {
        let problem = options.problem()?;
        options.check_memory(&problem, conditions)?;
        Ok(Self { problem })
    }

    fn total(&self) -> Total {
        Total { count: self.problem.iterations.into(), unit: "iterations" }
    }

    fn title(&self) -> String {
        let Problem { tiling, particles, distribution, k, m, .. } = self.problem;
        let (grid, side) = (tiling.grid(), tiling.side());
        let columns = plural(2 * u64::from(k) + 1, "column");
        let rows = plural(m, "row");
        format!(
            "about {particles} particles ({distribution}) on {grid} x {grid} cells in {side} x {side} tiles, \
             moving {columns} and {rows} a step"
        )
    }

    fn description(&self) -> serde_json::Value {
        let Problem { tiling, particles, distribution, k, m, .. } = self.problem;
        serde_json::json!({
            "grid": tiling.grid(),
            "tiles": tiling.side(),
            "chunks": tiling.tiles(),
            "particles_asked": particles,
            "particles": self.problem.count(),
            "distribution": distribution.to_string(),
            "k": k,
            "m": m,
        })
    }

    fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
        let problem = self.problem;
        let (tallies, report) = arrays::run::<Verification>(stage, problem.tiling.tiles(), |setup| {
            let side = problem.tiling.side();
            setup.array([side, side], move |index| Tile::new(problem, index));
        })?;
        Ok(Outcome { result: stage.gathers.then(|| tallies.into_iter().sum()), report })
    }

    fn reference(&self) -> Verification {
        serial::run(&self.problem)
    }

    fn difference(tally: &Verification, reference: &Verification) -> Option<String> {
        tally.difference(reference)
    }

    fn results(&self, tally: &Verification) -> String {
        let Verification { particles, id_sum, .. } = tally;
        format!("{particles} particles, each where it has to be; their IDs add up to {id_sum}.\n")
    }
}
