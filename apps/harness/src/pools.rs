//! Programs that are pools of iterations: their interface to the harness, and one run.
//!
//! A pool has no iterations that end together, so there is nothing like `--period`. Its progress is told in hundredths:
//! neighbours come and go at percents of the pool, and a plot shows the time of each percent.

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

/// Forty looks a second tell the percents of a run of some seconds apart, and cost nothing.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Iterations that know nothing of each other.
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

/// Makes one run of `iterations`, each of which costs about `cost`. Of several processes each gets the result.
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
