//! Shapes of programs, as far as the harness must know them. All that differs between shapes is said here, once for each; a new
//! shape is one more `impl`, and a way to run (such as [`pools::run`](super::pools::run)).

use std::fmt::Debug;

use caribou::config::Period;
use caribou::report::RunReport;
use caribou::{Config, lb};
use serde::Serialize;

use super::disturbance::{SlowSpec, Window};
use super::times::Times;
use super::total::Total;

/// A shape: how a program divides its work among workers.
pub trait Shape {
    /// The options that only programs of this shape have.
    type Options: clap::Args;

    /// The runtime's report of a run.
    type Report;

    /// Facts of a run besides its times.
    type Facts: Facts;

    /// The name of the shape to strategies.
    const SHAPE: lb::Shape;

    /// Help for the options of all programs whose defaults are of this shape.
    const HELP: &'static [(&'static str, &'static str)];

    /// Words for a run in which a single rank leaves nothing to balance.
    const ALONE: Option<&'static str> = None;

    /// `config` with the options applied.
    fn configure(_options: &Self::Options, config: Config) -> Config {
        config
    }

    /// The ranks that the options make slow.
    fn slowed(_options: &Self::Options) -> Vec<SlowSpec> {
        Vec::new()
    }

    /// Ranks and workers of each, unless the launcher says otherwise.
    fn size(config: &Config) -> (u32, u32);

    /// Steps in which so much work is told.
    fn steps(total: Total) -> u32;

    /// When chunks are balanced, where there are chunks.
    fn period(_config: &Config) -> Option<Period> {
        None
    }

    /// The end of a run: what was noticed later is of that moment.
    fn end_ns(_report: &Self::Report) -> u64 {
        u64::MAX
    }

    /// The facts of a run with the strategy `lb`.
    fn facts(lb: &str, report: Self::Report, times: &Times, windows: &[Window]) -> Self::Facts;
}

/// Facts that are told of a run besides its times.
pub trait Facts: Clone + Debug + Serialize {
    /// The unit in which progress is told, and in which neighbours come and go.
    const STEP: &'static str;

    /// The strategy that moves nothing, over which others gain; `None` where no gain is told as a share of what was possible.
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

    /// Seconds that it would have taken at best, as far as that was measured.
    fn bound_s(&self) -> Option<f64>;

    /// The end of the sentence about a run that is alone, after the time that it took.
    fn words(&self) -> String;

    /// Lines below the table.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
