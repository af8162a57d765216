//! Defines what differs between programs of arrays, pools and supersteps in the harness: the trait [`Shape`]. A new
//! shape needs one more `impl`, and a function that makes a run (such as [`pools::run`](super::pools::run)).

use std::fmt::Debug;

use caribou::config::Period;
use caribou::report::RunReport;
use caribou::{Config, lb};
use serde::Serialize;

use super::disturbance::{SlowSpec, Window};
use super::times::Times;
use super::total::Total;

/// A shape of program: how a program divides its work among workers.
pub trait Shape {
    /// The options that only programs of this shape have.
    type Options: clap::Args;

    /// The runtime's report of a run.
    type Report;

    /// Facts of a run besides its times.
    type Facts: Facts;

    /// The shape as the strategies name it.
    const SHAPE: lb::Shape;

    /// Help texts of the shared options with defaults that depend on the shape.
    const HELP: &'static [(&'static str, &'static str)];

    /// A hint for a run with a single rank, in which nothing can be balanced.
    const ALONE: Option<&'static str> = None;

    /// `config` with the options applied.
    fn configure(_options: &Self::Options, config: Config) -> Config {
        config
    }

    /// The ranks that the options make slow.
    fn slowed(_options: &Self::Options) -> Vec<SlowSpec> {
        Vec::new()
    }

    /// Number of ranks and of workers per rank, unless the launcher sets them.
    fn size(config: &Config) -> (u32, u32);

    /// Number of steps in which the clock counts `total`.
    fn steps(total: Total) -> u32;

    /// When chunks are balanced; `None` for programs without chunks.
    fn period(_config: &Config) -> Option<Period> {
        None
    }

    /// The end of a run, ns. Steps that were recorded later count as complete at this time.
    fn end_ns(_report: &Self::Report) -> u64 {
        u64::MAX
    }

    /// The facts of a run with the strategy `lb`.
    fn facts(lb: &str, report: Self::Report, times: &Times, windows: &[Window]) -> Self::Facts;
}

/// Facts about a run besides its times, for the table and for `--json`.
pub trait Facts: Clone + Debug + Serialize {
    /// The unit of progress, in which neighbours start and end.
    const STEP: &'static str;

    /// The strategy that moves nothing. Gains over it are compared with the possible gain; `None` if gains are not.
    const UNBALANCED: Option<&'static str>;

    /// The headings of its columns.
    const HEADINGS: &'static [&'static str];

    /// The meaning of the headings that need words, for the line below the table.
    const WORDS: &'static str;

    /// A cell for each heading.
    fn cells(&self) -> Vec<String>;

    /// The strategy, as given.
    fn lb(&self) -> &str;

    /// The part of the report that every run has.
    fn run(&self) -> &RunReport;

    /// The shortest possible time of the run, s, if it was measured.
    fn bound_s(&self) -> Option<f64>;

    /// The end of the sentence about a single run, after its time.
    fn words(&self) -> String;

    /// Lines below the table.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
