//! Implements [`Shape`] for programs that are arrays of chunks. [`run`] makes one run of such a program.
//!
//! Chunks report to the [`Observers`] the start of the first iteration, each number of iterations that all ranks have
//! completed (which chunks find by a reduction), and at the end their parts of the result.

mod observers;
mod syncs;

use std::sync::{Arc, Mutex, PoisonError};

use caribou::config::Period;
use caribou::{Config, Report, Setup, lb};

pub use self::observers::{Observers, Part};
#[cfg(test)]
pub(crate) use self::syncs::tests;
pub use self::syncs::{SyncRecord, Syncs};
use super::disturbance::{SlowSpec, Window};
use super::error::Error;
use super::program::{RunContext, Total};
use super::shape::Shape;
use super::times::Times;

/// The shape of programs of chunks that send each other messages. Chunks migrate at syncs or in balancing windows.
#[derive(Clone, Copy, Debug)]
pub struct Array;

/// The options of arrays.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ArrayOptions {
    /// When to balance chunks: auto (while they run, when it is likely to pay), a TIME such as 100ms (while they run,
    /// measured once in that time), or a number of ITERATIONS between two syncs (0 for never) [default:
    /// CARIBOU_LB_PERIOD, then auto]
    #[arg(long, value_name = "ITERATIONS|auto|TIME", value_parser = str::parse::<Period>)]
    pub period: Option<Period>,
    /// Make that rank compute FACTOR times slower, as on a slower vCPU: both its kernel and the loop that measures its
    /// speed; repeatable
    #[arg(long, value_name = "RANK:FACTOR", value_parser = SlowSpec::parse)]
    pub slow: Vec<SlowSpec>,
}

impl Shape for Array {
    type Options = ArrayOptions;
    type Report = Report;
    type Facts = Syncs;

    const SHAPE: lb::Shape = lb::Shape::Arrays;
    const ALONE: Option<&'static str> =
        Some("With one rank there is nothing to balance: two vCPUs or --ranks 2 show balancing.");
    const HELP: &'static [(&'static str, &'static str)] = &[
        ("lb", "The strategy and its parameters; `help` lists them [default: CARIBOU_LB, then refine]"),
        (
            "compare",
            "Strategies to run one after the other and compare, as in none,refine,tolerance=0.1: the part of the \
             first one's time that each saved, and the most it could have saved",
        ),
        ("ranks", "Ranks [default: CARIBOU_RANKS, then one per vCPU; under mpirun each process is one]"),
        (
            "workers",
            "Worker threads of each rank [default: CARIBOU_WORKERS, then 1; under mpirun one per core of the rank]",
        ),
    ];

    fn configure(options: &ArrayOptions, mut config: Config) -> Config {
        if let Some(period) = options.period {
            config = config.balance(period);
        }
        options.slow.iter().fold(config, |config, spec| config.slowed(spec.rank, spec.factor))
    }

    fn slowed(options: &ArrayOptions) -> Vec<SlowSpec> {
        options.slow.clone()
    }

    fn size(config: &Config) -> (u32, u32) {
        // One thread runs all ranks of a simulated run.
        (config.rank_count(), if config.is_simulated() { 1 } else { config.worker_count() })
    }

    fn steps(total: Total) -> u32 {
        total.count as u32
    }

    fn period(config: &Config) -> Option<Period> {
        Some(config.balanced())
    }

    fn facts(lb: &str, report: Report, times: &Times, windows: &[Window]) -> Syncs {
        Syncs::new(lb, report, times, windows)
    }
}

/// Makes one run of `chunks` chunks, which `set_up` adds to the runtime. Each chunk delivers one part of type `T` at
/// the end. Returns the parts in the process of rank 0 if results are compared, else an empty list.
///
/// # Errors
/// Those of the runtime.
pub fn run<T: Part>(
    stage: &RunContext<'_>,
    chunks: u64,
    set_up: impl Fn(&mut Setup) + Send + Sync,
) -> Result<(Vec<T>, Report), Error> {
    let parts = stage.gathers.then(|| Arc::new(Mutex::new(Vec::new())));
    let launch = stage.config.launch();
    let report = caribou::run(stage.config.clone(), |setup| {
        Observers::set_up(setup, launch, chunks, stage.clock, parts.as_ref());
        set_up(setup);
    })?;
    let delivered =
        parts.map(|parts| std::mem::take(&mut *parts.lock().unwrap_or_else(PoisonError::into_inner)));
    Ok((delivered.unwrap_or_default(), report))
}
