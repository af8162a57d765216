//! What every pool here shares: its options, one run per strategy under the same disturbances, and what is told of them.
//!
//! A pool has no iterations that end together, so nothing like `--period`. Its progress is told in [`PARTS`], hundredths:
//! neighbours come and go at percents of the pool, and a plot shows what each percent took.
//!
//! | module | answers |
//! |---|---|
//! | `runs` | how a pool is run once per strategy |
//! | `summary` | what is told of the runs: a table, a plot, JSON |

mod runs;
mod summary;

use std::path::PathBuf;

use caribou::Launch;
use caribou::lb::Shape;

pub use self::runs::PoolRuns;
pub use self::summary::{PoolSummary, PooledRun};
use crate::harness::error::Error;
use crate::harness::experiment::{Experiment, Total};
use crate::harness::launch;
use crate::harness::machine::Machine;
use crate::harness::options::{Disturbing, Outputs};
use crate::harness::shape;

/// The parts in which the progress of a pool is told.
pub const PARTS: u32 = 100;

/// Flattened into a pool's own options. What is not given comes from `CARIBOU_*`, then from the program.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Pooling {
    /// The strategy for pools and its parameters; CARIBOU_LB=help lists them [default: CARIBOU_LB, then leases]
    #[arg(long, value_name = "NAME[,KEY=VALUE]", conflicts_with = "compare")]
    pub lb: Option<String>,
    /// Strategies to run one after the other and compare, as in static,leases,chunk=0.05,ruper
    #[arg(long, value_name = "LIST")]
    pub compare: Option<String>,
    /// Ranks [default: CARIBOU_RANKS, then 1; under mpirun each process is one]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    /// Worker threads of each rank [default: CARIBOU_WORKERS, then as many as there are vCPUs for]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: Option<u32>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a comment here would replace the description of the program")]
    pub disturbing: Disturbing,
    /// Plot what each percent of the pool took
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write the numbers of the runs, and of every worker
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
}

impl Pooling {
    /// The runs that were asked for, of so many iterations, which are called something.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::Runtime`], naming the option or variable that cannot be met.
    pub fn prepare(&self, total: Total) -> Result<PoolRuns, Error> {
        let mut config = launch::config()?;
        if let Some(workers) = self.workers {
            config = config.workers(workers);
        }
        if let Some(ranks) = self.ranks {
            config = config.ranks(ranks);
        }
        let launch = config.launch();
        let (ranks, workers) = config.pool_size();
        let experiment = Experiment {
            iterations: PARTS,
            total,
            ranks: launch::ranks(launch, self.ranks, ranks, workers)?,
            // Under mpirun also the default is the run's to choose, and told in its report.
            workers: (launch == Launch::Alone).then_some(workers),
            disturbances: self.disturbing.disturbances(),
            machine: Machine::this(),
            launch,
        };
        experiment.check()?;
        let configs = shape::configs(Shape::Pools, &config, self.lb.as_deref(), self.compare.as_deref())?;
        Ok(PoolRuns::new(configs, experiment))
    }

    /// The files for results, open.
    ///
    /// # Errors
    /// [`Error::Output`], naming the first that cannot be written.
    pub fn outputs(&self) -> Result<Outputs, Error> {
        Outputs::open(self.plot.as_deref(), self.json.as_deref())
    }
}

/// What is said where every result was the serial one.
pub const CHECKED: &str = "Every run ended with the serial program's result, number by number.\n";

/// The complaint about a result that is not the serial one.
///
/// # Errors
/// [`Error::Differs`] when there is a difference.
pub fn same(lb: &str, difference: Option<String>) -> Result<(), Error> {
    difference.map_or(Ok(()), |difference| Err(Error::Differs { lb: lb.to_owned(), difference }))
}
