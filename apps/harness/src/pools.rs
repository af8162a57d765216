//! Implements [`Shape`] for programs that are pools of independent iterations. [`run`] makes one run of such a program.
//!
//! A pool has no iterations that end together, so it has no option `--period`. Its progress is counted in percent:
//! neighbours (busy processes) start and end at percents of the pool, and a plot shows the time of each percent.

mod facts;
mod progress;

use std::ops::Range;
use std::time::Duration;

use caribou::pools::{Accumulator, PoolReport};
use caribou::{Config, lb};

pub use self::facts::PoolFacts;
use self::progress::ProgressSteps;
use super::disturbance::Window;
use super::error::Error;
use super::program::{RunContext, Total};
use super::shape::Shape;
use super::times::Times;

/// Time between two reports of progress: short enough to see each percent of a run of some seconds, and cheap.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// The shape of programs with independent iterations.
#[derive(Clone, Copy, Debug)]
pub struct Pool;

/// Pools have only the options of all programs.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PoolOptions {}

impl Shape for Pool {
    type Options = PoolOptions;
    type Report = PoolReport;
    type Facts = PoolFacts;

    const SHAPE: lb::Shape = lb::Shape::Pools;
    const HELP: &'static [(&'static str, &'static str)] = &[
        ("lb", "The strategy and its parameters; `help` lists them [default: CARIBOU_LB, then leases]"),
        (
            "compare",
            "Strategies to run one after the other and compare, as in static,leases,chunk=0.05,ruper",
        ),
        ("ranks", "Ranks [default: CARIBOU_RANKS, then 1; under mpirun each process is one]"),
        (
            "workers",
            "Worker threads of each rank [default: CARIBOU_WORKERS, then as many as there are vCPUs for]",
        ),
    ];

    fn size(config: &Config) -> (u32, u32) {
        config.pool_size()
    }

    fn steps(_: Total) -> u32 {
        100
    }

    fn end_ns(report: &PoolReport) -> u64 {
        report.elapsed_ns
    }

    fn facts(_: &str, report: PoolReport, times: &Times, _: &[Window]) -> PoolFacts {
        PoolFacts::new(report, times)
    }
}

/// Makes one run of `iterations` iterations of about `cost` each. Every process of a job gets the result.
///
/// # Errors
/// Those of the runtime.
pub fn run<A: Accumulator>(
    stage: &RunContext<'_>,
    iterations: u64,
    cost: Duration,
    init: impl Fn() -> A + Sync,
    body: impl Fn(&mut A, Range<u64>) + Sync,
) -> Result<(A, PoolReport), Error> {
    let marks = ProgressSteps::of(stage.clock);
    let pool = caribou::Pool::new(stage.config, iterations).cost_hint(cost);
    let outcome = pool.on_progress(LOOK_EVERY, |progress| marks.tell(progress)).run(&init, &body)?;
    marks.end(outcome.report.elapsed_ns);
    Ok((outcome.result, outcome.report))
}
