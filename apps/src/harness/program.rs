//! What a program is to the harness, and one run of it.

use std::path::Path;
use std::sync::Arc;

use caribou::{Config, Launch};

use super::error::Error;
use super::iteration_clock::IterationClock;
use super::shape::Shape;

/// A computation, its serial reference and its options. An example is in [the harness](super).
pub trait Program: Sized {
    /// The name of its binary.
    const NAME: &'static str;

    /// Whether it gives a demonstration where it is started without options: beside a busy neighbour, without and with
    /// balancing.
    const DEMONSTRATES: bool = false;

    /// An [`Array`](super::arrays::Array) of chunks, or a [`Pool`](super::pools::Pool) of iterations.
    type Shape: Shape;

    /// Its own options. Those of its shape and of all programs come after them.
    type Options: clap::Parser;

    /// What a run computes.
    type Output;

    /// The problem that the options ask for.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the option that cannot be met.
    fn new(options: Self::Options, setting: Setting) -> Result<Self, Error>;

    /// All there is to do in a run.
    fn total(&self) -> Total;

    /// The problem in a few words, which begin the introduction and the caption of a plot.
    fn title(&self) -> String;

    /// All that decides the result, given or not: an object for the numbers.
    fn description(&self) -> serde_json::Value;

    /// One run. Of several processes all make it.
    ///
    /// # Errors
    /// What the runtime says.
    fn run(&self, stage: &Stage<'_>) -> Result<Ran<Self>, Error>;

    /// What the serial program computes.
    fn reference(&self) -> Self::Output;

    /// The first difference of a result to the reference, in words; `None` when there is none.
    fn difference(output: &Self::Output, reference: &Self::Output) -> Option<String>;

    /// The result as people read it, above the table.
    fn results(&self, _output: &Self::Output) -> String {
        String::new()
    }

    /// The file in which the result is wanted, if anybody asked for one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// What goes into that file.
    fn contents(&self, _output: &Self::Output) -> String {
        String::new()
    }
}

/// What a problem is set up for.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Ranks.
    pub ranks: u32,
    /// Whether the ranks are in this process, or this process is one of them.
    pub launch: Launch,
    /// Whether results are compared with the reference, for which one process needs memory for both.
    pub checks: bool,
}

/// How many of what there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// How many.
    pub count: u64,
    /// Of what, such as "iterations".
    pub unit: &'static str,
}

/// What one run of a program is given.
#[derive(Debug)]
pub struct Stage<'r> {
    /// The configuration, with the strategy.
    pub config: &'r Config,
    /// Where the program tells that a step is complete.
    pub clock: &'r Arc<IterationClock>,
    /// Whether the result is to be compared: an array brings it together only then.
    pub gathers: bool,
}

/// What one run of a program leaves behind.
pub struct Ran<P: Program> {
    /// What it computed; of an array only where it is to be compared.
    pub output: Option<P::Output>,
    /// What the runtime tells of it.
    pub report: <P::Shape as Shape>::Report,
}
