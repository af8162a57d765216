//! Implements [`Shape`] for programs in supersteps. [`run`] makes one run of such a program.
//!
//! A step of the clock is one superstep: neighbours (busy processes) start and end at steps, and a plot shows the time
//! of each. If a program runs until its answer is good enough, only the end shows the number of steps. The total is
//! then the maximum.

mod clocked;
mod facts;

use caribou::supersteps::{SuperstepOutcome, SuperstepReport};
use caribou::{Config, lb};

use self::clocked::ClockedProgram;
pub use self::facts::SuperstepFacts;
use super::disturbance::Window;
use super::error::Error;
use super::program::{RunContext, Total};
use super::shape::Shape;
use super::times::Times;

/// The shape of programs that compute in steps on divisible data. A step ends when all workers have computed.
#[derive(Clone, Copy, Debug)]
pub struct Superstep;

/// Programs in supersteps have only the options of all programs.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SuperstepOptions {}

impl Shape for Superstep {
    type Options = SuperstepOptions;
    type Report = SuperstepReport;
    type Facts = SuperstepFacts;

    const SHAPE: lb::Shape = lb::Shape::Supersteps;
    const ALONE: Option<&'static str> =
        Some("With one rank of one worker there is nothing to balance: --ranks 2 shows balancing.");
    const HELP: &'static [(&'static str, &'static str)] = &[
        ("lb", "The policy and its parameters; `help` lists them [default: CARIBOU_LB, then des]"),
        ("compare", "Policies to run one after the other and compare, as in equal,load-factor,des"),
        ("ranks", "Ranks [default: CARIBOU_RANKS, then one per vCPU; under mpirun each process is one]"),
        ("workers", "Worker threads of each rank, a share each [default: CARIBOU_WORKERS, then 1]"),
        (
            "neighbour",
            "Run a busy process on the vCPU of that rank's first worker, from step FROM to TO, using DUTY of that \
             vCPU (0.5 or 50%); RANK:random:SEED: busy and quiet in turns, for 0.2 to 3 seconds each, at random by \
             seed; repeatable",
        ),
        ("plot", "Plot the time of each step"),
    ];

    fn size(config: &Config) -> (u32, u32) {
        (config.rank_count(), config.worker_count())
    }

    fn steps(total: Total) -> u32 {
        u32::try_from(total.count).unwrap_or(u32::MAX)
    }

    fn facts(_: &str, report: SuperstepReport, times: &Times, _: &[Window]) -> SuperstepFacts {
        SuperstepFacts::new(report, times)
    }
}

/// Makes one run of `program`. Every process of a job gets the outcome.
///
/// # Errors
/// Those of the runtime.
pub fn run<P: caribou::supersteps::Supersteps>(
    stage: &RunContext<'_>,
    program: P,
) -> Result<SuperstepOutcome<P>, Error> {
    let clocked = ClockedProgram::new(program, stage.clock.clone());
    let SuperstepOutcome { shared, units, report } = caribou::supersteps(stage.config, clocked)?;
    Ok(SuperstepOutcome { shared: shared.1, units, report })
}
