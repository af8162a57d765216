//! Implements `caribou simulate pool`: runs pools of independent iterations under pool policies.

use std::io::Write;

use lb_strategies::{Choice, Listing, POOLS};
use virtual_cluster::{SCENARIOS, SWEEPS, Scenario, Sweep, scenario};

use super::cluster::{self, NetworkOptions};
use super::compare::{Comparison, Policy, all_complete, write_tables};
use super::files::Files;
use super::pool_metrics::PoolMetrics;
use super::{pool_described, sweep};
use crate::Error;

/// A pool with a name, a cluster described, or a sweep.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Options {
    /// Named scenarios, or `all`; --list lists them. Without one, the cluster described below.
    #[arg(long, value_name = "NAME[,NAME..]|all", value_delimiter = ',', conflicts_with_all = ["described", "cluster"])]
    scenario: Vec<String>,
    /// Mean, median and worst excess over many scenarios of one kind, S1 to S6, S8 or `all`.
    #[arg(
        long,
        value_name = "NAME[,NAME..]|all",
        value_delimiter = ',',
        conflicts_with_all = ["described", "cluster", "scenario", "plot"]
    )]
    sweep: Vec<String>,
    /// List scenarios, sweeps and policies.
    #[arg(long, exclusive = true)]
    list: bool,
    /// Policies for pools with their parameters, as in static,leases,chunk=0.05; all of them if not given.
    #[arg(long, value_name = "SPEC[,SPEC..]")]
    compare: Option<String>,
    #[command(flatten)]
    wires: NetworkOptions,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    cluster: cluster::Options,
    #[command(flatten)]
    described: pool_described::Options,
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
    if options.list {
        return write_list(out);
    }
    options.files.check()?;
    let list = options.compare.as_deref();
    let comparisons = if options.sweep.is_empty() {
        write_tables(&options.scenarios()?, &Policy::list(&POOLS, list)?, about, out)?
    } else {
        options.sweeps(out)?
    };
    options.files.write(&comparisons)?;
    all_complete(&comparisons)
}

impl Options {
    /// The named scenarios, or the described one, on the requested network.
    fn scenarios(&self) -> Result<Vec<Scenario>, Error> {
        let mut scenarios = match &self.scenario[..] {
            [] => vec![self.described.scenario(&self.cluster, self.wires.seed)?],
            [all] if all == "all" => SCENARIOS.iter().map(|entry| entry.build()).collect(),
            names => names.iter().map(|name| named(name)).collect::<Result<_, _>>()?,
        };
        scenarios.iter_mut().for_each(|scenario| self.wires.apply(&mut scenario.network));
        Ok(scenarios)
    }

    fn sweeps(&self, out: &mut dyn Write) -> Result<Vec<Comparison<PoolMetrics>>, Error> {
        let sweeps: Vec<&Sweep> = match &self.sweep[..] {
            [all] if all == "all" => SWEEPS.iter().collect(),
            names => names.iter().map(|name| named_sweep(name)).collect::<Result<_, _>>()?,
        };
        let mut comparisons = Vec::new();
        for (place, one) in sweeps.into_iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            comparisons.extend(sweep::run(
                one,
                self.compare.as_deref(),
                |scenario| self.wires.apply(&mut scenario.network),
                out,
            )?);
        }
        Ok(comparisons)
    }
}

/// Description of a named scenario, to precede its size.
fn about(scenario: &Scenario) -> String {
    let entry = SCENARIOS.iter().find(|entry| entry.name == scenario.name);
    entry.map_or_else(String::new, |entry| format!("{}; ", entry.about))
}

fn named(name: &str) -> Result<Scenario, Error> {
    scenario(name.trim())
        .map_err(|choice| Error::Usage(format!("--scenario: unknown scenario {choice}, or all")))
}

fn named_sweep(name: &str) -> Result<&'static Sweep, Error> {
    let sweep = SWEEPS.iter().find(|sweep| sweep.name == name.trim());
    sweep.ok_or_else(|| {
        let choice = Choice::new(name.trim(), SWEEPS.iter().map(|sweep| sweep.name));
        Error::Usage(format!("--sweep: unknown sweep {choice}, or all"))
    })
}

fn write_list(out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "scenarios")?;
    for entry in SCENARIOS {
        writeln!(out, "  {:<12}{}", entry.name, entry.about)?;
    }
    writeln!(out, "\nsweeps")?;
    for sweep in SWEEPS {
        writeln!(out, "  {:<12}{}", sweep.name, sweep.about)?;
    }
    writeln!(out, "\npolicies")?;
    Ok(out.write_all(POOLS.help().as_bytes())?)
}
