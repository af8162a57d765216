//! What the harness must know of a shape of program. All that differs between shapes is said here, once for each; a new
//! shape is one more `impl`, and a way to run (such as [`pools::run`](super::pools::run)).

use std::fmt::Debug;

use caribou::{Config, RunReport, lb};
use serde::Serialize;

use super::disturbance::{SlowSpec, Window};
use super::program::Total;
use super::times::Times;

/// A shape: how a program divides its work among workers.
pub trait Shape {
    /// The options that only programs of this shape have.
    type Options: clap::Args;

    /// What the runtime tells of a run.
    type Report;

    /// What is told of a run besides its times.
    type Facts: Facts;

    /// What its strategies are for.
    const SHAPE: lb::Shape;

    /// Help for the options of all programs whose defaults are of this shape.
    const HELP: &'static [(&'static str, &'static str)];

    /// What is said where a single rank leaves nothing to balance.
    const ALONE: Option<&'static str> = None;

    /// `config` with what the options say.
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

    /// Steps between two syncs, where there are syncs.
    fn period(_config: &Config) -> Option<u64> {
        None
    }

    /// When a run had ended: what was noticed later is of that moment.
    fn end_ns(_report: &Self::Report) -> u64 {
        u64::MAX
    }

    /// What is to be told of a run with the strategy `lb`.
    fn facts(lb: &str, report: Self::Report, times: &Times, windows: &[Window]) -> Self::Facts;
}

/// What is told of a run besides its times.
pub trait Facts: Clone + Debug + Serialize {
    /// What progress is told in, and neighbours come and go at.
    const STEP: &'static str;

    /// The strategy that moves nothing, over which others gain; `None` where no gain is told as a share of what was possible.
    const UNBALANCED: Option<&'static str>;

    /// The headings of its columns.
    const HEADINGS: &'static [&'static str];

    /// A cell for each heading.
    fn cells(&self) -> Vec<String>;

    /// The strategy, as given.
    fn lb(&self) -> &str;

    /// What every run has.
    fn run(&self) -> &RunReport;

    /// Seconds that it would have taken at best, as far as that was measured.
    fn bound_s(&self) -> Option<f64>;

    /// What is to be said of the only run of a comparison, after the time that it took.
    fn words(&self) -> String;

    /// What is to be said below the table, a line each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
