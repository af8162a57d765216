//! Implements `caribou simulate pool`: runs pools of independent iterations under pool policies.

use std::io::Write;

use lb_strategies::Choice;
use virtual_cluster::{SWEEPS, Scenario, Sweep};

use super::compare::Comparison;
use super::description::Program;
use super::description::array::set_network;
use super::description::pool::scenario;
use super::description::program::Generator;
use super::options::{ByName, Common};
use super::pool_metrics::PoolMetrics;
use super::{files, sweep, values};
use crate::Error;

/// A pool with a name, a cluster described, or a sweep.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("json", |json| json.help(files::JSON_HELP)))]
#[command(mut_arg("csv", |csv| csv.help(files::CSV_HELP)))]
#[command(mut_arg("plot", |plot| plot.help(files::PLOT_HELP)))]
#[command(mut_arg("list", |list| list.help("List scenarios, sweeps and policies")))]
pub(super) struct Options {
    #[command(flatten)]
    by_name: ByName,
    /// Mean, median and worst excess over many scenarios of one kind, S1 to S6, S8 or `all`.
    #[arg(
        long,
        value_name = "NAME[,NAME..]|all",
        value_delimiter = ',',
        conflicts_with_all = ["described", "cluster", "scenario", "plot"]
    )]
    sweep: Vec<String>,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    described: PoolOptions,
}

/// A pool.
#[derive(clap::Args)]
#[group(id = "described", multiple = true)]
#[command(next_help_heading = "Pool")]
struct PoolOptions {
    /// Iterations of the pool, as in 100000000 or 1e8.
    #[arg(long, value_name = "COUNT", default_value = "1e8", value_parser = values::count)]
    iterations: u64,
    /// The cost of iterations: all the same, or lognormal with this sigma and a mean of 1.
    #[arg(
        long,
        value_name = "constant|lognormal:SIGMA",
        default_value = "constant",
        value_parser = values::checked(values::cost)
    )]
    cost: String,
}

const AFTER_HELP: &str = "\
Excess is how much longer a run takes than the best schedule would; it is n/a where iterations are missing or ranks hang.
Exit code: 0 done, 1 a run is incomplete or an output is lost, as on a full disk, 2 bad options or a file that
cannot be written at all.

Four ranks of which the last is disturbed for twenty minutes
  caribou simulate pool --iterations 1e8 --neighbour 3:600-1800 --compare static,ruper,leases
The paper's figure 7 under two policies, one of them with its parameters
  caribou simulate pool --scenario F7 --compare static,leases,chunk=0.05 --plot f7.svg";

/// Runs the requested simulations and writes their results.
pub(super) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let common = &options.common;
    if common.listed::<Scenario>(write_sweeps, out)? {
        return Ok(());
    }
    common.files.check()?;
    if options.sweep.is_empty() {
        let scenarios = options.scenarios()?;
        return common.run(&scenarios, &common.policies::<Scenario>()?, |_, _| Ok(()), out);
    }
    let comparisons = options.sweeps(out)?;
    common.finish(&comparisons)
}

impl Options {
    /// True if results also go to files.
    pub(super) fn has_files(&self) -> bool {
        self.common.files.any()
    }

    /// The named scenarios, or the described one, on the requested network.
    fn scenarios(&self) -> Result<Vec<Scenario>, Error> {
        let mut description = self.common.describe(false)?;
        if let Some(mut named) = self.by_name.scenarios::<Scenario>()? {
            named.iter_mut().for_each(|scenario| set_network(&description, &mut scenario.network));
            return Ok(named);
        }
        let PoolOptions { iterations, cost } = &self.described;
        description.program = Program {
            generator: Some(Generator::Pool),
            iterations: Some(*iterations),
            cost: Some(cost.clone()),
            ..Program::default()
        };
        Ok(vec![scenario(&description, &self.common.cluster.source("--iterations"))?])
    }

    fn sweeps(&self, out: &mut dyn Write) -> Result<Vec<Comparison<PoolMetrics>>, Error> {
        let sweeps: Vec<&Sweep> = match &self.sweep[..] {
            [all] if all == "all" => SWEEPS.iter().collect(),
            names => names.iter().map(|name| named_sweep(name)).collect::<Result<_, _>>()?,
        };
        let description = self.common.describe(false)?;
        let mut comparisons = Vec::new();
        for (place, one) in sweeps.into_iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            comparisons.extend(sweep::run(
                one,
                self.common.compare.as_deref(),
                |scenario| set_network(&description, &mut scenario.network),
                out,
            )?);
        }
        Ok(comparisons)
    }
}

fn named_sweep(name: &str) -> Result<&'static Sweep, Error> {
    let sweep = SWEEPS.iter().find(|sweep| sweep.name == name.trim());
    sweep.ok_or_else(|| {
        let choice = Choice::new(name.trim(), SWEEPS.iter().map(|sweep| sweep.name));
        Error::Usage(format!("--sweep: unknown sweep {choice}, or all"))
    })
}

fn write_sweeps(out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "sweeps")?;
    SWEEPS.iter().try_for_each(|sweep| writeln!(out, "  {:<12}{}", sweep.name, sweep.about))?;
    writeln!(out)
}
