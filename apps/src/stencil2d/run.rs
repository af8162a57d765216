//! One run of the plate on the runtime, and the check of its result.

use std::sync::{Arc, Mutex, PoisonError};

use caribou::{Config, Report};

use super::chunk::Heat;
use super::observer::Observers;
use super::plate::{Part, Shape};
use super::serial::Field;
use crate::harness::error::Error;
use crate::harness::iteration_clock::IterationClock;

/// Where the cells of all chunks come together at the end, to be compared: in the process that has rank 0.
#[derive(Debug)]
pub struct Sink {
    shape: Shape,
    /// None until the first cells come: in other processes none do.
    field: Mutex<Option<Field>>,
}

impl Sink {
    /// A sink that nothing was delivered to yet.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { shape, field: Mutex::new(None) }
    }

    /// Puts the cells of one part, row by row, in their place.
    pub(super) fn fill(&self, part: Part, cells: &[f64]) {
        let mut field = self.field.lock().unwrap_or_else(PoisonError::into_inner);
        let field = field.get_or_insert_with(|| Field::unfilled(self.shape));
        field.fill(part, cells.chunks_exact(part.width));
    }

    /// Takes out what was delivered.
    fn take(&self) -> Field {
        let delivered = self.field.lock().unwrap_or_else(PoisonError::into_inner).take();
        delivered.unwrap_or_else(|| Field::unfilled(self.shape))
    }
}

/// Runs `iterations`, for which `clock` was made, on the plate; the cells at the end go to `sink` when there is one.
///
/// Of several processes all call this, with a sink or without. The sink is filled in the first; clocks are right in all.
///
/// # Errors
/// What the runtime says.
pub fn run(
    config: Config,
    shape: Shape,
    iterations: u32,
    clock: &Arc<IterationClock>,
    sink: Option<&Arc<Sink>>,
) -> Result<Report, caribou::Error> {
    let launch = config.launch();
    caribou::run(config, |setup| {
        Observers::set_up(setup, launch, shape, clock, sink);
        setup.array(shape.extent(), move |index| Heat::new(shape, iterations, index));
    })
}

/// Compares what was delivered to `sink`, and empties it, with the serial reference.
///
/// # Errors
/// [`Error::Differs`], naming the strategy and the first cell.
pub fn check(lb: &str, sink: &Sink, reference: &Field) -> Result<(), Error> {
    match sink.take().difference(reference) {
        None => Ok(()),
        Some(difference) => Err(Error::Differs { lb: lb.to_owned(), difference: difference.to_string() }),
    }
}
