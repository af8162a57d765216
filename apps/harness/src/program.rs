//! Defines the trait [`Program`] that every program implements, and what one of its runs gets and returns.

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

    /// True if the program makes a demonstration when it is started without options: runs beside a busy neighbour,
    /// without and with balancing.
    const DEMONSTRATES: bool = false;

    /// An [`Array`](super::arrays::Array) of chunks, a [`Pool`](super::pools::Pool) of iterations, or a program in
    /// [supersteps](super::supersteps::Superstep).
    type Shape: Shape;

    /// The program's own options. The options of its shape and of all programs are added to them.
    type Options: clap::Parser;

    /// The result of a run.
    type Result;

    /// Makes the problem that the options describe.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the option that cannot be met.
    fn new(options: Self::Options, conditions: Conditions) -> Result<Self, Error>;

    /// The work of a run.
    fn total(&self) -> Total;

    /// The problem in a few words, which begin the introduction and the caption of a plot.
    fn title(&self) -> String;

    /// All settings that decide the result, given or default: a JSON object.
    fn description(&self) -> serde_json::Value;

    /// Makes one run. All processes of a job call this.
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

    /// The result as a JSON object for `--json`; null if the facts of a run are enough.
    fn numbers(&self, _result: &Self::Result) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// The part of the request that the result lacks, if any. It is printed last, and the exit code is then 1.
    fn lacks(&self, _result: &Self::Result) -> Option<String> {
        None
    }

    /// The file for the result, if one was requested.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// The contents of [`file`](Self::file).
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

/// What the harness gives to one run of a program.
#[derive(Debug)]
pub struct RunContext<'r> {
    /// The configuration, with the strategy.
    pub config: &'r Config,
    /// The clock in which the program records each complete step.
    pub clock: &'r Arc<IterationClock>,
    /// True if the result is compared. An array gathers its result only then.
    pub gathers: bool,
}

/// What one run of a program returns.
pub struct Outcome<P: Program> {
    /// The result; of an array only if it is compared.
    pub result: Option<P::Result>,
    /// The runtime's report.
    pub report: <P::Shape as Shape>::Report,
}
