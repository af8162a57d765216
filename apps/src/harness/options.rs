//! The options that every balanced program here has: strategies, ranks, disturbances, files.

use std::path::{Path, PathBuf};

use caribou::Config;
use caribou::lb::Shape;
use serde::Serialize;

use crate::harness::disturbance::{Disturbances, NeighbourSpec, QuotaSpec, SlowSpec};
use crate::harness::error::Error;
use crate::harness::output::Output;
use crate::harness::plot::{self, Picture};
use crate::harness::shape;

/// Flattened into a program's own options. What is not given comes from `CARIBOU_*`, then from the program.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Balancing {
    /// The strategy and its parameters [default: CARIBOU_LB, then refine]
    #[arg(long, value_name = "NAME[,KEY=VALUE]", conflicts_with = "compare")]
    pub lb: Option<String>,
    /// Strategies to run one after the other and compare, as in none,refine,tolerance=0.1
    #[arg(long, value_name = "LIST")]
    pub compare: Option<String>,
    /// Iterations between two syncs [default: CARIBOU_LB_PERIOD, then 20; 0 for never]
    #[arg(long, value_name = "ITERATIONS")]
    pub period: Option<u64>,
    /// Ranks [default: CARIBOU_RANKS, then one per vCPU; under mpirun each process is one]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    /// Worker threads of each rank [default: CARIBOU_WORKERS, then 1; under mpirun one per core of the rank]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: Option<u32>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a comment here would replace the description of the program")]
    pub disturbing: Disturbing,
    /// Let that rank compute FACTOR times slower, as on a slower vCPU: its kernel, and the loop by which the runtime
    /// measures speed; repeatable
    #[arg(long, value_name = "RANK:FACTOR", value_parser = SlowSpec::parse)]
    pub slow: Vec<SlowSpec>,
    /// Plot iteration time against iteration
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write the numbers of the table, and every iteration and sync
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
}

/// What is done to runs on purpose; of every program, whatever its shape.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Disturbing {
    /// A busy process on the vCPU of that rank's first worker, for the iterations FROM to TO (of a pool: from
    /// percent to percent of it), asking for DUTY of that vCPU (0.5 or 50%); repeatable
    #[arg(long, value_name = "RANK[:FROM-TO][:DUTY]", value_parser = NeighbourSpec::parse)]
    pub neighbour: Vec<NeighbourSpec>,
    /// Limit that rank's workers to PERCENT of their vCPUs, where control groups are writable; repeatable
    #[arg(long, value_name = "RANK:PERCENT", value_parser = QuotaSpec::parse)]
    pub quota: Vec<QuotaSpec>,
}

impl Disturbing {
    /// What is to be done to each run.
    #[must_use]
    pub fn disturbances(&self) -> Disturbances {
        let (neighbours, quotas) = (self.neighbour.clone(), self.quota.clone());
        Disturbances { neighbours, quotas, slowed: Vec::new() }
    }
}

impl Balancing {
    /// `config`, which comes from the environment, with what the options say.
    #[must_use]
    pub fn configure(&self, mut config: Config) -> Config {
        if let Some(workers) = self.workers {
            config = config.workers(workers);
        }
        if let Some(ranks) = self.ranks {
            config = config.ranks(ranks);
        }
        if let Some(period) = self.period {
            config = config.period(period);
        }
        self.slow.iter().fold(config, |config, spec| config.slowed(spec.rank, spec.factor))
    }

    /// What is to be done to each run.
    #[must_use]
    pub fn disturbances(&self) -> Disturbances {
        Disturbances { slowed: self.slow.clone(), ..self.disturbing.disturbances() }
    }

    /// A configuration for each run, in order: `config` with each of the strategies asked for, all for arrays.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the option or the variable, when one is for pools, or there is no such strategy or parameter.
    pub fn configs(&self, config: &Config) -> Result<Vec<Config>, Error> {
        shape::configs(Shape::Arrays, config, self.lb.as_deref(), self.compare.as_deref())
    }

    /// The files for results, open.
    ///
    /// # Errors
    /// [`Error::Output`], naming the first that cannot be written.
    pub fn outputs(&self) -> Result<Outputs, Error> {
        Outputs::open(self.plot.as_deref(), self.json.as_deref())
    }
}

/// Where results go besides the terminal.
#[derive(Debug)]
pub struct Outputs {
    /// For the plot.
    plot: Option<Output>,
    /// For the numbers.
    json: Option<Output>,
}

impl Outputs {
    /// The files that were asked for, open.
    ///
    /// # Errors
    /// [`Error::Output`], naming the first that cannot be written.
    pub(crate) fn open(plot: Option<&Path>, json: Option<&Path>) -> Result<Self, Error> {
        Ok(Self { plot: plot.map(Output::open).transpose()?, json: json.map(Output::open).transpose()? })
    }

    /// Writes what was asked for.
    ///
    /// # Errors
    /// [`Error::Output`], naming the file.
    ///
    /// # Panics
    /// When `summary` has maps with other keys than names.
    pub fn write<S: Serialize>(self, summary: &S) -> Result<(), Error>
    where
        for<'s> Picture: From<&'s S>,
    {
        if let Some(json) = self.json {
            let text = serde_json::to_string_pretty(summary).expect("a summary has only names as keys");
            json.write(&(text + "\n"))?;
        }
        if let Some(file) = self.plot {
            file.write(&plot::svg(&summary.into()))?;
        }
        Ok(())
    }
}
