//! Implements [`Program`] for `wave2d`, so that the harness can run it and compare strategies.

use std::path::{Path, PathBuf};

use harness::arrays::{self, Array};
use harness::{Conditions, Error, Outcome, Program, RunContext, Total};
use presentation::format::plural;

use super::chunk::Wave;
use super::options::Options;
use super::problem::Problem;
use super::pulses::Pulses;
use super::serial;
use super::waves::{BlockResult, Waves};

/// Waves, and perhaps a picture of them.
#[derive(Clone, Debug)]
pub(crate) struct Wave2d {
    /// All that decides the result.
    pub(crate) problem: Problem,
    /// The file for the picture.
    pub(crate) picture: Option<PathBuf>,
}

impl Program for Wave2d {
    const NAME: &'static str = "wave2d";
    const DEMONSTRATES: bool = true;
    type Shape = Array;
    type Options = Options;
    type Result = Waves;

    fn new(options: Options, conditions: Conditions) -> Result<Self, Error> {
        let Options { grid, iterations, speed, pulses: count, seed, picture } = options;
        let shape = grid.shape(conditions.ranks)?;
        grid.check_memory(shape, 2, conditions)?;
        Ok(Self { problem: Problem { shape, iterations, speed, pulses: Pulses { count, seed } }, picture })
    }

    fn total(&self) -> Total {
        Total { count: self.problem.iterations.into(), unit: "iterations" }
    }

    fn title(&self) -> String {
        let Problem { shape, pulses: Pulses { count, .. }, .. } = self.problem;
        let (grid, chunk, chunks) = (shape.grid(), shape.chunk(), shape.chunks());
        let pulses = plural(count, "pulse");
        format!("{pulses} on {grid} x {grid} cells in chunks of {chunk} x {chunk} ({chunks} chunks)")
    }

    fn description(&self) -> serde_json::Value {
        let Problem { shape, speed, pulses: Pulses { count, seed }, .. } = self.problem;
        serde_json::json!({
            "grid": shape.grid(),
            "chunk": shape.chunk(),
            "chunks": shape.chunks(),
            "speed": speed,
            "pulses": count,
            "seed": seed,
        })
    }

    fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
        let (problem, compared) = (self.problem, stage.gathers);
        // The energy and the picture are also needed if nothing is compared.
        let always = RunContext { gathers: true, ..*stage };
        let (told, report) = arrays::run::<BlockResult>(&always, problem.shape.chunks(), |setup| {
            setup.array(problem.shape.extent(), move |index| Wave::new(problem, compared, index));
        })?;
        // Only the process of rank 0 gets parts.
        Ok(Outcome { result: (!told.is_empty()).then(|| Waves::new(&problem, told)), report })
    }

    fn reference(&self) -> Waves {
        serial::run(&self.problem)
    }

    fn difference(waves: &Waves, reference: &Waves) -> Option<String> {
        waves.difference(reference)
    }

    fn results(&self, waves: &Waves) -> String {
        format!(
            "The waves have an energy of {:.6e}; it drifted by {:.1e} of it.\n",
            waves.energies[1],
            waves.drift()
        )
    }

    fn file(&self) -> Option<&Path> {
        self.picture.as_deref()
    }

    fn contents(&self, waves: &Waves) -> String {
        waves.raster.svg(&format!("{}, after {} iterations", self.title(), self.problem.iterations))
    }
}
