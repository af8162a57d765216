//! Programs as the harness sees them, and one run of one.

use std::path::Path;
use std::sync::Arc;

use caribou::{Config, Launch};

use super::error::Error;
use super::iteration_clock::IterationClock;
use super::shape::Shape;
pub use super::total::Total;

/// A computation, its serial reference and its options. An example is in [the harness](super).
pub trait Program: Sized {
    /// The name of its binary.
    const NAME: &'static str;

    /// True if it gives a demonstration where it is started without options: beside a busy neighbour, without and with
    /// balancing.
    const DEMONSTRATES: bool = false;

    /// An [`Array`](super::arrays::Array) of chunks, a [`Pool`](super::pools::Pool) of iterations, or a program in
    /// [supersteps](super::supersteps::Superstep).
    type Shape: Shape;

    /// Its own options. Those of its shape and of all programs come after them.
    type Options: clap::Parser;

    /// The result of a run.
    type Result;

    /// The problem that the options ask for.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the option that cannot be met.
    fn new(options: Self::Options, conditions: Conditions) -> Result<Self, Error>;

    /// All there is to do in a run.
    fn total(&self) -> Total;

    /// The problem in a few words, which begin the introduction and the caption of a plot.
    fn title(&self) -> String;

    /// All that decides the result, given or not: an object for the numbers.
    fn description(&self) -> serde_json::Value;

    /// One run. Of several processes all make it.
    ///
    /// # Errors
    /// Those of the runtime.
    fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error>;

    /// The serial program's result.
    fn reference(&self) -> Self::Result;

    /// The first difference of a result to the reference, in words; `None` when there is none.
    fn difference(result: &Self::Result, reference: &Self::Result) -> Option<String>;

    /// The result as people read it, above the table.
    fn results(&self, _result: &Self::Result) -> String {
        String::new()
    }

    /// The result in numbers, for `--json`: an object; null where the facts of a run say it all.
    fn numbers(&self, _result: &Self::Result) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// The part of the request that the result lacks, if any: told last, and the exit code is then 1.
    fn lacks(&self, _result: &Self::Result) -> Option<String> {
        None
    }

    /// The file for the result, if one was requested.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// The contents of that file.
    fn contents(&self, _result: &Self::Result) -> String {
        String::new()
    }
}

/// The conditions that a problem is set up for.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Ranks.
    pub ranks: u32,
    /// The way the process was started: with all ranks in it, or as one of them.
    pub launch: Launch,
    /// True if results are compared with the reference, for which one process needs memory for both.
    pub checks: bool,
}

/// The part of the harness in one run of a program.
#[derive(Debug)]
pub struct RunContext<'r> {
    /// The configuration, with the strategy.
    pub config: &'r Config,
    /// The clock in which the program tells that a step is complete.
    pub clock: &'r Arc<IterationClock>,
    /// True if the result is to be compared: an array brings it together only then.
    pub gathers: bool,
}

/// The end of one run of a program.
pub struct Outcome<P: Program> {
    /// The result; of an array only where it is to be compared.
    pub result: Option<P::Result>,
    /// The runtime's report.
    pub report: <P::Shape as Shape>::Report,
}
