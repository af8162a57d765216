//! Implements [`Program`] for `stencil2d`, so that the harness can run it and compare strategies.

use super::chunk::{Cells, Heat};
use super::options::{Options, Start};
use super::plate::Shape;
use super::serial::{self, Field};
use harness::arrays::{self, Array};
use harness::{Conditions, Error, Outcome, Program, RunContext, Total};

/// A plate that cools for a number of iterations.
#[derive(Clone, Copy, Debug)]
pub struct Plate {
    /// The plate and its chunks.
    pub shape: Shape,
    /// Iterations of a run.
    pub iterations: u32,
    /// The ranks on which chunks begin.
    pub placement: Start,
}

impl Program for Plate {
    const NAME: &'static str = "stencil2d";
    const DEMONSTRATES: bool = true;
    type Shape = Array;
    type Options = Options;
    type Result = Field;

    fn new(options: Options, conditions: Conditions) -> Result<Self, Error> {
        let shape = options.grid.shape(conditions.ranks)?;
        options.grid.check_memory(shape, 1, conditions)?;
        Ok(Self { shape, iterations: options.iterations, placement: options.placement })
    }

    fn total(&self) -> Total {
        Total { count: self.iterations.into(), unit: "iterations" }
    }

    fn title(&self) -> String {
        let (grid, chunk, chunks) = (self.shape.grid(), self.shape.chunk(), self.shape.chunks());
        format!("{grid} x {grid} cells in chunks of {chunk} x {chunk} ({chunks} chunks)")
    }

    fn description(&self) -> serde_json::Value {
        let shape = self.shape;
        serde_json::json!({ "grid": shape.grid(), "chunk": shape.chunk(), "chunks": shape.chunks() })
    }

    fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
        let Self { shape, iterations, placement } = *self;
        let (parts, report) = arrays::run(stage, shape.chunks(), |setup| {
            setup.array_with(shape.extent(), placement.into(), move |index| {
                Heat::new(shape, iterations, index)
            });
        })?;
        let whole = |parts: Vec<Cells>| {
            let mut field = Field::unfilled(shape);
            for Cells { index, cells } in parts {
                let part = shape.part(index);
                field.fill(part, cells.chunks_exact(part.width));
            }
            field
        };
        Ok(Outcome { result: stage.gathers.then(|| whole(parts)), report })
    }

    fn reference(&self) -> Field {
        serial::run(self.shape, self.iterations)
    }

    fn difference(field: &Field, reference: &Field) -> Option<String> {
        field.difference(reference).map(|difference| difference.to_string())
    }
}
