//! One run of the plate on the runtime, and the check of its result.

use std::sync::Arc;

use caribou::{Config, Report};

use super::chunk::{Heat, Services, Sink};
use super::plate::Shape;
use super::serial::Field;
use crate::error::Error;
use crate::iteration_clock::IterationClock;

/// Runs `iterations` on the plate; the cells at the end go to `sink` when there is one.
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
    let services = Services { clock: Arc::clone(clock), sink: sink.cloned() };
    caribou::run(config, |setup| {
        setup.service(services.clone());
        setup.array(shape.extent(), move |index| Heat::new(shape, iterations, index));
    })
}

/// Compares what `sink` holds with the serial reference.
///
/// # Errors
/// [`Error::Differs`], naming the strategy and the first cell.
pub fn check(lb: &str, sink: &Sink, reference: &Field) -> Result<(), Error> {
    match sink.inspect(|field| field.difference(reference)) {
        None => Ok(()),
        Some(difference) => Err(Error::Differs { lb: lb.to_owned(), difference: difference.to_string() }),
    }
}
